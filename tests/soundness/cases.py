"""Random questions about index expressions, at the level of the IR: may two accesses meet?

A case is text in Python's own syntax. `question` reads it as the IR has it and as the prover gets it;
`soundness_truth` runs the same text as Python and sees what happens. The names: `b0`, `b1` block indices of a
grid of `G0` by `G1`, `k` the number of an iteration, `l0`, `l1` lanes, `E0`, `E1` extents of the array, `t` a
table of `L` values that nothing writes; `T`, `S`, `n`, `m` launch values.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field, replace

from proof_patterns import Notation

from tilecheck.ir.expr import FALSE, ONE, TRUE, ZERO, Expr, Kind, Symbol, all_of, le, lt, mul, render, sym, walk
from tilecheck.ir.kernel import (
    Access,
    Axis,
    Check,
    CheckKind,
    Contract,
    Effect,
    Kernel,
    Space,
    block_symbol,
    extent_symbol,
    grid_symbol,
)
from tilecheck.model import Site, Span
from tilecheck.proof.goals.context import Context
from tilecheck.proof.obligation import Between, Disjoint, Goal, Holds, Obligation

SITE = Site("case.py", Span(0, 1))
LAUNCH = ("T", "S", "n", "m", "G0", "G1", "E0", "E1", "L")
GOALS = ("blocks", "lanes", "iterations", "bounds")
CONTRACTS = ("distinct", "increasing", "within")


@dataclass(frozen=True)
class Place:
    """One axis of an access: the elements `base + index * step + lane`, 0 <= lane < size, inside the view of
    length `extent` that starts at `base`. `has_lane` says that `index` itself holds the lane."""

    index: str
    step: str = "1"
    size: str = "1"
    base: str = "0"
    extent: str = "E0"
    has_lane: bool = False


@dataclass(frozen=True)
class Reach:
    """One access: where it goes and when."""

    places: tuple[Place, ...]
    space: Space
    guard: str = "True"
    mask: str = "True"


@dataclass(frozen=True)
class Case:
    """A goal about one or two accesses, under `facts` about the launch."""

    goal: str
    first: Reach
    second: Reach
    facts: tuple[str, ...]
    lets: tuple[str, ...] = ()  # lines `name = expression`, computed by every block in every iteration
    contract: str = ""  # of the table
    copies: int = 0  # how often the kernel makes the first access, in other places of its text

    def text(self) -> str:
        """Everything that is needed to look at the case."""
        return "\n  ".join(
            [f"{self.goal}: {self.first}", f"{self.second}", *self.facts, *self.lets, self.contract]
        )

    def mentions(self, name: str) -> bool:
        return re.search(rf"\b{name}\b", f"{self.first}{self.second}{self.facts}{self.lets}") is not None


# ---- as the prover gets it -----------------------------------------------------------------------------------


class _Reader(Notation):
    """Names become the symbols of the IR."""

    def name(self, name: str) -> Expr:
        return sym(_symbol(name))


def _symbol(name: str) -> Symbol:
    kinds = {"T": Kind.CONSTANT, "S": Kind.CONSTANT, "n": Kind.SCALAR, "m": Kind.SCALAR}
    match name[0], name[1:]:
        case "b", axis:
            return block_symbol(int(axis))
        case "G", axis:
            return grid_symbol(int(axis))
        case "E", axis:
            return extent_symbol("out", int(axis))
        case "L", "":
            return extent_symbol("t", 0)
        case "k", "":
            return Symbol("k", Kind.LOOP, uid=1)
        case _:
            return Symbol(name, kinds[name])


def question(case: Case) -> tuple[Obligation, Context]:
    """The obligation and the kernel that it belongs to."""
    return _stated(_goal(case), 2), Context(_kernel(case))


def whole_kernel(case: Case) -> tuple[list[Obligation], Kernel]:
    """What must hold for the accesses to be safe: divisors are positive, tiles are inside, blocks are apart."""
    first, second = access(case, case.first), access(case, case.second)
    divisors: dict[tuple[Expr, Expr], Check] = {}
    for one in (first, second):
        # Python computes the lines and the guard before it knows the guard.
        parts = [(TRUE, e) for e in (one.guard, *_Reader({}, "\n".join(case.lets)).defined.values())]
        parts += [(one.guard, e) for axis in one.axes for e in (axis.coordinate, axis.extent, one.mask)]
        for guard, part in parts:
            for node in walk(part):
                if node.op in ("floordiv", "mod"):
                    goal = le(1, node.args[1])
                    divisors[goal, guard] = Check(CheckKind.DIVISOR, goal, guard, "", SITE)
    checks = tuple(c for c in divisors.values() if c.goal is not TRUE)
    obligations = [_stated(Holds(c.goal, c.guard), 0) for c in checks]
    if first.space is not Space.RAW:
        bounds = [Holds(_touches(axis), one.guard, one) for one in (first, second) for axis in one.axes]
        obligations += [_stated(goal, 1) for goal in bounds]
    obligations.append(_stated(Disjoint(first, second, Between.BLOCKS), 2))
    return obligations, replace(_kernel(case), checks=checks)


def _stated(goal: Goal, stage: int) -> Obligation:
    """An obligation inside an unsafe block, so that nothing is looked for when it cannot be proved."""
    return Obligation("TC201", goal, (SITE,), "cause", stage, "overlap", unsafe=(0,))


def launch_text(e: Expr) -> str:
    """A condition on the launch in the names of a case."""
    names = {f"grid[{k}]": f"G{k}" for k in (0, 1)} | {f"out.shape[{k}]": f"E{k}" for k in (0, 1)}
    names["t.shape[0]"] = "L"
    return render(e, lambda symbol: names.get(symbol.name, symbol.name))


def _kernel(case: Case) -> Kernel:
    facts = [fact for text in case.facts for fact in _Reader({}).all(text)]
    axes = tuple(k for k in (0, 1) if case.mentions(f"b{k}") or case.mentions(f"G{k}"))
    bounds = (ZERO, sym(_symbol("n"))) if case.contract == "within" else ()
    contracts = (Contract(case.contract, "t", bounds, "", None, SITE),) if case.contract else ()
    accesses = tuple(replace(access(case, case.first), position=k) for k in range(case.copies))
    return Kernel("case", "cutile", SITE, (), axes, accesses, (), (), tuple(facts), contracts=contracts)


def _goal(case: Case) -> Goal:
    first, second = access(case, case.first), access(case, case.second)
    if case.goal == "bounds":
        return Holds(all_of(*(_touches(a) for a in first.axes)), first.guard, first)
    between = {"blocks": Between.BLOCKS, "lanes": Between.LANES, "iterations": Between.ITERATIONS}
    return Disjoint(first, first if case.goal == "lanes" else second, between[case.goal])


def _touches(axis: Axis) -> Expr:
    """The tile is not wholly outside its view."""
    return all_of(le(0, axis.index), lt(mul(axis.index, axis.step), axis.extent))


def access(case: Case, reach: Reach) -> Access:
    """The access as the front end would have made it."""
    lanes = {f"l{k}": _lane(p, k) for k, p in enumerate(reach.places) if p.size != "1" or p.has_lane}
    reader = _Lanes(lanes, "\n".join(case.lets))
    axes = []
    for k, place in enumerate(reach.places):
        index, base, extent = (reader.all(text)[0] for text in (place.index, place.base, place.extent))
        if place.has_lane or place.size == "1":
            axes.append(Axis(mul(index, *reader.all(place.step)), ONE, ONE, extent, base))
        else:
            step, size = (reader.all(text)[0] for text in (place.step, place.size))
            axes.append(Axis(index, step, size, extent, base, lanes[f"l{k}"]))
    guard, mask = (TRUE if text == "True" else all_of(*reader.all(text)) for text in (reach.guard, reach.mask))
    loop = _symbol("k")
    return Access(
        "out",
        Effect.WRITE,
        reach.space,
        tuple(axes),
        guard,
        mask,
        tuple(lanes.values()),
        SITE,
        0,
        unchecked=TRUE if case.copies else FALSE,
        loops=(loop,),
        stepped_by=loop,
    )


class _Lanes(_Reader):
    """Also knows the lanes of one access, which have its sizes as bounds."""

    def __init__(self, lanes: dict[str, Symbol], lets: str) -> None:
        self.lanes = lanes
        super().__init__({}, lets)

    def name(self, name: str) -> Expr:
        return sym(self.lanes[name]) if name in self.lanes else super().name(name)


def _lane(place: Place, axis: int) -> Symbol:
    return Symbol(f"lane {axis}", Kind.LANE, bound=_Reader({}).all(place.size)[0])


# ---- drawing -------------------------------------------------------------------------------------------------

SWIZZLE = (
    "rows = cdiv(n, T)",
    "columns = cdiv(m, S)",
    "per = {group} * columns",
    "start = {pid} // per * {group}",
    "size = min(rows - start, {group})",
    "pm = start + {pid} % per % size",
    "pn = {pid} % per // size",
)
_PAIRS = (  # of indices that together tell blocks apart, most of the time
    ("b0", "b1"),
    ("b1", "b0"),
    ("b0 // {d}", "b0 % {d}"),
    ("(b0 + k * G0) // {d}", "(b0 + k * G0) % {d}"),
    ("b0", "k"),
    ("b0", "b1 * S + k"),
    ("G0 - 1 - b0", "b1 + k * G1"),
    ("b0 % {d}", "b0 // {d} * G1 + b1"),
    ("b0 ^ b1", "b1"),
    ("b0 if b1 % 2 == 0 else G0 - 1 - b0", "b1"),
    ("t[b0]", "b1"),
    ("pm", "pn"),
    ("pn", "pm"),
    ("b0 // (n // T)", "b0 % (n // T)"),
    ("b0 // (m // n)", "b0 % (m // n) * G1 + b1"),
)
_SINGLES = (
    "b0",
    "b0 * S + k",
    "b0 + k * G0",
    "b0 * G1 + b1",
    "b1 * G0 + b0",
    "G0 - 1 - b0",
    "b0 // {d} * {d} + b0 % {d}",
    "b0 % {d} * cdiv(G0, {d}) + b0 // {d}",
    "t[b0] + k",
    "t[b0 * S + k]",
    "b0 * n // G0 + k",
    "(b0 * G1 + b1) * S + k",
    "min(b0, {d})",
    "b0 * (b0 + 1) // 2 + k",
    "pm * columns + pn",
    "b0 // (n // T)",
    "b0 * T // n",
    "b0 // (n // S) * n + b0 % (n // S) * S",
)
_DIVISORS = ("n", "m", "T", "S", "2", "3", "G1", "cdiv(n, T)", "n * m", "T * 2")
_FACTS = (
    "n >= 1",
    "m >= 1",
    "n >= T",
    "S >= T",
    "n % T == 0",
    "E0 == n",
    "E0 >= n * T",
    "E1 == m",
    "L >= G0",
    "G0 <= n",
    "G0 == cdiv(n, T)",
    "G0 <= cdiv(n, T) * cdiv(m, S)",
    "G0 <= n * m",
    "G1 <= m",
    "G0 <= L",
    "G0 <= E0",
    "G1 <= E1",
    "m % n == 0",
    "n >= m",
    "T % S == 0",
    "n // T >= 1",
    "G0 <= n or G0 <= m",
    "not (n >= 2 and m >= 2)",
    "n == 1 and m >= 2 or m >= n",
)
_LOOPS = (
    "k < S",
    "k < T",
    "k < n",
    "k * T < n",
    "b0 + k * G0 < n",
    "k < cdiv(n, T)",
    "b0 * S + k < n",
    "k <= b0",
    "k * S < T",
    "k * S < b0 * T",
    "T - k * S > 0",
)
_CONDITIONS = (
    "b0 < n",
    "b0 % 2 == 0",
    "b0 == 0",
    "b1 < m",
    "b0 * T < n",
    "b0 * T < m",
    "b0 * T < n + m",
    "b0 // {d} < m",
    "b0 < {d} or b1 < {d}",
)
_LEAVES = ("b0", "b0", "b1", "k", "T", "S", "n", "m", "1", "2", "3", "G0", "t[b0]", "t[k]")


@dataclass
class Draw:
    """Draws one case. Mutable only in its source of chance and the lines that a swizzle needs."""

    rng: random.Random
    lets: tuple[str, ...] = field(default=())

    def case(self) -> Case:
        """A case whose accesses are alike, as two accesses of one kernel are."""
        rng = self.rng
        first = self.reach()
        second = first if rng.random() < 0.5 else self.other(first)
        goal = rng.choices(GOALS, (8, 2, 2, 2))[0]
        facts = (
            "T >= 1",
            "S >= 1",
            *rng.sample(_FACTS, rng.randint(*((5, 10) if goal == "bounds" else (0, 5)))),
        )
        case = Case(goal, first, second, facts, self.lets)
        if first.space is second.space is Space.ELEMENT and len(first.places) == 1 and rng.random() < 0.5:
            case = replace(case, copies=3)
        return replace(case, contract=rng.choice(CONTRACTS)) if case.mentions("t") else case

    def reach(self) -> Reach:
        rng = self.rng
        indices = [rng.choice(_SINGLES)] if rng.random() < 0.4 else list(rng.choice(_PAIRS))
        indices = [self.expression(2) if rng.random() < 0.1 else i for i in indices]
        indices = [self.filled(i) for i in indices]
        if any(re.search(r"\bp[mn]\b", i) for i in indices) and not self.lets:
            pid, group = rng.choice(("b0", "b0", "(b0 + k * G0)")), rng.choice(("2", "3", "S", "T"))
            self.lets = tuple(line.format(pid=pid, group=group) for line in SWIZZLE)
        space = rng.choices((Space.TILE, Space.ELEMENT, Space.RAW), (5, 4, 1))[0]
        places = [self.place(i, k, space) for k, i in enumerate(indices)]
        if space is Space.RAW:
            places = [self.flattened(places)]
        names = " ".join(f"{p}" for p in places) + " ".join(self.lets)
        guards = [rng.choice(_LOOPS)] if re.search(r"\bk\b", names) and rng.random() < 0.95 else []
        guards += [self.condition()] if rng.random() < 0.2 else []
        mask = "True"
        if re.search(r"\bl0\b", names) or places[0].size != "1":
            mask = self.filled(
                rng.choice(("True", "True", "l0 < n", f"({places[0].index}) * T + l0 < n", "l0 % 2 == 0"))
            )
        return Reach(tuple(places), space, " and ".join(guards) or "True", mask)

    def place(self, index: str, axis: int, space: Space) -> Place:
        """One axis: a tile, one element, or a lane inside the index."""
        rng, extent = self.rng, f"E{axis}"
        base = "0"
        if rng.random() < 0.15:
            base, extent = rng.choice(
                (("n", f"E{axis} - n"), ("S", "T"), ("b1 * T", "T"), ("t[b0]", "t[b0 + 1] - t[b0]"))
            )
        elif rng.random() < 0.1:
            extent = rng.choice(("cdiv(m, n)", "cdiv(n, T)", "n // T"))
        if rng.random() < 0.3:
            return Place(index, base=base, extent=extent)
        size = rng.choice(("T", "S", "2", "3"))
        if space is Space.TILE:
            step = size if rng.random() < 0.75 else rng.choice(("T", "S", "2", f"{size} + 1", f"{size} - 1"))
            return Place(index, step, size, base, extent)
        lane = rng.choices(
            (
                f"({index}) * {size} + l{axis}",
                f"({index}) + l{axis} * {self.filled('{d}')}",
                f"({index}) * {size} + {size} - 1 - l{axis}",
                f"({index}) * S + l{axis} % S",
                f"({index}) * S + l{axis} // 2",
            ),
            (5, 2, 1, 1, 1),
        )[0]
        return Place(lane, "1", size, base, extent, has_lane=True)

    def flattened(self, places: list[Place]) -> Place:
        """The offset of an element in row-major order; a raw pointer has one axis and no extent."""
        if len(places) == 1:
            return replace(places[0], extent="0")
        row, column = places
        pitch = self.rng.choice(("E1", "E1", "m", "n", "m * S"))
        text = f"({row.index}) * {pitch} + {column.index.replace('l1', 'l0')}"
        inner = column if column.has_lane else row
        if row.has_lane and column.has_lane:
            text = f"({row.index}) * {pitch} + 0"
            inner = row
        return Place(text, "1", inner.size if inner.has_lane else "1", "0", "0", has_lane=inner.has_lane)

    def other(self, reach: Reach) -> Reach:
        """The same access a little further, under another guard, or another of the same rank."""
        rng = self.rng
        head, *rest = reach.places
        choice = rng.randrange(5)
        if choice == 0:
            head = replace(head, index=f"({head.index}) + {rng.choice(('1', 'S', 'n', 'G0'))}")
        elif choice == 1:
            head = replace(head, base=f"{head.base} + {rng.choice(('n', 'T', 'E0 // 2'))}")
        elif choice == 2:
            return replace(reach, guard=rng.choice(("b0 % 2 == 1", "b0 == 0", "b0 < n")))
        elif choice == 3:
            return replace(reach, mask="True")
        else:
            for _ in range(9):
                found = self.reach()
                if len(found.places) == len(reach.places) and found.space is reach.space:
                    return found
        return replace(reach, places=(head, *rest))

    def filled(self, text: str) -> str:
        return text.replace("{d}", f"({self.rng.choice(_DIVISORS)})")

    def expression(self, depth: int) -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(_LEAVES)
        x, y = self.expression(depth - 1), self.expression(depth - 1)
        forms = ("({x} + {y})", "({x} - {y})", "({x} * {y})", "({x} // {d})", "({x} % {d})", "min({x}, {y})")
        forms += ("max({x}, {y})", "({x} if {x} < {y} else {y})", "({x} ^ {y})", "({x} & {y})", "({x} // {y})")
        return self.filled(rng.choice(forms).replace("{x}", x).replace("{y}", y))

    def condition(self) -> str:
        return self.filled(self.rng.choice(_CONDITIONS))


def drawn(seed: int) -> Case:
    """The case of a seed."""
    return Draw(random.Random(seed)).case()
