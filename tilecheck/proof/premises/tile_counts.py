"""Indices of tiles stay below their number: `i * B + l < n` gives `i < cdiv(n, B)`.

For a quotient e = y // f of launch values with f >= 1, and c with f*c <= y - f: f*(c + 1) <= y, and so
c + 1 <= e, as e is the largest integer with f*e <= y. Adding premises up would have to divide by f for that.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.proof.algebra.polynomial import UNIT, Polynomial, combine, divides, without
from tilecheck.proof.premises.premises import Premises

_MOST = 12  # that are learned for one goal


def below_counts(premises: Premises) -> Iterator[Polynomial]:
    """What follows of single premises and is not known yet: polynomials that are not negative."""
    counts = [(e, y, f) for e, y, f in premises.quotients() if not premises.moves((e,)) and len(f) == 1]
    known = None
    left = _MOST
    for p in list(premises.inequalities) if counts else ():
        if not any(c < 0 and premises.moves(m) for m, c in p.items()):
            continue
        for e, y, f in counts:
            index = _index(premises, p, y, f)
            if index is None or e in {a for m in index for a in m}:
                continue
            known = known or {frozenset(q.items()) for q in premises.inequalities}
            below = combine({(e,): 1, UNIT: -1}, index, -1)
            if left > 0 and frozenset(below.items()) not in known:
                left -= 1
                yield below


def _index(premises: Premises, p: Polynomial, y: Polynomial, f: Polynomial) -> Polynomial | None:
    """c with y - f - f*c = p + l >= 0, where l is what is left of the premise p and is not negative; None if
    nothing in c moves."""
    ((factors, scale),) = f.items()
    if not factors or scale != 1:
        return None
    index: dict[tuple[int, ...], int] = {}
    for m, c in combine(combine(y, f, -1), p, -1).items():
        if divides(factors, m):
            index[without(m, *factors)] = c
        elif premises.term(m, c).low < 0:
            return None
    return index if any(premises.moves(m) for m in index) else None
