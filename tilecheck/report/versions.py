"""Which tilecheck and which solver gave a verdict. The solver itself is not loaded for this."""

from __future__ import annotations

from tilecheck import __version__


def versions() -> dict[str, str]:
    """The `tool` object of the machine interface."""
    from importlib import metadata  # lazy: slower to import than all of `--version`

    try:
        solver = metadata.version("z3-solver")
    except metadata.PackageNotFoundError:
        solver = "not installed"
    return {"name": "tilecheck", "version": __version__, "z3": solver}
