"""Fixtures that write a kernel's text to a file and run it on the reference backend."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilecheck.reference import Launch, Log, run

HEADER = "import math\nimport operator\nimport cuda.tile as ct\n\nConstInt = ct.Constant[int]\n\n"

TRITON_HEADER = "import triton\nimport triton.language as tl\n\n"

Runner = Callable[..., Log]


@pytest.fixture
def execute(tmp_path: Path) -> Runner:
    """`execute(text, **arguments)` runs the kernel `k` of `text`; `grid` and `blocks` select blocks."""

    def run_text(
        text: str,
        *,
        grid: tuple[int, ...] = (1,),
        blocks: list[tuple[int, int, int]] | None = None,
        kernel: str = "k",
        header: str = HEADER,
        max_steps: int = 200_000,
        **arguments: Any,
    ) -> Log:
        path = tmp_path / "kernel.py"
        path.write_text(header + textwrap.dedent(text), encoding="utf-8")
        full = (*grid, 1, 1)[:3]
        return run(Launch(path.as_posix(), kernel, (full[0], full[1], full[2]), arguments, blocks, max_steps))

    return run_text


@pytest.fixture
def evaluate(execute: Runner) -> Callable[..., Any]:
    """`evaluate(expression, out, ...)` stores an expression into `out` by one element per lane and gives it."""

    def value(expression: str, out: Any, *, before: str = "pass", **arguments: Any) -> Any:
        names = ", ".join(arguments)
        shapes = [tuple(n if a == axis else 1 for a in range(out.ndim)) for axis, n in enumerate(out.shape)]
        indices = ", ".join(
            f"ct.reshape(ct.arange({extent}, dtype=ct.int32), {shape})"
            for extent, shape in zip(out.shape, shapes, strict=True)
        )
        text = f"""
            @ct.kernel
            def k(out{", " + names if names else ""}):
                {before}
                ct.scatter(out, ({indices}{"," if indices else ""}), {expression})
            """
        log = execute(text, out=out, **arguments)
        value.log = log  # type: ignore[attr-defined]  # the log of the last run, for tests that look at it
        return out

    return value


@pytest.fixture
def triton(execute: Runner) -> Runner:
    """`triton(text, ...)`: as `execute`, for a Triton kernel `k`."""

    def run_text(text: str, **options: Any) -> Log:
        return execute(text, **{"header": TRITON_HEADER, **options})

    return run_text


@pytest.fixture
def triton_values(triton: Runner) -> Callable[..., list[int]]:
    """Store expressions into `out`, one element each, and give `out`."""

    def values(*expressions: str, before: str = "pass", dtype: Any = np.int64, **arguments: Any) -> list[int]:
        out = np.zeros(len(expressions), dtype)
        names = ", ".join(f"{name}: tl.constexpr" if name.isupper() else name for name in arguments)
        lines = [f"@triton.jit\ndef k(out{', ' + names if names else ''}):", f"    {before}"]
        lines += [f"    tl.store(out + {at}, {text})" for at, text in enumerate(expressions)]
        values.log = triton("\n".join(lines), out=out, **arguments)  # type: ignore[attr-defined]
        return out.tolist()

    return values
