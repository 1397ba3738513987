"""Ownership and race checks for GPU tile kernels written in Python.

The names below are the public interface. Importing this package loads no analysis: the functions load it
when they are called, so a kernel may import `unsafe`, `Mut` and `Shared` at no cost.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tilecheck.example import Example
    from tilecheck.model import Report, Verdict
    from tilecheck.options import Options

__version__ = "0.1.0"
__all__ = [
    "Example",
    "Mut",
    "Report",
    "Shared",
    "Verdict",
    "__version__",
    "check_source",
    "unsafe",
    "verify_paths",
]

Mut = Annotated[Any, "tilecheck: mut"]
"""Annotation of a kernel parameter: an array that this kernel writes."""

Shared = Annotated[Any, "tilecheck: shared"]
"""Annotation of a kernel parameter: an array that this kernel only reads."""


@contextlib.contextmanager
def unsafe(reason: str) -> Iterator[None]:
    """Mark accesses that the author answers for. Compiles to nothing; usable inside cuTile kernels."""
    yield


def verify_paths(paths: Sequence[str], options: Options | None = None) -> Report:
    """Verify every kernel in files and directories, without importing or running any of them."""
    from tilecheck import pipeline  # lazy: loads the analysis
    from tilecheck.options import Options  # lazy

    return pipeline.verify_paths(paths, options or Options())


def check_source(text: str, path: str = "<source>", options: Options | None = None) -> Report:
    """Verify the kernels of one file that is given as text; `path` names it in the report."""
    from tilecheck import pipeline  # lazy: loads the analysis
    from tilecheck.options import Options  # lazy

    return pipeline.verify_source(text.encode(), path, options or Options())


def __getattr__(name: str) -> Any:
    if name == "Example":
        from tilecheck.example import Example  # lazy: so that `--version` imports next to nothing

        return Example
    if name in ("Report", "Verdict"):
        from tilecheck import model  # lazy

        return getattr(model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
