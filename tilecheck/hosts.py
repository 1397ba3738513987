"""Which files of a run may launch the kernels of another: by a look at their import statements.

A kernel file is verified on its own, together with the files named here, so the answer depends neither on the
order of files nor on how many processes work. Nothing here parses; what a file really launches is then read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from tilecheck.discover import Candidate

_IMPORT = re.compile(
    rb"^[ \t]*(?:from\b[^\n]*?\bimport\b|import\b)\s*(?:\([^)]*\)|(?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE
)
_KERNEL = re.compile(
    rb"^[ \t]*@[^\n]*\b(?:jit|kernel)\b[^\n]*\n(?:(?![ \t]*def\b)[^\n]*\n)*?[ \t]*def\s+(\w+)", re.MULTILINE
)


def launchers(candidates: Sequence[Candidate], hosts: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
    """For each candidate the other files that import one of its kernels, or its module and name a kernel."""
    importing: dict[bytes, list[Candidate]] = {}
    for host in hosts:
        for word in {w for found in _IMPORT.findall(host.data) for w in re.findall(rb"\w+", found)}:
            importing.setdefault(word, []).append(host)
    return [_launchers(candidate, importing) for candidate in candidates]


def _launchers(candidate: Candidate, importing: dict[bytes, list[Candidate]]) -> tuple[Candidate, ...]:
    kernels = set(_KERNEL.findall(candidate.data))
    found = {host.path: host for name in kernels for host in importing.get(name, ())}
    path = PurePosixPath(candidate.path)
    module = path.parent.name if path.stem == "__init__" else path.stem
    named = re.compile(rb"\b(?:%s)\b" % b"|".join(sorted(kernels)))
    for host in importing.get(module.encode(), ()) if kernels else ():
        if host.path not in found and named.search(host.data):
            found[host.path] = host
    found.pop(candidate.path, None)
    return tuple(found[path] for path in sorted(found))
