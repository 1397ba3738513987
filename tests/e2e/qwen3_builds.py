"""Compiles every Triton kernel that the engine launches for sm_90, with the types that it has on a GPU.

    PYTHONPATH=examples:benchmarks python tests/e2e/qwen3_builds.py

Needs Triton and no GPU. The engine decodes on a machine that launches nothing and remembers what it was asked
to launch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import triton
from qwen3.checkpoint import Tensor
from qwen3.config import Sampling
from qwen3.decoder import Decoder
from qwen3.machine import Reference
from qwen3.weights import load
from qwen3_models import Drawn, config_of
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tilecheck import host

HALF = "float16"  # stands for bfloat16, which NumPy has not
TYPES = {HALF: "*bf16", "float32": "*fp32", "int32": "*i32"}
Signature = tuple[tuple[str, Any], ...]


class Recorder(Reference):
    """A machine that remembers the types of its launches. Mutable: `seen` grows."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[tuple[Any, Signature, int], None] = {}

    def weight(self, parts: Sequence[Tensor]) -> host.Shared:
        data = np.concatenate([part.as_float32() for part in parts]).astype(HALF)
        with host.using(self.runtime):
            return host.share(host.copy_to_device(data).sync_on(self.stream))

    def zeros(self, shape: tuple[int, ...], dtype: str) -> host.Array:
        with host.using(self.runtime):
            return host.zeros(shape, dtype=HALF if dtype == "weight" else dtype).sync_on(self.stream)

    def launch(
        self,
        kernel: Any,
        grid: tuple[int, ...],
        args: Iterable[Any],
        *,
        dependent: bool = False,
        warps: int = 4,
    ) -> None:
        if isinstance(kernel, triton.JITFunction):
            signature = tuple(_typed(p, arg) for p, arg in zip(kernel.params, args, strict=True))
            self.seen[kernel, signature, warps] = None


def _typed(parameter: Any, arg: Any) -> tuple[str, Any]:
    if parameter.is_constexpr:
        return "constexpr", arg
    if isinstance(arg, (int, float)):
        return ("i32" if isinstance(arg, int) else "fp32"), None
    return TYPES[str(arg.dtype)], None


def main() -> None:
    machine = Recorder()
    config = dataclasses.replace(config_of("0.6B"), layers=2, vocabulary=1000)
    weights = load(Drawn("cpu"), config, machine)
    for sequences in (1, 3):
        for sampling in (None, Sampling(temperature=0.8, top_k=20, top_p=0.9)):
            decoder = Decoder(machine, config, weights, 64, sampling, 0, sequences)
            decoder.start([[1, 2, 3]] * sequences)
            for is_short in (False, True):
                decoder._step(is_short=is_short, may_depend=True)  # noqa: SLF001 - a capture needs launches
    for kernel, signature, warps in machine.seen:
        kinds = dict(zip(kernel.arg_names, (kind for kind, _ in signature), strict=True))
        values = zip(kernel.arg_names, signature, strict=True)
        constants = {name: value for name, (kind, value) in values if kind == "constexpr"}
        source = ASTSource(kernel, kinds, constants)
        triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
        print(kernel.__name__, *(kind if kind != "constexpr" else value for kind, value in signature))  # noqa: T201


if __name__ == "__main__":
    main()
