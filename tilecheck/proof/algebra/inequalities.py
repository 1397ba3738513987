"""Inequalities in the form in which bounds are read off them."""

from __future__ import annotations

from tilecheck.dataclass import dataclass
from tilecheck.proof.algebra.polynomial import UNIT, Monomial, Polynomial


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """An inequality p >= 0 by its terms: c*a, c*m for longer m, and the literal."""

    linear: tuple[tuple[int, int], ...]
    products: tuple[tuple[Monomial, int], ...]
    literal: int
    atoms: tuple[int, ...]

    @classmethod
    def of(cls, p: Polynomial) -> Row:
        linear, products = [], []
        atoms: list[int] = []
        factors: list[int] = []
        for m, c in p.items():
            if len(m) == 1:
                linear.append((m[0], c))
                atoms.append(m[0])
            elif m:
                products.append((m, c))
                factors += m
        return cls(tuple(linear), tuple(products), p.get(UNIT, 0), (*atoms, *factors))
