"""A chain of dependent launches: each kernel loads its weight while the one before it still runs.

    python examples/host/chain.py        needs a GPU of compute capability 9.0

Before its wait a kernel reads its weight alone, which no launch writes. Launched with `dependent=True`, that is
checked as it runs against every launch that may still run. `by_hand` has `launch_pdl=True`, which
`tilecheck verify` shows ordered.
"""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl

from tilecheck import host

LAYERS = 24
SIZE = 1 << 16
BLOCK = 1024


@triton.jit
def add_weight(w_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """`out = x + w`, with the weight loaded before the launch before has ended."""
    tl.extra.cuda.gdc_launch_dependents()
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(w_ptr + at, mask=at < n)
    tl.extra.cuda.gdc_wait()
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x + w, mask=at < n)


def by_hand(w: torch.Tensor, x: torch.Tensor, layers: int) -> torch.Tensor:
    """`x + 2 * layers * w`."""
    assert x.shape == (SIZE,) and x.is_contiguous() and w.shape == (SIZE,) and w.is_contiguous()
    half, out = torch.empty_like(x), x.clone()
    for _ in range(layers):
        add_weight[(SIZE // BLOCK,)](w, out, half, SIZE, BLOCK=BLOCK, launch_pdl=True)
        add_weight[(SIZE // BLOCK,)](w, half, out, SIZE, BLOCK=BLOCK, launch_pdl=True)
    return out


def chained(layers: int) -> float:
    """Add a weight of ones as often as there are layers; the first element."""
    stream = host.stream()
    w = host.full(SIZE, 1.0).submit(stream)
    x, y = host.zeros(SIZE).submit(stream), host.zeros(SIZE).submit(stream)
    grid = (SIZE // BLOCK,)
    for _ in range(layers // 2):
        host.launch(add_weight, grid, (w, x, y, SIZE), BLOCK=BLOCK, dependent=True).submit(stream)
        host.launch(add_weight, grid, (w, y, x, SIZE), BLOCK=BLOCK, dependent=True).submit(stream)
    return float(host.copy_to_host(x).sync_on(stream).tolist()[0])


def main() -> int:
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (9, 0):
        print("skipped: this example needs an NVIDIA GPU of compute capability 9.0")
        return 0
    w, x = torch.ones(2, SIZE, device="cuda")
    is_right = torch.equal(by_hand(w, x, LAYERS // 2), x + LAYERS)
    found, expected = chained(LAYERS), float(LAYERS)
    print(f"{LAYERS} layers: {found}, expected {expected}")
    return 0 if is_right and found == expected else 1


if __name__ == "__main__":
    sys.exit(main())
