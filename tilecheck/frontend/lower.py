"""From a module's text to the kernels in it.

A kernel is executed a few times: the first runs learn what the text says only later (which arrays are
written, how many axes they have, whose values are used as integers), the last run knows all of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.annotations import Annotation, read_annotation
from tilecheck.frontend.cutile.ops import CuTile
from tilecheck.frontend.executor import Executor, Knowledge
from tilecheck.frontend.expressions import evaluate
from tilecheck.frontend.modules import Import, ModuleTable, dotted, imports_of
from tilecheck.frontend.pragmas import Pragma, PragmaKind
from tilecheck.frontend.statements import run_block
from tilecheck.frontend.syntax import children, walk
from tilecheck.frontend.values import (
    Array,
    ArrayList,
    Const,
    Frame,
    Function,
    ModuleRef,
    Named,
    Num,
    Param,
    Poison,
    Record,
    RecordType,
    Seq,
    Token,
)
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol
from tilecheck.ir.kernel import (
    Contract,
    Effect,
    Kernel,
    Ownership,
    Requirement,
    UnknownName,
    extent_symbol,
    grid_symbol,
)
from tilecheck.ir.kernel import Param as KernelParam
from tilecheck.model import GlobalName, Site

MAX_RUNS = 8


@dataclass(frozen=True, slots=True)
class Definition:
    """A kernel as it stands in a file: its `def`, and the functions that enclose it, outermost first."""

    name: str
    node: cst.FunctionDef
    table: ModuleTable
    enclosing: tuple[cst.FunctionDef, ...]


# ---- finding kernels ---------------------------------------------------------------------------------------


def find_kernels(table: ModuleTable) -> tuple[Definition, ...]:
    """The cuTile kernels of a module, in order: decorated functions, and functions given to `ct.kernel`."""
    found: dict[cst.FunctionDef, Definition] = {}
    wrapped: list[tuple[str, tuple[cst.FunctionDef, ...]]] = []
    functions: list[tuple[cst.FunctionDef, tuple[cst.FunctionDef, ...]]] = []
    for node, enclosing in _walk(table.parsed.module, ()):
        if isinstance(node, cst.FunctionDef):
            functions.append((node, enclosing))
            if any(is_kernel_decorator(table, d.decorator) for d in node.decorators):
                found[node] = Definition(node.name.value, node, table, enclosing)
        elif isinstance(node, cst.Call) and is_kernel_decorator(table, node.func) and node.args:
            wrapped.append((dotted(node.args[0].value), enclosing))
    for name, enclosing in wrapped:
        for node, around in functions:
            if node.name.value == name and around == enclosing[: len(around)] and node not in found:
                found[node] = Definition(name, node, table, around)
    order = {node: i for i, (node, _) in enumerate(functions)}
    return tuple(sorted(found.values(), key=lambda d: order[d.node]))


def _walk(
    node: cst.CSTNode, enclosing: tuple[cst.FunctionDef, ...]
) -> Iterator[tuple[cst.CSTNode, tuple[cst.FunctionDef, ...]]]:
    stack = [(node, enclosing)]
    while stack:
        node, enclosing = stack.pop()
        yield node, enclosing
        inner = (*enclosing, node) if isinstance(node, cst.FunctionDef) else enclosing
        stack.extend((child, inner) for child in reversed(children(node)))


_MOST_ALIASES = 8  # of one decorator: `jit = ct.kernel`


def is_kernel_decorator(table: ModuleTable, node: cst.BaseExpression) -> bool:
    """Whether a decorator is `cuda.tile.kernel`, called or not, under whatever name it was imported."""
    return _is_kernel_decorator(table, node, 0)


def _is_kernel_decorator(table: ModuleTable, node: cst.BaseExpression, depth: int) -> bool:
    if isinstance(node, cst.Call):
        first = (
            node.args[0].value if node.args and dotted(node.func).rpartition(".")[2] == "partial" else node.func
        )
        return _is_kernel_decorator(table, first, depth)
    head, _, rest = dotted(node).partition(".")
    binding = table.bindings.get(head) or table.local_imports.get(head)
    if isinstance(binding, cst.BaseExpression) and not rest and depth < _MOST_ALIASES:
        return _is_kernel_decorator(table, binding, depth + 1)
    if not isinstance(binding, Import):
        return False
    module = f"{binding.module}.{binding.member}" if binding.member else binding.module
    return f"{module}.{rest}".rstrip(".") in ("cuda.tile.kernel", "cuda.tile._execution.kernel")


# ---- executing them ----------------------------------------------------------------------------------------


def lower(definition: Definition) -> Kernel:
    """Execute a kernel symbolically.

    Raises:
        UnsupportedConstruct: something in it is not modelled.
    """
    knowledge = Knowledge()
    for _ in range(MAX_RUNS):
        x = _run(definition, knowledge)
        learned = _learned(x)
        if learned == knowledge:
            return _kernel(x, definition)
        knowledge = learned
    raise UnsupportedConstruct("kernel whose types do not settle")


def _learned(x: Executor) -> Knowledge:
    return Knowledge(
        written=frozenset(a.array for a in x.accesses if a.effect is not Effect.READ),
        integers=frozenset(x.integers) | x.knowledge.integers,
        ranks=tuple(sorted(x.ranks.items())),
        lists=frozenset(x.lists),
    )


def _run(definition: Definition, knowledge: Knowledge) -> Executor:
    table, node = definition.table, definition.node
    annotations = read_parameters(definition)
    x = Executor(table.project, CuTile(), table.site(node.name), knowledge)
    x.constants = frozenset(n for n, a in annotations.items() if a.constant and not a.scalar)
    x.wide = frozenset(n for n, a in annotations.items() if a.wide)
    x.tables = frozenset(_tables(definition))
    x.files[table.file] = None
    frame = Frame({}, _closure(definition), table, definition.name, [], 0)
    for name, annotation in annotations.items():
        frame.names[name] = _initial(x, name, annotation)
    run_block(x, node.body.body, frame)
    return x


def read_parameters(definition: Definition) -> dict[str, Annotation]:
    """The kernel's parameters in order, with what their annotations say."""
    params = definition.node.params
    if not isinstance(params.star_arg, cst.MaybeSentinel | cst.ParamStar) or params.star_kwarg is not None:
        raise UnsupportedConstruct("`*` parameters of a kernel")
    found = {}
    for p in (*params.posonly_params, *params.params, *params.kwonly_params):
        node = None if p.annotation is None else p.annotation.annotation
        found[p.name.value] = read_annotation(definition.table, node)
    return found


