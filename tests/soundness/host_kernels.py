"""The kernels that drawn host functions launch: small ones, each in several ways to wait for earlier launches.

All of them take arrays of `n` elements and touch every one of them, each program its own. `early` is what a
kernel reads before its wait; one that never waits may do everything early.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

HEAD = """import torch
import triton
import triton.language as tl
"""
BLOCK = 256


class Wait(enum.Enum):
    """Where the kernel waits for the launches before its own."""

    NEVER = ""
    FIRST = "_waiting"
    LATE = "_late"  # when it has read everything
    PREFETCH = "_prefetching"  # when it has read its last input, a weight


@dataclass(frozen=True)
class Operation:
    """`out = expression`, with one array for each name. An output that is an input too is updated."""

    inputs: tuple[str, ...]
    out: str
    expression: str
    number: bool = False
    cells: frozenset[str] = frozenset()  # inputs of one element


OPERATIONS = {
    "scale": Operation(("x",), "out", "x * factor", number=True),
    "shift": Operation(("x",), "out", "x + factor", number=True),
    "add": Operation(("x", "y"), "out", "x + y"),
    "multiply": Operation(("x", "y"), "out", "x * y"),
    "accumulate": Operation(("x", "total"), "total", "total + x"),
    "scale_by_cell": Operation(("x", "cell"), "out", "x * cell", cells=frozenset({"cell"})),
}


@dataclass(frozen=True)
class Kernel:
    """One operation with its way to wait."""

    operation: str
    wait: Wait = Wait.NEVER

    @property
    def name(self) -> str:
        return self.operation + self.wait.value

    @property
    def does(self) -> Operation:
        return OPERATIONS[self.operation]

    @property
    def arrays(self) -> tuple[str, ...]:
        """The array parameters: inputs, and the output if it is not one of them."""
        does = self.does
        return does.inputs if does.out in does.inputs else (*does.inputs, does.out)

    def early(self) -> frozenset[str]:
        """The inputs that are read before the wait."""
        if self.wait in {Wait.LATE, Wait.NEVER}:
            return frozenset(self.does.inputs)
        return frozenset(self.does.inputs[-1:]) if self.wait is Wait.PREFETCH else frozenset()

    def text(self) -> str:
        does = self.does
        parameters = [f"{name}_ptr" for name in self.arrays] + ["n"] + ["factor"] * does.number
        waits = self.wait is not Wait.NEVER
        lines = ["@triton.jit", f"def {self.name}({', '.join(parameters)}, BLOCK: tl.constexpr):"]
        lines.append("    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)")
        lines += [_load(name, does) for name in does.inputs if name in self.early()]
        lines += ["    tl.extra.cuda.gdc_wait()"] * waits
        lines += [_load(name, does) for name in does.inputs if name not in self.early()]
        lines.append(f"    tl.store({does.out}_ptr + i, {does.expression}, mask=i < n)")
        return "\n".join(lines) + "\n"


def _load(name: str, does: Operation) -> str:
    if name in does.cells:
        return f"    {name} = tl.load({name}_ptr)"
    return f"    {name} = tl.load({name}_ptr + i, mask=i < n)"
