"""Executes host functions: Python that allocates tensors, computes grids and launches kernels.

The kernels' executor runs the text; what differs is what it does with code that it does not know. A kernel
must be read whole. A host function may do anything between two launches, so an expression that is not
modelled gives an unknown value, and a statement that is not modelled makes what it assigns unknown. Path
conditions (asserts, early raises, branches) are kept exactly where they are read, and dropped elsewhere:
fewer facts admit more host inputs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import TilecheckError, UnsupportedConstruct
from tilecheck.frontend.execute.state import Arguments, Executor
from tilecheck.frontend.host import calls, statements, targets
from tilecheck.frontend.host.memory import mutations, rejections, sharing, unread_effects
from tilecheck.frontend.host.memory.contents import Held
from tilecheck.frontend.host.memory.mutations import Changes, Events, plain, read_number
from tilecheck.frontend.host.memory.rejections import Header
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.tensors import methods, subscripts
from tilecheck.frontend.host.values import (
    Axes,
    BitLength,
    Device,
    Dims,
    FloatParam,
    HostShape,
    LaunchCall,
    Tensor,
    Unknown,
    Updated,
)
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.values import arithmetic
from tilecheck.frontend.values.values import (
    Choice,
    Const,
    Frame,
    Function,
    Named,
    Num,
    Param,
    Poison,
    Seq,
    Token,
)
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.host import (
    NATURAL,
    OPAQUE,
    RAISED,
    exact_quotient,
    host_rank,
    host_scalar,
    host_test,
    is_contiguous,
    quotient,
    ranks_in,
    scalars,
)

if TYPE_CHECKING:
    from tilecheck.frontend.host.autograd import HostRun
    from tilecheck.frontend.host.tensors.reshaping import Supposed
    from tilecheck.frontend.modules.project import ModuleTable

HOST_STEPS = 30_000
_NAMELESS = "?"
_LONGEST_TEXT = 12  # nodes
_DISPLAYS = (cst.List, cst.Tuple, cst.Set, cst.Dict, cst.BaseComp)


class HostTooLarge(TilecheckError):
    """A host function that takes more steps than it is worth."""


class HostStopped(TilecheckError):
    """A host function that does something after which its values cannot be followed."""


Recorder = Callable[["HostExecutor", LaunchCall], None]


@dataclass(slots=True, eq=False)
class Shared:
    """What is read once for all runs over a module. Mutable cache.

    `kernels` has, for each file, the kernels that it defines and their languages, `stores` where it stores into
    the containers it names, `inside` the names that functions inside others mention. `tuning` has the
    configurations of kernels, `runs` the launches of host functions and what these hand on.
    """

    kernels: dict[str, dict[cst.FunctionDef, str]] = field(default_factory=dict)
    stores: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    inside: dict[str, frozenset[str]] = field(default_factory=dict)
    tuning: dict[cst.CSTNode, Any] = field(default_factory=dict)
    runs: dict[cst.CSTNode, HostRun] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class HostExecutor(Executor):
    """Mutable state of one run over a host function.

    `handlers` evaluate the expressions that host code evaluates its own way, `record_launch` is told of every
    launch. `integer_names` are the unknowns that an earlier run saw used as integers, `definitions` what the
    symbols made on the way are equal to, `names_taken` counts the values that share a text.
    """

    reads_every_way: ClassVar[bool] = False
    follows_searches: ClassVar[bool] = False
    has_machine_integers: ClassVar[bool] = False

    handlers: Mapping[type, Callable[..., Any]] = field(default_factory=dict)  # of expressions
    record_launch: Recorder = lambda x, call: None
    integer_names: frozenset[str] = frozenset()
    integers_seen: set[str] = field(default_factory=set)
    sequence_names: frozenset[str] = frozenset()  # likewise, as sequences of sizes
    sequences_seen: set[str] = field(default_factory=set)
    definitions: dict[Expr, Expr] = field(default_factory=dict)
    texts: dict[Expr, str] = field(default_factory=dict)
    copied_down: dict[Expr, tuple[Expr, int]] = field(default_factory=dict)  # of what, over how many bits
    names_taken: dict[str, int] = field(default_factory=dict)
    storages: dict[str, int] = field(default_factory=dict)
    context: str = ""  # the parameter for which torch makes an object of its own at each call
    doubted: set[str] = field(default_factory=set)  # what unread code may have checked
    doubted_after: set[str] = field(default_factory=set)  # and is doubted after the function that is executed
    finals: list[tuple[Frame, tuple[cst.CSTNode, ...]]] = field(default_factory=list)  # that a `return` runs
    raising: set[str] = field(default_factory=set)  # what decides whether the open handlers are run
    deciding: list[Header] = field(default_factory=list)  # of the open statements
    line: tuple[cst.CSTNode, Frame] | None = None  # the simple statement that is executed
    handed_on: set[str] = field(default_factory=set)  # storages that other code was given, or finds
    exposed: set[str] = field(default_factory=set)  # those among them that other code may write
    blank: dict[str, int] = field(default_factory=dict)  # storages that `empty` made, and after which event
    returned: tuple[Any, ...] = ()  # the values that the function returned
    allocated: set[str] = field(default_factory=set)  # storages of allocations in view
    any_shape: set[str] = field(default_factory=set)  # gradients of arithmetic on what may have any shape
    computed: set[str] = field(default_factory=set)  # those of sizes that a library computes
    stacked: set[str] = field(default_factory=set)  # lists of which all items have one shape, else it raises
    said_of: dict[str, frozenset[int]] = field(default_factory=dict)  # axes of these of which the text says all
    origins: dict[str, frozenset[str]] = field(default_factory=dict)  # of what unread code gives: see `unread`
    made_of: dict[str, frozenset[str]] = field(default_factory=dict)  # names in lists that the text computes
    # Sizes that are the elements of a new tensor, and the number of changes that were before it was made.
    sizes_in: dict[str, tuple[int, unknown_ranks.Parts]] = field(default_factory=dict)
    in_descriptors: list[Any] = field(default_factory=list)  # lists that descriptors hold
    either: list[tuple[Any, Any, Any]] = field(default_factory=list)  # an object that is one of two, and these
    supposed: list[Supposed] = field(default_factory=list)  # inputs that were taken to be two tensors
    # Items of `[f(d) for d in dims]` by position, and the number of changes that were before the list was made.
    mapped: dict[str, tuple[int, Callable[[int], Any]]] = field(default_factory=dict)
    givers: dict[str, frozenset[str]] = field(default_factory=dict)  # of what it was surely given
    may_be: dict[str, frozenset[str]] = field(default_factory=dict)  # of what the text lets it be
    may_hold: dict[str, set[str]] = field(default_factory=dict)  # storages, by the variable that may get one
    may_view: dict[str, set[str]] = field(default_factory=dict)  # likewise, that it surely may be
    cached: dict[cst.CSTNode, list[tuple[Any, Any]]] = field(default_factory=dict)  # calls of cached functions
    defaults: dict[tuple[cst.CSTNode, str], Any] = field(default_factory=dict)  # made once, with their function
    fields: Mapping[str, frozenset[str]] = field(default_factory=dict)  # of `self`, that may be one tensor
    viewed_fields: Mapping[str, frozenset[str]] = field(default_factory=dict)  # by what the text assigns
    given_fields: frozenset[str] = frozenset()  # of `self`, that hold what its maker handed in
    module_values: dict[tuple[str, str], Any] = field(default_factory=dict)
    running: list[cst.CSTNode] = field(default_factory=list)
    known: Shared = field(default_factory=Shared)
    stored: dict[tuple[str, str], dict[int, Any]] = field(default_factory=dict)  # into module-level containers
    forms: Mapping[tuple[str, str], Any] = field(default_factory=dict)  # what an earlier run saw stored there
    inputs: frozenset[str] = frozenset()  # the parameters of the function that is executed
    of_numbers: frozenset[str] = frozenset()  # those taken to hold no tensors
    shapes: dict[str, tuple[Expr | Axes, ...]] = field(default_factory=dict)  # by the names of their tensors
    counts: dict[str, Expr] = field(default_factory=dict)  # of elements, of tensors with shapes that are free
    cuts: dict[tuple[str, Expr], tuple[str, str]] = field(default_factory=dict)  # shapes: see `unknown_ranks`
    # Shapes that are others with two axes exchanged, and which.
    transposes: dict[str, tuple[str, frozenset[Expr]]] = field(default_factory=dict)
    made_contiguous: dict[str, Tensor] = field(default_factory=dict)  # parameters that a decorator prepares
    followed: bool = True  # whether decorators hand on what they get, but for that
    ends: list[tuple[Expr, Any, dict[str, Any]]] = field(
        default_factory=list
    )  # of the function that is executed
    outermost: Frame | None = None  # of that function
    allocation: str = ""  # the name that the value being computed will get
    events: Events = field(default_factory=Events)
    contents: dict[str, Held] = field(default_factory=dict)  # of storages: what their elements are

    # ---- unknown values ------------------------------------------------------------------------------

    def unread(self, text: str) -> Unknown:
        """A value that nothing else is known to be equal to. A tensor in it may be any that other code was
        given, or that the variable may hold."""
        name = self._unique(text)
        self.events.born[name] = self.events.now
        self.origins[name] = frozenset(self.handed_on | self.may_hold.get(text, set()))
        if text in self.may_view:
            self.may_be[name] = frozenset(self.may_view[text])
        return Unknown(name, opaque=True)

    def new_object(self, text: str) -> Unknown:
        """What a function of a library allocates: it shares nothing with what it was made of."""
        found = self.unread(text)
        self.origins[found.name] = frozenset()
        self.allocated.add(found.name)
        self.computed.add(found.name)
        return found

    def unread_test(self, text: str) -> Expr:
        """A truth that nothing else is known to be equal to."""
        return E.bool_sym(Symbol(self._unique(text), Kind.HOST, origin=OPAQUE))

    def exception(self, text: str) -> Expr:
        """Whether an exception ends a block."""
        return E.bool_sym(Symbol(self._unique(text), Kind.HOST, origin=RAISED))

    def test_of_machine(self, text: str) -> Expr:
        """A truth that no argument decides."""
        return host_test(self._unique(text))

    def is_given(self, name: str) -> bool:
        """Whether a value of this name is handed in: a parameter, a part of one, or a list made of such."""
        for whole in (name, name.rpartition("[")[0]):
            if whole in self.made_of:
                return all(map(self.is_given, self.made_of[whole]))
        root = name.partition(".")[0].partition("[")[0]
        return root in self.inputs and "(" not in name

    def is_of_context(self, path: str) -> bool:
        """Whether it is an attribute of the context of an autograd function, which no other code has."""
        owner, _, attribute = path.partition(".")
        return owner == self.context != "" and "." not in attribute and owner not in self.exposed

    def natural(self, text: str) -> Num:
        """A size, a stride or a number of axes of which no more is known."""
        return Num((), E.sym(Symbol(self.unread(text).name, Kind.HOST, origin=NATURAL)), "int", None)

    def stable(self, text: str) -> Unknown:
        """A value that is the same wherever this text stands."""
        return Unknown(text, opaque=True)

    def _unique(self, text: str) -> str:
        # A part of what is handed in has its text for a name already.
        count = self.names_taken.get(text, 1 if self.is_given(text) else 0) + 1
        self.names_taken[text] = count
        return text if count == 1 else f"{text} ({count})"

    def storage(self, kind: str) -> str:
        """A name for a new allocation, after the variable that it is assigned to."""
        text = kind if "," in self.allocation else self.allocation or kind
        count = self.storages.get(text, 0) + 1
        self.storages[text] = count
        name = text if count == 1 else f"{text} ({count})"
        self.allocated.add(name)
        return name

    def short(self, value: Expr) -> str:
        """A text for a value: its own if that is short, else one that stands for it alone."""
        if value not in self.texts:
            size = sum(1 for _ in islice(E.walk(value), _LONGEST_TEXT + 1))
            self.texts[value] = E.render(value) if size <= _LONGEST_TEXT else f"value {len(self.texts)}"
        return self.texts[value]

    def language_of(self, function: Function) -> str:
        """The language of a kernel; empty for any other function."""
        known, table = self.known.kernels, function.table
        if table.file not in known:
            known[table.file] = {d.node: d.language for d in find_kernels(table)}
        return known[table.file].get(function.node, "") if isinstance(function.node, cst.FunctionDef) else ""

    def named_inside(self, table: ModuleTable) -> frozenset[str]:
        """The names that functions inside others mention: whoever calls these may change what is held."""
        if table.file not in self.known.inside:
            self.known.inside[table.file] = unread_effects.named_inside(table)
        return self.known.inside[table.file]

    def define(self, symbol: Expr, fact: Expr) -> None:
        self.definitions[symbol] = fact

    # ---- what is known -------------------------------------------------------------------------------

    def assume(self, fact: Expr) -> None:
        """Execution goes on only where `fact` holds: it would have raised elsewhere."""
        self.guard = E.all_of(self.guard, fact)

    def changes_so_far(self) -> tuple[Changes, frozenset[str], bool]:
        return self.events.so_far(), frozenset(self.doubted), any(h.ran for h in self.deciding[-1:])

    def set_changes(self, changes: tuple[Changes, frozenset[str], bool]) -> None:
        events, doubted, ran = changes
        self.events.set_to(events)
        self.doubted = set(doubted)
        for header in self.deciding[-1:]:
            header.ran = ran

    def join_changes(self, others: tuple[Changes, frozenset[str], bool], *, ended: tuple[bool, bool]) -> None:
        self.events.add(others[0])
        branches = (others, self.changes_so_far())
        left = any(h.is_of_loop for h in self.deciding)  # perhaps by `break`
        self.doubted = set()
        for (_, doubted, ran), is_end in zip(branches, ended, strict=True):
            names = doubted.union(*(h.names for h in self.deciding[-1:] if ran))
            if is_end and not left:  # from there only what follows the call of the function is reached
                self.doubted_after |= names
            else:
                self.doubted |= names
        for header in self.deciding[-1:]:
            header.ran = False

    @contextlib.contextmanager
    def before_call(self) -> Iterator[None]:
        """Code of a module that ran before the function was called: it turns none of its arguments away."""
        guard, doubted, deciding, line = self.guard, self.doubted, self.deciding, self.line
        self.doubted, self.deciding, self.line = set(), [], None
        try:
            yield
        finally:
            self.guard, self.doubted, self.deciding, self.line = guard, doubted, deciding, line

    @contextlib.contextmanager
    def in_function(self) -> Iterator[None]:
        """Inside a function that is called: the header that a call stands in decides nothing about it."""
        header, after = self.deciding[-1:], self.doubted_after
        self.doubted_after = set()
        if header and header[0].at_once:
            self.deciding[-1] = replace(header[0], names=frozenset())
        try:
            yield
        finally:
            self.deciding[-1:] = header
            self.doubted |= self.doubted_after
            self.doubted_after = after

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor for certain, as the path to here asks `isinstance(x, torch.Tensor)`."""
        if not isinstance(value, Unknown):
            return isinstance(value, Tensor)
        asked = host_test(f"isinstance({value.name}, torch.Tensor)")
        return E.all_of(self.guard, E.negate(asked)) is E.FALSE

    def known_rank(self, t: Tensor) -> Tensor:
        """`t` with its shape written out where the path fixes the rank."""
        ranks = ranks_in(facts_of(self.guard)) if t.shape_of or t.strides_of else {}
        for name in dict.fromkeys((t.shape_of, t.strides_of)):
            if name in ranks:
                t = T.with_rank(t, ranks[name])
        shape = unknown_ranks.of_ranks(self.shapes.get(t.shape_of, ()), ranks) if t.shape is None else None
        return t if shape is None else replace(t, shape=shape, shape_of="")

    def count_of(self, t: Tensor) -> Expr | None:
        """The number of elements of a tensor."""
        found = T.numel(t)
        return None if found is None else unknown_ranks.meant(self, found)

    def shaped(self, t: Tensor, parts: unknown_ranks.Parts) -> Tensor:
        """`t` with a shape that is made of `parts`: where its elements lie is not changed."""
        if all(isinstance(part, Expr) for part in parts):
            return replace(t, shape=tuple(p for p in parts if isinstance(p, Expr)), shape_of="")
        return replace(t, shape=None, shape_of=unknown_ranks.named(self, parts))

    def of_count(self, t: Tensor, text: str, count: Expr | None) -> Tensor:
        """`t` with a shape of which only the number of elements is known, if that is."""
        name = self.unread(text).name
        if count is not None:
            self.counts[name] = count
        return replace(t, name=name, shape=None, shape_of=name, strides=None, strides_of="")

    def with_room(self, t: Tensor) -> Tensor:
        """A new tensor, whose storage has as many elements."""
        return replace(t, room=self.count_of(t))

    def has_rank(self, t: Tensor, rank: int) -> Tensor:
        """`t` after an operation that is an error unless it has so many axes."""
        if t.shape is None and t.shape_of:
            self.assume(E.eq(E.sym(host_rank(t.shape_of)), rank))
        return self.known_rank(t)

    def laid_out(self, t: Tensor) -> Tensor:
        """`t`, contiguous if the path says so, or if it has no gaps along its only axis."""
        if T.is_line(t):
            return replace(t, contiguous=True, strides=None, strides_of="")
        whole = "" if t.contiguous else T.whole(t)
        if whole and is_contiguous(whole) in facts_of(self.guard):
            return replace(t, contiguous=True, dense=True, strides=None)
        return t

    def tensor(self, value: Any) -> Tensor:
        """`value` as a tensor."""
        match value:
            case Tensor():
                return value
            case Unknown():
                found = self.made_contiguous.get(value.name) or T.free(value.name)
                # What a function of a library allocates has no gaps.
                return replace(found, dense=True) if value.name in self.allocated else found
            case _:
                raise UnsupportedConstruct("a tensor that is not known")

    def unread_view(self, t: Tensor, text: str) -> Tensor:
        """A view of a tensor of which the text does not give the shape: it has one of its own, for which no
        caller answers."""
        name = self.unread(text).name
        self.computed.add(name)
        return replace(T.piece(t, name), shape_of=name)

    def with_layout(self, value: Any, text: str) -> Any:
        """A tensor whose strides nothing gives gets a name for them."""
        if isinstance(value, Tensor) and T.is_line(value):
            return self.laid_out(value)
        if not isinstance(value, Tensor) or value.strides is not None or value.strides_of or value.contiguous:
            return value
        own = self.new_object if value.storage in self.allocated else self.unread
        return replace(value, strides_of=own(text).name)

    def as_one_copy(self, value: Any) -> Any:
        """What may be a copy is another copy each time that it is made, and then one tensor."""
        unnumbered = isinstance(value, Tensor) and value.copied and not value.copy
        return replace(value, copy=self.number()) if unnumbered else value

    def stop(self, why: str) -> None:
        raise HostStopped(why)

    # ---- the executor's questions --------------------------------------------------------------------

    def step(self) -> None:
        self.steps += 1
        if self.steps > HOST_STEPS:
            raise HostTooLarge

    def number_of(self, value: Any, what: str) -> Num:
        match value:
            case Updated():
                return Num((), value.number, "any", None)
            case Unknown():
                value = read_number(self, value)
                return Num((), E.sym(host_scalar(value.name, opaque=value.opaque)), "any", None)
            case Named() if not value.name.startswith(("math.", "numpy.", "torch.")):
                return self.number_of(Unknown(value.name, opaque=True), what)
            case BitLength():
                return self.natural(f"{self.short(value.of)}.bit_length()")
            case Choice():
                a, b = self.number_of(value.first, what), self.number_of(value.second, what)
                return arithmetic.select(Num((), value.cond, "bool"), a, b, self)
            case _:
                return Executor.number_of(self, value, what)

    def truth(self, value: Any) -> Expr:
        match value:
            case Updated():
                return E.ne(value.number, 0)
            case Unknown():
                now = mutations.read_truth(self, value)
                return E.ne(E.sym(host_scalar(now.name, opaque=now.opaque)), 0)
            case Named(name="typing.TYPE_CHECKING"):
                return E.FALSE
            case Num() if value.kind == "any" and value.elem is not None and _is_chosen(value.elem):
                return E.ne(value.elem, 0)
            case HostShape() | Dims():
                parts = unknown_ranks.parts_of(
                    self, HostShape(value.of) if isinstance(value, HostShape) else value
                )
                if parts is None:
                    return self.unread_test("a test")
                found = E.le(1, unknown_ranks.rank(parts))
                self.assume(E.any_of(found, E.eq(unknown_ranks.product(parts), 1)))  # the product of no sizes
                return found
            case Num() | Const() | Seq() | Choice():
                return Executor.truth(self, value)
            case Tensor():
                return self.unread_test(f"bool({value.name})")
            case Param() | Token() | Named():
                return host_test(f"bool({value.name})")
            case _:
                return self.unread_test("a test")

    def is_integer_memory(self, value: Expr) -> bool:
        return all(s.name in self.integer_names for s in scalars(value))

    def fresh(self, origin: str, *, per_lane: bool, boolean: bool = False, name: str = _NAMELESS) -> Expr:
        """A number, or a truth, that some arithmetic gives: nothing in the text has a name for it."""
        symbol = Symbol(self._unique(name), Kind.HOST, origin=OPAQUE)
        return E.bool_sym(symbol) if boolean else E.sym(symbol)

    def unfolded(self, value: Expr, x: Expr, y: Expr, *, per_lane: bool) -> Expr:
        """Of a host's numbers only those that are used as integers count in the end."""
        return value

    def use_as_integer(self, value: Expr) -> None:
        names = [s.name for s in scalars(value)]
        # `dim += x.ndim` leaves an integer where `dim` was one.
        self.integers_seen.update(names, map(plain, names))

    def divides(self, divisor: Expr) -> None:
        self.assume(E.ne(divisor, 0))  # Python raises

    def power_of_two(self, n: Num, *, shifts: bool) -> Num | None:
        """A host's powers are some numbers."""
        return None

    def steps_by(self, step: Expr) -> None:
        self.assume(E.ne(step, 0))  # Python raises

    def fits(
        self,
        value: Expr,
        shape: tuple[Expr, ...] = (),
        *,
        named: bool = True,
        widened: bool = False,
        into: str | None = None,
        behind: frozenset[Symbol] = frozenset(),
    ) -> Expr:
        """Python's integers do not wrap."""
        return value

    def integral(self, *values: Num) -> None:
        """Python divides floats too."""

    def branch_on(self, cond: Expr) -> None:
        """Nothing to note: there are no blocks here."""

    # ---- what is done another way --------------------------------------------------------------------

    def expression(self, node: cst.BaseExpression, frame: Frame) -> Callable[[], Any] | None:
        handler = self.handlers.get(type(node))
        return None if handler is None else lambda: handler(self, node, frame)

    def recover(self, problem: UnsupportedConstruct, node: cst.BaseExpression, frame: Frame) -> Any:
        sharing.hand_on_named(self, node, frame)
        rejections.doubt(self, node, frame)
        targets.forget_named(self, node, frame)
        unread_effects.forget_effects(self, node, frame)
        found = self.unread(frame.table.text(node))
        if any(isinstance(n, _DISPLAYS) for n in (node, *node.children)):
            self.computed.add(found.name)  # what a list that this makes holds nobody hands in
        return found

    def bind(self, function: Function, args: Arguments) -> Frame | None:
        return targets.bound(self, function, args)

    def merge(self, cond: Expr, a: Any, b: Any) -> Any:
        if isinstance(a, Unknown) and isinstance(b, Unknown) and a.name == b.name:
            one, other = self.number_of(a, "value").elem, self.number_of(b, "value").elem
            if one is not None and other is not None:
                return a if a == b else Updated(a.name, a.opaque, number=E.ite(cond, one, other))
        if isinstance(a, Unknown) and isinstance(b, Num) and b.kind != "data":
            a = self.number_of(a, "value")
        elif isinstance(b, Unknown) and isinstance(a, Num) and a.kind != "data":
            b = self.number_of(b, "value")
        if isinstance(a, Device) and isinstance(b, Device) and a != b:
            return Device(self.unread("device").name)  # where a tensor lies says nothing of its elements
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            a, b = (self.tensor(v) if isinstance(v, Unknown) and self.is_tensor(v) else v for v in (a, b))
        if isinstance(a, Num) and isinstance(b, Num) and "bool" in (a.kind, b.kind):
            a, b = (_as_integer(v) if other.kind in ("int", "any") else v for v, other in ((a, b), (b, a)))
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a == b:
            return a if a.copied else b  # `x` or a copy of it, which nothing else tells apart: perhaps a copy
        found = Executor.merge(self, cond, a, b)
        if a is not b and (mutations.is_mutable(a) or mutations.is_mutable(b)):
            self.either.append((found, a, b))
        return found

    def merge_names(self, cond: Expr, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
        merged = Executor.merge_names(self, cond, a, b)
        for name in merged:
            # `x.n` that only one path assigned is what it was before on the other; `ctx.n` of a context that
            # torch just made is nothing there, and whoever reads it knows which path was taken.
            one_only = "." in name and not (name in a and name in b)
            if one_only and not self.is_of_context(name):
                merged[name] = sharing.unread_of(self, name, a.get(name), b.get(name))
        return merged

    def statement(self, node: cst.CSTNode, frame: Frame) -> bool:
        return statements.execute(self, node, frame)

    def target(self, target: cst.BaseExpression, value: Any, frame: Frame) -> bool:
        return targets.assign_target(self, target, value, frame)

    def join(self, a: Expr, b: Expr) -> Expr:
        return join_paths(a, b)

    def undecorated(self, function: Function) -> None:
        """A decorated host function is read as its text says."""

    def guard_after(self, before: Expr, frame: Frame) -> Expr:
        paths = [guard for guard, _ in frame.returns]
        after = self.guard
        for guard in reversed(paths):
            after = join_paths(guard, after)
        return after


def _is_chosen(e: Expr) -> bool:
    """Whether it is one of several numbers that are passed."""
    return e.op == "sym" or e.value is not None or (e.op == "ite" and all(map(_is_chosen, e.args[1:])))


def _as_integer(value: Num) -> Num:
    """A truth as the number that it is: True is 1."""
    if value.kind != "bool" or value.shape or value.elem is None:
        return value
    return Num((), E.ite(value.elem, E.ONE, E.ZERO), "int", None)


def is_nameless(symbol: Symbol) -> bool:
    """Whether nothing in the text has a name for a number or a truth."""
    return symbol.kind is Kind.HOST and symbol.name.partition(" ")[0] == _NAMELESS


def facts_of(guard: Expr) -> tuple[Expr, ...]:
    """The single facts of a path condition: `not (a or b)` is two of them."""
    found: dict[Expr, None] = {}
    stack = [guard]
    while stack:
        e = stack.pop()
        if e.op == "all":
            stack.extend(reversed(e.args))
        elif e.op == "not" and e.args[0].op == "any":
            stack.extend(E.negate(part) for part in reversed(e.args[0].args))
        elif e is not E.TRUE:
            found[e] = None
    return tuple(found)


def join_paths(a: Expr, b: Expr) -> Expr:
    """`a or b`, what both say kept apart: facts before a branch stay plain facts after it."""
    if a is E.FALSE or b is E.FALSE:
        return b if a is E.FALSE else a
    left, right = facts_of(a), facts_of(b)
    common = [c for c in left if c in right]
    first = E.all_of(*(c for c in left if c not in common))
    second = E.all_of(*(c for c in right if c not in common))
    if first is E.TRUE or second is E.TRUE or first is E.negate(second):
        return E.all_of(*common)
    for one, other in ((first, second), (second, first)):
        # c or (not c and f) says c or f.
        rest = [p for p in facts_of(other) if p is not E.negate(one)]
        if len(rest) < len(facts_of(other)):
            return E.all_of(*common, E.any_of(one, E.all_of(*rest)))
    return E.all_of(*common, E.any_of(first, second))


class HostDialect:
    """The meaning of names, methods and attributes in host code."""

    namespace = "torch"
    has_pointers = False

    def is_access(self, name: str) -> bool:
        return False

    def call(self, x: Executor, name: str, args: Arguments) -> Any:
        host = _host(x)
        handler = calls.meaning(name)
        out = dict(args.keywords).get("out", Const(None))
        if out != Const(None) and name.partition(".")[0] in calls.LIBRARIES:
            return host.with_layout(sharing.into(host, out, handler, args), f"out={_named(out, '')}")
        if handler is None:
            raise UnsupportedConstruct(f"call of `{name}`")
        found = handler(host, args)
        return host.with_layout(found, found.storage) if isinstance(found, Tensor) else found

    def method(self, x: Executor, value: Any, name: str, args: Arguments) -> Any:
        host = _host(x)
        found = host.as_one_copy(methods.method(host, value, name, args))
        return host.with_layout(found, _named(value, f".{name}()"))

    def attribute(self, x: Executor, value: Any, name: str) -> Any:
        host = _host(x)
        return host.with_layout(methods.attribute(host, value, name), _named(value, f".{name}"))

    def subscript(self, x: Executor, value: Any, index: Any) -> Any:
        host = _host(x)
        return host.with_layout(subscripts.subscript(host, value, index), _named(value, "[...]"))

    def param(self, x: Executor, name: str) -> Num:
        return x.number_of(Unknown(name), "argument")

    def quotient(self, x: Executor, op: str, dividend: Expr, divisor: Expr) -> Expr:
        if op == "//":
            return quotient(dividend, divisor)
        return E.mod(dividend, divisor) if exact_quotient(dividend, divisor) is None else E.ZERO

    def assigned(self, value: Any) -> Any:
        return value

    def lost(self, x: Executor, function: Poison, args: Arguments) -> Any:
        raise UnsupportedConstruct(function.why)

    def offset(self, x: Executor, op: str, a: Any, b: Any) -> Any:
        raise UnsupportedConstruct("a pointer in host code")


def _named(value: Any, operation: str) -> str:
    """A text for what an operation makes of a tensor."""
    return f"{getattr(value, 'name', 'tensor')}{operation}"


def _host(x: Executor) -> HostExecutor:
    if not isinstance(x, HostExecutor):
        raise TypeError("host code runs on a HostExecutor")
    return x


def parameter(name: str, scalar: str, *, tensor: bool) -> Any:
    """A parameter of the function that is executed, as its annotation describes it."""
    if tensor:
        return T.free(name)
    match scalar:
        case "int":
            return Num((), E.sym(host_scalar(name)), "int", None)
        case "bool":
            return Num((), E.bool_sym(host_scalar(name)), "bool", None)
        case "float":
            return FloatParam(name)
        case "str":
            return Token(name)
        case _:
            return Unknown(name)
