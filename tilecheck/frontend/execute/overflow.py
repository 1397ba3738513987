"""Overflow checks of 32-bit integers, and which of them count.

Sums and products of machine integers may wrap and still be right in the end: two's complement arithmetic is a
ring. Where a value leaves the ring (a comparison, a division, a widening, an index) it must not have wrapped; a
check says so. The check counts if an access, a branch or another check rests on the value:

S-32bit-1  Every number carries the checks that it rests on (`Num.rests`). An operation unites the checks of its
           operands with its own, whatever becomes of their terms.
S-32bit-2  A sink records the checks of its operand. Sinks are the index and the mask of an access, a branch,
           the bounds of a loop, a divisor, and a literal, which carries no checks.
S-32bit-3  A variable that a loop carries rests on what its rounds leave in it: on a node that stands for this.
S-32bit-4  An unknown may be any number: it rests on nothing, whatever an operation made it of. What is known of
           its range or sign is more than the unknown, and rests on the operands.

A load starts a new value: its address is an index, recorded at the access. A check on which an index alone
rests asks less than others: that the value fits in the lanes that access something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from tilecheck.dataclass import dataclass
from tilecheck.frontend.values.values import Rest, Rests, lane
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind
from tilecheck.ir.kernel import Access, Arithmetic, Place

Shape = tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Overflow:
    """The overflow checks of one run. Mutable: the run adds to it.

    `forms` has for each check how the value itself rests on it, and the shape of its tile. `tested` are the
    checks that count wherever they are made, `placed` those that count at accesses, `carried` what each node
    stands for.
    """

    checks: list[Arithmetic] = field(default_factory=list)
    forms: list[tuple[Rest, Shape]] = field(default_factory=list)
    tested: set[int] = field(default_factory=set)
    placed: dict[tuple[int, int, Rest], None] = field(default_factory=dict)
    carried: list[set[int]] = field(default_factory=list)

    @property
    def is_idle(self) -> bool:
        """Whether no number can rest on anything yet."""
        return not self.checks and not self.carried

    def add(self, check: Arithmetic, value: Expr | None, case: Expr, shape: Shape) -> None:
        """Add a check of a value over the placeholders of a tile of this shape, where a case holds."""
        self.forms.append((Rest(len(self.checks), value, case), shape))
        self.checks.append(check)

    def since(self, first: int, shape: Shape | None = None) -> Rests:
        """The checks made since there were `first`, as a tile of this shape rests on them; without a shape, as
        anything does."""
        made = range(first, len(self.checks))
        if shape is None:
            return frozenset(map(Rest, made))
        found: list[Rest] = []
        for check in made:
            rest, own = self.forms[check]
            found += spread((rest,), own, shape)
        return frozenset(found)

    # ---- sinks ---------------------------------------------------------------------------------------

    def test(self, rests: Iterable[Rest]) -> None:
        """Record that a test, which every lane makes, rests on these checks."""
        self.tested.update(rest.check for rest in rests)

    def index(self, rests: Iterable[Rest], position: int, axis: int, lanes: Mapping[Expr, Expr]) -> None:
        """Record that the index along an axis of the access at `position` rests on these checks; `lanes` maps
        the placeholders to the lanes of the access."""
        for rest in rests:
            if rest.value is None:
                self.tested.add(rest.check)
            else:
                self.placed[position, axis, rest.moved(lanes)] = None

    # ---- loops ---------------------------------------------------------------------------------------

    def node(self) -> Rest:
        """A node for a variable that a loop carries."""
        self.carried.append(set())
        return Rest(-len(self.carried))

    def feed(self, node: Rest, rests: Iterable[Rest]) -> None:
        """Note what a round leaves in the variable of a node."""
        self.carried[-1 - node.check].update(rest.check for rest in rests)

    # ---- the result ----------------------------------------------------------------------------------

    def resolved(self, accesses: Sequence[Access]) -> tuple[Arithmetic, ...]:
        """The checks with where they count, each node taken for what it stands for."""
        tested, stack = set(self.tested), list(self.tested)
        while stack:
            check = stack.pop()
            if check < 0:
                more = self.carried[-1 - check] - tested
                tested |= more
                stack += more
        at = {access.position: access for access in accesses}
        places: dict[int, list[Place]] = {}
        for position, axis, rest in self.placed:
            if position in at:
                guard = self.checks[rest.check].guard
                places.setdefault(rest.check, []).append(_place(at[position], axis, rest, guard))
        return tuple(
            replace(check, tested=number in tested, places=tuple(places.get(number, ())))
            for number, check in enumerate(self.checks)
        )


def _place(access: Access, axis: int, rest: Rest, guard: Expr) -> Place:
    """A value as an access uses it. What the launch decides of where it is computed, such as which branch it
    is, holds there too."""
    decided = (t for t in E.conjuncts(guard) if all(s.kind < Kind.BLOCK for s in E.symbols(t)))
    given = E.all_of(access.guard, access.lane_facts, access.mask, rest.case, *decided)
    assert rest.value is not None
    return Place(rest.value, given, f"{access.array}.shape[{axis}]")


def coarse(rests: Iterable[Rest]) -> Rests:
    """The checks without values: they count in every lane."""
    return frozenset(Rest(rest.check) for rest in rests)


def stretching(own: Shape, shape: Shape) -> dict[Expr, Expr]:
    """What placeholders become where a tile is broadcast to `shape`: along an axis of size 1 every lane reads
    position 0."""
    mapping: dict[Expr, Expr] = {}
    for i, size in enumerate(reversed(own)):
        wide = shape[len(shape) - 1 - i]
        if size is E.ONE:
            mapping[lane(i)] = E.ZERO
        elif size is not wide and size.value is None:
            # The sizes are equal or one of them is 1; which one is known only at compile time.
            mapping[lane(i)] = E.ite(E.eq(size, 1), E.ZERO, lane(i))
    return mapping


def spread(rests: Iterable[Rest], own: Shape, shape: Shape) -> Iterable[Rest]:
    """The checks that a tile broadcast from `own` to `shape` rests on."""
    if own is shape or own == shape:
        return rests
    if len(own) > len(shape):
        return coarse(rests)
    mapping = stretching(own, shape)
    return [rest.moved(mapping) for rest in rests]
