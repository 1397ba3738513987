"""The kernels that host code launches, each read once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.kernels.definitions import Definition, Given, find_kernels
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.ir.launch_footprint import KernelFootprint

Footprints = Callable[[Definition], KernelFootprint | None]
Constants = tuple[tuple[str, int | bool], ...]
MOST_COMBINATIONS = 4  # of compile-time parameters for which a kernel is read as it is launched
_MOST_READINGS = 12  # of one kernel


@dataclass(slots=True, eq=False)
class Kernels:
    """Which functions are kernels, and what each touches with which compile-time parameters. Mutable cache."""

    of: Footprints
    found: dict[str, dict[object, Definition]] = field(default_factory=dict)  # by file
    odd: dict[cst.CSTNode, bool] = field(default_factory=dict)  # functions: see `functions`, also for the next
    yields: dict[cst.CSTNode, bool] = field(default_factory=dict)
    parameters: dict[cst.Param, str] = field(default_factory=dict)  # what their annotations say
    texts: dict[object, object] = field(default_factory=dict)  # see `texts.once`
    own: dict[tuple[str, str], bool] = field(default_factory=dict)  # modules, by the file that imports them
    ran: set[object] = field(default_factory=set)  # functions that were read where they are called
    steps: int = 0  # nodes that were evaluated for the file
    alike: dict[cst.CSTNode, frozenset[tuple[str, int | bool]]] = field(default_factory=dict)
    footprints: dict[cst.CSTNode, dict[Constants, KernelFootprint | None]] = field(default_factory=dict)

    def in_module(self, table: ModuleTable) -> dict[object, Definition]:
        """The kernels of a module, by their functions."""
        if table.file not in self.found:
            words = table.parsed.words
            is_language = "triton" in words or "cuda.tile" in words
            self.found[table.file] = {d.node: d for d in find_kernels(table)} if is_language else {}
        return self.found[table.file]

    def footprint(self, definition: Definition, constants: Constants) -> KernelFootprint | None:
        """What a launch with these compile-time parameters touches; None if the kernel is not read.

        A kernel is read for the first few combinations of them. For all others it is read for all values of the
        parameters, but for those on which it depends whether it waits; if it is not read like that, with those
        that were the same at every launch so far.
        """
        known = self.footprints.setdefault(definition.node, {})
        if constants in known:
            return known[constants]
        alike = frozenset(constants) & self.alike.get(definition.node, frozenset(constants))
        self.alike[definition.node] = alike
        if len(known) >= MOST_COMBINATIONS:
            general = self._read(definition, ())
            kept = alike if general is None else frozenset()
            general = general or self._read(definition, tuple(c for c in constants if c in kept))
            decided_by = () if general is None else general.decided_by
            constants = tuple(c for c in constants if c in kept or c[0] in decided_by)
        return self._read(definition, constants)

    def _read(self, definition: Definition, constants: Constants) -> KernelFootprint | None:
        known = self.footprints[definition.node]
        if constants not in known and len(known) >= _MOST_READINGS:
            return None
        if constants not in known:
            given = definition.given
            if constants:
                site = definition.table.site(definition.node.name)
                given = (*given, Given((), constants, None, site, named=False))
            known[constants] = self.of(replace(definition, given=given))
        return known[constants]
