"""The kernels that come with tilecheck, which programs import from `tilecheck.kernels`."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

PREFIX = "tilecheck.kernels."


@cache
def _root() -> Path | None:
    """Where they lie: the package is found, and not imported."""
    spec = importlib.util.find_spec(PREFIX.rstrip("."))
    places = None if spec is None else spec.submodule_search_locations
    return Path(next(iter(places))) if places else None


def shipped_kernel(name: str) -> tuple[str, str] | None:
    """The kernel of a full name, or what else its module has under it, and its file; None without a module."""
    root = _root() if name.startswith(PREFIX) else None
    *modules, member = name.removeprefix(PREFIX).split(".")
    if root is None or not modules:
        return None
    file = root.joinpath(*modules).with_suffix(".py")
    return (member, file.as_posix()) if file.is_file() else None
