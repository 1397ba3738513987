"""How a step multiplies weights by the vectors of its sequences: which kernels, and with which tiles.

One vector takes plain sums, several take tensor cores. Either way a weight is read once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cuda.tile import cdiv

from qwen3.machine import Machine
from tilecheck.kernels.sizes import next_power_of_two
from tilecheck.kernels.triton.batch_gemv import (
    LEAST,
    gemv_add_batch_kernel,
    norm_gate_up_batch_kernel,
    norm_gemv_batch_kernel,
)
from tilecheck.kernels.triton.gemv import gemv_add_kernel, norm_gate_up_kernel, norm_gemv_kernel

WHOLE = 2**30  # columns: a program holds whole rows
SMALL, LARGE = 1024, 4096  # vectors up to and from which other tiles are faster


@dataclass(frozen=True, slots=True)
class Product:
    """A kernel, and the tile of the weight that a program of it holds at once."""

    kernel: Any
    rows: int
    columns: int  # at most
    warps: int = 4
    batch: tuple[int, ...] = ()  # the sequences, and the columns of the matrix that their vectors make

    def launch(self, machine: Machine, args: tuple[Any, ...], sizes: tuple[int, int], may_depend: bool) -> None:
        """Launch the kernel for a weight of some rows and columns.

        Args:
            machine: where it runs.
            args: those before the sizes of tiles.
            sizes: the rows and columns.
            may_depend: whether it may start while the launch before still runs.
        """
        rows, columns = sizes
        tile = (self.rows, min(self.columns, next_power_of_two(columns)))
        given = (*args, *self.batch, *tile, may_depend)
        machine.launch(self.kernel, (cdiv(rows, self.rows),), given, dependent=may_depend, warps=self.warps)


def products(sequences: int, hidden: int) -> tuple[Product, Product, Product]:
    """The products of a step: behind a norm, those of gate and up behind a norm, onto the residual.

    The tiles are the best of those that were measured on an H100 for models of 0.6B to 32B.

    Args:
        sequences: decoded at once.
        hidden: elements of the vector of a token.
    """
    if sequences == 1:
        rows, warps = (4 if hidden > SMALL else 2), (8 if hidden >= LARGE else 4)
        return (
            Product(norm_gemv_kernel, rows, WHOLE, warps),
            Product(norm_gate_up_kernel, 2, WHOLE, warps),
            Product(gemv_add_kernel, rows, 2048, 8),
        )
    batch = (sequences, max(LEAST, next_power_of_two(sequences)))
    return (
        Product(norm_gemv_batch_kernel, 32, 256, 2, batch),
        Product(norm_gate_up_batch_kernel, 32, 128, 2, batch),
        Product(gemv_add_batch_kernel, 32, 512, 4, batch),
    )
