"""The launches of the kernels of a file: those in the file itself, and in the files that import from it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError
from tilecheck.frontend.launch_words import may_launch
from tilecheck.text import decode

if TYPE_CHECKING:
    from tilecheck.discover import Candidate
    from tilecheck.frontend.definitions import Definition
    from tilecheck.frontend.modules import ModuleTable
    from tilecheck.ir.launch import Launch


@dataclass(frozen=True, slots=True)
class LaunchesOf:
    """The launches in one file. `by_file` has them by the file of the kernel, whatever the path by which an
    import found it."""

    every: tuple[Launch, ...]
    by_file: Mapping[Path, tuple[Launch, ...]]


def launches_around(
    table: ModuleTable, importers: Sequence[Candidate], read: dict[str, LaunchesOf] | None = None
) -> tuple[Launch, ...]:
    """The launches in a module, and those of its kernels in the files that import from it.

    Args:
        table: the module.
        importers: the files that may launch its kernels.
        read: the launches of the files that were read before, by path; those that are read now are added.
    """
    read = {} if read is None else read
    if table.file not in read:
        read[table.file] = _launches_in(table)
    launches = read[table.file].every
    own = Path(table.file).resolve()
    for importer in importers:
        with contextlib.suppress(SourceError):  # reported as TC901 where the file itself is verified
            if importer.path not in read:
                other = table.project.read(decode(importer.path, importer.data))
                read[importer.path] = _launches_in(other)
            found = read[importer.path].by_file.get(own, ())
            launches += tuple(replace(launch, kernel_file=table.file) for launch in found)
    return launches


def _launches_in(table: ModuleTable) -> LaunchesOf:
    if not may_launch(table.parsed.words):
        return LaunchesOf((), {})
    from tilecheck.frontend.launches import find_launches  # lazy: few small files launch their kernels

    every = find_launches(table)
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
