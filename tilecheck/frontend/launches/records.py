"""From one execution of `ct.launch(...)` to a `Launch`.

A value that a branch chose is taken apart: one launch for each way, with the choice among its facts.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host.memory import sharing
from tilecheck.frontend.host.memory.contents import contents_of
from tilecheck.frontend.host.memory.mutations import plain
from tilecheck.frontend.host.memory.uninitialised import is_blank
from tilecheck.frontend.host.run import facts_of
from tilecheck.frontend.host.sizes.unknown_ranks import divided_out, meant, of_rank
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.values import BitLength, FloatParam, LaunchCall, Tensor, Unknown, Updated
from tilecheck.frontend.kernels.annotations import Annotation, read_annotation
from tilecheck.frontend.values.values import Choice, Const, Frame, Function, Named, Num, Seq, Token
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.host import (
    ARGUMENT,
    COUNTS,
    EXTENT,
    NUMEL,
    OPAQUE,
    STRIDE,
    TEST,
    axis_of,
    host_numel,
    host_scalar,
    owner,
    owners,
)
from tilecheck.ir.launch import FLOAT, HostList, HostTensor, HostValue, Launch
from tilecheck.ir.launch_ranks import launch_expressions, map_launch, with_known_ranks

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor
    from tilecheck.frontend.modules.project import ModuleTable

_MOST_WAYS = 4  # in which one launch is seen
_MOST_AXES = 5  # of a tensor that a kernel takes, for which its shape is written out


def record(x: HostExecutor, call: LaunchCall, function: str) -> list[Launch]:
    """The launches that one call makes, one for each combination of choices."""
    ways: list[_Way] = [(x.guard, [call.grid, call.kernel, call.arguments])]
    settled: list[_Way] = []
    while ways:
        guard, values = ways.pop(0)
        values = _chosen(guard, values, optional=call.names is not None)
        choice = next(_conditions(values, optional=call.names is not None), None)
        if choice is None or len(ways) + len(settled) + 2 > _MOST_WAYS:
            settled.append((guard, values))
            continue
        for cond, way in ((choice, True), (E.negate(choice), False)):
            own = E.all_of(guard, cond)
            if own is not E.FALSE:
                ways.append((own, [_taken(v, choice, way=way) for v in values]))
    found = [_launch(x, call, function, guard, [_merged(x, v) for v in values]) for guard, values in settled]
    return list(dict.fromkeys(found))


def _chosen(guard: Expr, values: list[Any], *, optional: bool) -> list[Any]:
    """What is launched, without the choices that a path has made."""
    for cond in dict.fromkeys(_conditions(values, optional=optional)):
        for way, other in ((True, E.negate(cond)), (False, cond)):
            if E.all_of(guard, other) is E.FALSE:
                values = [_taken(v, cond, way=way) for v in values]
    return values


_Way = tuple[Expr, list[Any]]  # a path condition, and what is launched under it


def _conditions(values: Iterable[Any], *, optional: bool) -> Iterator[Expr]:
    """The conditions of the choices in the grid and the kernel first, then in the arguments. With `optional`
    a tensor or None stays one argument."""
    grid, kernel, arguments = values
    for value in (kernel, grid, arguments):
        stack = [value]
        while stack:
            match stack.pop():
                case Choice() as choice if optional and value is arguments and _is_optional(choice):
                    pass
                case Choice() as choice:
                    yield choice.cond
                    stack += [choice.second, choice.first]
                case Seq() as seq:
                    stack += reversed(seq.items)


def _is_optional(choice: Choice) -> bool:
    """Whether a choice is between a tensor and None."""
    ways = (choice.first, choice.second)
    return any(isinstance(w, Tensor | Unknown) for w in ways) and any(w == Const(None) for w in ways)


def _taken(value: Any, cond: Expr, *, way: bool) -> Any:
    """A value where a condition is decided."""
    match value:
        case Choice() if value.cond is cond:
            return _taken(value.first if way else value.second, cond, way=way)
        case Choice():
            first, second = (_taken(v, cond, way=way) for v in (value.first, value.second))
            return replace(value, first=first, second=second)
        case Seq():
            return Seq(tuple(_taken(item, cond, way=way) for item in value.items), value.is_list)
        case _:
            return value


def _merged(x: HostExecutor, value: Any) -> Any:
    """What the ways of a choice have in common, where it is not taken apart."""
    match value:
        case Choice() if not _is_optional(value):
            with _where(x, value.cond):
                first = _merged(x, value.first)
            with _where(x, E.negate(value.cond)):
                second = _merged(x, value.second)
            return _either(x, value.cond, first, second)
        case Seq():
            return Seq(tuple(_merged(x, item) for item in value.items), value.is_list)
        case _:
            return value


@contextlib.contextmanager
def _where(x: HostExecutor, cond: Expr) -> Iterator[None]:
    """With what is known where one way of a choice is taken: `y if y.is_contiguous() else empty_like(y)`."""
    before = x.guard
    x.guard = E.all_of(before, cond)
    try:
        yield
    finally:
        x.guard = before


def _either(x: HostExecutor, cond: Expr, a: Any, b: Any) -> Any:
    """One number or another, or one tensor or another: then what both have in common."""
    a, b = (x.number_of(v, "argument") if _is_number(x, v) else v for v in (a, b))
    if isinstance(a, Num) or isinstance(b, Num):
        found = x.merge(cond, a, b)
        return found if isinstance(found, Num) else None
    a, b = (x.tensor(v) if isinstance(v, Unknown) else v for v in (a, b))
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return None
    with _where(x, cond):
        a = x.laid_out(x.known_rank(a))
    with _where(x, E.negate(cond)):
        b = x.laid_out(x.known_rank(b))
    shape, shape_of = None, a.shape_of if a.shape_of == b.shape_of else ""
    if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape):
        shape = tuple(E.ite(cond, u, v) for u, v in zip(a.shape, b.shape, strict=True))
    one, other = x.count_of(a), x.count_of(b)
    if shape is None and not shape_of and one is not None and other is not None:
        shape_of = f"{a.name} or {b.name}"
        x.counts[shape_of] = E.ite(cond, one, other)
    found = Tensor(
        f"{a.name} or {b.name}",
        f"{a.storage} or {b.storage}",
        fresh=a.fresh and b.fresh,
        shape=shape,
        shape_of=shape_of,
        dense=a.dense and b.dense,
        contiguous=a.contiguous and b.contiguous,
        part=None,
        span_of=shape_of if all(t.span_of != "" and t.span_of == t.shape_of for t in (a, b)) else "",
        among=tuple(dict.fromkeys((*(a.among or (a.storage,)), *(b.among or (b.storage,))))),
    )
    if not (a.described and b.described) or shape is None:
        return found
    steps = zip(T.strides_of(a) or (), T.strides_of(b) or (), strict=True)
    return replace(
        found,
        described=True,
        strides=tuple(E.ite(cond, u, v) for u, v in steps),
        offset=None if a.offset is None or b.offset is None else E.ite(cond, a.offset, b.offset),
        room=None if a.room is None or b.room is None else E.ite(cond, a.room, b.room),
        block=a.block if a.block == b.block else None,
    )


def _is_number(x: HostExecutor, value: Any) -> bool:
    """Whether a value is a number that waits to be used, or an unknown that is one or is an item of such."""
    return isinstance(value, BitLength) or (
        isinstance(value, Unknown)
        and (value.name in x.integers_seen or value.name.partition("[")[0] in x.of_numbers)
    )


def _launch(x: HostExecutor, call: LaunchCall, function: str, guard: Expr, values: list[Any]) -> Launch:
    grid, kernel, arguments = values
    found = Launch("", "", function, call.table.site(call.node), _grid(x, grid), (), ())
    of = kernel if isinstance(kernel, Function) and kernel.guarded else call
    found = replace(found, guarded=of.guarded, checks_contracts=of.checks_contracts)
    definition = _definition(x, kernel)
    if definition is None:
        return replace(found, facts=facts_of(guard), problem=f"the kernel is {_words(kernel)}")
    found = replace(found, kernel=definition.node.name.value, kernel_file=definition.table.file)
    if not isinstance(arguments, Seq):
        return replace(found, problem=f"the arguments are {_words(arguments)}")
    names = _parameters(definition.node)
    if call.names is not None:
        names = {name: names[name] for name in call.names}
    if len(names) != len(arguments.items):
        given = f"{len(arguments.items)} arguments for the {len(names)} parameters of `{found.kernel}`"
        return replace(found, problem=given)
    pairs = zip(names.items(), arguments.items, strict=True)
    bound = tuple((n, host_value(x, v, read_annotation(definition.table, note))) for (n, note), v in pairs)
    copies: dict[str, str] = {}
    bound = tuple((n, _renumbered(v, copies)) for n, v in bound)
    found = replace(found, arguments=bound, captured=_captured(x, definition.closure))
    found = replace(found, warps=None if call.warps is None else _extent(x, call.warps))
    found = _completed(x, found, guard)
    # The arguments of `kernel[grid](...)` are numbers as often as tensors.
    perhaps = [v.number for _, v in bound if isinstance(v, HostTensor) and v.number is not None]
    said = (*launch_expressions(found), *(perhaps if call.names is not None else ()), *found.facts)
    # A number that an object holds (`ctx.BT`) is neither the caller's nor this text's: other code put it there.
    numbers = {s.name for s in E.symbols(*said) if s.origin in (ARGUMENT, OPAQUE)}
    held = {name for name in numbers - x.given_fields if "." in name}
    tensors = [v for _, v in found.arguments if isinstance(v, HostTensor)]
    shapes = (shape for v in tensors for shape in v.by_rank if shape is not None)
    counts = (v.count for v in tensors if v.count is not None)
    sizes = (*said, *(size for shape in shapes for size in shape))
    spoken = owners(*sizes, *counts)
    passed = {storage for v in tensors for storage in (v.among or (v.storage,))}
    asked = {owner(s) or "" for s in E.symbols(*sizes, *counts) if s.origin in COUNTS}
    if not all(one.is_said_by(x, facts_of(guard), passed, asked) for one in x.supposed):
        return replace(found, problem="a tensor was resized that may be one of which it speaks")
    kept = call.table.bindings  # names of the module: what they hold is of another call
    held_in = {name: plain(_container(name)) for name in spoken if _is_variable(x, _container(name))}
    computed = {name for name, variable in held_in.items() if variable not in kept}
    lies_in = tuple(f"{name}{mark}" for name in x.computed for mark in ("[", "."))
    sized = {n for n in spoken if n in x.computed or n.startswith(lies_in) or _is_stored(x, n)}
    free = x.any_shape if len(spoken) == 1 else set()  # with other tensors its shape may go together
    computed |= {name for name in sized - free if not _is_said(x, name, (*sizes, *counts))}
    stacked = {name for name in x.stacked if any(_is_later_item(n, name) for n in spoken)}
    doubted = x.doubted | x.raising | stacked | _cut_otherwise(x, said) | _made_of(x, numbers) | computed
    found = replace(found, doubted=tuple(sorted(doubted)))
    made = [t.shape_of for t in tensors if t.fresh and t.shape is None and t.shape_of]
    names = dict.fromkeys((*owners(*sizes), *made))
    return replace(found, unread=tuple(n for n in names if n in held or not x.is_given(n)))


def _is_variable(x: HostExecutor, name: str) -> bool:
    """Whether it is what a variable holds after code that is not followed, as a loop: nobody hands that in."""
    return plain(name).isidentifier() and not x.is_given(name) and name not in x.shapes and name not in x.counts


def _is_stored(x: HostExecutor, name: str) -> bool:
    """Whether it is read where the text may have stored it before: in an item, or as an attribute."""
    text = plain(name)
    if text == name or not x.is_given(text):
        return False
    return text.rpartition(".")[2] in x.events.attributes or (text.endswith("]") and x.events.items > 0)


def _container(name: str) -> str:
    """What holds an item, or an attribute: `d` of `d[0].w`; of anything else itself."""
    return re.split(r"[\[.]", name, maxsplit=1)[0]


def _is_later_item(name: str, of: str) -> bool:
    return name.startswith(f"{of}[") and not name.startswith(f"{of}[0]")


def _is_said(x: HostExecutor, name: str, exprs: Iterable[Expr]) -> bool:
    """Whether the text says of each axis of a tensor that is spoken of how its size follows from others."""
    own = [s for s in E.symbols(*exprs) if owner(s) == name and s.origin in (EXTENT, STRIDE)]
    return name in x.said_of and all(axis_of(s) in x.said_of[name] for s in own)


def _cut_otherwise(x: HostExecutor, said: Iterable[Expr]) -> set[str]:
    """Parts of shapes that are cut in several ways, or of which single axes are spoken of too: how these lie to
    each other is not followed."""
    spoken = [(owner(s) or "", s) for s in E.symbols(*said) if s.origin in (EXTENT, NUMEL)]
    sizes = {name for name, _ in spoken}
    single = {name for name, s in spoken if s != host_numel(name)}
    used: dict[str, list[tuple[str, str]]] = {}
    for (of, _), parts in x.cuts.items():
        if sizes.intersection(parts):
            used.setdefault(of, []).append(parts)
    return {part for of, ways in used.items() if len(ways) > 1 or of in single for way in ways for part in way}


def _made_of(x: HostExecutor, numbers: set[str]) -> set[str]:
    """What the text makes of numbers that are spoken of themselves, `int(q)` where `q > 0`: how it follows from
    them is not followed."""
    return {name for name, sources in x.made_of.items() if numbers.intersection(sources)}


def _words(value: Any) -> str:
    match value:
        case Unknown() | Named() | Tensor():
            return f"not known: `{value.name}`"
        case _:
            return "not known"


def _definition(x: HostExecutor, kernel: Any) -> _Definition | None:
    if not isinstance(kernel, Function) or not isinstance(kernel.node, cst.FunctionDef):
        return None
    if not x.language_of(kernel):
        return None
    return _Definition(kernel.node, kernel.table, kernel.closure)


class _Definition:
    """A kernel's `def`, its module and what it closes over."""

    def __init__(self, node: cst.FunctionDef, table: ModuleTable, closure: Frame | None) -> None:
        self.node, self.table, self.closure = node, table, closure


