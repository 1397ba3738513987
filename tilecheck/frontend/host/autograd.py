"""What `forward` of an autograd function hands to its `backward`: what it saved, and the shapes of its results.

Torch calls `backward` with the context that a `forward` of the same class has filled, and with one gradient for
each of its results. So what forward established holds there: its facts, the attributes of the context, and the
tensors that it saved, which keep their shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host.blocks import meet
from tilecheck.frontend.host.memory.mutations import MUTATORS, holds_mutable
from tilecheck.frontend.host.memory.sharing import kept
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.tensors import elementwise
from tilecheck.frontend.host.tensors.layout import fresh_to_given
from tilecheck.frontend.host.values import Ratio, Tensor, Unknown
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.text.syntax import walk, walk_kind
from tilecheck.frontend.values.values import Choice, Const, Frame, Num, Seq
from tilecheck.ir import expr as E
from tilecheck.ir.host import host_stride, owners

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor
    from tilecheck.frontend.modules.project import ModuleTable
    from tilecheck.ir.launch import Launch

SAVED = "saved_tensors"
_STORING = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del, cst.For, cst.CompFor, cst.AsName)
_INNER = (cst.FunctionDef, cst.Lambda, cst.ListComp, cst.GeneratorExp, cst.SetComp, cst.DictComp)


@dataclass(frozen=True, slots=True)
class Handed:
    """What a run of `forward` leaves behind: its state, the attributes of its context and what it returns.

    `saves_always` says that it saves tensors whenever it returns. `named` are the names in the text of each
    result, where one statement returns them.
    """

    run: HostExecutor
    saves_always: bool
    guard: E.Expr
    attributes: Mapping[str, Any]
    results: tuple[Any, ...]
    named: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class HostRun:
    """A run over a host function: its launches, why it ended early, and what it hands on."""

    launches: tuple[Launch, ...]
    why: str | None
    handed: Handed | None


def forward_of(table: ModuleTable, host: cst.FunctionDef) -> cst.FunctionDef | None:
    """The `forward` that fills the context of a `backward`."""
    if host.name.value != "backward":
        return None
    node = _class_of(table, host)
    if node is None or _is_replaced(table, node):
        return None
    methods = {part.name.value: part for part in node.body.body if isinstance(part, cst.FunctionDef)}
    return None if "setup_context" in methods else methods.get("forward")


def context_of(table: ModuleTable, host: cst.FunctionDef) -> str:
    """The name of the context that torch makes for each call of a `forward`; empty for any other function."""
    names = _names(host) if host.name.value == "forward" and _class_of(table, host) is not None else []
    return names[0] if names else ""


def follow_gradients(x: HostExecutor, table: ModuleTable, host: cst.FunctionDef, frame: Frame) -> None:
    """Note the gradients of which no shape is known: torch gives them that of what `forward` returns, so that
    no caller answers for it."""
    if host.name.value == "backward" and _class_of(table, host) is not None:
        star = host.params.star_arg
        names = [*_names(host)[1:], *([star.name.value] if isinstance(star, cst.Param) else [])]
        x.computed.update(name for name in names if isinstance(frame.names.get(name), Unknown))


def _class_of(table: ModuleTable, host: cst.FunctionDef) -> cst.ClassDef | None:
    """The autograd function that a method is of."""
    for node in table.nodes(cst.ClassDef):
        if any(part is host for part in node.body.body):
            is_function = any(dotted(base.value).split(".")[-1] == "Function" for base in node.bases)
            return node if is_function else None
    return None


def _is_replaced(table: ModuleTable, owner: cst.ClassDef) -> bool:
    """Whether another class, or an assignment, may give the class another `forward`."""
    for node in table.nodes(cst.ClassDef, cst.AssignTarget, cst.Call):
        match node:
            case cst.ClassDef() if node is not owner and owner.name.value in _bases(node):
                return True
            case cst.AssignTarget(target=cst.Attribute(attr=cst.Name("forward"))):
                return True
            case cst.Call(func=cst.Name("setattr"), args=[_, cst.Arg(cst.SimpleString() as text), *_]):
                if text.raw_value == "forward":
                    return True
    return False


def _bases(node: cst.ClassDef) -> set[str]:
    return {dotted(base.value).split(".")[-1] for base in node.bases}


def handed_over(x: HostExecutor, forward: cst.FunctionDef, frame: Frame) -> Handed | None:
    """What a finished run over `forward` hands on; None if that is not followed."""
    context = _names(forward)[0] if _names(forward) else ""
    ends = [end for end in x.ends if end[0] is not E.FALSE]
    saving = [end for end in ends if f"{context}.{SAVED}" in end[2]]
    if not context or not saving or not _saves_plainly(forward, context):
        return None
    meet(x, [(guard, guard, names) for guard, _, names in saving], frame)
    own = {name: value for name, value in frame.names.items() if name.startswith(f"{context}.")}
    attributes = {name.partition(".")[2]: _saved(value, context) for name, value in own.items()}
    results = saving[0][1] if len(saving) == 1 and x.followed else Const(None)
    return Handed(
        x,
        len(saving) == len(ends),
        x.guard,
        attributes,
        results.items if isinstance(results, Seq) else (results,),
        _named_in_results(forward),
    )


def _named_in_results(forward: cst.FunctionDef) -> tuple[frozenset[str], ...]:
    returned = [n.value for n in walk_kind(forward.body, cst.Return) if n.value is not None]
    if len(returned) != 1:
        return ()
    parts = [e.value for e in returned[0].elements] if isinstance(returned[0], cst.Tuple) else returned
    return tuple(frozenset(n.value for n in walk_kind(part, cst.Name)) for part in parts)


def take_over(x: HostExecutor, backward: cst.FunctionDef, frame: Frame, handed: Handed) -> None:
    """Let a run over `backward` start with what was handed to it."""
    names, run = _names(backward), handed.run
    if not names or set(names[1:]) & run.inputs or not (handed.saves_always or _unpacks(backward)):
        return
    for name, count in run.names_taken.items():
        x.names_taken[name] = max(count, x.names_taken.get(name, 0))
    for name, count in run.storages.items():
        x.storages[name] = max(count, x.storages.get(name, 0))
    x.inputs |= run.inputs
    x.of_numbers |= run.of_numbers
    x.integer_names |= run.integers_seen | run.integer_names
    x.sequence_names |= run.sequences_seen | run.sequence_names
    x.doubted |= run.doubted
    x.handed_on |= run.handed_on
    x.serial = max(x.serial, run.serial)
    x.definitions.update(run.definitions)
    x.shapes.update(run.shapes)
    x.counts.update(run.counts)
    x.cuts.update(run.cuts)
    x.transposes.update(run.transposes)
    x.made_of.update(run.made_of)
    x.made_contiguous.update({name: t for name, t in run.made_contiguous.items() if name not in names})
    x.assume(handed.guard)
    x.context = names[0] if run.context not in run.exposed else ""
    for name, value in handed.attributes.items():
        path = f"{names[0]}.{name}"
        frame.names[path] = value
        if _may_change(backward, names[0], name, value):  # with `retain_graph` it finds what it left
            lost = frame.names[path] = x.unread(path)
            x.computed.add(lost.name)
    if x.followed and not any(
        isinstance(n, cst.Attribute) and n.attr.value == "set_materialize_grads" for n in _texts(run)
    ):
        for k, (name, result) in enumerate(zip(names[1:], handed.results, strict=False)):
            if isinstance(result, Num | Ratio):
                if handed.named[k : k + 1] != (frozenset(_made_of(result)),):
                    continue  # `x * 0 + y` is `y` as a number, and no tensor in the shape of `y`
                if _may_have_any_shape(handed, result):
                    x.any_shape.add(name)
            _shape_gradient(x, name, result, frame)


def _saves_plainly(forward: cst.FunctionDef, context: str) -> bool:
    """Whether the text shows each save, `ctx.save_for_backward(x)` in `forward` itself, and gives the context
    no other name."""
    inner = {n for f in walk_kind(forward.body, *_INNER) for n in walk(f)}
    plain: set[cst.CSTNode] = set()
    asked = (cst.Call, cst.Attribute, cst.Assign, cst.NamedExpr, cst.Tuple, cst.List)
    for node in walk_kind(forward.body, *asked):
        match node:
            case cst.Call(cst.Attribute(cst.Name(name), cst.Name("save_for_backward"))) if name == context:
                plain.add(node.func)
            case cst.Attribute(attr=cst.Name("__dict__" | "to_save")):
                return False
            case cst.Assign(value=cst.Name(name)) | cst.NamedExpr(value=cst.Name(name)) if name == context:
                return False
            case cst.Tuple() | cst.List() if any(e.value in _named(context, node) for e in node.elements):
                return False
    saves = {n for n in walk_kind(forward.body, cst.Attribute) if n.attr.value == "save_for_backward"}
    return saves <= plain and saves.isdisjoint(inner)


def _named(name: str, node: cst.CSTNode) -> set[cst.CSTNode]:
    return {n for n in walk_kind(node, cst.Name) if n.value == name}


def _unpacks(backward: cst.FunctionDef) -> bool:
    """Whether it gives names to each saved tensor first of all: where nothing was saved, this raises."""
    for line in backward.body.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            match small:
                case cst.Assign([cst.AssignTarget(cst.Tuple() | cst.List() as target)], value):
                    plain = not any(isinstance(e, cst.StarredElement) for e in target.elements)
                    if plain and isinstance(value, cst.Attribute) and value.attr.value == SAVED:
                        return True
    return False


def _texts(run: HostExecutor) -> Iterator[cst.CSTNode]:
    for node in run.running:
        yield from walk(node)


def _may_change(backward: cst.FunctionDef, context: str, attribute: str, value: Any) -> bool:
    """Whether a text may give an attribute of the context another value, or change the object that it has."""
    attributes = [n for n in walk_kind(backward.body, cst.Attribute) if dotted(n.value) == context]
    if len(attributes) != sum(n.value == context for n in walk_kind(backward.body, cst.Name)):
        return True  # it has another name, or other code has it
    own = [n for n in attributes if n.attr.value == attribute]
    targets = [n.name if isinstance(n, cst.AsName) else n.target for n in walk_kind(backward.body, *_STORING)]
    calls = list(walk_kind(backward.body, cst.Call))
    stored = [n for target in targets for n in walk(target)]
    called = any(n.func is a for n in calls for a in attributes)
    changes = any(isinstance(n, cst.Subscript) for n in stored) or any(map(_calls_mutator, calls))
    return called or any(n is a for n in stored for a in own) or (changes and holds_mutable(value))


def _calls_mutator(node: cst.Call) -> bool:
    return dotted(node.func).rpartition(".")[2] in MUTATORS


def _names(function: cst.FunctionDef) -> list[str]:
    return [p.name.value for p in (*function.params.posonly_params, *function.params.params)]


def _shape_gradient(x: HostExecutor, name: str, result: Any, frame: Frame) -> None:
    """A gradient has the shape of the result that it is of, laid out in any way."""
    if not isinstance(frame.names.get(name), Unknown | Tensor):
        return
    try:
        parts = unknown_ranks.parts_of(x, _shape(x, result))
    except UnsupportedConstruct:
        return
    if parts is None:
        return
    own = x.shaped(x.tensor(Unknown(name)), parts)
    if own.contiguous:
        frame.names[name] = own
    elif own.shape is not None:
        rank = len(own.shape)
        strides = tuple(E.sym(host_stride(name, k)) for k in range(rank))
        frame.names[name] = replace(own, strides=strides, strides_of="")
    else:
        frame.names[name] = own


def _shape(x: HostExecutor, result: Any) -> Any:
    """The shape of a tensor, or of either of two."""
    match result:
        case Choice():
            return Choice(result.cond, _shape(x, result.first), _shape(x, result.second))
        case Tensor() | Unknown():
            return unknown_ranks.shape_of_parts(elementwise.parts_of(x, x.tensor(result)))
        case Num() | Ratio():
            # It has the shape of its only operand. If that is a number, there is no gradient.
            names = _made_of(result)
            return _shape(x, Unknown(names[0])) if len(names) == 1 and x.is_given(names[0]) else None
        case _:
            return None


def _made_of(result: Num | Ratio) -> tuple[str, ...]:
    """The operands of arithmetic, which may be tensors or numbers."""
    if isinstance(result, Ratio):
        return owners(result.top, result.bottom)
    return () if result.elem is None else owners(result.elem)


def _may_have_any_shape(handed: Handed, result: Num | Ratio) -> bool:
    """Whether the caller may give the result of arithmetic any shape: `forward` asks nothing of the operands.
    One of them may have that shape, and the others one element."""
    names = _made_of(result)
    asked = {*owners(handed.guard), *handed.run.doubted}
    return len(names) > 0 and all(map(handed.run.is_given, names)) and asked.isdisjoint(names)


def _saved(value: Any, context: str) -> Any:
    """A value of forward as backward finds it: what forward allocated lies in the context."""
    match value:
        case Tensor():
            return kept(fresh_to_given(value, context))
        case Seq():
            return Seq(tuple(_saved(item, context) for item in value.items), value.is_list)
        case Choice():
            return Choice(value.cond, _saved(value.first, context), _saved(value.second, context))
        case _:
            return value
