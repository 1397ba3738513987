"""Where the baseline of a project is; most runs have none, and need no more of baselines than this."""

from __future__ import annotations

import os
from pathlib import Path

FILE = ".tilecheck-baseline.json"


def default_file(folder: Path) -> Path:
    """Where the baseline of a project lies, whether or not there is one: the closest one from `folder` up to
    the root of the git repository, else in that root; outside of a repository in `folder` itself."""
    root = next((above for above in (folder, *folder.parents) if _is_there(above / ".git")), folder)
    inside = (folder, *folder.parents[: len(folder.parts) - len(root.parts)])
    return next((above / FILE for above in inside if _is_there(above / FILE)), root / FILE)


def _is_there(path: Path) -> bool:
    """Whether something is at a path, as far as that can be told: a folder above may not be readable."""
    return os.path.exists(path)  # noqa: PTH110