def _parameters(node: cst.FunctionDef) -> dict[str, cst.BaseExpression | None]:
    params = (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)
    return {p.name.value: None if p.annotation is None else p.annotation.annotation for p in params}


def _grid(x: HostExecutor, value: Any) -> tuple[Expr | None, ...] | None:
    match value:
        case Seq():
            return tuple(_extent(x, item) for item in value.items)
        case Num():
            return (_extent(x, value),)
        case _:
            return None


def _extent(x: HostExecutor, value: Any) -> Expr | None:
    try:
        number = x.number_of(value, "grid")
        return None if number.elem is None or number.shape else x.scalar(value, "grid")
    except UnsupportedConstruct:
        return None


def host_value(x: HostExecutor, value: Any, note: Annotation) -> HostValue:
    """An argument as plain data."""
    match value:
        case Unknown():
            is_scalar = note.constant or note.scalar or value.name in x.integers_seen
            plain = E.sym(host_scalar(value.name, opaque=value.opaque))
            number = value.number if isinstance(value, Updated) else plain
            if is_scalar and not note.array:
                return number
            return replace(_tensor(x, x.tensor(value)), number=number)
        case Tensor():
            return _tensor(x, x.laid_out(x.known_rank(value)))
        case Num():
            return value.elem if not value.shape else None
        case FloatParam() | Const(value=float()):
            return FLOAT
        case Const():
            return repr(value.value)
        case Named() | Token():
            return value.name
        case Choice() if _is_optional(value):
            return _optional(x, value, note)
        case BitLength():
            return x.number_of(value, "argument").elem
        case Seq():
            return HostList(tuple(host_value(x, item, note) for item in value.items))
        case _:
            return None


