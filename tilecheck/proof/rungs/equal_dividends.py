"""Dividends on which two instances agree, from a quotient and a remainder on which they do.

    y // d and x % d, d shared and positive, x - y shared      give y
    pid % width // size beside pid % size                      x - y is pid // width * width

Let c = x - y have one value for both instances, as d has. So has y % d = (x % d - c) % d, and therefore
y = d * (y // d) + y % d. The numbers of a grouped order of tiles are of this kind: of the last, smaller group
the remainder is taken of the block's number in the grid, not in its group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilecheck.ir.expr import ONE, Expr, le
from tilecheck.proof.algebra.linear import meaning
from tilecheck.proof.algebra.polynomial import Polynomial, combine, key, single
from tilecheck.proof.rungs.provenance import Agreed


def dividends(agreed: Agreed, holds: Callable[[Expr], bool]) -> Iterator[Polynomial]:
    """What follows from the quotients and remainders that are agreed on. `holds` says what is so for one of
    the instances: of a divisor that is shared, one is enough."""
    atoms = [agreed.premises.forms.atoms[index] for index in agreed.atoms]
    for quotient in atoms:
        if quotient.op != "floordiv" or _is_shared(agreed, quotient.args[0]):
            continue
        y, d = quotient.args
        if key(y) in agreed.known or not _is_shared(agreed, d):
            continue
        remainders = (a.args[0] for a in atoms if a.op == "mod" and key(a.args[1]) == key(d))
        if any(_is_apart_alike(agreed, x, y, holds) for x in remainders) and _is_positive(agreed, d, holds):
            yield y


def _is_apart_alike(agreed: Agreed, x: Polynomial, y: Polynomial, holds: Callable[[Expr], bool]) -> bool:
    """Whether x - y is shared, as it stands or with `z - z // w * w` for a y that is `z % w`."""
    if _is_shared(agreed, combine(x, y, -1)):
        return True
    index = single(y)
    inner = None if index is None else agreed.premises.forms.atoms[index]
    if inner is None or inner.op != "mod":
        return False
    z, w = inner.args
    whole = next(
        (
            a
            for a in map(agreed.premises.forms.atoms.__getitem__, agreed.atoms)
            if a.op == "floordiv" and (key(a.args[0]), key(a.args[1])) == (key(z), key(w))
        ),
        None,
    )
    apart = _is_shared(agreed, combine(x, z, -1)) and _is_shared(agreed, w)
    return whole is not None and apart and _is_positive(agreed, w, holds)


def _is_shared(agreed: Agreed, p: Polynomial) -> bool:
    return all(agreed.is_shared(a) for m in p for a in m)


def _is_positive(agreed: Agreed, d: Polynomial, holds: Callable[[Expr], bool]) -> bool:
    return holds(le(ONE, meaning(d, agreed.premises.forms.meanings())))
