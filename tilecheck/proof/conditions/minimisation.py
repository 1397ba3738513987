"""The conditions that a proof needs, out of all that were thought of.

Where no solver says which conditions an obligation needs, the rungs without one are asked whether all of the
candidates together are enough, and then for a smallest part of them that is: none of it can be left out. Of
several such parts it is one with early candidates, which are weak and plain. The halving search is Junker's
QuickXplain: about k * log(n / k) proofs for k conditions out of n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tilecheck.ir.expr import Expr

_PARTS = 3  # parts that are handed out, if those before would not do
_PROOFS = 40  # that are tried for one obligation

Proves = Callable[[tuple[Expr, ...]], bool]


def sufficient(
    proves: Proves, candidates: Sequence[Expr], refused: Callable[[Expr], bool] = lambda _: False
) -> Iterator[tuple[Expr, ...]]:
    """Parts of the candidates under which the obligation is proved, none of which is part of a later one.

    Each next part does without the last, strongest condition of the one before. `refused` says of a candidate
    that no part with it will do; it is asked once all of them together are known to be enough.
    """
    left = list(candidates)
    tried = 0

    def limited(some: tuple[Expr, ...]) -> bool:
        nonlocal tried
        tried += 1
        return tried <= _PROOFS and proves(some)

    for number in range(_PARTS):
        if not left or not limited(tuple(left)):
            return
        if not number:
            left = [c for c in left if not refused(c)]
            if len(left) < len(candidates) and not limited(tuple(left)):
                return
        needed = _needed(limited, (), left, changed=True)
        if tried > _PROOFS:
            return  # not all that could be left out was
        yield needed
        if not needed:
            return
        left.remove(needed[-1])


def _needed(
    proves: Proves, given: tuple[Expr, ...], choices: Sequence[Expr], *, changed: bool
) -> tuple[Expr, ...]:
    """A smallest part of `choices` that is enough along with `given`; all of both are. `changed` says that
    `given` has grown since it was last asked about."""
    if changed and proves(given):
        return ()
    if len(choices) == 1:
        return tuple(choices)
    half = len(choices) // 2
    early, late = tuple(choices[:half]), tuple(choices[half:])
    of_late = _needed(proves, (*given, *early), late, changed=True)
    of_early = _needed(proves, (*given, *of_late), early, changed=bool(of_late))
    return (*of_early, *of_late)