def _optional(x: HostExecutor, choice: Choice, note: Annotation) -> HostValue:
    given, absent = choice.first, E.negate(choice.cond)
    if given == Const(None):
        given, absent = choice.second, choice.cond
    found = host_value(x, given, note)
    return replace(found, absent=absent) if isinstance(found, HostTensor) else None


def _tensor(x: HostExecutor, t: Tensor) -> HostTensor:
    storages = t.among or (t.storage,)
    count = x.count_of(t) if t.shape is None else None
    return HostTensor(
        t.name,
        t.storage,
        t.fresh,
        t.shape,
        T.strides_of(t),
        t.expanded,
        t.part,
        t.shape_of,
        t.strides_of,
        t.contiguous,
        T.is_dense(t),
        t.span_of,
        copied=f"{t.copied} #{t.copy}" if t.copied else "",
        among=t.among,
        given=not t.fresh and all(x.is_given(name) for name in storages),
        handed_on=any(name in x.handed_on for name in storages),
        count=count,
        contents=contents_of(x, t),
        blank=is_blank(x, t),
        offset=t.offset,
        room=t.room,
        perhaps=sharing.reachable(x, storages),
        given_back=sharing.givers(x, storages),
        may_be=sharing.may_be(x, storages),
        opaque=any(sharing.is_opaque(x, name) for name in storages),
        allocated=all(name in x.allocated for name in storages),
        described=t.described,
        block=t.block,
        by_rank=_by_rank(x, t),
    )


