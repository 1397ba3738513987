"""How to repair the code that a finding speaks of: what a help text says first, before any premise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from tilecheck.errors import SourceError
from tilecheck.frontend.text.source import read_bytes
from tilecheck.ir.expr import Expr, Kind, render, symbols, walk
from tilecheck.ir.kernel import Access, Effect, Kernel, Ownership
from tilecheck.model import Diagnostic, Related, Site
from tilecheck.proof.conditions.contract_needs import tables_of
from tilecheck.proof.decide import Settled
from tilecheck.proof.obligation import Between, Disjoint, Holds, Obligation
from tilecheck.text import decode

LAUNCH = "TC402"
_Call = tuple[ast.Call, Mapping[tuple[str, str], str]]  # with the masks of its function, by `_pointer`
_PLAIN = 2  # arguments of an access without a mask: the pointer, and what is stored
BARRIER = "put `tl.debug_barrier()` between the two accesses"


def repair(kernel: Kernel, obligation: Obligation) -> str | None:
    """The change of the code that keeps an obligation, where its kind is known."""
    goal = obligation.goal
    if isinstance(goal, Holds):
        access = goal.access
        return None if access is None or obligation.kind != "bounds" else masking(kernel, access)
    if not isinstance(goal, Disjoint):
        return None
    if goal.between in (Between.PROGRAM, Between.THREADS) and not is_update(kernel, obligation):
        return BARRIER
    return _of_divisors(goal) or _of_zeroing(kernel, goal) or _of_update(kernel, obligation)


# ---- accesses outside their arrays ---------------------------------------------------------------------------


def masking(kernel: Kernel, access: Access) -> str | None:
    """How to keep an unchecked access inside its array, in the names of the kernel's own text."""
    if access.checked:
        return None
    call, masks = _call_at(access.site)
    line = "" if call is None else f" in line {call.lineno}"
    what = {Effect.READ: "load", Effect.WRITE: "store", Effect.ATOMIC: "atomic"}[access.effect]
    if kernel.language != "triton":
        padding = ", with a `padding_mode` if what lies outside is used" if access.effect is Effect.READ else ""
        return f"keep the bounds check of the {what}{line}: leave out `check_bounds=False`{padding}"
    array, offset = (None if call is None else _pointer(call)) or ("", None)
    if call is None or offset is None or array != access.array:
        return None
    if tables_in(access):
        inside = f"({offset} >= 0) & ({offset} < {_count(kernel, access.array, tables_in(access))})"
        return f"let the mask of the {what}{line} leave out indices that lie outside: `{inside}`"
    if any(keyword.arg in ("mask", "boundary_check") for keyword in call.keywords) or len(call.args) > _PLAIN:
        return None
    named = {a.array for a in kernel.accesses}
    known = (mask for (other, at), mask in masks.items() if at == offset and other in named)
    mask = next(known, f"{offset} < {_count(kernel, access.array)}")
    return f"mask the {what}{line}: `mask={mask}`"


@lru_cache(maxsize=4)
def _calls(path: str, data: bytes) -> Mapping[tuple[int, int], _Call]:
    """The calls inside the functions of a text, by the bytes that they cover. A text is walked once: a kernel
    may have thousands of findings."""
    found: dict[tuple[int, int], _Call] = {}
    try:
        source = decode(path, data)
        functions = [node for node in ast.walk(source.tree()) if isinstance(node, ast.FunctionDef)]
    except (SourceError, SyntaxError, ValueError, RecursionError):
        return found
    for function in functions:
        masks: dict[tuple[str, str], str] = {}
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            start = source.utf8_offset(call.lineno, call.col_offset)
            end = source.utf8_offset(call.end_lineno or 0, call.end_col_offset or 0)
            found[start, end] = call, masks
            pointer = _pointer(call)
            mask = next((k.value for k in call.keywords if k.arg == "mask"), None)
            if pointer is not None and mask is not None:
                masks.setdefault(pointer, ast.unparse(mask))
    return found


