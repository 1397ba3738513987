"""One reading of a function's text, statement by statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_guards.frames import Frame, Read
from tilecheck.frontend.host_guards.kinds import (
    NOTHING,
    UNKNOWN,
    Box,
    Code,
    Kind,
    Made,
    Pending,
    Sort,
    is_handle,
    is_raw,
)

if TYPE_CHECKING:
    from tilecheck.frontend.host_guards.program import Program
    from tilecheck.frontend.modules.project import ModuleTable


@dataclass(slots=True)
class Run:
    """One reading of a function. Mutable: `within` is the capture that the statement lies in.

    `call`, `bind` and `get` are what the modules above this one do: the kind of a call, a value for a target, a
    call of a function of the project without arguments.
    """

    p: Program
    frame: Frame
    call: Callable[[Run, cst.Call], Kind]
    bind: Callable[[Run, cst.CSTNode, Kind], None]
    get: Callable[[Run, cst.CSTNode, Code], Kind]
    within: cst.With | None = None
    is_quiet: bool = False  # what is read is no more than changed

    @property
    def table(self) -> ModuleTable:
        return self.frame.table

    def box(self, node: cst.CSTNode, part: str = "") -> Box:
        """The container that a place makes."""
        return Box(node, self.frame, part)

    def boxed(self, node: cst.CSTNode, kind: Kind, part: str = "") -> Kind:
        """A container of values of a kind."""
        return self.p.fill(self.box(node, part), kind)

    def pending(self, node: cst.CSTNode, result: Kind) -> Kind:
        """An operation that gives a value of a kind."""
        return self.p.give(Pending(node, self.frame), result)

    def refuse(self, node: cst.CSTNode, why: str) -> Kind:
        """Note something that the library does not check; the kind of what it gives."""
        self.frame.facts.refused.append((self.table.site(node), f"{why}: `{self.table.text(node)}`"))
        return UNKNOWN

    def raw(self, node: cst.CSTNode) -> None:
        """Note work of code beside the library, on the current stream."""
        self.frame.facts.raw.append((self.table.site(node), self.table.text(node), self.within is not None))

    def note_read(
        self,
        node: cst.CSTNode,
        what: str | tuple[Frame, str] | None,
        kind: Kind,
        *,
        of: Kind = NOTHING,
        within: Kind = NOTHING,
    ) -> None:
        """Note that a variable is read, an attribute of an object (`of`) or an item of containers (`within`).

        A graph may keep the value, if it is a number or an array.
        """
        if self.is_quiet:
            return
        inside = self.p.inside(kind)
        if any(atom in (Sort.PLAIN, Sort.UNKNOWN) or is_raw(atom) or is_handle(atom) for atom in inside):
            kept: list[str | tuple[Frame, str] | Box | None] = [] if what is None else [what]
            kept += [atom for atom in inside | within if isinstance(atom, Box)]
            kept += [None] if Sort.ARRAY in inside else []
            owners = frozenset(atom.of for atom in of if isinstance(atom, Made))
            reads = (Read(one, self.table.site(node), self.within, owners) for one in kept)
            self.frame.facts.reads.update(dict.fromkeys(reads))
