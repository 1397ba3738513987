"""Which files of a run may launch the kernels of another: by a look at their import statements.

A kernel file is verified on its own, together with the files named here, so the answer depends neither on the
order of files nor on how many processes work. Nothing here parses; what a file really launches is then read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from tilecheck.discover import Candidate
from tilecheck.identifiers import words_in
from tilecheck.model import Span

_LISTED = r"\((?:[^)#]|#[^\n]*)*\)"  # comments may have parentheses
_FROM = re.compile(
    r"^[ \t]*from\s+([\w.]+)\s+import\b\s*(" + _LISTED + r"|(?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE
)
_IMPORT = re.compile(r"^[ \t]*import\b([^\n]*)", re.MULTILINE)
_KERNEL = re.compile(
    r"^[ \t]*@[^\n]*\b(?:jit|kernel)\b[^\n]*\n(?:(?![ \t]*def\b)[^\n]*\n)*?[ \t]*def\s+(\w+)", re.MULTILINE
)
_IN_BYTES = re.compile(_KERNEL.pattern.encode(), re.MULTILINE)

# A call `name(..)` runs no kernel, so only a name that is used otherwise may be launched, or one that an import
# gives another name. A name that a word follows which no expression goes on with is part of a text.
_USED = re.compile(r"\b\w+\b(?![ \t]*\(|[ \t]+(?!(?:if|else|and|or|in|is|for|not|async)\b)\w)")
_RENAMED = re.compile(r"\b(\w+)\s+as\b")
_STATEMENT = re.compile(
    r"^[ \t]*(?:from\s+[\w.]+\s+)?import\b[ \t]*(?:" + _LISTED + r"|(?:[^\n;]*\\\n)*[^\n;]*)", re.MULTILINE
)
_COMMENT = re.compile(r"#[^\n\"']*$", re.MULTILINE)  # without quotes, so that it is in no text

_Imports = dict[str, list[tuple[str, Candidate]]]  # name -> from which module (its last part), in which file


def launchers(candidates: Sequence[Candidate], hosts: Sequence[Candidate]) -> list[tuple[Candidate, ...]]:
    """For each candidate the other files that import one of its kernels, or its module and name a kernel."""
    imports: _Imports = {}
    for host in hosts:
        words = words_in(host.data)
        for module, names in _FROM.findall(words):
            last = module.rpartition(".")[2]
            for name in {last, *re.findall(r"\w+|\*", names)} - {""}:
                imports.setdefault(name, []).append((last, host))
        for names in _IMPORT.findall(words):
            for name in set(re.findall(r"\w+", names)):
                imports.setdefault(name, []).append((name, host))
    return [_launchers(candidate, imports) for candidate in candidates]


def count_kernels(candidate: Candidate) -> int:
    """How many kernels a file has, about."""
    return len(_KERNEL.findall(words_in(candidate.data)))


def kernel_names(candidate: Candidate) -> tuple[tuple[str, Span], ...]:
    """The kernels of a file and where they are named, about, by its bytes alone."""
    return tuple((m[1].decode(errors="replace"), Span(*m.span(1))) for m in _IN_BYTES.finditer(candidate.data))


def _launchers(candidate: Candidate, imports: _Imports) -> tuple[Candidate, ...]:
    kernels = set(_KERNEL.findall(words_in(candidate.data)))
    path = PurePosixPath(candidate.path)
    module = path.parent.name if path.stem == "__init__" else path.stem
    # A package may hand on what its modules define; `from . import` names no module.
    origins = {module, "", *path.parent.parts}
    found = {h.path: h for name in kernels for origin, h in imports.get(name, ()) if origin in origins}
    found |= {h.path: h for _, h in imports.get(module, ())} if kernels else {}
    found.pop(candidate.path, None)
    return tuple(h for _, h in sorted(found.items()) if not kernels.isdisjoint(_launchable(h.data)))


@lru_cache(maxsize=1024)
def _launchable(data: bytes) -> frozenset[str]:
    """The names that a file uses for more than a call, or imports under another name."""
    words = words_in(data)
    code = _COMMENT.sub("", _STATEMENT.sub("", words))
    return frozenset((*_USED.findall(code), *_RENAMED.findall(words)))
