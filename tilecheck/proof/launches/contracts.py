"""Whether the values that a launch passes keep the contracts of its kernel, as the host's text says them.

holds    what the text says of the elements keeps the contract, for every host input
broken   some host input breaks it, and the launch with the values that the host makes went wrong
unmet    the host makes values that may break it, and no harm was seen
caller   the text does not say the values, or a relation to another input decides
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilecheck.dataclass import dataclass
from tilecheck.ir.contents import Contents
from tilecheck.ir.expr import (
    FALSE,
    ONE,
    TRUE,
    Expr,
    add,
    all_of,
    any_of,
    cdiv,
    const,
    eq,
    le,
    lt,
    maximum,
    mul,
    ne,
    negate,
    sub,
    sym,
    symbols,
)
from tilecheck.ir.host import EXTENT, NUMEL, host_numel, is_contiguous, owners
from tilecheck.ir.kernel import Contract
from tilecheck.ir.launch import HostTensor
from tilecheck.ir.parts import Part
from tilecheck.proof.launches.inputs.unread import rests_on_unread
from tilecheck.proof.launches.judge import Broken, Judge, is_of_host

Values = Mapping[str, tuple[int, ...]]  # by parameter, in row-major order
Harmed = Callable[[Broken, Values], "bool | None"]  # whether harm was seen; None if it could not be run


_WORST = ("broken", "unmet", "caller", "holds")


def judge_contracts(judge: Judge, harmed: Harmed) -> tuple[Mapping[str, str], tuple[Broken, ...]]:
    """The status of each contract about values in memory at one launch, by its text, and what is broken.

    A contract that is made of several has the worst of their statuses.
    """
    statuses: dict[str, str] = {}
    broken: dict[str, Broken] = {}
    for contract in judge.kernel.contracts:
        if contract.is_about_values:
            status, found = judge_contract(judge, contract, harmed)
            before = statuses.get(contract.text, status)
            statuses[contract.text] = min(before, status, key=_WORST.index)
            if found is not None:
                broken.setdefault(contract.text, found)
    return statuses, tuple(broken.values())


def judge_contract(judge: Judge, contract: Contract, harmed: Harmed) -> tuple[str, Broken | None]:
    """The status of a contract about values in memory at one launch, and what breaks it."""
    t = dict(judge.launch.arguments).get(contract.array)
    if not isinstance(t, HostTensor) or t.contents is None or t.absent is not None:
        return "caller", None
    tuning = judge.kernel.tuning
    if contract.initial and tuning is not None and contract.array not in tuning.kept:
        return "unmet", None  # the tuner runs the kernel on what the run before left
    if judge.kernel.language == "triton" and not _is_flat(t, judge):
        return "caller", None  # flat memory has elements between those that the host speaks of
    holds = claim(contract, t.contents, count_of(t), judge.rewritten)
    if holds is None:
        return "caller", None
    if judge.follows(holds) or not judge.is_made:
        return "holds", None
    if not t.contents.own or rests_on_unread(judge, holds):
        return "caller", None
    if _is_relation(judge.in_usual(holds)) and judge.possible(holds):
        return "caller", None
    from tilecheck.proof.launches.inputs.tables import Search  # lazy: loads NumPy

    found = Search(judge, contract, harmed).found(negate(holds))
    return ("unmet", None) if found is None else ("broken", found)


def _is_flat(t: HostTensor, judge: Judge) -> bool:
    """Whether flat memory has no elements but those of the tensor, or of the storage that the host filled."""
    return t.fresh or t.dense or t.contiguous or is_contiguous(t.strides_of) in judge.launch.facts


def count_of(t: HostTensor) -> Expr | None:
    """The number of elements of a tensor."""
    if t.shape is not None:
        return mul(ONE, *t.shape)
    return sym(host_numel(t.shape_of)) if t.shape_of else None


def _is_relation(wanted: Expr) -> bool:
    """Whether it relates inputs that are handed in independently, of which one is a tensor."""
    of_tensors = any(s.origin in (EXTENT, NUMEL) for s in symbols(wanted))
    return of_tensors and len(owners(wanted)) > 1


# ---- what contents say -------------------------------------------------------------------------------------


def claim(
    contract: Contract, contents: Contents, count: Expr | None, value: Callable[[Expr], Expr]
) -> Expr | None:
    """A condition on host values under which `contents` keep a contract; None where nothing is known of it.

    Args:
        contract: about values in memory.
        contents: what its array holds.
        count: the number of elements, if it is known.
        value: writes the contract's bounds in the host's values.
    """
    bounds = tuple(map(value, contract.bounds))
    if contract.kind not in _CLAIMS or not all(map(is_of_host, bounds)):
        return None
    seen = _part_of(contents, count, contract.part)
    return any_of(seen.at_most(0), _CLAIMS[contract.kind](seen, bounds))


@dataclass(frozen=True, slots=True)
class _Seen:
    """The part of a tensor that a contract speaks of: what it holds, and how many elements it has."""

    contents: Contents
    count: Expr | None

    def at_most(self, most: int) -> Expr:
        return FALSE if self.count is None else le(self.count, most)

    @property
    def last(self) -> Expr | None:
        """The last element of a range."""
        c = self.contents
        return None if self.count is None else add(c.start, mul(sub(self.count, 1), c.step))


def _part_of(contents: Contents, count: Expr | None, part: Part) -> _Seen:
    if not part:
        return _Seen(contents, count)
    if len(part) > 1 or contents.kind in ("fill", "some") or count is None:
        return _Seen(contents.of_part(ordered=True), None)
    ((first, step),) = part
    if contents.kind == "listed":
        shown = contents.listed[first :: step or len(contents.listed) + 1] if step or first >= 0 else ()
        shown = shown or contents.listed[first:][:1]
        return _Seen(Contents("listed", listed=shown, own=contents.own), const(len(shown)))
    start = const(first) if first >= 0 else add(count, first)
    number = maximum(0, cdiv(sub(count, start), step)) if step else ONE
    begun = Contents("range", add(contents.start, mul(start, contents.step)), mul(step or 1, contents.step))
    return _Seen(begun, number)


def _filled(seen: _Seen, bounds: tuple[Expr, ...]) -> Expr:
    return _each_within(seen, bounds[0], add(bounds[0], 1), ())


def _within(seen: _Seen, bounds: tuple[Expr, ...]) -> Expr:
    return _each_within(seen, bounds[0], bounds[1], ())


def _within_or(seen: _Seen, bounds: tuple[Expr, ...]) -> Expr:
    return _each_within(seen, bounds[0], bounds[1], bounds[2:])


def _each_within(seen: _Seen, low: Expr, high: Expr, skips: tuple[Expr, ...]) -> Expr:
    """Every element is at least `low` and less than `high`, or one of `skips`."""
    c = seen.contents

    def fits(element: Expr) -> Expr:
        return any_of(all_of(le(low, element), lt(element, high)), *(eq(element, skip) for skip in skips))

    if c.kind == "fill":
        return fits(c.start)
    if c.kind == "listed":
        return all_of(*(fits(const(v)) for v in sorted(set(c.listed))))
    if c.kind == "range":
        ends = (c.start, seen.last)
        return all_of(*(FALSE if e is None else all_of(le(low, e), lt(e, high)) for e in ends))
    return FALSE if c.low is None or c.high is None else all_of(le(low, c.low), le(c.high, high))


def _distinct(seen: _Seen, bounds: tuple[Expr, ...]) -> Expr:
    c, single = seen.contents, seen.at_most(1)
    if c.kind == "fill":
        return any_of(single, *(eq(c.start, skip) for skip in bounds))
    if c.kind == "range":
        return any_of(single, ne(c.step, 0))
    if c.kind == "listed":
        twice = sorted({v for v in c.listed if c.listed.count(v) > 1})
        return all_of(*(any_of(*(eq(const(v), skip) for skip in bounds)) for v in twice))
    return TRUE if c.distinct else single


def _increasing(seen: _Seen, bounds: tuple[Expr, ...]) -> Expr:
    c, single = seen.contents, seen.at_most(1)
    if c.kind == "range":
        return any_of(single, le(0, c.step))
    if c.kind == "listed":
        return TRUE if list(c.listed) == sorted(c.listed) else FALSE
    return TRUE if c.kind == "fill" or c.increasing else single


def _distinct_pairs(seen: _Seen, bounds: tuple[Expr, ...]) -> Expr:
    """Where the elements differ, the pairs do; fewer than four elements are no two pairs."""
    if seen.contents.kind == "listed":
        pairs = list(zip(seen.contents.listed[::2], seen.contents.listed[1::2], strict=False))
        return TRUE if len(set(pairs)) == len(pairs) else FALSE
    return any_of(_distinct(seen, ()), seen.at_most(3))


_CLAIMS: Mapping[str, Callable[[_Seen, tuple[Expr, ...]], Expr]] = {
    "filled": _filled,
    "within": _within,
    "within_or": _within_or,
    "distinct": _distinct,
    "increasing": _increasing,
    "distinct_pairs": _distinct_pairs,
}
