"""Whether the configuration is as it was at a revision of git."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tilecheck.config.files import FILE, read_toml
from tilecheck.history.git import Revision


def has_changed(then: Revision, folders: Iterable[Path], used: Iterable[Path]) -> bool:
    """Whether something that tilecheck reads in a configuration file is not as it was.

    Args:
        then: the revision.
        folders: where files lie that are looked at, or were.
        used: the configuration files that count now.
    """
    around: set[Path] = set()
    for folder in folders:
        around.update(above for above in (folder, *folder.parents) if above.is_relative_to(then.root))
    files = {folder / FILE for folder in around} | {Path(file).resolve() for file in used}
    # One from elsewhere, above the repository or named by a flag, cannot be compared.
    return not all(file.is_relative_to(then.root) and _is_same(file, then) for file in files)


def _is_same(file: Path, then: Revision) -> bool:
    path = file.relative_to(then.root).as_posix()
    try:
        now = file.read_bytes()
    except OSError:
        now = None
    before = then.data(path)
    if before is None and path in then.files:  # it cannot be had
        return False
    return now == before or (file.name == FILE and _said(now) == _said(before))


def _said(data: bytes | None) -> Any:
    """What a `pyproject.toml` says to tilecheck; its bytes if it is no TOML."""
    if data is None:
        return None
    try:
        table = read_toml(data.decode())
    except ValueError:
        return data
    tool = table.get("tool")
    return tool.get("tilecheck") if isinstance(tool, dict) else None
