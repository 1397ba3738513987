"""Ownership and race checks for GPU tile kernels written in Python.

The names below are the public interface. Importing this package loads no analysis: the functions load it
when they are called, so a kernel may import `unsafe`, `Mut` and `Shared` at no cost.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tilecheck.errors import LaunchRefused
    from tilecheck.example import Example
    from tilecheck.jit.cubin import CompiledKernel, load_kernels
    from tilecheck.jit.launch import launch
    from tilecheck.jit.verdicts import use_verdicts
    from tilecheck.jit.verified import verified
    from tilecheck.model import Report, Verdict
    from tilecheck.options import Options

__version__ = "0.1.0"
__all__ = [
    "CompiledKernel",
    "Example",
    "LaunchRefused",
    "Mut",
    "Report",
    "Shared",
    "Verdict",
    "__version__",
    "check_source",
    "launch",
    "load_kernels",
    "unsafe",
    "use_verdicts",
    "verified",
    "verify_paths",
]

# In a checkout, `rules` and `kernels` lie beside this folder; installed, they lie inside it. `os.path` is used
# because `pathlib` takes longer to import than all of this package.
_folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
_checkout = os.path.dirname(_folder)  # noqa: PTH120
_is_checkout = os.path.isfile(os.path.join(_checkout, "rules", "__init__.py"))  # noqa: PTH113, PTH118
if _is_checkout and not os.path.isdir(os.path.join(_folder, "rules")):  # noqa: PTH112, PTH118
    __path__.append(_checkout)

Mut = Annotated[Any, "tilecheck: mut"]
"""Annotation of a kernel parameter: an array that this kernel writes."""

Shared = Annotated[Any, "tilecheck: shared"]
"""Annotation of a kernel parameter: an array that this kernel only reads."""


@contextlib.contextmanager
def unsafe(reason: str) -> Iterator[None]:
    """Mark accesses that the author answers for. Compiles to nothing; usable inside cuTile kernels."""
    yield


def verify_paths(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], options: Options | None = None
) -> Report:
    """Verify every kernel in a file or directory, or in several, without importing or running any of them."""
    from tilecheck.options import Options  # lazy
    from tilecheck.verify import pipeline  # lazy: loads the analysis

    return pipeline.verify_paths(paths, options or Options())


def check_source(text: str, path: str = "<source>", options: Options | None = None) -> Report:
    """Verify the kernels of one file that is given as text; `path` names it in the report."""
    from tilecheck.options import Options  # lazy
    from tilecheck.verify import pipeline  # lazy: loads the analysis

    return pipeline.verify_source(text.encode(), path, options or Options())


_LAZY = {
    "CompiledKernel": "tilecheck.jit.cubin",
    "Example": "tilecheck.example",
    "LaunchRefused": "tilecheck.errors",
    "Report": "tilecheck.model",
    "Verdict": "tilecheck.model",
    "launch": "tilecheck.jit.launch",
    "load_kernels": "tilecheck.jit.cubin",
    "use_verdicts": "tilecheck.jit.verdicts",
    "verified": "tilecheck.jit.verified",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that importing the package costs next to nothing."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # lazy: as above

    found = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = found
    return found