def _by_rank(x: HostExecutor, t: Tensor) -> tuple[tuple[Expr, ...] | None, ...]:
    """The shape that a tensor has if its rank is 0, 1, ...: of a name for a shape the parts are known."""
    parts = x.shapes.get(t.shape_of) if t.shape is None else None
    return () if parts is None else tuple(of_rank(parts, k) for k in range(_MOST_AXES + 1))


def _renumbered(value: HostValue, copies: dict[str, str]) -> HostValue:
    """Copies counted within the launch, so that one that is seen twice is one launch."""
    match value:
        case HostTensor() if value.copied:
            kind = value.copied.partition(" #")[0]
            return replace(value, copied=copies.setdefault(value.copied, f"{kind} #{len(copies) + 1}"))
        case HostList():
            return HostList(tuple(_renumbered(item, copies) for item in value.items))
        case _:
            return value


def _captured(x: HostExecutor, frame: Frame | None) -> tuple[tuple[str, HostValue], ...]:
    found: dict[str, HostValue] = {}
    while frame is not None:
        for name, value in frame.names.items():
            if isinstance(value, Num | Const | Unknown):
                found.setdefault(name, host_value(x, value, Annotation(constant=True)))
        frame = frame.parent
    return tuple(found.items())


# ---- facts -------------------------------------------------------------------------------------------------


