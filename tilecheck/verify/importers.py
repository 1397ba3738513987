"""Which files of a run may launch the kernels of another, and where they do so by more than a name.

A kernel file is verified on its own, together with the files named here, so the answer depends neither on the
order of files nor on how many processes work. What a file really launches is then read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilecheck.identifiers import words_in
from tilecheck.model import Span
from tilecheck.uses.index import Index
from tilecheck.uses.modules import Modules
from tilecheck.verify.discover import Candidate

_KERNEL = re.compile(
    r"^[ \t]*@[^\n]*\b(?:jit|kernel)\b[^\n]*\n(?:(?![ \t]*def\b)[^\n]*\n)*?[ \t]*def\s+(\w+)", re.MULTILINE
)
_MADE = re.compile(r"\b(?:jit|kernel)\s*(?:\([^()\n]*\)\s*)?\(\s*(\w+)\s*\)")  # `fast = triton.jit(slow)`
_OTHERS = re.compile(
    r"^[ \t]*@[ \t]*(?:cute|cutlass|torch|jax|numba|nb)\b[^\n]*", re.MULTILINE
)  # have a `jit`, too
_IN_BYTES = re.compile(_KERNEL.pattern.encode(), re.MULTILINE)


def launchers(
    candidates: Sequence[Candidate],
    hosts: Sequence[Candidate],
    texts: Mapping[str, bytes] | None = None,
    packages: Mapping[str, str] | None = None,
) -> list[tuple[Candidate, tuple[Candidate, ...]]]:
    """Each candidate with the other files in which its kernels may be launched; all with the `uses` in them.

    `texts` are all files of the run: through them names and values go from one file to another. `packages` are
    the folders of packages by their names.
    """
    files = {**(texts or {}), **{c.path: c.data for c in (*hosts, *candidates)}}
    by_file = {c.path: _names(words_in(c.data)) for c in candidates}
    index = Index(Modules(files, packages or {}), by_file)
    index.follow()
    uses = index.uses()
    found: dict[str, set[str]] = {}
    for file, places in uses.items():
        for use in places:
            found.setdefault(use.kernel.file, set()).add(file)
    made = {file: Candidate(file, files[file], uses=uses.get(file, ())) for file in files}
    return [
        (
            replace(candidate, uses=uses.get(candidate.path, ())),
            tuple(made[file] for file in sorted(found.get(candidate.path, set()) - {candidate.path})),
        )
        for candidate in candidates
    ]


def _names(words: str) -> frozenset[str]:
    words = _OTHERS.sub("", words)
    return frozenset((*_KERNEL.findall(words), *_MADE.findall(words)))


def count_kernels(candidate: Candidate) -> int:
    """How many kernels a file has, about."""
    return len(_KERNEL.findall(words_in(candidate.data)))


def kernel_names(candidate: Candidate) -> tuple[tuple[str, Span], ...]:
    """The kernels of a file and where they are named, about, by its bytes alone."""
    return tuple((m[1].decode(errors="replace"), Span(*m.span(1))) for m in _IN_BYTES.finditer(candidate.data))
