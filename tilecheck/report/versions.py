"""Which tilecheck and which solver gave a verdict. The solver itself is not loaded for this."""

from __future__ import annotations

from tilecheck import __version__
from tilecheck.installed import version_of


def versions() -> dict[str, str]:
    """The `tool` object of the machine interface."""
    return {"name": "tilecheck", "version": __version__, "z3": version_of("z3-solver") or "not installed"}
