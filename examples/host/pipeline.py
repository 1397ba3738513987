"""A pipeline of four streams: copy a chunk in, compute, copy the result out, each chunk on the next stream.

    python examples/host/pipeline.py

What one stream does is in order by itself, and no two streams touch one element, so nothing waits in between.
`by_hand` is the same idea with streams of PyTorch: `tilecheck verify` shows it ordered. `doubled` goes through
`tilecheck.host`, which checks the order as it runs.
"""

from __future__ import annotations

import sys

import torch

from tilecheck import host
from tilecheck.kernels.triton.vector_add import BLOCK, vector_add_kernel

STREAMS = 4
CHUNKS = 16
SIZE = 1 << 16  # elements of a chunk


def by_hand(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`x + y` for matrices of four rows, each row on a stream of its own."""
    assert x.shape == (STREAMS, SIZE) and x.is_contiguous()
    assert y.shape == x.shape and y.is_contiguous()
    out = torch.empty_like(x)
    main = torch.cuda.current_stream()
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]
    for k in range(STREAMS):
        streams[k].wait_stream(main)
        with torch.cuda.stream(streams[k]):
            vector_add_kernel[(SIZE // BLOCK,)](x[k], y[k], out[k], SIZE, BLOCK=BLOCK)
    for k in range(STREAMS):
        main.wait_stream(streams[k])
    return out


def doubled(chunks: int) -> float:
    """Double chunks that the host fills with their numbers; the sum of the first elements that come back."""
    grid = (SIZE // BLOCK,)
    lanes = []
    for _ in range(STREAMS):
        stream = host.stream()
        x, out = host.zeros(SIZE).submit(stream), host.zeros(SIZE).submit(stream)
        lanes.append((stream, x, out, host.pinned(SIZE), host.pinned(SIZE)))
    total = 0.0
    for chunk in range(chunks + STREAMS):
        stream, x, out, source, target = lanes[chunk % STREAMS]
        stream.sync()  # the chunk before on this stream: its result is there, and its source is free
        if chunk >= STREAMS:
            total += target.tolist()[0]
        if chunk < chunks:
            source.assign([float(chunk)] * SIZE)
            host.copy_to_device(source, x).submit(stream)
            host.launch(vector_add_kernel, grid, (x, x, out, SIZE), BLOCK=BLOCK).submit(stream)
            host.copy_to_host(out, target).submit(stream)
    return total


def main() -> int:
    if not torch.cuda.is_available():
        print("skipped: this example needs an NVIDIA GPU")
        return 0
    x = torch.arange(STREAMS * SIZE, dtype=torch.float32, device="cuda").view(STREAMS, SIZE)
    is_right = torch.equal(by_hand(x, x), x + x)
    total, expected = doubled(CHUNKS), float(CHUNKS * (CHUNKS - 1))
    print(f"{CHUNKS} chunks on {STREAMS} streams: {total}, expected {expected}")
    return 0 if is_right and total == expected else 1


if __name__ == "__main__":
    sys.exit(main())
