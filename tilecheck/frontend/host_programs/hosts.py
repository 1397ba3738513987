"""The host functions of a module that use streams, and the programs of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from tilecheck.frontend.host_programs.kernels import Footprints, Kernels
from tilecheck.frontend.host_programs.programs import Entry, read
from tilecheck.frontend.host_programs.relevance import WORDS, Place, Relevance
from tilecheck.frontend.modules import ModuleTable
from tilecheck.ir.host_program import HostProgram
from tilecheck.model import Site

MODULE = "<module>"
_MOST_PARTNERS = 4  # methods of a class that are called before another


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A host function: a program for each path through it. `unread` says why there are none, or not all; a
    program that is not understood to its end says so itself."""

    name: str
    site: Site
    programs: tuple[HostProgram, ...]
    unread: str = ""


def read_host_programs(table: ModuleTable, footprint: Footprints) -> tuple[HostFunction, ...]:
    """The host functions of a module that use streams, events, graphs, dependent launches or asynchronous
    copies, in the order of the text. `footprint` gives what a kernel touches, or None if it is not read."""
    if WORDS.search(table.parsed.words) is None:
        return ()
    kernels = Kernels(footprint)
    relevance = Relevance(table, kernels)
    found = [_read(table, relevance, kernels, name, entries) for name, entries in _hosts(table, relevance)]
    return tuple(sorted(found, key=lambda host: host.site.span.start))


def _read(
    table: ModuleTable, relevance: Relevance, kernels: Kernels, name: str, entries: list[Entry]
) -> HostFunction:
    programs: dict[HostProgram, None] = {}
    reasons: list[str] = []
    ended = ""
    for entry in entries:
        found = read(table, relevance, kernels, entry)
        programs.update(dict.fromkeys(found.programs))
        reasons += [found.why] if found.why else []
        ended = ended or found.ended
    if not programs and not reasons and ended:
        reasons.append(f"every path through it ends in an exception: {ended}")
    return HostFunction(name, entries[0].site, tuple(programs), reasons[0] if reasons else "")


def _hosts(table: ModuleTable, relevance: Relevance) -> Iterator[tuple[str, list[Entry]]]:
    if relevance.module_body():
        module = table.parsed.module
        yield MODULE, [Entry(MODULE, table.site(module), (module,))]
    for place in relevance.places:
        node = place.node
        if not relevance.is_host(node) or relevance.is_judged_where_called(node):
            continue
        if place.functions:
            if not _is_within_relevant(relevance, place):
                continue
            yield _inside(table, place)
        elif place.made_by is not None:
            yield _method(table, relevance, place)
        else:
            yield node.name.value, [Entry(node.name.value, table.site(node.name), (node,))]


def _is_within_relevant(relevance: Relevance, place: Place) -> bool:
    """A function inside another that nobody calls by name: it is handed out, and called later."""
    return len(place.functions) == 1


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
    read = {node, *others[:_MOST_PARTNERS]}
    unsettled = frozenset(name for method in _methods(made_by, read) for name in relevance.changed(method))
    return name, [Entry(name, site, calls, made_by, None, unsettled) for calls in sequences]


def _methods(made_by: cst.ClassDef, read: set[cst.FunctionDef]) -> Iterator[cst.FunctionDef]:
    """The methods that may be called between those that are read; private ones are called by others."""
    for line in made_by.body.body:
        if isinstance(line, cst.FunctionDef) and line not in read and line.name.value != "__init__":
            private = line.name.value.startswith("_") and not line.name.value.endswith("__")
            if not private:
                yield line


def _is_public(node: cst.FunctionDef) -> bool:
    return not node.name.value.startswith("_") or node.name.value == "__call__"
