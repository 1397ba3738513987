"""The functions that a program runs as far as they are read, and what its objects and containers hold."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_guards.kinds import NOTHING, Box, Class, Kernel, Kind
from tilecheck.frontend.host_guards.scopes import Names

if TYPE_CHECKING:
    from tilecheck.frontend.modules.project import ModuleTable
    from tilecheck.model import Site

Text = cst.FunctionDef | cst.Lambda | cst.Module


@dataclass(frozen=True, slots=True)
class Read:
    """A value that is read: what a graph keeps of it is stale when it changes.

    `what` is the name of an attribute, a variable with the function that holds it, a container, or None for an
    array of the host. `within` is the capture of the same function in which it is read, and `owners` are the
    classes of the object whose attribute it is.
    """

    what: str | tuple[Frame, str] | Box | None
    site: Site
    within: cst.With | None
    owners: frozenset[Class] = frozenset()


@dataclass(slots=True)
class Facts:
    """What one reading of a function found. Mutable: filled while it is read."""

    refused: list[tuple[Site, str]] = field(default_factory=list)
    raw: list[tuple[Site, str, bool]] = field(default_factory=list)  # work beside the library; if in a capture
    calls: dict[Frame, bool] = field(default_factory=dict)  # functions; whether one is called in a capture
    enqueued: dict[Frame, None] = field(default_factory=dict)  # functions that the library calls
    reads: dict[Read, None] = field(default_factory=dict)
    changes: list[tuple[Box | None, cst.CSTNode]] = field(default_factory=list)  # of containers, and of arrays
    kept: list[cst.CSTNode] = field(default_factory=list)  # where a handle is put into a container
    launches: list[cst.CSTNode] = field(default_factory=list)  # of graphs
    call_sites: list[tuple[Frame, cst.CSTNode]] = field(default_factory=list)
    lazy: list[Site] = field(default_factory=list)  # generators, whose code runs where they are gone through
    early: list[tuple[Site, bool]] = field(default_factory=list)  # operations made elsewhere; if in a capture
    captured: list[cst.CSTNode] = field(
        default_factory=list
    )  # where operations are captured, whatever made them
    kernels: list[tuple[Kernel, Site]] = field(default_factory=list)  # that the library launches, and where
    passed: list[tuple[Kernel, Site]] = field(default_factory=list)  # that functions of the project are given
    uses_library: bool = False
    has_capture: bool = False


@dataclass(slots=True, eq=False)
class Frame:
    """One function, read once for all of its calls. Mutable: kinds grow until they settle."""

    node: Text
    table: ModuleTable
    names: Names
    outer: Frame | None = None
    variables: dict[str, Kind] = field(default_factory=dict)
    returns: Kind = NOTHING
    yields: Kind = NOTHING
    facts: Facts = field(default_factory=Facts)

    def holder(self, name: str) -> Frame | None:
        """The function whose variable a name is, as this one sees it; None for a name of the module."""
        if name in self.names.globals:
            return None
        if name in self.names.bound and name not in self.names.nonlocals:
            return self
        return None if self.outer is None else self.outer.holder(name)