def _initial(x: Executor, name: str, annotation: Annotation) -> Any:
    """What a parameter is before the kernel runs."""
    kind = Kind.CONSTANT if annotation.constant else Kind.SCALAR
    if name in x.knowledge.lists or (annotation.array_list and not annotation.constant):
        return ArrayList(name)
    if annotation.array and not annotation.constant:
        x.arrays.add(name)
        return Array(name)
    match annotation.scalar:
        case "int":
            bits = None if annotation.constant else 64 if annotation.wide else 32
            return Num((), E.sym(Symbol(name, kind)), "int", bits)
        case "bool":
            return Num((), E.bool_sym(Symbol(name, kind)), "bool", None)
        case "float" | "str":
            return Token(name)
        case _:
            return Param(name)


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
) -> Iterator[tuple[str, Num | Function | Poison]]:
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
                        yield bound, Poison(f"`{bound}` imported in a function")
            case (
                cst.ClassDef(name=cst.Name(value=lost))
                | cst.WithItem(asname=cst.AsName(name=cst.Name(value=lost)))
                | cst.ExceptHandler(name=cst.AsName(name=cst.Name(value=lost)))
                | cst.MatchAs(name=cst.Name(value=lost))
                | cst.MatchStar(name=cst.Name(value=lost))
            ):
                yield lost, Poison(f"`{lost}` of the function around the kernel")


def _captured(name: str) -> Num:
    return Num((), E.sym(Symbol(name, Kind.CONSTANT, origin="untyped")), "any", None)