def _call_at(site: Site) -> _Call | tuple[None, Mapping[tuple[str, str], str]]:
    """The call that a site covers, and the masks of the function around it."""
    try:
        data = read_bytes(site.file)
    except SourceError:
        return None, {}
    return _calls(site.file, data).get((site.span.start, site.span.end), (None, {}))


def _pointer(call: ast.Call) -> tuple[str, str] | None:
    """The pointer of an access and the text that is added: `x_ptr` and `offs` of `tl.load(x_ptr + offs)`."""
    pointer = call.args[0] if call.args else None
    terms: list[ast.expr] = []
    while isinstance(pointer, ast.BinOp) and isinstance(pointer.op, ast.Add):
        terms.append(pointer.right)
        pointer = pointer.left
    if not isinstance(pointer, ast.Name) or not terms:
        return None
    return pointer.id, " + ".join(ast.unparse(term) for term in reversed(terms))


def _count(kernel: Kernel, array: str, tables: Sequence[str] = ()) -> str:
    """What the kernel calls the number of elements: its only number, if it has one that does not bound the
    tables already."""
    numbers = [
        p.name for p in kernel.params if not p.is_array and p.ownership in (Ownership.VALUE, Ownership.UNUSED)
    ]
    return numbers[0] if len(numbers) == 1 and not tables else f"numel_of_{array}"


