"""The versions of the packages that tilecheck stands on. They are not imported for this."""

from __future__ import annotations

import os
import re
import sys
from functools import cache

_FOLDER = re.compile(r"(.+)-([^-]+)\.dist-info")


@cache
def version_of(package: str) -> str | None:
    """The version of an installed package; None where there is none."""
    found = in_folders().get(package.lower().replace("-", "_"))
    if found is not None:
        return found
    from importlib import metadata  # lazy: takes longer to import than all of `--version`

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def in_folders() -> dict[str, str]:
    """The versions in the names of the folders that installers leave beside packages, the first on the path."""
    found: dict[str, str] = {}
    for folder in sys.path:
        try:
            names = sorted(os.listdir(folder or "."))  # noqa: PTH208 - at the start of every run
        except OSError:
            continue
        for match in filter(None, map(_FOLDER.fullmatch, names)):
            found.setdefault(match[1].lower(), match[2])
    return found