def _completed(x: HostExecutor, launch: Launch, guard: Expr) -> Launch:
    """Add the facts: the path condition, and what the symbols made on the way are equal to."""
    own: dict[Expr, Expr] = {}
    memo: dict[Expr, Expr] = {}
    launch = map_launch(replace(launch, facts=facts_of(guard)), lambda e: meant(x, e, memo))
    sizes = (v.count for _, v in launch.arguments if isinstance(v, HostTensor) and v.count is not None)
    counts = _factored(x, (*launch_expressions(launch), *sizes))
    divided: dict[Expr, Expr] = {}
    if counts:
        launch = map_launch(launch, lambda e: divided_out(e, counts.get, divided))
    launch = _decided(map_launch(launch, lambda e: _of_host(e, own)))
    facts = dict.fromkeys(launch.facts)
    used = set(E.symbols(*launch_expressions(launch), *facts))
    for symbol, fact in reversed(list(x.definitions.items())):
        if symbol.args[0] in used:
            known = _of_host(divided_out(meant(x, fact, memo), counts.get, divided), own)
            used.update(E.symbols(known))
            facts.update(dict.fromkeys(E.conjuncts(known)))
    return with_known_ranks(replace(launch, facts=tuple(facts)), {})


def _factored(x: HostExecutor, said: Iterable[Expr]) -> dict[Symbol, Expr]:
    """Numbers of elements as the products of which the launch names a factor."""
    named = set(owners(*said))
    used = [(of, parts) for (of, _), parts in x.cuts.items() if named.intersection(parts)]
    return {host_numel(of): E.mul(*(E.sym(host_numel(p)) for p in parts)) for of, parts in reversed(used)}


def _decided(launch: Launch) -> Launch:
    """The launch with every choice taken that a fact decides."""
    known = dict.fromkeys(launch.facts, E.TRUE) | {E.negate(fact): E.FALSE for fact in launch.facts}
    memo: dict[Expr, Expr] = {}
    decided = map_launch(launch, lambda e: E.rebuild(e, known.get, memo))
    facts = []
    for fact in launch.facts:
        own = (fact, E.negate(fact))
        others = {e: truth for e, truth in known.items() if e not in own}
        facts.append(E.substitute(fact, others))
    return replace(decided, facts=tuple(dict.fromkeys(part for f in facts for part in facts_of(f))))


def _of_host(e: Expr, memo: dict[Expr, Expr]) -> Expr:
    """Tests that the executor names as kernels would (`x is None`) belong to the host function here."""

    def change(node: Expr) -> Expr | None:
        if node.op in ("sym", "bsym") and node.args[0].kind is Kind.CONSTANT:
            own = Symbol(node.args[0].name, Kind.HOST, origin=TEST)
            return E.sym(own) if node.op == "sym" else E.bool_sym(own)
        return None

    return E.rebuild(e, change, memo)