def _own_nodes(function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
    """The nodes of a function's own body, without those of functions inside it."""
    nested = (cst.FunctionDef, cst.Lambda, cst.ClassDef)
    yield from walk(function.body, lambda n: not isinstance(n, nested))


# ---- the result --------------------------------------------------------------------------------------------


def _kernel(x: Executor, definition: Definition) -> Kernel:
    declared = {n: a.declared for n, a in read_parameters(definition).items() if a.declared is not None}
    unknown: list[UnknownName] = []
    requires, contracts = _contracts(x, definition, declared, unknown)
    params = tuple(
        _param(x, definition, name, annotation, declared.get(name))
        for name, annotation in read_parameters(definition).items()
    )
    return Kernel(
        name=definition.name,
        language="cutile",
        site=definition.table.site(definition.node.name),
        params=params,
        grid_axes=tuple(sorted(x.grid_axes)),
        accesses=tuple(x.accesses),
        checks=tuple(x.checks),
        arithmetic=tuple(x.arithmetic),
        facts=tuple(f for f in x.facts if f is not E.TRUE),
        requires=requires,
        contracts=tuple(c for c in contracts if c.array not in x.knowledge.written),
        unsafe_blocks=tuple(x.unsafe_blocks),
        files=_files(x, definition.table),
        constants=tuple(
            (p.name, Symbol(p.name, Kind.CONSTANT)) for p in params if p.ownership is Ownership.CONSTANT
        ),
        unknown_names=tuple(unknown),
        names=tuple(x.names.items()),
        powers_of_two=tuple(x.powers),
        globals=tuple(g for (file, name), value in x.globals.items() for g in _meanings(file, name, value)),
    )


def _meanings(file: str, name: str, value: Any) -> Iterator[GlobalName]:
    """What a name of a module was taken for, as far as a running program can be compared with it."""
    match value:
        case Function(node=cst.FunctionDef() as node):
            yield GlobalName(file, name, site=value.table.site(node.name))
        case ModuleRef():
            yield GlobalName(file, name, module=value.table.file)
        case Named():
            yield GlobalName(file, name, library=value.name)
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
    x: Executor, definition: Definition, name: str, annotation: Annotation, declared: Ownership | None
) -> KernelParam:
    written = any(a.array == name and a.effect is not Effect.READ for a in x.accesses)
    is_array = annotation.array or name in x.arrays or name in x.lists or name in x.ranks
    if annotation.constant:
        ownership = Ownership.CONSTANT
    elif is_array:
        ownership = Ownership.MUT if written else Ownership.SHARED
    else:
        ownership = Ownership.VALUE
    if not _mentions(definition.node, name):
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
        name, is_array, rank, name in x.lists, ownership, declared, site, scalar, annotation.wide
    )


def _mentions(function: cst.FunctionDef, name: str) -> bool:
    return any(isinstance(n, cst.Name) and n.value == name for n in walk(function.body))


def _contracts(
    x: Executor,
    definition: Definition,
    declared: dict[str, Ownership],
    unknown: list[UnknownName],
) -> tuple[tuple[Requirement, ...], tuple[Contract, ...]]:
    """Read the contracts above the kernel or inside it; fills `declared` and `unknown`."""
    names = set(read_parameters(definition))
    requires: list[Requirement] = []
    contracts: list[Contract] = []
    for pragma in kernel_pragmas(definition):
        site = Site(definition.table.file, pragma.argument)
        if pragma.kind in (PragmaKind.MUT, PragmaKind.SHARED):
            for name in pragma.arguments:
                if name in names:
                    declared[name] = Ownership.MUT if pragma.kind is PragmaKind.MUT else Ownership.SHARED
                else:
                    unknown.append(UnknownName(name, site))
        elif pragma.kind is PragmaKind.REQUIRES:
            text = pragma.arguments[0]
            free = _free_names(text) - names - {"grid"}
            unknown += [UnknownName(name, site) for name in sorted(free)]
            if free:
                continue
            named = _named_contract(text)
            if named is not None:
                contracts += _contract(x, definition, named, text, pragma.reason, site)
                continue
            condition = _requirement(x, definition, cst.parse_expression(text), text, site)
            requires.append(Requirement(condition, text, pragma.reason, site))
    return tuple(requires), tuple(contracts)


_CONTRACTS = {"within": (3, 3), "distinct": (1, 2), "increasing": (1, 1), "permutation": (1, 1)}


