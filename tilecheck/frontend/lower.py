"""From the text of a kernel to its IR.

A kernel is executed a few times: the first runs learn what the text says only later (which arrays are
written, how many axes they have, whose values are used as integers). A run is the last one if it has learned
nothing that would have answered one of its own questions otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.dataflow.load_destinations import Destinations, destinations
from tilecheck.frontend.dataflow.prefix_sums import with_moves
from tilecheck.frontend.execute.state import ROUNDED, Dialect, Executor, Knowledge
from tilecheck.frontend.execute.statements import run_block
from tilecheck.frontend.kernels.annotations import Annotation
from tilecheck.frontend.kernels.contracts import read_contracts, tables
from tilecheck.frontend.kernels.definitions import Definition, initial, read_parameters
from tilecheck.frontend.kernels.fills import read_fills
from tilecheck.frontend.modules.bindings import Import, imports_of
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import walk
from tilecheck.frontend.values.values import (
    Choice,
    Const,
    Frame,
    Function,
    ModuleRef,
    Named,
    Num,
    Poison,
    Record,
    RecordType,
    Seq,
)
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.kernel import Access, Contract, Effect, Kernel, Ownership, Tuning, UnknownName
from tilecheck.ir.kernel import Param as KernelParam
from tilecheck.model import GlobalName, Site

MAX_RUNS = 8


@cache
def dialect(language: str) -> Dialect:
    """What the calls of a language mean. Loaded when a kernel is written in it: most projects use one."""
    if language == "triton":
        from tilecheck.frontend.triton.ops import Triton  # lazy

        return Triton()
    from tilecheck.frontend.cutile.ops import CuTile  # lazy

    return CuTile()


def _tuning(definition: Definition) -> Tuning | None:
    if definition.language != "triton":
        return None
    from tilecheck.frontend.triton.tuning import read_tuning  # lazy, as above

    return read_tuning(definition)


# ---- executing them ----------------------------------------------------------------------------------------


def lower(definition: Definition, *, bounded: bool = False) -> Kernel:
    """Execute a kernel symbolically; `bounded` also says of floats that are rounded between which integers they
    lie, and where.

    Raises:
        UnsupportedConstruct: something in it is not modelled.
    """
    knowledge = Knowledge()
    for _ in range(MAX_RUNS):
        x = _run(definition, knowledge, bounded=bounded)
        learned = _learned(x)
        if x.would_be(learned):
            x.knowledge = knowledge = learned
            if x.unclear is not None and not knowledge.by_name:
                knowledge = replace(knowledge, by_name=True)
                continue
            if x.unclear is not None:
                raise x.unclear
            kernel = _kernel(x, definition)
            learned = _learned(x)  # also what contracts use as integers, as launches are asked for them
            if learned == knowledge:
                return kernel
        knowledge = learned
    raise UnsupportedConstruct("kernel whose types do not settle")


def _learned(x: Executor) -> Knowledge:
    return Knowledge(
        written=frozenset(a.array for a in x.accesses if a.effect is not Effect.READ),
        integers=frozenset(x.integers) | x.knowledge.integers,
        ranks=tuple(sorted(x.ranks.items())),
        lists=frozenset(x.lists),
        pointers=frozenset(x.pointers) | x.knowledge.pointers,
        numbers=frozenset(x.numbers) | x.knowledge.numbers,
        positive=frozenset(size for size in x.powers if E.le(1, size) in x.facts),
        flagged=_flagged(x),
        by_name=x.knowledge.by_name,
    )


def _flagged(x: Executor) -> tuple[tuple[str, Expr], ...]:
    """The conditions under which those parameters are pointers that are used as numbers too. They are kept once
    found, for a run that knows them has no number there to find them by."""
    known = dict(x.knowledge.flagged)
    for name, held in x.flags.items():
        if held and name in x.knowledge.numbers | x.numbers:
            known[name] = E.all_of(*sorted(held, key=E.render))
    return tuple(sorted(known.items()))


def rounds_floats(kernel: Kernel) -> bool:
    """Whether the kernel touches elements, or takes branches, that rounded floats tell."""
    terms = [e for a in kernel.accesses for e in (a.guard, a.mask, *(axis.coordinate for axis in a.axes))]
    terms += [e for check in kernel.checks for e in (check.goal, check.guard)]
    return any(s.origin == ROUNDED for s in E.symbols(*terms))


def _run(definition: Definition, knowledge: Knowledge, *, bounded: bool) -> Executor:
    table, node = definition.table, definition.node
    annotations = read_parameters(definition)
    x = Executor(table.project, dialect(definition.language), table.site(node.name), knowledge)
    x.bounds_floats = bounded
    x.constants = frozenset(n for n, a in annotations.items() if a.constant and not a.scalar)
    x.wide = frozenset(n for n, a in annotations.items() if a.wide)
    x.tables = frozenset(tables(definition))
    x.files[table.file] = None
    frame = Frame({}, _closure(definition), table, definition.name, [], 0)
    same = dict(definition.same)
    for name, annotation in annotations.items():
        frame.names[name] = initial(x, same.get(name, name), annotation)
    run_block(x, node.body.body, frame)
    return x


def _closure(definition: Definition) -> Frame | None:
    """The names of the enclosing functions: their helpers, and everything else as unknown constants.

    cuTile embeds what a kernel closes over as compile-time constants, so such a name is one value for the
    whole launch, whatever the enclosing function computed.

    Helpers may see a variable that another of the same name hides from the kernel. A condition could not tell
    the two apart, so the hidden one is not read.
    """
    frame: Frame | None = None
    for function in definition.enclosing:
        frame = Frame({}, frame, definition.table, function.name.value, [], 0)
        for name, value in _bound_around(function, frame, definition.table):
            known = frame.names.get(name)
            once = known is None or (isinstance(known, Num) and isinstance(value, Num))
            frame.names[name] = value if once else Poison(f"name `{name}` bound more than once")
        for node in walk(function):
            for item in node.names if isinstance(node, cst.Nonlocal) else ():
                if isinstance(frame.names.get(item.name.value), Function):
                    frame.names[item.name.value] = Poison(f"name `{item.name.value}` bound more than once")
    hidden = set(read_parameters(definition))
    outer = frame
    while outer is not None:
        for same in hidden & outer.names.keys():
            if isinstance(outer.names[same], Num):
                outer.names[same] = Poison(f"variable `{same}`, which another of that name hides")
        hidden |= outer.names.keys()
        outer = outer.parent
    return frame


def _bound_around(
    function: cst.FunctionDef, frame: Frame, table: ModuleTable
) -> Iterator[tuple[str, Num | Function | Named | Poison]]:
    """The names that a function around a kernel binds, once for each place that binds them."""
    for p in walk(function.params, lambda n: not isinstance(n, cst.Annotation | cst.Lambda)):
        if isinstance(p, cst.Param):
            yield p.name.value, _captured(p.name.value)
    for node in _own_nodes(function):
        match node:
            case cst.FunctionDef():
                yield node.name.value, Function(node, table, frame)
            case cst.AssignTarget() | cst.AnnAssign() | cst.For() | cst.AugAssign() | cst.NamedExpr():
                for name in walk(node.target):
                    if isinstance(name, cst.Name):
                        yield name.value, _captured(name.value)
            case cst.Import() | cst.ImportFrom():
                for bound, module in imports_of(node):
                    if table.bindings.get(bound) != module:
                        yield bound, _imported(module, bound, table)
            case (
                cst.ClassDef(name=cst.Name(value=lost))
                | cst.WithItem(asname=cst.AsName(name=cst.Name(value=lost)))
                | cst.ExceptHandler(name=cst.AsName(name=cst.Name(value=lost)))
                | cst.MatchAs(name=cst.Name(value=lost))
                | cst.MatchStar(name=cst.Name(value=lost))
            ):
                yield lost, Poison(f"`{lost}` of the function around the kernel")


def _imported(module: Import, name: str, table: ModuleTable) -> Named | Poison:
    """A library's module that a function around a kernel imports as a whole."""
    if module.member is None and not module.level and table.project.find(module, table.file) is None:
        return Named(module.module)
    return Poison(f"`{name}` imported in a function")