def with_repairs(kernel: Kernel, diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The findings, those about launches with the repair of the accesses that go wrong there."""
    for diagnostic in diagnostics:
        seen = diagnostic.witness
        fixes: dict[str, list[Site]] = {}
        if diagnostic.code == LAUNCH and seen is not None:
            arrays = set(re.findall(r"\w+", diagnostic.message)) | {seen.array}
            for access in (a for a in kernel.accesses if a.array in arrays):
                fix = _repair_at_launch(kernel, access, seen.kind)
                if fix is not None:
                    fixes.setdefault(fix, []).append(access.site)
        yield diagnostic if not fixes else _repaired(diagnostic, fixes)


def _repair_at_launch(kernel: Kernel, access: Access, kind: str) -> str | None:
    if kind == "bounds":
        return masking(kernel, access)
    if kind == "overlap" and access.effect is Effect.WRITE:
        goal = Disjoint(access, access, Between.BLOCKS)
        return repair(kernel, Obligation("TC201", goal, (access.site,), "", 2, "overlap"))
    return None


def _repaired(diagnostic: Diagnostic, fixes: Mapping[str, Sequence[Site]]) -> Diagnostic:
    other = [f"or {diagnostic.help}"] if diagnostic.help else []
    sites = dict.fromkeys(site for group in fixes.values() for site in group)
    related = (Related(site, "this access") for site in sites)
    return replace(diagnostic, help="; ".join((*fixes, *other)), related=(*diagnostic.related, *related))


# ---- races ---------------------------------------------------------------------------------------------------


def is_update(kernel: Kernel, obligation: Obligation) -> bool:
    """Whether blocks or lanes read, change and store an element that several of them find: one whose index
    comes from memory, or that depends on no block."""
    goal = obligation.goal
    if not isinstance(goal, Disjoint) or goal.first.array != goal.second.array:
        return False
    pair = (goal.first, goal.second)
    if any(a.effect is Effect.ATOMIC for a in pair) or all(a.effect is Effect.READ for a in pair):
        return False
    shared = all(tables_in(a) or not _depends_on_block(a) for a in pair)
    return shared and any(_updates(kernel, store) for store in pair if store.effect is Effect.WRITE)


def updates(kernel: Kernel, open_: Sequence[Settled]) -> tuple[tuple[Settled, ...], ...]:
    """The open obligations that are about one such update between blocks, by array."""
    found: dict[str, list[Settled]] = {}
    for settled in open_:
        goal = settled.obligation.goal
        if isinstance(goal, Disjoint) and is_update(kernel, settled.obligation):
            found.setdefault(goal.first.array, []).append(settled)
    return tuple(tuple(group) for group in found.values())


def _updates(kernel: Kernel, store: Access) -> bool:
    """Whether a store takes what a load of the same array gave, as far as is known: one at the same place."""
    loads = (a for a in kernel.accesses if a.array == store.array and a.effect is Effect.READ)
    return any(
        load.position in store.takes | store.needs
        or store.site in (load.reaches or ())
        or (load.position < store.position and _place(load) == _place(store))
        for load in loads
    )


def _place(access: Access) -> tuple[str, ...]:
    return tuple(render(axis.coordinate) for axis in access.axes)


def _depends_on_block(access: Access) -> bool:
    return any(s.kind in (Kind.BLOCK, Kind.LOOP) for axis in access.axes for s in symbols(axis.coordinate))


def tables_in(access: Access) -> tuple[str, ...]:
    """The arrays from which the index of an access comes."""
    nodes = walk(*(axis.coordinate for axis in access.axes))
    return tuple(dict.fromkeys(n.args[0].partition(":")[0] for n in nodes if n.op == "read"))


def _of_update(kernel: Kernel, obligation: Obligation) -> str | None:
    goal = obligation.goal
    if not isinstance(goal, Disjoint) or not is_update(kernel, obligation):
        return None
    store = next(a for a in (goal.first, goal.second) if a.effect is Effect.WRITE)
    call, _ = _call_at(store.site)
    first = store.array if call is None or not call.args else ast.unparse(call.args[0])
    atomic = f"tl.atomic_add({first}, ...)" if kernel.language == "triton" else f"ct.atomic_add({first}, ...)"
    return f"update `{store.array}` by `{atomic}` in place of the load and the store"


def _of_zeroing(kernel: Kernel, goal: Disjoint) -> str | None:
    """A block that stores what other blocks update by atomics comes at no particular time."""
    pair = (goal.first, goal.second)
    stores = [a for a in pair if a.effect is Effect.WRITE]
    if len(stores) != 1 or not any(a.effect is Effect.ATOMIC for a in pair):
        return None
    guards = symbols(stores[0].guard, stores[0].mask)
    if goal.between is not Between.BLOCKS or not any(s.kind is Kind.BLOCK for s in guards):
        return None
    name = stores[0].array
    return f"let the host fill `{name}` before the launch, as `torch.zeros` does, and drop this store"


def _of_divisors(goal: Disjoint) -> str | None:
    """`b // across` beside `b % down`: the digits of a number have one divisor."""
    nodes = list(walk(*(axis.coordinate for a in (goal.first, goal.second) for axis in a.axes)))
    rests = [n for n in nodes if n.op == "mod" and _is_of_block(n)]
    paired = {rest.args for rest in rests}  # a quotient with its own remainder beside it is no mistake
    quotients = [n for n in nodes if n.op == "floordiv" and _is_of_block(n) and n.args not in paired]
    for rest in rests:
        same = [q for q in quotients if q.args[0] is rest.args[0]]
        if same:
            first, second = render(same[0]), render(rest)
            wanted = f"{render(rest.args[0])} % {render(same[0].args[1])}"
            return f"`{first}` and `{second}` divide by different numbers: `{first}` goes with `{wanted}`"
    return None


def _is_of_block(e: Expr) -> bool:
    return any(s.kind is Kind.BLOCK for s in symbols(e.args[0]))


# ---- premises ------------------------------------------------------------------------------------------------


def sources(obligation: Obligation) -> str:
    """Where an index comes from that decides an obligation: `x` or `x` and `y`; empty if from no array."""
    goal = obligation.goal
    accesses: Iterator[Access | None] = iter(())
    if isinstance(goal, Disjoint):
        accesses = iter((goal.first, goal.second))
    elif isinstance(goal, Holds):
        accesses = iter((goal.access,))
    found = dict.fromkeys(name for a in accesses if a is not None for name in tables_in(a))
    found.update(dict.fromkeys(sorted(tables_of(obligation)) if not found else ()))
    return " and ".join(f"`{name}`" for name in found)
