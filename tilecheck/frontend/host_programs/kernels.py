"""The kernels that host code launches, each read once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import libcst as cst

from tilecheck.frontend.definitions import Definition, Given, find_kernels
from tilecheck.frontend.modules import ModuleTable
from tilecheck.ir.launch_footprint import KernelFootprint

Footprints = Callable[[Definition], KernelFootprint | None]
Constants = tuple[tuple[str, int | bool], ...]


@dataclass(slots=True, eq=False)
class Kernels:
    """Which functions are kernels, and what each touches with which compile-time parameters. Mutable cache."""

    of: Footprints
    found: dict[str, dict[object, Definition]] = field(default_factory=dict)  # by file
    odd: dict[cst.CSTNode, bool] = field(default_factory=dict)  # functions: see `functions`
    parameters: dict[cst.Param, str] = field(default_factory=dict)  # what their annotations say
    texts: dict[object, object] = field(default_factory=dict)  # see `texts.once`
    own: dict[tuple[str, str], bool] = field(default_factory=dict)  # modules, by the file that imports them
    ran: set[object] = field(default_factory=set)  # functions that were read where they are called
    steps: int = 0  # nodes that were evaluated for the file
    footprints: dict[tuple[cst.CSTNode, Constants], KernelFootprint | None] = field(default_factory=dict)

    def in_module(self, table: ModuleTable) -> dict[object, Definition]:
        """The kernels of a module, by their functions."""
        if table.file not in self.found:
            words = table.parsed.words
            is_language = "triton" in words or "cuda.tile" in words
            self.found[table.file] = {d.node: d for d in find_kernels(table)} if is_language else {}
        return self.found[table.file]

    def footprint(self, definition: Definition, constants: Constants) -> KernelFootprint | None:
        """What a launch with these compile-time parameters touches; None if the kernel is not read."""
        key = (definition.node, constants)
        if key not in self.footprints:
            if constants:
                site = definition.table.site(definition.node.name)
                own = Given((), constants, None, site, named=False)
                definition = replace(definition, given=(*definition.given, own))
            self.footprints[key] = self.of(definition)
        return self.footprints[key]
