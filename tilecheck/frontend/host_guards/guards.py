"""The host functions of a module, and what of each the library checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_guards.calls.dispatch import enter, enter_all
from tilecheck.frontend.host_guards.captures import behind, unseen
from tilecheck.frontend.host_guards.frames import Frame
from tilecheck.frontend.host_guards.kinds import Class, Code, Kernel
from tilecheck.frontend.host_guards.program import Program, TooMuch
from tilecheck.frontend.host_guards.read.statements import expression, read
from tilecheck.frontend.host_guards.source_facts import Texts
from tilecheck.frontend.host_programs.kernels import Kernels
from tilecheck.model import Site

if TYPE_CHECKING:
    from tilecheck.frontend.host_programs.hosts import HostFunction
    from tilecheck.frontend.host_programs.programs import Entry
    from tilecheck.frontend.modules.project import ModuleTable


@dataclass(frozen=True, slots=True)
class Guarding:
    """Whether a function uses the library, and why not all that it does is checked there, if so.

    `launched` are the kernels of the project that it launches through the library, each with the place that
    names it.
    """

    uses_library: bool
    why: tuple[Site, str] | None = None
    launched: tuple[tuple[Kernel, Site], ...] = ()

    @property
    def is_guarded(self) -> bool:
        return self.uses_library and self.why is None


class Guards:
    """The host functions of a module, asked one by one.

    Args:
        table: the module.
        ordered: functions that are known to leave nothing in flight beside the caller's stream.
    """

    def __init__(self, table: ModuleTable, ordered: Sequence[HostFunction]) -> None:
        self._table = table
        self._kernels, self._texts = Kernels(lambda _: None), Texts()
        entries = (function.entry for function in ordered)
        self._ordered = frozenset(e.calls[0] for e in entries if e is not None and len(e.calls) == 1)

    def of(self, entry: Entry | None) -> Guarding:
        """Whether the library checks all that a function leaves in flight."""
        if entry is None:
            return Guarding(uses_library=False)
        table = self._table
        p = Program(self._kernels, self._texts, self._ordered, read, expression, enter_all)
        p.note(table)
        try:
            roots = _roots(p, table, entry)
            p.settle()
        except TooMuch:
            return Guarding(True, (entry.site, "it runs too much code to follow"))
        except RecursionError:
            return Guarding(True, (entry.site, "it is nested too deeply to follow"))
        reached = behind(roots)
        live = [frame for frame in p.frames.values() if frame in reached]
        uses = any(frame.facts.uses_library for frame in live)
        found = [why for frame in live for why in frame.facts.refused] or list(unseen(p, live))
        found.sort(key=lambda why: (why[0].file != table.file, why[0].file, why[0].span.start, why[1]))
        return Guarding(uses, found[0] if found else None, () if found else _launched(live, table))


def _launched(live: Sequence[Frame], table: ModuleTable) -> tuple[tuple[Kernel, Site], ...]:
    """The kernels that the library launches, at the calls of the file that are given them, if any are."""
    launched = {kernel for frame in live for kernel, _ in frame.facts.kernels}
    found: dict[tuple[Kernel, Site], None] = {}
    for frames in ([f for f in live if f.table is table], live):
        for places in ("passed", "kernels"):
            missing = launched - {kernel for kernel, _ in found}
            named = (one for frame in frames for one in getattr(frame.facts, places))
            found.update(dict.fromkeys(one for one in named if one[0] in missing))
    return tuple(found)


def _roots(p: Program, table: ModuleTable, entry: Entry) -> list[Frame]:
    """The functions that the entry runs."""
    node = entry.calls[-1] if entry.calls else None
    if isinstance(node, cst.Module):
        frame = p.frame(node, table)
        p.whole.add(frame)
        return [frame]
    if entry.made_by is not None:
        of = Class(entry.made_by, table)
        p.open([of])
        enter_all(p, of)
        return [p.frame(_method(entry), table, is_entered=True)]
    assert isinstance(node, cst.FunctionDef)
    outer = entry.calls[0]
    if entry.inner is None or not isinstance(outer, cst.FunctionDef):
        return [enter(p, Code(node, table))]
    around = enter(p, Code(outer, table))
    return [around, enter(p, Code(node, table, around))]


def _method(entry: Entry) -> cst.FunctionDef:
    """The method that an entry calls; that which makes the object, if none."""
    assert entry.made_by is not None
    if entry.calls and isinstance(entry.calls[0], cst.FunctionDef):
        return entry.calls[0]
    (made, *_) = [
        line
        for line in entry.made_by.body.body
        if isinstance(line, cst.FunctionDef) and line.name.value == "__init__"
    ]
    return made
