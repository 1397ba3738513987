"""What values are certainly computed from: the loads and exchanges that no compiler can leave out of them.

Integers may cancel (`x - m + m`) or vanish (`x * 0`); floating-point numbers may not, as Triton gives the
compiler no leave to reorder them. So arithmetic counts where its operands are floats, or are what memory or a
reduction gave as it is; what is left out here counts as not used at all.

A compiler may also know a range (`min(max(x, 5), 5)` is 5, a square is not negative), or that low bits are 0
(of bytes, `x * 16 * 16` is 0). A value is `free` where nothing of the kind can be known of it, and only free
values count in what a range or such bits may decide: minima, maxima and further products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilecheck.frontend.values.values import NOTHING, Made, Num, Place
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind

UNARY = frozenset("exp exp2 log log2 sqrt sqrt_rn rsqrt sin cos tanh erf sigmoid fast_expf rsqrt_rn".split())


def by_binary(op: str, a: Num, b: Num, result: str) -> Made:
    """`a op b`, which is of the kind `result`."""
    made = _of_binary(op, a, b, result)
    real = result == "data" and (op == "/" or is_real(a) or is_real(b))
    typed = made.typed and (real or _is_typed(a, b))
    return made if made.real == real and made.typed == typed else replace(made, real=real, typed=typed)


def _is_typed(*values: Num) -> bool:
    """Whether none was converted to a type that the text does not show: of such a value nothing says again that
    it is a float, whatever is done to it."""
    return all(value.made.typed for value in values)


def is_real(value: Num) -> bool:
    """Whether a value is certainly a floating-point number: literals are."""
    literal = value.kind == "data" and value.elem is None and value.bits is None and not value.shape
    return value.made.real or literal


def _is_lost(value: Num) -> bool:
    """Whether nothing is known of how a value was made, which may have been by integers."""
    return value.kind == "data" and not (value.made.loads or value.made.exchanges)


def _of_binary(op: str, a: Num, b: Num, result: str) -> Made:
    if op not in ("+", "-", "*", "/"):
        return NOTHING
    one, two = (_counted(side, result) for side in (a, b))
    same = bool(one.loads & two.loads) or _may_be_one_load(one, two)
    common = same or one.exchanges & two.exchanges
    closed = is_closed(a) and is_closed(b)
    both = replace(one | two, free=one.free and two.free and not common, atom=False, closed=closed)
    certain = is_real(a) or is_real(b) or not (_is_lost(a) or _is_lost(b))
    if result == "data" and one.typed and two.typed and certain:
        return replace(both, closed=True)  # nothing goes out of a sum of floats again
    if op == "/" or one.exchanges & two.exchanges:
        return NOTHING
    if op == "*":
        return _product(a, b, both, same=same)
    return _sum(op, a, b, both, result, same=same)


def _sum(op: str, a: Num, b: Num, both: Made, result: str, *, same: bool) -> Made:
    """A sum or difference of what may be integers: a compiler takes out again what is in both.

    It finds equal tiles and equal scalars; no tile that is loaded or scanned is a scalar in many lanes, so
    beside a scalar a tile takes what it is loaded or scanned from. Of a scan and what was loaded, the
    scan stays, of which the compiler knows nothing: `cumsum(x) - x` needs it, though its lanes need not take x.
    """
    for tile, scalar in ((a, b), (b, a)):
        if tile.shape and not scalar.shape and not (same or (is_closed(tile) and is_closed(scalar))):
            own = _counted(tile, result)
            return replace(own, exchanges=own.exchanges & own.scans, free=False, atom=False, closed=False)
    if op == "+" and (same or not both.closed) and _is_open_sum(a) and _is_open_sum(b):
        return Made(typed=both.typed, free=False, places=both.places, summed=True)
    if not both.closed:
        return NOTHING
    if not same:
        return both
    scan = bool(a.made.exchanges) != bool(b.made.exchanges)
    return Made(exchanges=both.exchanges, typed=both.typed, free=False, scans=both.scans) if scan else NOTHING


def _is_open_sum(value: Num) -> bool:
    """Whether a value is loaded, a product of such, or a sum of these: adding more of them leaves something."""
    return value.made.atom or value.made.summed


def is_closed(value: Num) -> bool:
    """Whether all loads and exchanges that go into a value, but for those inside a function of which the
    compiler knows nothing, are counted: else a sum of integers may take out what is counted of the other."""
    if value.made.closed:
        return True
    known = (Kind.SCALAR, Kind.CONSTANT, Kind.BLOCK, Kind.GRID, Kind.EXTENT, Kind.LANE)
    if value.elem is None:
        return False
    return all(n.op != "read" and (n.op != "sym" or n.args[0].kind in known) for n in E.walk(value.elem))


def _may_be_one_load(one: Made, two: Made) -> bool:
    """Whether both are loaded from one array, perhaps from one place: the compiler then loads once.

    Products of elements from different arrays are two values, and neither is a sum with the other in it. So
    are those of which one array gives elements that are a literal apart, `x[2 * i]` and `x[2 * i + 1]`:
    whatever the compiler knows of `i`, it knows nothing of both.
    """
    if not any(p >= 0 for p in one.loads) or not any(p >= 0 for p in two.loads):
        return False
    first, second = _by_array(one), _by_array(two)
    alike = [_may_be_one(first[name], second[name]) for name in first.keys() & second.keys()]
    if one.atom and two.atom:
        return first.keys() == second.keys() and all(alike)
    return any(alike)


def _by_array(made: Made) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for place in made.places:
        found.setdefault(place[0], []).append(place)
    return found


def _may_be_one(first: list[Place], second: list[Place]) -> bool:
    """Whether some of these places of one array may be equal: others are a literal apart."""
    return any(a[1] is not b[1] or a[2] == b[2] for a in first for b in second)


def _product(a: Num, b: Num, both: Made, *, same: bool) -> Made:
    """Of factors that may be integers: no zero, and not so many factors of 2 that nothing is left of a byte."""
    literals = [side.elem.value for side in (a, b) if side.elem is not None and side.elem.value is not None]
    even = any(value % 2 == 0 for value in literals)
    if a.made.summed or b.made.summed:
        # A product of what no compiler knows is taken out by an equal product alone: one from the same arrays.
        known = not (_is_open_sum(a) and _is_open_sum(b)) or (a.made.summed and b.made.summed)
        places = a.made.places | b.made.places
        return NOTHING if same or known else replace(both, free=False, atom=True, closed=True, places=places)
    if _may_be_zero(a) or _may_be_zero(b) or any(value % 128 == 0 for value in literals):
        return NOTHING
    atom = a.made.atom and b.made.atom
    if even or same:
        return replace(both, free=False, atom=atom) if a.made.free and b.made.free else NOTHING
    return replace(both, atom=atom)


def by_fma(values: Sequence[Num]) -> Made:
    """`a * b + c` of floats."""
    counted = [_counted(value, "data") for value in values]
    made = NOTHING
    for one in counted:
        made |= one
    return replace(made, free=False) if made.typed else NOTHING


def by_extreme(value: Num, other: Num | None, result: str) -> Made:
    """A minimum or maximum of `value` and a finite literal, or an `other` that memory gave as it is, or of
    floats of which a compiler knows no range.

    Of integers one with a literal may be the literal: a minimum of 0 and an unsigned number is 0.
    """
    sides = (value,) if other is None else (value, other)
    return replace(_of_extreme(value, other, result), typed=_is_typed(*sides), real=any(map(is_real, sides)))


def _of_extreme(value: Num, other: Num | None, result: str) -> Made:
    if not value.made.free:
        return NOTHING
    if other is None:
        known = result == "data" and value.kind == "data" and value.made.typed
        return replace(value.made, free=False) if known else NOTHING
    floats = all(side.kind == "data" and side.made.typed and side.made.free for side in (value, other))
    if not other.made.atom and not (floats and NOTHING not in (value.made, other.made)):
        return NOTHING
    return replace(_counted(value, result) | other.made, free=False)


def by_comparison(op: str, a: Num, b: Num) -> Made:
    """A truth that no compiler knows: of two loaded values, which differ. Of equality it makes something of a
    choice between the two (`b if a == b else a` is a): such a truth is not `free`."""
    one, two = a.made, b.made
    known = not (one.free and two.free) or one.loads & two.loads or _may_be_one_load(one, two)
    if known or not one.loads or not two.loads:
        return NOTHING
    return Made(one.loads | two.loads, free=op not in ("==", "!="))


def by_logic(a: Num, b: Num) -> Made:
    """`a & b` and `a | b` of truths that are not known, none of them the opposite of one (`~a`)."""
    one, two = a.made, b.made
    if a.kind != "bool" or b.kind != "bool" or not one.loads or not two.loads:
        return NOTHING
    return Made(one.loads | two.loads, free=one.free or two.free)


def by_choice(cond: Num, a: Num, b: Num, result: str) -> Made:
    """`where(cond, a, b)`: what both sides are computed from, or one side where the other is a constant.

    Of choices inside choices nothing counts: under one condition, the inner one is known.
    """
    real = any(is_real(side) for side in (a, b))
    return replace(_of_choice(cond, a, b, result), typed=_is_typed(a, b), real=real)


def _of_choice(cond: Num, a: Num, b: Num, result: str) -> Made:
    unknown = cond.kind == "bool" and bool(cond.made.loads)
    one, two = _counted(a, result), _counted(b, result)
    if one.chosen or two.chosen or not (unknown or (cond.elem is not None and _is_open(cond.elem))):
        return NOTHING
    for this, other in ((one, b), (two, a)):
        if not (other.made.loads or other.made.exchanges or other.shape):
            closed = this.closed and not this.exchanges
            bare = replace(this, exchanges=frozenset(), carried=frozenset(), atom=False, summed=False)
            return replace(bare, free=False, chosen=True, closed=closed)
    both = one & two
    if not unknown or cond.made.free:
        # An element that a scan combines is needed where the choice may take it.
        both = replace(both, loads=both.loads | {p for p in one.loads | two.loads if p < 0})
    return replace(both, chosen=bool(both.loads or both.exchanges), closed=_has_all(both, one, two))


def _has_all(both: Made, one: Made, two: Made) -> bool:
    """Whether all that is counted of the sides is counted of what is one of them."""
    every = one | two
    return every.closed and (both.loads, both.exchanges) == (every.loads, every.exchanges)


def _is_open(cond: Expr) -> bool:
    """Whether no compiler knows a condition when it lays out tiles: places of lanes, compared with values of
    the launch or ids of blocks. Of memory it may (`x != x`), and of numbers alone (`n > 1`, where n is 1) it
    does; what is one value for all lanes is known inside an `if` that asks it."""
    if cond.op in ("all", "any"):
        return all(map(_is_open, cond.args))
    if cond.op not in ("lt", "le", "eq"):
        return False
    sides = [[_factors(t) for t in (side.args if side.op == "add" else (side,))] for side in cond.args]
    factors = [own for side in sides for own in side]
    if not all(f.op == "sym" for own in factors for f in own):
        return False
    lanes = [own for own in factors if any(f.args[0].kind is Kind.LANE for f in own)]
    # Where n is 1, `lane * n` is a lane: lanes stand alone, and on one side.
    if not lanes or any(len(own) > 1 for own in lanes) or not any(_without(side, lanes) for side in sides):
        return False
    alone = {own[0].args[0].kind for own in factors if len(own) == 1}
    bounds = {own[0].args[0].bound for own in lanes}
    # `bid * SIZE`, where a tile has SIZE lanes: no factor is 0.
    blocks = Kind.BLOCK in alone or any(
        len(own) == 2 and any(f.args[0].kind is Kind.BLOCK and g in bounds for f, g in (own, own[::-1]))
        for own in factors
    )
    return blocks or bool(alone & {Kind.SCALAR, Kind.EXTENT})


def _factors(term: Expr) -> list[Expr]:
    return [f for f in (term.args if term.op == "mul" else (term,)) if f.value is None]


def _without(side: list[list[Expr]], lanes: list[list[Expr]]) -> bool:
    return not any(own is lane for own in side for lane in lanes)


def by_branch(cond: Expr, a: Num, b: Num, result: str, guards: Mapping[int, Expr]) -> Made:
    """What is `a` where `cond` holds and `b` elsewhere. What happens in one branch alone counts for that."""
    one, two = _counted(a, result), _counted(b, result)

    def kept(mine: frozenset[int], theirs: frozenset[int], test: Expr) -> frozenset[int]:
        inside = set(E.conjuncts(test))
        return frozenset(p for p in mine if p in theirs or inside <= set(E.conjuncts(guards.get(p, E.TRUE))))

    other = E.negate(cond)
    either = Made(
        kept(one.loads, two.loads, cond) | kept(two.loads, one.loads, other),
        kept(one.exchanges, two.exchanges, cond) | kept(two.exchanges, one.exchanges, other),
        one.typed and two.typed,
        one.free and two.free,
        one.chosen or two.chosen,
        one.places | two.places,
    )
    real = a.made.real and b.made.real
    return replace(either, closed=_has_all(either, one, two), real=real, typed=_is_typed(a, b))


def by_function(value: Num) -> Made:
    """A function of floats."""
    known = value.kind == "data" or _is_plain(value) or _arrays(value) == 1
    return replace(value.made, free=False, closed=True, real=True) if known else NOTHING


def by_cast(value: Num, to: str) -> Made:
    """A conversion to a `float`, of a float to an `integer`, or to an `unknown` type. A byte that is left of an
    integer depends on what that does (`_product`)."""
    if to == "unknown" and value.kind in ("data", "any"):
        return replace(value.made, typed=False, real=False)
    if to == "integer" and value.made.free and _is_plain(value):
        return replace(
            value.made, typed=False, real=False, free=False
        )  # at least its low bits, or whether it is 0
    known = value.kind == "data" or (to == "float" and _is_plain(value))
    return replace(value.made if known else NOTHING, real=to == "float")


def _counted(side: Num, result: str) -> Made:
    if side.kind == "data" or (side.kind == "any" and (result == "any" or _is_plain(side))):
        return side.made
    return NOTHING


def _is_plain(value: Num) -> bool:
    """Whether an element is what memory, or a reduction of it, gave, with no arithmetic on it."""
    return value.kind == "any" and value.elem is not None and _is_leaf(value.elem)


def _is_leaf(elem: Expr) -> bool:
    if elem.op == "ite":
        return all(map(_is_leaf, elem.args[1:]))
    return elem.op == "read" or (elem.op == "sym" and elem.args[0].kind is Kind.OPAQUE)


def _arrays(value: Num) -> int:
    """From how many arrays a value is computed, at least."""
    names: set[str] = set()
    for node in E.walk(value.elem) if value.elem is not None else ():
        if node.op == "read":
            names.add(node.args[0].removesuffix(":int"))
        elif node.op == "sym" and node.args[0].kind is Kind.OPAQUE:
            names.update(node.args[0].memory)
        elif node.op == "sym" and node.args[0].kind in (Kind.SCALAR, Kind.CONSTANT):
            names.add(node.args[0].name)
    return len(names)


def _may_be_zero(value: Num) -> bool:
    """Whether a factor may be zero at compile time. What certainly depends on memory is no constant there,
    nor is a parameter or an id; but `n - 1` may be: the compiler puts in an n that is 1."""
    if value.made.atom or value.made.loads or value.made.exchanges:
        return False
    if value.elem is None:
        return True
    if value.elem.value is not None:
        return value.elem.value == 0
    known = (Kind.SCALAR, Kind.BLOCK, Kind.GRID, Kind.EXTENT)
    return not (value.elem.op == "sym" and value.elem.args[0].kind in known)
