"""The packages of a run by their names, wherever a script that imports them lies.

A folder of a project is on Python's path once the project is installed, so what it calls its packages counts as
well: where they lie, and what a `pyproject.toml` says of folders that are installed under other names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from tilecheck.config.files import FILE, read_toml
from tilecheck.overlay import is_file, read

_INIT = "__init__.py"


def packages_of(files: Iterable[str]) -> dict[str, str]:
    """The folders of packages by their dotted names; not those of which several have one name."""
    folders = dict.fromkeys(PurePath(file).parent for file in files)
    found: dict[str, set[str]] = {}
    for top in dict.fromkeys(_top(folder) for folder in folders if is_file(f"{folder}/{_INIT}")):
        found.setdefault(PurePath(os.path.abspath(top)).name, set()).add(top.as_posix())  # noqa: PTH100
    whole = [Path(os.path.abspath(folder)) for folder in folders]  # noqa: PTH100 - links count by their own names
    inside = {above for folder in whole for above in (folder, *folder.parents)}
    for config in _configs(whole):
        for name, place in _mapped(config):
            folder = PurePath(config).parent / place
            if Path(os.path.abspath(folder)) in inside:  # noqa: PTH100 - not of a project around an environment
                found.setdefault(name, set()).add(folder.as_posix())
    return {name: next(iter(places)) for name, places in sorted(found.items()) if len(places) == 1}


def _top(folder: PurePath) -> PurePath:
    """The outermost package around a package."""
    while is_file(f"{folder.parent}/{_INIT}") and folder != folder.parent:
        folder = folder.parent
    return folder


def _configs(folders: Iterable[Path]) -> Iterator[str]:
    """The nearest `pyproject.toml` above each folder, each once."""
    seen: set[Path] = set()
    for folder in folders:
        for above in (folder, *folder.parents):
            if above in seen:
                break
            seen.add(above)
            if is_file(above / FILE):
                yield os.path.relpath(above / FILE)
                break


def _mapped(config: str) -> Iterator[tuple[str, str]]:
    """The names under which the build tools install folders."""
    try:
        tool: Any = read_toml(read(config).decode()).get("tool", {})
        tables: list[Mapping[str, str]] = [tool.get("setuptools", {}).get("package-dir", {})]
        wheel = tool.get("hatch", {}).get("build", {}).get("targets", {}).get("wheel", {})
        turned = [wheel.get("force-include", {}), wheel.get("sources", {})]
        tables += [{new: old for old, new in t.items()} for t in turned if isinstance(t, Mapping)]
        pairs = [(str(name).replace("/", "."), str(place)) for table in tables for name, place in table.items()]
    except (OSError, ValueError, AttributeError):
        return  # what is wrong with it is said where its settings are read
    yield from ((name, place) for name, place in pairs if name.strip("."))
