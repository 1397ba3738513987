"""How a step multiplies weights by the vectors of its sequences: which kernels, and with which tiles.

One vector takes plain sums, several take tensor cores. Either way a weight is read once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuda.tile import cdiv

from qwen3.machine import Machine
from tilecheck.kernels.sizes import next_power_of_two, power_of_two_below
from tilecheck.kernels.triton.batch_gemv import (
    LEAST,
    gemv_add_batch_kernel,
    norm_gate_up_batch_kernel,
    norm_gemv_batch_kernel,
)
from tilecheck.kernels.triton.gemv import gemv_add_kernel, norm_gate_up_kernel, norm_gemv_kernel

SMALL, LARGE = 1024, 4096  # vectors up to which other tiles are faster


@dataclass(frozen=True, slots=True)
class Product:
    """A kernel, and the tile of the weight that a program of it holds at once.

    `columns` are two parts of whole rows, or those of one piece.
    """

    kernel: Any
    rows: int
    columns: tuple[int, ...]
    warps: int = 4
    batch: tuple[int, ...] = ()  # the sequences, and the columns of the matrix that their vectors make

    def launch(self, machine: Machine, args: tuple[Any, ...], rows: int, may_depend: bool) -> None:
        """Launch the kernel for a weight of some rows.

        Args:
            machine: where it runs.
            args: those before the sizes of tiles.
            rows: of the weight.
            may_depend: whether it may start while the launch before still runs.
        """
        given = (*args, *self.batch, self.rows, *self.columns, may_depend)
        machine.launch(self.kernel, (cdiv(rows, self.rows),), given, dependent=may_depend, warps=self.warps)


def products(sequences: int, hidden: int) -> tuple[Product, Product, Product, Product]:
    """The products of a step: queries, keys and values; gate and up; attention's output; and down.

    The first two stand behind a norm, the others add to the residual. The tiles are the fastest that were
    measured: on an H100 for models of 0.6B to 8B, on an H200 for 32B.

    Args:
        sequences: decoded at once.
        hidden: elements of the vector of a token.
    """
    if sequences == 1 and hidden > LARGE:
        first = power_of_two_below(hidden)
        whole = (first, next_power_of_two(hidden - first))
        return (
            Product(norm_gemv_kernel, 4, whole, 4),
            Product(norm_gate_up_kernel, 2, whole, 4),
            Product(gemv_add_kernel, 2, (4096,), 4),
            Product(gemv_add_kernel, 2, (1024,), 4),
        )
    if sequences == 1:
        rows, warps = (4 if hidden > SMALL else 2), (8 if hidden == LARGE else 4)
        whole = (next_power_of_two(hidden), 0)  # one tile, and nothing beside it
        add = Product(gemv_add_kernel, rows, (2048,), 8)
        return (
            Product(norm_gemv_kernel, rows, whole, warps),
            Product(norm_gate_up_kernel, 2, whole, warps),
            add,
            add,
        )
    batch = (sequences, max(LEAST, next_power_of_two(sequences)))
    return (
        Product(norm_gemv_batch_kernel, 32, (256,), 2, batch),
        Product(norm_gate_up_batch_kernel, 32, (128,), 2, batch),
        Product(gemv_add_batch_kernel, 32, (512,), 4, batch),
        Product(gemv_add_batch_kernel, 32, (512,), 4, batch),
    )
