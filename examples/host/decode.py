"""A step of a decoder that is captured once and launched for each token, with the token as a declared input.

    python examples/host/decode.py

The graph owns what it uses. New contents get in by `update`, which copies; what comes out is borrowed until the
next launch, so it is copied to the host before that. `by_hand` is the same with PyTorch's graphs, which
`tilecheck verify` shows ordered.
"""

from __future__ import annotations

import sys

import torch

from tilecheck import host
from tilecheck.kernels.triton.softmax import softmax_kernel
from tilecheck.kernels.triton.vector_add import BLOCK, vector_add_kernel

VOCABULARY = 1024
STEPS = 8


def by_hand(
    logits: torch.Tensor, following: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The probabilities of two steps, by two replays of one graph."""
    assert logits.shape == (VOCABULARY,) and logits.is_contiguous()
    assert following.shape == logits.shape and bias.shape == logits.shape and bias.is_contiguous()
    captured_logits = torch.empty_like(logits)
    biased, probabilities = torch.empty_like(logits), torch.empty_like(logits)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        vector_add_kernel[(VOCABULARY // BLOCK,)](captured_logits, bias, biased, VOCABULARY, BLOCK=BLOCK)
        softmax_kernel[(1,)](biased, probabilities, VOCABULARY, VOCABULARY, 1, VOCABULARY, BLOCK=VOCABULARY)
    captured_logits.copy_(logits)
    graph.replay()
    first = probabilities.clone()
    captured_logits.copy_(following)
    graph.replay()
    return first, probabilities.clone()


def captured() -> host.Graph[None]:
    """The graph of one step: `logits` + a bias, and the softmax of that as `probabilities`."""
    bias = host.full(VOCABULARY, 0.5).sync()
    logits, biased = host.zeros(VOCABULARY).sync(), host.zeros(VOCABULARY).sync()
    probabilities = host.zeros(VOCABULARY).sync()
    grid = (VOCABULARY // BLOCK,)
    with host.capture(inputs={"logits": logits}) as scope:
        host.launch(vector_add_kernel, grid, (logits, bias, biased, VOCABULARY), BLOCK=BLOCK).submit()
        rows = (biased, probabilities, VOCABULARY, VOCABULARY, 1, VOCABULARY)
        host.launch(softmax_kernel, (1,), rows, BLOCK=VOCABULARY).submit()
        scope.output("probabilities", probabilities)
    return scope.graph


def decode(steps: int) -> list[int]:
    """The most probable token of each step, with logits that favour one token after the other."""
    stream = host.stream()
    graph = captured()
    tokens = []
    for step in range(steps):
        logits = [0.0] * VOCABULARY
        logits[step * 7 % VOCABULARY] = 4.0
        graph.update({"logits": logits}, stream)
        graph.launch(stream)
        found = host.copy_to_host(graph.output("probabilities")).sync_on(stream).tolist()
        tokens.append(found.index(max(found)))
    graph.close()
    return tokens


def main() -> int:
    if not torch.cuda.is_available():
        print("skipped: this example needs an NVIDIA GPU")
        return 0
    one, other, bias = torch.randn(3, VOCABULARY, device="cuda")
    found = by_hand(one, other, bias)  # verified before; this compiles the kernels
    right = [torch.softmax(x + bias, 0) for x in (one, other)]
    is_right = all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, right, strict=True))
    tokens, expected = decode(STEPS), [step * 7 for step in range(STEPS)]
    print(f"tokens {tokens}, expected {expected}")
    return 0 if is_right and tokens == expected else 1


if __name__ == "__main__":
    sys.exit(main())