def _captured(name: str) -> Num:
    return Num((), E.sym(Symbol(name, Kind.CONSTANT, origin="untyped")), "any", None)


def _own_nodes(function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    """The nodes of a function's own body, without those of functions inside it."""
    nested = (cst.FunctionDef, cst.Lambda, cst.ClassDef)
    yield from walk(function.body, lambda n: not isinstance(n, nested))


def _without_ways(x: Executor, *premises: Expr) -> None:
    """Take out of what was recorded how a module bound a name that it binds in several ways.

    A launch cannot tell. What is asked of one way is asked of all, and what is read in one may be read in all.
    A kernel of which a value that counts, or a store, depends on the way is refused.
    """
    if not x.ways:
        return

    def refuse(site: Site, *values: Expr | None) -> None:
        for symbol in E.symbols(*(value for value in values if value is not None)):
            if symbol in x.ways:
                raise UnsupportedConstruct(x.ways[symbol], site.span, site.file)

    def weaker(guard: Expr) -> Expr:
        return E.all_of(*(c for c in E.conjuncts(guard) if not any(s in x.ways for s in E.symbols(c))))

    refuse(x.site, *premises, *(barrier.guard for barrier in x.barriers))
    x.accesses = [replace(a, guard=weaker(a.guard)) if a.effect is Effect.READ else a for a in x.accesses]
    x.checks = [replace(check, guard=weaker(check.guard)) for check in x.checks]
    x.overflow.checks = [replace(check, guard=weaker(check.guard)) for check in x.overflow.checks]
    for access in (*x.accesses, *x.waits):
        bounds = (lane.bound for lane in access.lanes)
        axes = (part for a in access.axes for part in (a.index, a.step, a.size, a.extent, a.base))
        where = (access.guard, access.mask, access.unchecked)
        refuse(access.site, *where, access.member, *bounds, *axes, *access.operands)
    for check in x.checks:
        refuse(check.site, check.goal)
    for operation in x.overflow.checks:
        refuse(operation.site, operation.value)
    # A fact of one way says nothing where the name is bound another way.
    x.facts = {fact: None for fact in x.facts if not any(s in x.ways for s in E.symbols(fact))}
    x.powers = {size: None for size in x.powers if not any(s in x.ways for s in E.symbols(size))}


# ---- the result --------------------------------------------------------------------------------------------


def _kernel(x: Executor, definition: Definition) -> Kernel:
    declared = {n: a.declared for n, a in read_parameters(definition).items() if a.declared is not None}
    unknown: list[UnknownName] = []
    requires, contracts = read_contracts(x, definition, declared, unknown)
    _without_ways(x, *(r.condition for r in requires))
    mentioned = {n.value for n in walk(definition.node.body) if type(n) is cst.Name}
    params = tuple(
        _param(x, definition, name, annotation, declared.get(name), mentioned)
        for name, annotation in read_parameters(definition).items()
    )
    return Kernel(
        name=definition.name,
        language=definition.language,
        site=definition.table.site(definition.node.name),
        params=params,
        grid_axes=tuple(sorted(x.grid_axes)),
        accesses=tuple(_with_destinations(x, definition)),
        checks=tuple(x.checks),
        arithmetic=x.overflow.resolved(x.accesses),
        facts=tuple(f for f in x.facts if f is not E.TRUE),
        requires=requires,
        contracts=tuple(_contracts(x, contracts)),
        unsafe_blocks=tuple(x.unsafe_blocks),
        files=_files(x, definition.table),
        constants=tuple(
            (p.name, Symbol(p.name, Kind.CONSTANT)) for p in params if p.ownership is Ownership.CONSTANT
        ),
        unknown_names=tuple(unknown),
        names=tuple(x.names.items()),
        powers_of_two=tuple(x.powers),
        barriers=tuple(x.barriers),
        exchanges=tuple(x.exchanges),
        sums=tuple(with_moves(x, s) for s in x.sums),
        folds_planes=x.folds_planes,
        splits_warps=x.splits_warps,
        launch_waits=tuple(x.launch_waits),
        waits=tuple(x.waits),
        globals=tuple(g for (file, name), value in x.globals.items() for g in _meanings(file, name, value)),
        tuning=_tuning(definition),
        fills=tuple(read_fills(definition, [p.name for p in params])),
    )


def _with_destinations(x: Executor, definition: Definition) -> Iterator[Access]:
    """The accesses; those that load what the kernel of Triton overwrites with where their values go. How their
    addresses are computed is kept if it says how their tiles are laid out."""
    read = {a.array for a in x.accesses if a.effect is Effect.READ}
    overwritten = read & {a.array for a in x.accesses if a.effect is Effect.WRITE}
    known, even = Destinations(), False
    if definition.language == "triton" and overwritten:
        from tilecheck.frontend.triton.specialisation import is_specialised  # lazy, as above

        known = destinations(definition)
        even = not x.uneven and is_specialised(definition, x.arrays)
    ever = known.ever if any(a.array in overwritten and not a.lanes for a in x.accesses) else {}
    for access in x.accesses:
        way = access.way if even else None
        if access.effect is Effect.READ:
            yield replace(access, way=way, reaches=known.now.get(access.site), feeds=ever.get(access.site))
        else:
            yield access if access.way is way else replace(access, way=way)


def _contracts(x: Executor, contracts: tuple[Contract, ...]) -> Iterator[Contract]:
    """The contracts that are not void. One about an array that atomics alone change speaks of the beginning."""
    written = x.knowledge.written
    changed = {a.array for a in x.accesses if a.effect is not Effect.ATOMIC}
    for contract in contracts:
        if not contract.is_void(written):
            yield contract
        elif contract.kind in ("filled", "within") and contract.array not in changed:
            yield replace(contract, initial=True)


def _meanings(file: str, name: str, value: Any) -> Iterator[GlobalName]:
    """What a name of a module was taken for, as far as a running program can be compared with it."""
    match value:
        case Function(node=cst.FunctionDef() as node):
            yield GlobalName(file, name, site=value.table.site(node.name))
        case ModuleRef():
            yield GlobalName(file, name, module=value.table.file)
        case Named():
            yield GlobalName(file, name, library=value.name)
        case Choice():  # one of these
            both = [list(_meanings(file, name, way)) for way in (value.first, value.second)]
            yield from (meaning for way in both for meaning in way if all(both))
        case RecordType() | Record():
            for field, inner in dict(value.fields).items():
                yield from _meanings(file, f"{name}.{field}", inner)
        case _:
            plain = _plain(value)
            if plain is not None:
                yield GlobalName(file, name, plain)


def _plain(value: Any) -> object:
    """The number, text or tuple that a value is; None where it is nothing of the kind."""
    match value:
        case Num(shape=(), elem=E.TRUE | E.FALSE):
            return value.elem is E.TRUE
        case Num(shape=(), elem=E.Expr() as number):
            return number.value
        case Const(value=str() | float() as plain):
            return plain
        case Seq():
            items = tuple(map(_plain, value.items))
            return None if None in items else items
    return None


def _files(x: Executor, own: ModuleTable) -> tuple[tuple[str, str], ...]:
    """The kernel's file, then every file looked into on its behalf, such as for aliases and re-exports, each
    with the SHA-256 of its text.

    More than needed where another kernel or a host function of the same file looked there, never less.
    """
    project = own.project
    files = dict(x.files)
    todo = list(files)
    while todo:
        importer = todo.pop()
        for (_, looked_from), table in project.found.items():
            if looked_from == importer and table is not None and table.file not in files:
                files[table.file] = None
                todo.append(table.file)
    tables = (
        *project.tables.values(),
        *project.found.values(),
        own,
    )  # one file may have paths of two spellings
    texts = {table.file: table.parsed.source.data for table in tables if table is not None}
    return tuple((file, hashlib.sha256(texts[file]).hexdigest()) for file in files)


def _param(
    x: Executor,
    definition: Definition,
    name: str,
    annotation: Annotation,
    declared: Ownership | None,
    mentioned: set[str],
) -> KernelParam:
    effects = {a.effect for a in x.accesses if a.array == name}
    written = bool(effects - {Effect.READ})
    is_array = annotation.array or name in x.arrays or name in x.lists or name in x.ranks
    if annotation.constant:
        ownership = Ownership.CONSTANT
    elif is_array:
        ownership = Ownership.MUT if written else Ownership.SHARED
    else:
        ownership = Ownership.VALUE
    if name not in mentioned:
        ownership = Ownership.UNUSED
    node = next(
        p.name
        for p in (
            *definition.node.params.posonly_params,
            *definition.node.params.params,
            *definition.node.params.kwonly_params,
        )
        if p.name.value == name
    )
    rank = x.ranks.get(name)
    site = definition.table.site(node)
    scalar = "" if is_array else annotation.scalar
    return KernelParam(
        name,
        is_array,
        rank,
        name in x.lists,
        ownership,
        declared,
        site,
        scalar,
        annotation.wide,
        integer=name in x.integers | x.knowledge.integers | x.tables,
        updated=_is_updated([a for a in x.accesses if a.array == name]),
    )


def _is_updated(accesses: list[Access]) -> bool:
    """Whether a second launch would go on from what the first left: elements are counted up, or read before any
    is written.

    What is written first may be scratch memory, and counters that are also stored to are set back as a rule.
    Locks are (`cas`, `xchg`), and the largest of some values stays the largest.
    """
    written = [a.position for a in accesses if a.effect is Effect.WRITE]
    if any(a.effect is Effect.READ and a.position < max(written, default=0) for a in accesses):
        return True
    kinds = {a.atomic_kind for a in accesses if a.effect is Effect.ATOMIC}
    return bool(kinds & {"add", "xor"}) and not written and "xchg" not in kinds
