"""Contracts: what comments above a kernel or inside it, or a config file, say of parameters and launches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError, UnsupportedConstruct, shortened
from tilecheck.frontend.execute.expressions import evaluate
from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.kernels.definitions import Definition, initial, kernel_pragmas, read_parameters
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.text.pragmas import PragmaKind
from tilecheck.frontend.text.source import parse_expression
from tilecheck.frontend.text.syntax import children
from tilecheck.frontend.values.values import Frame, Named, Num, Seq
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol
from tilecheck.ir.kernel import Contract, Ownership, Requirement, UnknownName, extent_symbol, grid_symbol
from tilecheck.ir.parts import WHOLE, Part
from tilecheck.model import Site


@dataclass(frozen=True, slots=True)
class _Form:
    """How a named contract is written: `rank` axes of its first argument (None: any), `arrays` of its arguments
    that are names of arrays (None: all), and how many there are of all."""

    rank: int | None
    arrays: int | None
    fewest: int
    most: int | None
    keywords: tuple[str, ...] = ()  # of the last arguments, where they may have some
    parts: bool = False  # whether it may speak of a part of its array, `t[0::2]`


_FORMS = {
    "filled": _Form(None, 1, 2, 2, parts=True),
    "within": _Form(None, 1, 3, 4, ("skip",), parts=True),
    "distinct": _Form(1, 1, 1, 2, ("skip",), parts=True),
    "increasing": _Form(1, 1, 1, 1, parts=True),
    "permutation": _Form(1, 1, 1, 1),
    "distinct_pairs": _Form(2, 1, 1, 1),
    "prefix_sum": _Form(1, 2, 2, 2, ("of",)),
    "chunks": _Form(1, 2, 3, 3, ("of", "size")),
    "chunk_sums": _Form(1, 2, 3, 3, ("of", "size")),
    "disjoint": _Form(None, None, 1, None),
}


def read_contracts(
    x: Executor,
    definition: Definition,
    declared: dict[str, Ownership],
    unknown: list[UnknownName],
) -> tuple[tuple[Requirement, ...], tuple[Contract, ...]]:
    """Read the contracts above the kernel or inside it; fills `declared` and `unknown`.

    Raises:
        UnsupportedConstruct: a contract is not understood.
    """
    annotations = read_parameters(definition)
    names = set(annotations)
    requires: list[Requirement] = []
    contracts: list[Contract] = []
    for pragma in kernel_pragmas(definition):
        site = Site(definition.table.file, pragma.argument)
        if pragma.kind in (PragmaKind.MUT, PragmaKind.SHARED, PragmaKind.FILLS):
            for name in pragma.arguments:
                if name not in names:
                    unknown.append(UnknownName(name, site))
                elif pragma.kind is not PragmaKind.FILLS:
                    declared[name] = Ownership.MUT if pragma.kind is PragmaKind.MUT else Ownership.SHARED
    for stated in _stated(definition):
        free = _free_names(stated.text) - names - {"grid"}
        if free and not stated.is_optional:
            unknown += [UnknownName(name, stated.site) for name in sorted(free)]
        if free:
            continue
        named = _named_contract(stated.text)
        if named is None:
            condition = _requirement(x, definition, stated)
            requires.append(
                Requirement(condition, stated.text, stated.reason, stated.site, origin=stated.origin)
            )
        else:
            contract = _contract(x, definition, named, stated)
            contracts += _simpler(contract)
            requires += _shapes(contract) if definition.language == "cutile" else ()
    for given in definition.given:
        for name, value in given.constants:
            if name in names and annotations[name].constant:
                condition = E.eq(E.sym(Symbol(name, Kind.CONSTANT)), int(value))
                text = f"{name} == {value}"
                requires.append(Requirement(condition, text, given.reason, given.site, True, given.origin))
            elif name not in names and given.named:
                unknown.append(UnknownName(name, given.site))
    return tuple(requires), tuple(contracts)


@dataclass(frozen=True, slots=True)
class _Stated:
    """The text of one `requires`, and where it stands. An optional one is for kernels that have its names."""

    text: str
    reason: str | None
    site: Site
    is_optional: bool = False
    origin: str = "source"


def _stated(definition: Definition) -> Iterator[_Stated]:
    for pragma in kernel_pragmas(definition):
        if pragma.kind is PragmaKind.REQUIRES:
            yield _Stated(pragma.arguments[0], pragma.reason, Site(definition.table.file, pragma.argument))
    for given in definition.given:
        for text in given.requires:
            yield _Stated(text, given.reason, given.site, not given.named, given.origin)


def tables(definition: Definition) -> Iterator[str]:
    """The arrays whose values a contract speaks of: their elements are integers."""
    for stated in _stated(definition):
        try:
            call = _named_contract(stated.text)
        except UnsupportedConstruct:
            continue  # reported when the contracts are read
        if call is not None:
            named = map(_array_part, _arrays(call) if dotted(call.func) != "disjoint" else ())
            yield from (name for name, _ in filter(None, named))


def check_text(text: str) -> None:
    """What can be said against a contract without a look at the kernel that it is for.

    Raises:
        UnsupportedConstruct: it is no expression that contracts are made of.
    """
    _free_names(text)


def _parsed(text: str) -> cst.BaseExpression:
    """The syntax tree of a contract.

    Raises:
        UnsupportedConstruct: it is no expression, or is nested too deeply to read.
    """
    try:
        return parse_expression(text)
    except SourceError as problem:
        raise UnsupportedConstruct(f"contract `{shortened(text)}`") from problem


def _named_contract(text: str) -> cst.Call | None:
    """The call of a named contract, `distinct(t, skip=-1)`."""
    node = _parsed(text)
    known = isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in _FORMS
    return node if known and isinstance(node, cst.Call) else None


def _arrays(call: cst.Call) -> list[cst.BaseExpression]:
    """The arguments of a named contract that must be names of arrays."""
    return [a.value for a in call.args[: _FORMS[dotted(call.func)].arrays]]


def _array_part(node: cst.BaseExpression) -> tuple[str, Part] | None:
    """The array and the part of it that an argument names: `t`, `t[0::2]`, `t[:, 1]`, `t[-1]`."""
    if isinstance(node, cst.Name):
        return node.value, WHOLE
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Name):
        return None
    axes = [_axis_part(element.slice) for element in node.slice]
    found = tuple(axis for axis in axes if axis is not None)
    return (node.value.value, found) if len(found) == len(axes) else None


def _axis_part(given: cst.BaseSlice) -> tuple[int, int] | None:
    """The first index and the step, 0 for a single index; None for what is no part: it has numbers and no end,
    and counts from the front, but for a single index."""
    match given:
        case cst.Index(value=cst.Integer() as only, star=None):
            return only.evaluated_value, 0
        case cst.Index(value=cst.UnaryOperation(cst.Minus(), cst.Integer() as back), star=None):
            return -back.evaluated_value, 0
        case cst.Slice(upper=None):
            first = 0 if given.lower is None else given.lower
            step = 1 if given.step is None else given.step
            ends = [e.evaluated_value if isinstance(e, cst.Integer) else e for e in (first, step)]
            match ends:
                case [int() as first, int() as step] if step > 0:
                    return first, step
    return None


def _contract(x: Executor, definition: Definition, call: cst.Call, stated: _Stated) -> Contract:
    """A named contract as it is written."""
    kind, text, site = dotted(call.func), stated.text, stated.site
    form = _FORMS[kind]
    problem = UnsupportedConstruct(f"contract `{shortened(text)}`", site.span, site.file)
    if len(call.args) < form.fewest or (form.most is not None and len(call.args) > form.most):
        raise problem
    for place, argument in enumerate(call.args):
        late = place - (form.most or 0)  # counted from the end, as keywords are
        named_so = form.keywords[late] if -len(form.keywords) <= late < 0 else None
        if argument.star or (argument.keyword is not None and argument.keyword.value != named_so):
            raise problem
    named = [_array_part(node) for node in _arrays(call)]
    if None in named or (len(named) > 1 and any(found and found[1] for found in named)):
        raise problem
    names = [name for name, _ in filter(None, named)]
    part = next((part for _, part in filter(None, named)), WHOLE)
    if part and not form.parts:
        raise problem
    annotations = read_parameters(definition)
    lists = {n for n in names if n in x.lists or (n in annotations and annotations[n].array_list)}
    numbers = {n for n, a in annotations.items() if a.constant or a.scalar}
    if not set(names) <= annotations.keys() - numbers or len(set(names)) < len(names):
        raise problem
    if kind == "disjoint":
        if len(names) < 2 and not lists:
            raise problem  # a single array has nothing to overlap
    elif lists:
        raise UnsupportedConstruct(f"contract `{shortened(text)}` about a list of arrays", site.span, site.file)
    elif not all(_has_rank(x, definition, kind, n, part) for n in names):
        rank = form.rank or len(part)
        axes = f"{rank} axis" if rank == 1 else f"{rank} axes"
        what = f"contract `{shortened(text)}` about an array that does not have {axes}"
        raise UnsupportedConstruct(what, site.span, site.file)
    bounds = tuple(_term(x, definition, a.value, text, site) for a in call.args[len(names) :])
    if kind == "within" and len(bounds) == 3:
        kind = "within_or"
    others = tuple(names[1:])
    return Contract(kind, names[0], bounds, text, stated.reason, site, others, part=part, origin=stated.origin)


def _has_rank(x: Executor, definition: Definition, kind: str, name: str, part: Part) -> bool:
    """Whether an array has the axes that a contract speaks of. Flat memory has pairs one after the other."""
    wanted = _FORMS[kind].rank
    if part:
        line = wanted is None or sum(step > 0 for _, step in part) == wanted
        return line and (x.ranks.get(name, len(part)) == len(part))
    if wanted is None:
        return True
    is_flat = definition.language == "triton" and kind == "distinct_pairs"
    return x.ranks.get(name, wanted) == (1 if is_flat else wanted)


def _simpler(contract: Contract) -> list[Contract]:
    """What a contract says in terms of others."""
    said = partial(replace, contract, others=(), part=WHOLE)
    if contract.kind == "chunks":
        (starts,) = contract.others
        last = E.sub(E.sym(extent_symbol(starts, 0)), 1)
        return [
            contract,
            said(kind="distinct_pairs", bounds=()),
            said(kind="within", bounds=(E.ZERO, last), part=((0, 2),)),
        ]
    if contract.kind == "chunk_sums":
        return [contract, *(said(kind="increasing", array=name, bounds=()) for name in contract.arrays)]
    if contract.kind != "permutation":
        return [contract]
    length = E.sym(extent_symbol(contract.array, 0))
    return [said(kind="distinct", bounds=()), said(kind="within", bounds=(E.ZERO, length))]


def _shapes(contract: Contract) -> Iterator[Requirement]:
    """What a contract says of shapes: unlike values in memory, a launch can check it."""
    match contract.kind:
        case "distinct_pairs":
            columns = E.sym(extent_symbol(contract.array, 1))
            condition, text = E.eq(columns, 2), f"{contract.array}.shape[1] == 2"
        case "prefix_sum":
            (counts,) = contract.others
            sums, items = (E.sym(extent_symbol(name, 0)) for name in (contract.array, counts))
            condition, text = E.eq(sums, E.add(items, 1)), f"{contract.array}.shape[0] == {counts}.shape[0] + 1"
        case _:
            return
    yield Requirement(condition, text, contract.reason, contract.site, origin=contract.origin)


def _free_names(text: str) -> set[str]:
    found: set[str] = set()
    stack: list[cst.CSTNode] = [_parsed(text)]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Attribute):
            stack.append(node.value)
        elif isinstance(node, cst.Name):
            found.add(node.value)
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            if node.func.value not in ("cdiv", "min", "max", "len", "numel", "next_power_of_2", *_FORMS):
                raise UnsupportedConstruct(f"contract `{node.func.value}`")
            stack.extend(a.value for a in node.args)
        else:
            stack.extend(children(node))
    return found - {"True", "False", "None"}


def _requirement(x: Executor, definition: Definition, stated: _Stated) -> E.Expr:
    """The condition of a `requires`, over launch values."""
    node, site, text = _parsed(stated.text), stated.site, shortened(stated.text)
    try:
        with x.dry_run(), x.stating_contract():
            return x.truth(evaluate(x, node, _contract_frame(x, definition)))
    except UnsupportedConstruct as problem:
        raise UnsupportedConstruct(f"contract `{text}`", site.span, site.file) from problem


def _term(x: Executor, definition: Definition, node: cst.BaseExpression, text: str, site: Site) -> E.Expr:
    """An integer in a contract, over launch values."""
    try:
        with x.dry_run(), x.stating_contract():
            return x.scalar(evaluate(x, node, _contract_frame(x, definition)), "contract")
    except UnsupportedConstruct as problem:
        raise UnsupportedConstruct(f"contract `{shortened(text)}`", site.span, site.file) from problem


def _contract_frame(x: Executor, definition: Definition) -> Frame:
    frame = Frame({}, None, definition.table, "<contract>", [], 0)
    for name, annotation in read_parameters(definition).items():
        frame.names[name] = initial(x, name, annotation)
    frame.names["grid"] = Seq(tuple(Num((), E.sym(grid_symbol(k)), "int") for k in range(3)))
    frame.names["cdiv"] = Named(f"{x.dialect.namespace}.cdiv")
    frame.names["numel"] = Named("tilecheck.numel")
    if x.dialect.has_pointers:
        frame.names["next_power_of_2"] = Named("triton.next_power_of_2")
    return frame
