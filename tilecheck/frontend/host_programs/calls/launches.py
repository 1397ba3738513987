"""Launches of kernels: `kernel[grid](...)`, `ct.launch(...)`, and those of tilecheck."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

import libcst as cst

from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.execute.names import kernel_behind
from tilecheck.frontend.host_programs.kernels import Constants
from tilecheck.frontend.host_programs.knowledge import PathEnds, Unread
from tilecheck.frontend.host_programs.machine import MAX_RANK, Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.kinds import as_number, as_stream, as_tensor, resolved, truth
from tilecheck.frontend.host_programs.values.undetermined import learn_number
from tilecheck.frontend.kernels.annotations import read_annotation
from tilecheck.frontend.kernels.definitions import Definition
from tilecheck.ir import expr as E
from tilecheck.ir import host_program as H
from tilecheck.ir.expr import Expr, Kind
from tilecheck.ir.host_program import Footprint, Region
from tilecheck.ir.kernel import grid_symbol
from tilecheck.ir.launch_footprint import KernelFootprint, ParameterUse

_DEPENDENT = ("launch_pdl", "programmatic_dependent_launch")


def launch(m: Machine, kernel: V.Kernel, a: Arguments, grid: V.Value) -> V.Value:
    """`kernel[grid](...)`: the arguments of the kernel, and options as keywords."""
    definition = kernel.definition
    if a.more:
        raise m.unread(a.node, "not all arguments of this launch are in view")
    given = dict(zip(_parameters(definition), a.positional, strict=False))
    options = {name: value for name, value in a.keywords.items() if name not in _parameters(definition)}
    given.update({name: value for name, value in a.keywords.items() if name not in options})
    dependent = any(name in options and truth(m, options[name], a.node) for name in _DEPENDENT)
    _enqueue(m, definition, given, a, grid, dependent=dependent)
    return V.NONE


def launch_by_call(m: Machine, a: Arguments) -> V.Value:
    """`ct.launch(stream, grid, kernel, args)`."""
    kernel, given = resolved(m, a.get(2, "kernel")), resolved(m, a.get(3, "args"))
    if isinstance(kernel, V.Imported):
        kernel = kernel_behind(m, kernel)
    if given is None:
        given = resolved(m, a.get(3, "kernel_args"))
    stream = as_stream(m, a.get(0, "stream"), a.node)
    name = m.stream if stream is None else stream.name
    items = given.items if isinstance(given, V.Sequence) else None
    if not isinstance(kernel, V.Kernel) or items is None:
        raise m.unread(a.node, "the kernel or its arguments are not in view")
    dependent = any(n in a.keywords and truth(m, a.keywords[n], a.node) for n in _DEPENDENT)
    values = dict(zip(_parameters(kernel.definition), items, strict=False))
    grid = resolved(m, a.get(1, "grid"))
    _enqueue(m, kernel.definition, values, a, grid, stream=name, dependent=dependent)
    return V.NONE


def unread_launch(m: Machine, name: str, a: Arguments) -> V.Value:
    """A launch of a kernel that is not in view: it may read and write all tensors that it is passed."""
    if any(option in a.keywords and truth(m, a.keywords[option], a.node) for option in _DEPENDENT):
        raise m.unread(a.node, "whether this dependent launch waits is not known")
    found = [t for value in a.every() for t in tensors_in(m, value, a.node)]
    regions = [replace(r, exact=False) for t in found for r in m.regions(t)]
    for tensor in found:
        m.note_use(a.node, tensor)
    m.enqueue(a.node, name, regions, regions)
    return V.NONE


def _enqueue(
    m: Machine,
    definition: Definition,
    given: Mapping[str, V.Value],
    a: Arguments,
    grid: V.Value,
    *,
    stream: str | None = None,
    dependent: bool,
) -> None:
    footprint = m.kernels.footprint(definition, _constants(m, definition, given))
    if footprint is None:
        if dependent:
            raise m.unread(a.node, f"the kernel `{definition.name}` of this dependent launch is not read")
        footprint = _anything(given)
    if dependent and footprint.decided_by:
        raise m.unread(a.node, f"whether the kernel waits depends on `{footprint.decided_by[0]}`")
    for name in given.keys() - {use.name for use in (*footprint.before, *footprint.after)}:
        learn_number(m, given[name])  # the kernel takes no memory there
    before, after = _footprints(m, footprint, given, grid, a)
    for use in (*footprint.before, *footprint.after):
        if isinstance(given.get(use.name), V.Tensor):
            m.note_use(a.node, given[use.name])
    if not dependent:  # it starts when all before it has ended: its wait changes nothing
        reads, writes = (*before.reads, *after.reads), (*before.writes, *after.writes)
        m.enqueue(a.node, definition.name, reads, writes, stream=stream)
        return
    _doubt_handed_in(m, definition.name, before, after, a, stream or m.stream, waits=footprint.waits)
    m.enqueue(
        a.node,
        definition.name,
        after.reads,
        after.writes,
        stream=stream,
        before=before,
        dependent=True,
        waits=footprint.waits,
    )


def _doubt_handed_in(
    m: Machine,
    name: str,
    before: Footprint,
    after: Footprint,
    a: Arguments,
    stream: str,
    *,
    waits: bool,
) -> None:
    """Note if the launch before the call may still write what a dependent launch touches without waiting.

    Nothing of the caller runs any more once a launch has started that is not dependent, as it starts when all
    before it has ended, or once the host has waited.
    """
    of_caller = {m.caller, *(v.name for v in m.given.values() if isinstance(v, V.Stream))}
    if m.captures or stream not in of_caller:
        return
    written: set[str] = set()
    for action in m.actions:
        match action:
            case H.Join(stream=None, event=None):
                return
            case H.Join(stream=of) | H.Replay(stream=of) | H.Await(stream=of) if of == stream:
                return
            case H.Work(dependent=False, stream=of) if of == stream:
                return
            case H.Work():
                written |= {r.memory for part in (action.before, action.after) for r in part.writes}
    touched = [before] if waits else [before, after]
    memories = {region.memory for part in touched for region, _ in part.regions()}
    if any(m.memories[memory].handed_in for memory in memories - written):
        why = f"what `{name}` touches before it waits may still be written by the launch before this call"
        m.doubts.append((m.site(a.node), why))


def footprint_at(m: Machine, kernel: V.Kernel, a: Arguments, grid: V.Value) -> Footprint:
    """What a launch with these arguments touches, on either side of a wait."""
    definition = kernel.definition
    given = dict(zip(_parameters(definition), a.positional, strict=False))
    given.update({name: value for name, value in a.keywords.items() if name in _parameters(definition)})
    footprint = m.kernels.footprint(definition, _constants(m, definition, given)) or _anything(given)
    before, after = _footprints(m, footprint, given, grid, a)
    return Footprint((*before.reads, *after.reads), (*before.writes, *after.writes))


def _footprints(
    m: Machine, footprint: KernelFootprint, given: Mapping[str, V.Value], grid: V.Value, a: Arguments
) -> tuple[Footprint, Footprint]:
    """What a launch touches before and after its wait."""
    counted = any(use.prefix is not None for use in (*footprint.before, *footprint.after))
    sizes = _sizes(m, given, grid, a) if counted else {}
    parts = (footprint.before, footprint.after)
    before, after = (_footprint(m, given, part, a.node, sizes) for part in parts)
    return before, after


def _footprint(
    m: Machine,
    given: Mapping[str, V.Value],
    uses: Iterable[ParameterUse],
    node: cst.CSTNode,
    sizes: Mapping[str, Expr],
) -> Footprint:
    """What the parameters that a kernel touches are at this launch.

    The kernel may touch all of an argument. What it certainly touches is its first element, or its first
    elements, if that is known.
    """
    regions: dict[bool, list[Region]] = {False: [], True: []}
    for use in uses:
        for tensor in tensors_in(m, given.get(use.name), node):
            regions[use.write] += [replace(region, exact=False) for region in m.regions(tensor)]
            if use.certain and not tensor.aliases and not tensor.holes:
                count = None if use.prefix is None else _at_launch(use.prefix, sizes)
                regions[use.write].append(_leading_elements(m, tensor, count))
            if not m.is_device(tensor):
                m.copied[tensor.memory] = None
    return Footprint(tuple(regions[False]), tuple(regions[True]))


def _leading_elements(m: Machine, tensor: V.Tensor, count: Expr | None) -> Region:
    """The first elements of a view: `count` of them if its memory has one axis, else one.

    `finished` cuts the box down to as many axes as the memory has.
    """
    box: list[tuple[Expr, Expr]] = []
    is_flat = tensor.rest is not None and len(m.memories[tensor.memory].extents or ()) == 1
    for axis in range(MAX_RANK):
        interval = tensor.box[axis] if axis < len(tensor.box) else None
        start = E.ZERO if interval is None else interval[0].expr
        stop = E.add(start, 1)
        if interval is not None:  # the kernel has something to do
            m.assume(E.lt(start, interval[1].expr))
        if axis == 0 and is_flat and count is not None:
            end = m.extent(tensor.memory, 0) if interval is None else interval[1].expr
            stop = E.minimum(E.add(start, count), end)
            m.assume(E.lt(start, stop))
        box.append((start, stop))
    return Region(tensor.memory, tuple(box))


def _at_launch(count: Expr, sizes: Mapping[str, Expr]) -> Expr | None:
    """A number of the kernel's in terms of the host's; None if it depends on one that is not known."""
    found: dict[Expr, Expr] = {}
    for symbol in E.symbols(count):
        if symbol.kind not in (Kind.CONSTANT, Kind.SCALAR, Kind.GRID) or symbol.name not in sizes:
            return None
        found[E.sym(symbol)] = sizes[symbol.name]
    return E.substitute(count, found)


def _sizes(m: Machine, given: Mapping[str, V.Value], grid: V.Value, a: Arguments) -> dict[str, Expr]:
    """The numbers of a launch, by the names that they have in the kernel: its parameters and its grid."""
    found: dict[str, Expr] = {}
    for name, value in given.items():
        number = as_number(m, value) if isinstance(value, V.Number) else None
        if isinstance(value, V.Unknown) and value.plain:
            number = as_number(m, value)
        if number is not None and not number.slopes and not number.curved:
            found[name] = number.expr
    if isinstance(grid, V.Function):
        with contextlib.suppress(Unread, PathEnds):
            grid = m.call_function(m, grid, Arguments(a.node, (V.Mapping(dict(given)),)))
    blocks = grid.items if isinstance(grid, V.Sequence) else [grid]
    for axis, value in enumerate(blocks):
        number = as_number(m, value) if isinstance(value, V.Number) else None
        if number is not None and not number.slopes and not number.curved:
            found[grid_symbol(axis).name] = number.expr
    return found


def tensors_in(m: Machine, value: V.Value | None, node: cst.CSTNode) -> list[V.Tensor]:
    """The tensors of an argument: itself, or those of a list."""
    if isinstance(value, V.Sequence):
        return [t for item in value.items for t in tensors_in(m, item, node)]
    if isinstance(value, V.Mapping):
        return [t for item in value.items.values() for t in tensors_in(m, item, node)]
    found = as_tensor(m, value, node)
    return [] if found is None else [found]


def _anything(given: Mapping[str, V.Value]) -> KernelFootprint:
    """A kernel that is not read may read and write whatever it is passed, numbers apart."""
    names = [name for name, value in given.items() if not isinstance(value, V.Number)]
    return KernelFootprint(
        (), tuple(ParameterUse(n, write) for n in names for write in (False, True)), waits=True
    )


def _constants(m: Machine, definition: Definition, given: Mapping[str, V.Value]) -> Constants:
    """The compile-time parameters of a launch, as far as they are known: a wait may stand under one of them."""
    constants: list[tuple[str, int | bool]] = []
    for name, param in _parameters(definition).items():
        if _is_constant(definition, param):
            found = _literal(m, given[name]) if name in given else _default(param)
            constants += [] if found is None else [(name, found)]
    return tuple(constants)


def _literal(m: Machine, value: V.Value) -> int | bool | None:
    match value:
        case V.Number(expr=expr):
            return m.settle(expr).value
        case V.Const(value=bool(flag)):
            return flag
        case V.Unknown(name=name) if ("truth", name) in m.decided:  # a flag that also decides `launch_pdl`
            return m.decided["truth", name] == 0
        case _:
            return None


def _default(param: cst.Param) -> int | bool | None:
    """The literal that a parameter has where the launch leaves it out."""
    match param.default:
        case cst.Integer():
            return param.default.evaluated_value
        case cst.Name(value="True" | "False" as word):
            return word == "True"
        case _:
            return None


def _parameters(definition: Definition) -> dict[str, cst.Param]:
    params = definition.node.params
    return {p.name.value: p for p in (*params.posonly_params, *params.params, *params.kwonly_params)}


def _is_constant(definition: Definition, param: cst.Param) -> bool:
    return (
        param.annotation is not None and read_annotation(definition.table, param.annotation.annotation).constant
    )
