"""One path through a host function: what it has asked of the device so far, and what it knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from typing import Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_programs.choices import Choices, NoChoices, Undecided
from tilecheck.frontend.host_programs.kernels import Kernels
from tilecheck.frontend.host_programs.knowledge import (
    Cut,
    Knowledge,
    Loop,
    OpenCapture,
    Relearn,
    TooLong,
    Unread,
    family,
)
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.graph_captures import Key, freeze, note_written
from tilecheck.frontend.host_programs.values.objects import with_owners
from tilecheck.frontend.host_programs.values.ranges import Ranges
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.ir import expr as E
from tilecheck.ir import host_program as H
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.model import Site

CURRENT = "current"  # the stream that is current when the function is entered
ON_HOST = "lies on the host"  # what is decided of memory of which the text does not say where it lies
MAX_STEPS = 20_000  # nodes that are evaluated for one function, each time that it is read
MAX_STEPS_OF_FILE = 120_000
_VISITED = 40  # values that are looked at for names of memory take as long as a node
MAX_ACTIONS = 1_500  # of one path


_NOTHING = H.Footprint()


def _unset(*_: Any) -> Any:
    raise AssertionError("a machine is made by `programs.machine`")


@dataclass(slots=True, eq=False)
class Machine:
    """The state of one path. Mutable.

    `given` says what unknown values were found to be, and `stored` what was stored into unknown objects, by
    path. `owned` are the memories that the program must give back.
    """

    table: ModuleTable
    choices: Choices
    knowledge: Knowledge
    kernels: Kernels
    actions: list[H.Action] = field(default_factory=list)
    memories: dict[str, H.Memory] = field(default_factory=dict)
    facts: dict[Expr, None] = field(default_factory=dict)
    settled: dict[Expr, Expr] = field(default_factory=dict)  # numbers that this path knows
    decided: dict[object, int] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)  # of tensors of the caller, where the text shows them
    ranges: Ranges = field(default_factory=Ranges)
    stand_ins: dict[Expr, int] = field(default_factory=dict)  # numbers of rounds that stand for greater ones
    open_ranges: Ranges = field(default_factory=Ranges)  # what conditions on those chose
    tests: dict[str, Callable[[], bool]] = field(default_factory=dict)  # unknown truths, by name
    stream: str = CURRENT
    caller: str = CURRENT
    parameters: frozenset[str] = frozenset()  # names of unknown values that are whole parameters
    enters_on_default: bool = False  # module code does
    default_place: H.Place = H.Place.PAGEABLE  # where torch puts a tensor if nothing is said
    given: dict[str, Any] = field(default_factory=dict)
    stored: dict[str, Any] = field(default_factory=dict)
    scopes: list[V.Scope] = field(default_factory=list)
    globals: dict[str, V.Scope] = field(default_factory=dict)
    pending: list[Any] = field(default_factory=list)  # values of expressions that are being evaluated
    loops: list[Loop] = field(default_factory=list)
    captures: list[OpenCapture] = field(default_factory=list)
    devices: dict[str, None] = field(default_factory=dict)  # that the text names by their index
    guards: list[bool] = field(default_factory=list)  # open `try`s: whether only `next` raises in them
    entered: list[tuple[V.Context, Callable[[], None]]] = field(default_factory=list)  # by `__enter__`
    owned: dict[str, None] = field(default_factory=dict)
    live_graphs: dict[str, None] = field(default_factory=dict)
    pools: dict[str, str] = field(default_factory=dict)  # of graphs and handles: the graph that has the pool
    recorded: dict[str, list[str]] = field(default_factory=dict)  # streams of `record_stream`
    doubts: list[tuple[Site, str]] = field(default_factory=list)  # what the caller must know
    masks: dict[str, None] = field(default_factory=dict)  # memory that holds truths
    numbered: dict[str, None] = field(default_factory=dict)  # memory that holds integers
    copied: dict[str, None] = field(default_factory=dict)  # host memory that kernels touch
    names: dict[str, int] = field(default_factory=dict)  # how often each name was given
    target: str = ""  # the variable that the value being computed is for
    calls: list[cst.CSTNode] = field(default_factory=list)  # functions that are running
    cuts: dict[tuple[str, int], list[Cut]] = field(default_factory=dict)  # by memory and axis
    reads: list[dict[Key, tuple[str, Any]]] = field(default_factory=list)  # variables, by open statement
    bound_in: dict[Key, tuple[Site, ...]] = field(default_factory=dict)  # the loops around a binding
    frozen: dict[Key, tuple[str, Any]] = field(default_factory=dict)
    inputs: dict[Key, V.Tensor] = field(default_factory=dict)  # variables of what graphs read
    graph_reads: dict[str, dict[str, None]] = field(default_factory=dict)  # what variables gave it
    stale: dict[str, H.Rebind] = field(default_factory=dict)  # inputs whose variables got another tensor
    refreshed: dict[str, None] = field(default_factory=dict)  # memory written since the last replay
    branched: dict[Key, tuple[str, Any]] = field(default_factory=dict)  # what branches in the capture read
    graph_writes: dict[str, dict[str, None]] = field(default_factory=dict)
    graph_made: dict[str, dict[str, None]] = field(default_factory=dict)
    replays: dict[str, int] = field(default_factory=dict)  # by memory that a graph writes
    elements: dict[str, str] = field(default_factory=dict)  # items of unknown values, and of which
    sources: dict[str, str] = field(default_factory=dict)  # what objects and containers gave, and of which
    guessed: dict[str, frozenset[str]] = field(default_factory=dict)  # memory of guesses, and which values
    operated: set[str] = field(default_factory=set)  # values in arithmetic, which may be tensors
    modules: set[str] = field(default_factory=set)  # objects that are known to be no tensors
    readers: set[str] = field(default_factory=set)  # objects whose calls only read what they are given
    visited: int = 0  # values that sweeps have looked at since the last step
    rebound: bool = True  # something may have lost its last name since the last sweep
    holds_frees: int = 0  # open branches both ways of which are run: what is freed waits
    end: Site | None = None  # where the last function returned
    first: int = 0  # action of the function that is judged
    handed_out: list[Any] = field(default_factory=list)  # what the caller holds while the function goes on
    consumers: list[V.Scope] = field(default_factory=list)  # those that go over generators
    # What runs where a context manager yields, by its function.
    inside_yield: list[tuple[cst.CSTNode, Callable[[Any], None]]] = field(default_factory=list)
    # What the modules above this one do.
    evaluate: Callable[[Machine, Any], Any] = _unset
    bind: Callable[[Machine, Any, Any], None] = _unset
    set_attribute: Callable[[Machine, Any, str, Any, cst.CSTNode], None] = _unset
    call_function: Callable[[Machine, V.Function, Any], Any] = _unset
    run_function: Callable[[Machine, V.Function, Any], Any] = _unset
    call_object: Callable[[Machine, Any, Any], Any] = _unset
    super_of: Callable[[Machine, cst.CSTNode], Any] = _unset
    is_relevant: Callable[[cst.CSTNode], bool] = _unset
    orders: Callable[[cst.CSTNode], bool] = _unset
    is_set_by_methods: Callable[[cst.ClassDef, str], bool] = _unset

    # ---- places and names ----------------------------------------------------------------------------

    @property
    def scope(self) -> V.Scope:
        return self.scopes[-1]

    def site(self, node: cst.CSTNode) -> Site:
        return self.scope.table.site(node)

    def unread(self, node: cst.CSTNode, why: str) -> Unread:
        """The error for a construct that is not understood."""
        return Unread(self.site(node), f"{why}: `{self.scope.table.text(node)}`")

    def unread_at(self, site: Site, why: str) -> Unread:
        return Unread(site, why)

    def step(self, node: cst.CSTNode) -> None:
        done = 1 + self.visited // _VISITED
        self.visited %= _VISITED
        self.knowledge.steps += done
        self.kernels.steps += done
        if self.knowledge.steps > MAX_STEPS or len(self.actions) > MAX_ACTIONS:
            raise TooLong(self.site(node), "the function is too long to follow")
        if self.kernels.steps > MAX_STEPS_OF_FILE:
            raise TooLong(self.site(node), "the file is too long to follow")

    def unique(self, text: str) -> str:
        """A name that no other thing of the program has."""
        count = self.names.get(text, 0) + 1
        self.names[text] = count
        name = text if count == 1 else f"{text} ({count})"
        for loop in self.loops:
            loop.births[name] = (loop.round, len(loop.births))
        return name

    def fresh(self, text: str, *, given: bool = False) -> V.Unknown:
        return V.Unknown(self.unique(text), given=given)

    # ---- choices -------------------------------------------------------------------------------------

    def choose(self, key: object, ways: int) -> int:
        """A way to go on, the same on this path whenever the same is asked; None as key asks anew."""
        if key is None:
            return self.choices.pick(ways)
        if key not in self.decided:
            self.decided[key] = self.choices.pick(ways)
        return self.decided[key]

    def answer(self, test: Callable[[], bool]) -> bool | None:
        """What a test gives if this path decides it already, else None."""
        before, self.choices = self.choices, NoChoices()
        try:
            return test()
        except Undecided:
            return None
        finally:
            self.choices = before

    def test(self, name: str, test: Callable[[], bool]) -> V.Unknown:
        """The truth of a test that is not made yet."""
        self.tests[name] = test
        return V.Unknown(name, given=False, plain=True)

    def settle(self, e: Expr) -> Expr:
        """The expression with the numbers that this path knows."""
        return E.substitute(e, self.settled)

    def holds(self, condition: Expr) -> bool:
        """Whether a condition on numbers is true on this path; what is open is chosen."""
        condition = self.settle(condition)
        if condition is E.TRUE or condition is E.FALSE:
            return condition is E.TRUE
        if condition in self.facts or E.negate(condition) in self.facts:
            return condition in self.facts
        decided = self.ranges.decide(condition)
        if decided is not None:
            return decided
        chosen = condition if self.choices.pick(2) == 0 else E.negate(condition)
        self.assume(chosen)
        if chosen is condition and condition.op == "eq":
            known, other = sorted(condition.args, key=lambda e: e.value is None)
            if known.value is not None:
                self.settled[other] = known
        return chosen is condition

    def know(self, e: Expr, value: int) -> None:
        """On this path a number has this value."""
        self.settled[e] = E.const(value)
        self.assume(E.eq(e, value))

    def assume(self, condition: Expr) -> None:
        if condition is not E.TRUE:
            self.facts[condition] = None
            self.ranges.learn(condition)

    # ---- memory --------------------------------------------------------------------------------------

    def place(self, memory: str) -> H.Place:
        return self.memories[memory].place

    def is_device(self, tensor: V.Tensor) -> bool:
        return not tensor.host_view and self.place(tensor.memory) is H.Place.DEVICE

    def handed_in(self, name: str, node: cst.CSTNode, extents: tuple[Expr, ...] | None = None) -> V.Tensor:
        """Memory that the caller made, under the path of the value that holds it."""
        if name not in self.memories:
            rank = self.ranks.get(name)
            if extents is None and rank is not None:
                extents = tuple(E.sym(Symbol(f"{name}.shape[{axis}]", Kind.HOST)) for axis in range(rank))
                for extent in extents:
                    self.assume(E.le(1, extent))
            place = self.knowledge.place_of(name)
            stream = CURRENT if place is H.Place.DEVICE else None
            self.memories[name] = H.Memory(name, self.site(node), place, stream, None, extents, handed_in=True)
            self.names.setdefault(name, 1)
        return V.Tensor(name)

    def allocate(
        self, node: cst.CSTNode, name: str, place: H.Place, extents: tuple[Expr, ...] | None = None
    ) -> V.Tensor:
        """New memory of the program: on the device that of the current stream, or of the pool of a capture."""
        self.rebound = True
        memory = self.unique(self.target or name)
        place = self.knowledge.places.get(memory, place)
        on_device = place is H.Place.DEVICE
        pool = self.captures[-1].pool if on_device and self.captures else None
        stream = self.stream if on_device else None
        self.memories[memory] = H.Memory(memory, self.site(node), place, stream, pool, extents)
        self.owned[memory] = None
        if self.captures and on_device:
            self.graph_made[self.captures[-1].graph][memory] = None
        self.actions.append(H.Allocate(self.site(node), memory))
        return V.Tensor(memory)

    def learn_rank(self, name: str, rank: int) -> None:
        """The shape of a tensor is taken apart, or compared with one of so many axes."""
        memory = self.memories.get(name)
        self.ranks.setdefault(name, rank)
        if memory is not None and memory.extents is None:
            extents = tuple(self.extent(name, axis) for axis in range(rank))
            self.memories[name] = replace(memory, extents=extents)

    def extent(self, memory: str, axis: int) -> Expr:
        extents = self.memories[memory].extents
        if extents is not None and axis < len(extents):
            return extents[axis]
        size = E.sym(Symbol(f"{memory}.shape[{axis}]", Kind.HOST))
        self.assume(E.le(1, size))
        return size

    def regions(self, tensor: V.Tensor, *, exact: bool = True) -> tuple[H.Region, ...]:
        """What a use of all of a tensor touches."""
        whole = exact and not tensor.holes and not tensor.aliases
        box: list[tuple[Expr, Expr]] = []
        for axis, interval in enumerate(tensor.box):
            bounds = None if interval is None else self._bounds(tensor.memory, axis, interval)
            whole = whole and not (interval is not None and bounds is None)
            box.append(bounds or (E.ZERO, self.extent(tensor.memory, axis)))
        if all(interval is None for interval in tensor.box):
            box = []
        return (H.Region(tensor.memory, tuple(box), exact=whole), *tensor.aliases)

    def _bounds(self, memory: str, axis: int, interval: tuple[V.Number, V.Number]) -> tuple[Expr, Expr] | None:
        """The bounds of a cut; None where the rounds that are read do not stand for all others."""
        start, stop = interval
        if start.curved or stop.curved or start.slopes != stop.slopes or len(start.slopes) > 1:
            return None
        if memory in self.knowledge.spread:
            return None
        self.cuts.setdefault((memory, axis), []).append(self._cut(start))
        return start.expr, stop.expr

    def note_cut(self, whole: str, index: V.Number) -> None:
        """An item of a container of the caller is taken that moves with the round of a loop."""
        self.cuts.setdefault((whole, 0), []).append(self._cut(index))

    def _cut(self, start: V.Number) -> Cut:
        if not start.slopes:
            return Cut(None, E.ZERO, start.expr)
        (name, slope), *_ = start.slopes
        loop = next((la for la in self.loops if la.name == name), None)
        at = E.const(0 if loop is None else loop.round)
        return Cut(None if loop is None else loop.site, slope, E.sub(start.expr, E.mul(at, slope)))

    # ---- actions -------------------------------------------------------------------------------------

    def act(self, action: H.Action) -> None:
        self.actions.append(action)

    def join(
        self, node: cst.CSTNode, what: str, *, stream: str | None = None, event: str | None = None
    ) -> None:
        """The host waits; a capture does not allow it."""
        if self.captures:
            self.forbid(node, what, "it waits for the device")
            return
        self.act(H.Join(self.site(node), stream, event))

    def forbid(self, node: cst.CSTNode, what: str, why: str) -> None:
        self.act(H.Forbidden(self.site(node), what, why))

    def touch(
        self, node: cst.CSTNode, name: str, reads: Iterable[H.Region], writes: Iterable[H.Region] = ()
    ) -> None:
        """The host itself reads or writes memory."""
        footprint = H.Footprint(distinct(reads), distinct(writes))
        if footprint.reads or footprint.writes:
            note_written(self, footprint)
            self.act(H.Touch(self.site(node), name, footprint))

    def enqueue(
        self,
        node: cst.CSTNode,
        name: str,
        reads: Iterable[H.Region],
        writes: Iterable[H.Region] = (),
        *,
        stream: str | None = None,
        is_launch: bool = True,
        before: H.Footprint = _NOTHING,
        dependent: bool = False,
        waits: bool = True,
    ) -> None:
        """Enqueue work on a stream, the current one if none is named."""
        touched = (distinct(with_owners(self, node, regions)) for regions in (reads, writes))
        after = H.Footprint(*touched)
        self._on_device(region.memory for part in (before, after) for region, _ in part.regions())
        frozen: tuple[str, ...] = ()
        if self.captures:
            graph = self.captures[-1].graph
            self.graph_writes[graph].update((r.memory, None) for r in (*after.writes, *before.writes))
            frozen = freeze(self, (*after.reads, *before.reads), graph)
        else:
            note_written(self, before)
            note_written(self, after)
        self.act(
            H.Work(
                self.site(node), name, stream or self.stream, after, before, dependent, waits, is_launch, frozen
            )
        )

    def _on_device(self, memories: Iterable[str]) -> None:
        """Raises: Relearn, if this path took memory that work on the device uses to lie on the host."""
        for name in map(family, memories):
            if self.decided.get((ON_HOST, name)) == 1:
                self.knowledge.on_device.add(name)
                raise Relearn

    def note_use(self, node: cst.CSTNode, tensor: V.Tensor) -> None:
        """A result that was kept under a name is used."""
        if tensor.kept:
            self.act(H.UseKept(self.site(node), tensor.kept))


MAX_RANK = 8


def distinct(regions: Iterable[H.Region]) -> tuple[H.Region, ...]:
    """Each region once, exact if one of them is."""
    found: dict[tuple[object, ...], H.Region] = {}
    for region in regions:
        key = (region.memory, region.box)
        known = found.get(key)
        found[key] = region if known is None else replace(known, exact=known.exact or region.exact)
    return tuple(found.values())
