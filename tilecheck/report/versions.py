"""Which tilecheck and which solver gave a verdict. The solver itself is not loaded for this."""

from __future__ import annotations

from functools import cache

from tilecheck import __version__


@cache
def _solver_version() -> str:
    from importlib import metadata  # lazy: slower to import than all of `--version`

    try:
        return metadata.version("z3-solver")
    except metadata.PackageNotFoundError:
        return "not installed"


def versions() -> dict[str, str]:
    """The `tool` object of the machine interface."""
    return {"name": "tilecheck", "version": __version__, "z3": _solver_version()}
