"""The host functions of a module that use streams, and the programs of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_programs.kernels import Footprints, Kernels
from tilecheck.frontend.host_programs.knowledge import Knowledge
from tilecheck.frontend.host_programs.programs import Entry, read
from tilecheck.frontend.host_programs.relevance import WORDS, Place, Relevance
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.ir.host_program import HostProgram
from tilecheck.model import Site

MODULE = "<module>"
_MOST_PARTNERS = 4  # methods of a class that are called before another


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A host function: a program for each path through it. `unread` says why there are none, or not all; a
    program that is not understood to its end says so itself. `entry` is how it is called first."""

    name: str
    site: Site
    programs: tuple[HostProgram, ...]
    unread: str = ""
    entry: Entry | None = field(default=None, repr=False, compare=False)


def read_host_programs(table: ModuleTable, footprint: Footprints) -> tuple[HostFunction, ...]:
    """The host functions of a module that use streams, events, graphs, dependent launches or asynchronous
    copies, in the order of the text. `footprint` gives what a kernel touches, or None if it is not read."""
    if WORDS.search(table.parsed.words) is None:
        return ()
    kernels = Kernels(footprint)
    relevance = Relevance(table, kernels)
    hosts, helpers = list(_hosts(table, relevance)), _helpers(relevance)
    found = [_read(table, relevance, kernels, name, entries) for name, entries in hosts]
    unread = [_around(*host[1]) for host, of in zip(hosts, found, strict=True) if _is_unread(of)]
    for place in helpers:
        if place.node not in kernels.ran and not relevance.may_be_called(place.node, unread):
            name, entries = _alone(table, relevance, place)
            found.append(_read(table, relevance, kernels, name, entries))
    return tuple(sorted(found, key=lambda host: host.site.span.start))


def entries_of(table: ModuleTable) -> list[Entry]:
    """How the host functions of a module are called first, without a look at what they do."""
    if WORDS.search(table.parsed.words) is None:
        return []
    return [entries[0] for _, entries in _hosts(table, Relevance(table, Kernels(lambda _: None)))]


def _is_unread(host: HostFunction) -> bool:
    return bool(host.unread) or any(program.unread for program in host.programs)


def _around(first: Entry, *_: Entry) -> cst.CSTNode:
    """The code that an entry may run, but for the helpers that it calls."""
    return first.made_by or first.calls[0]


def _helpers(relevance: Relevance) -> list[Place]:
    """Functions that are judged where they are called.

    They are judged alone if no call runs them: a name that is called may be that of another function.
    """
    return [
        place
        for place in relevance.places
        if relevance.is_host(place.node) and relevance.is_judged_where_called(place.node)
        if len(place.functions) <= 1
    ]


def _read(
    table: ModuleTable, relevance: Relevance, kernels: Kernels, name: str, entries: list[Entry]
) -> HostFunction:
    programs: dict[HostProgram, None] = {}
    reasons: list[str] = []
    ended = ""
    learned = Knowledge()
    for entry in entries:
        found = read(table, relevance, kernels, entry, learned)
        programs.update(dict.fromkeys(found.programs))
        reasons += [found.why] if found.why else []
        ended = ended or found.ended
        if all(program.unread for program in found.programs) and (found.programs or found.why):
            break  # other calls before or after it do not make it understood
    if not programs and not reasons and ended:
        reasons.append(f"every path through it ends in an exception: {ended}")
    return HostFunction(name, entries[0].site, tuple(programs), reasons[0] if reasons else "", entries[0])


def _hosts(table: ModuleTable, relevance: Relevance) -> Iterator[tuple[str, list[Entry]]]:
    if relevance.module_body():
        module = table.parsed.module
        yield MODULE, [Entry(MODULE, table.site(module), (module,))]
    for place in relevance.places:
        node = place.node
        if not relevance.is_host(node) or relevance.is_judged_where_called(node):
            continue
        if len(place.functions) <= 1:
            yield _alone(table, relevance, place)


def _alone(table: ModuleTable, relevance: Relevance, place: Place) -> tuple[str, list[Entry]]:
    """What calls a function from outside. One inside another is handed out, and called later."""
    node = place.node
    if place.functions:
        return _inside(table, place)
    if place.made_by is not None:
        return _method(table, relevance, place)
    return node.name.value, [Entry(node.name.value, table.site(node.name), (node,))]


def _inside(table: ModuleTable, place: Place) -> tuple[str, list[Entry]]:
    """A function that another one defines and hands out: it is called twice after that has returned."""
    outer, node = place.functions[0], place.node
    name = f"{outer.name.value}.{node.name.value}"
    return name, [Entry(name, table.site(node.name), (outer, node, node), None, node)]


def _method(table: ModuleTable, relevance: Relevance, place: Place) -> tuple[str, list[Entry]]:
    """A method: called twice after `__init__`, and so after each other method that uses streams."""
    node, made_by = place.node, place.made_by
    assert made_by is not None
    name = f"{made_by.name.value}.{node.name.value}"
    site = table.site(node.name)
    if node.name.value == "__init__":
        return name, [Entry(name, site, (), made_by)]
    others = [
        other.node
        for other in relevance.places
        if other.made_by is made_by and other.node is not node and _is_public(other.node)
        if relevance.is_host(other.node)
    ]
    sequences = [(node, node), *((other, node, node) for other in others[:_MOST_PARTNERS])]
    plain = _users(relevance, place)
    changing = [user for user in plain if relevance.changed(user)]
    known = len(sequences)
    sequences += [(node, user) for user in plain]
    sequences += [(node, user, last) for user in changing for last in plain if last is not user]
    sequences += [(other, user, node) for user in changing for other in (node, *others[:_MOST_PARTNERS])]
    read = {node, *others[:_MOST_PARTNERS]}
    all_changed, changed = (
        frozenset(name for method in _methods(made_by, of) for name in relevance.changed(method))
        for of in (read, {*read, *plain})
    )
    return name, [
        Entry(name, site, calls, made_by, None, all_changed if at < known else changed, int(0 < at < known))
        for at, calls in enumerate(sequences)
    ]


def _users(relevance: Relevance, place: Place) -> list[cst.FunctionDef]:
    """The methods without streams that touch what a method touches: they may run while its work does."""
    plain = [
        other.node
        for other in relevance.places
        if other.made_by is place.made_by and _is_public(other.node) and not relevance.is_host(other.node)
    ]
    touched = relevance.attributes_of(place.node)
    for other in plain:  # what it touches may lie under another attribute then
        if relevance.changed(other) & touched:
            touched |= relevance.attributes_of(other)
    found = [other for other in plain if relevance.attributes_of(other) & touched]
    return found[:_MOST_PARTNERS]


def _methods(made_by: cst.ClassDef, read: set[cst.FunctionDef]) -> Iterator[cst.FunctionDef]:
    """The methods that may be called between those that are read; private ones are called by others."""
    for line in made_by.body.body:
        if isinstance(line, cst.FunctionDef) and line not in read and line.name.value != "__init__":
            private = line.name.value.startswith("_") and not line.name.value.endswith("__")
            if not private:
                yield line


def _is_public(node: cst.FunctionDef) -> bool:
    return not node.name.value.startswith("_") or node.name.value == "__call__"
