"""The launches of the kernels of a file: those in the file itself, and in the files that import from it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError
from tilecheck.frontend.launches.prefilter import may_launch
from tilecheck.model import Site, Span
from tilecheck.text import decode
from tilecheck.uses.confirm import is_of_module

if TYPE_CHECKING:
    from tilecheck.frontend.kernels.definitions import Definition
    from tilecheck.frontend.modules.project import ModuleTable
    from tilecheck.ir.launch import Launch
    from tilecheck.uses.values import Use
    from tilecheck.verify.discover import Candidate


@dataclass(frozen=True, slots=True)
class LaunchesOf:
    """The launches in one file. `by_file` has them by the file of the kernel, whatever the path by which an
    import found it."""

    every: tuple[Launch, ...]
    by_file: Mapping[Path, tuple[Launch, ...]]


def launches_around(
    table: ModuleTable,
    importers: Sequence[Candidate],
    read: dict[str, LaunchesOf] | None = None,
    uses: Sequence[Use] = (),
) -> tuple[Launch, ...]:
    """The launches in a module, and those of its kernels in the files that may launch them.

    Args:
        table: the module.
        importers: the files that may launch its kernels.
        read: the launches of the files that were read before, by path; those that are read now are added.
        uses: the places in the module at which kernels may be launched by more than a name.
    """
    read = {} if read is None else read
    if table.file not in read:
        read[table.file] = _launches_in(table, uses)
    launches = read[table.file].every
    own = Path(table.file).resolve()
    for importer in importers:
        with contextlib.suppress(SourceError):  # reported as TC901 where the file itself is verified
            if importer.path not in read:
                other = table.project.read(decode(importer.path, importer.data))
                read[importer.path] = _launches_in(other, importer.uses)
            found = read[importer.path].by_file.get(own, ())
            launches += tuple(replace(launch, kernel_file=table.file) for launch in found)
    met = {(la.kernel, la.site.file, la.site.span) for la in launches}
    own_file = (table.file, table.parsed.source.data, uses)
    for file, data, places in (own_file, *((i.path, i.data, i.uses) for i in importers)):
        for use in places:
            if not use.why or use.kernel.file != table.file or _is_met(file, use, met):
                continue
            if not use.by_text or is_of_module(data, use.span):
                launches += (_unread(table, file, use),)
    return launches


def _is_met(file: str, use: Use, met: set[tuple[str, str, Span]]) -> bool:
    """Whether a launch of the kernel is read at a place, or around it."""
    return any(
        kernel == use.kernel.name and at == file and span.start < use.span.end and use.span.start < span.end
        for kernel, at, span in met
    )


def _unread(table: ModuleTable, file: str, use: Use) -> Launch:
    from tilecheck.ir.launch import Launch  # lazy, as above

    return Launch(use.kernel.name, table.file, "", Site(file, use.span), None, (), (), use.why)


def _launches_in(table: ModuleTable, uses: Sequence[Use]) -> LaunchesOf:
    if not uses and not may_launch(table.parsed.words):
        return LaunchesOf((), {})
    from tilecheck.frontend.launches.discovery import (  # lazy: few small files launch their kernels
        find_launches,
    )

    every = find_launches(table, frozenset(use.span for use in uses))
    files = {launch.kernel_file: Path(launch.kernel_file).resolve() for launch in every if launch.kernel}
    found: dict[Path, list[Launch]] = {}
    for launch in every:
        if launch.kernel:
            found.setdefault(files[launch.kernel_file], []).append(launch)
    return LaunchesOf(every, {file: tuple(launches) for file, launches in found.items()})


def launches_of(definition: Definition, launches: Sequence[Launch]) -> tuple[Launch, ...]:
    """Those of `launches` that launch one kernel."""
    return tuple(
        la for la in launches if la.kernel == definition.name and la.kernel_file == definition.table.file
    )