def _named_contract(text: str) -> cst.Call | None:
    """The call of a contract about values in memory, `distinct(t, skip=-1)`."""
    node = cst.parse_expression(text)
    known = isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in _CONTRACTS
    return node if known and isinstance(node, cst.Call) else None


def _tables(definition: Definition) -> Iterator[str]:
    """The arrays whose values a contract speaks of: their elements are integers."""
    for pragma in kernel_pragmas(definition):
        if pragma.kind is PragmaKind.REQUIRES:
            try:
                call = _named_contract(pragma.arguments[0])
            except cst.ParserSyntaxError:
                continue  # reported when the contracts are read
            if call is not None and call.args:
                yield dotted(call.args[0].value)


def _contract(
    x: Executor, definition: Definition, call: cst.Call, text: str, reason: str | None, site: Site
) -> list[Contract]:
    kind = dotted(call.func)
    fewest, most = _CONTRACTS[kind]
    array = dotted(call.args[0].value) if call.args else ""
    keywords = [a.keyword.value for a in call.args if a.keyword is not None]
    allowed = ["skip"] if kind == "distinct" else []
    if not fewest <= len(call.args) <= most or "." in array or any(k not in allowed for k in keywords):
        raise UnsupportedConstruct(f"contract `{text}`", site.span, site.file)
    if kind != "within" and x.ranks.get(array, 1) != 1:
        raise UnsupportedConstruct(f"contract `{text}` about an array of several axes", site.span, site.file)
    bounds = tuple(_term(x, definition, a.value, text, site) for a in call.args[1:])
    if kind == "permutation":
        length = E.sym(extent_symbol(array, 0))
        return [
            Contract("distinct", array, (), text, reason, site),
            Contract("within", array, (E.ZERO, length), text, reason, site),
        ]
    return [Contract(kind, array, bounds, text, reason, site)]


def kernel_pragmas(definition: Definition) -> tuple[Pragma, ...]:
    """The pragmas attached to the kernel itself or to a statement inside it."""
    span = definition.table.span(definition.node)
    # Where decorators are, the comment's target starts at the first of them; both lie in the node.
    return tuple(
        p
        for p in definition.table.pragmas
        if p.target.start < span.end and span.start < p.target.end and p.target.end <= span.end + 1
    )


def _free_names(text: str) -> set[str]:
    try:
        expression = cst.parse_expression(text)
    except cst.ParserSyntaxError as problem:
        raise UnsupportedConstruct(f"contract `{text}`") from problem
    found: set[str] = set()
    stack: list[cst.CSTNode] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Attribute):
            stack.append(node.value)
        elif isinstance(node, cst.Name):
            found.add(node.value)
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            if node.func.value not in ("cdiv", "min", "max", "len", *_CONTRACTS):
                raise UnsupportedConstruct(f"contract `{node.func.value}`")
            stack.extend(a.value for a in node.args)
        else:
            stack.extend(children(node))
    return found - {"True", "False", "None"}


def _requirement(
    x: Executor, definition: Definition, node: cst.BaseExpression, text: str, site: Site
) -> E.Expr:
    """The condition of a `requires`, over launch values."""
    try:
        with x.dry_run():
            return x.truth(evaluate(x, node, _contract_frame(x, definition)))
    except UnsupportedConstruct as problem:
        raise UnsupportedConstruct(f"contract `{text}`", site.span, site.file) from problem


def _term(x: Executor, definition: Definition, node: cst.BaseExpression, text: str, site: Site) -> E.Expr:
    """An integer in a contract, over launch values."""
    try:
        with x.dry_run():
            return x.scalar(evaluate(x, node, _contract_frame(x, definition)), "contract")
    except UnsupportedConstruct as problem:
        raise UnsupportedConstruct(f"contract `{text}`", site.span, site.file) from problem


def _contract_frame(x: Executor, definition: Definition) -> Frame:
    frame = Frame({}, None, definition.table, "<contract>", [], 0)
    for name, annotation in read_parameters(definition).items():
        frame.names[name] = _initial(x, name, annotation)
    frame.names["grid"] = Seq(tuple(Num((), E.sym(grid_symbol(k)), "int") for k in range(3)))
    frame.names["cdiv"] = Named("cuda.tile.cdiv")
    return frame
