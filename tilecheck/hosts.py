"""Which files of a run may launch the kernels of another: by a look at their import statements.

A kernel file is verified on its own, together with the files named here, so the answer depends neither on the
order of files nor on how many processes work. Nothing here parses; what a file really launches is then read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath

from tilecheck.dataclass import dataclass
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


@dataclass(frozen=True, slots=True)
class _Origin:
    """A module that an import names, by its whole path or the last parts of that; any module without parts."""

    parts: tuple[str, ...]
    whole: bool = False

    @property
    def last(self) -> str:
        return self.parts[-1] if self.parts else ""

    def may_be(self, module: tuple[str, ...]) -> bool:
        """Whether it is the module at a path, by its name."""
        return module == self.parts if self.whole else module[-len(self.parts) :] == self.parts

    def is_around(self, module: tuple[str, ...]) -> bool:
        """Whether it is the module at a path or a package around it, which may hand on what that defines."""
        return any(self.may_be(module[:end]) for end in range(len(self.parts), len(module) + 1))


# The modules that each name is imported from, with the files that import it.
_Imports = dict[str, list[tuple[_Origin, Candidate]]]


@dataclass(slots=True)
class _Modules:
    """The files of a run as imports may call them. Mutable: remembers what they import themselves."""

    files: Mapping[str, bytes]
    by_name: dict[str, list[tuple[str, tuple[str, ...]]]] = field(default_factory=dict)
    imported: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in self.files:
            parts = _parts(path)
            self.by_name.setdefault(parts[-1], []).append((path, parts))

    def called(self, origin: _Origin) -> list[str]:
        return [path for path, parts in self.by_name.get(origin.last, ()) if origin.may_be(parts)]

    def hands_on(self, path: str, names: frozenset[str]) -> bool:
        """Whether a file imports some of these names, or whatever there is, from a module or as one."""
        if path not in self.imported:
            words = words_in(self.files[path])
            found = [_names(f"{module} {given}") for module, given in _FROM.findall(words)]
            found += map(_names, _IMPORT.findall(words))
            self.imported[path] = frozenset[str]().union(*found)
        return not self.imported[path].isdisjoint({*names, "*"})


def launchers(
    candidates: Sequence[Candidate], hosts: Sequence[Candidate], texts: Mapping[str, bytes] | None = None
) -> list[tuple[Candidate, ...]]:
    """For each candidate the other files that import one of its kernels, or its module and name a kernel.

    `texts` are all files of the run: a name that another one of them gives is none of a candidate.
    """
    imports: _Imports = {}
    for host in hosts:
        words = words_in(host.data)
        for module, names in _FROM.findall(words):
            origin = _origin(module, Path(host.path))
            for name in {origin.last, *_names(names)} - {""}:
                imports.setdefault(name, []).append((origin, host))
        for names in _IMPORT.findall(words):
            for name in set(re.findall(r"\w+", names)):
                imports.setdefault(name, []).append((_Origin((name,)), host))
    modules = _Modules({**(texts or {}), **{c.path: c.data for c in (*hosts, *candidates)}})
    return [_launchers(candidate, imports, modules) for candidate in candidates]


def _names(imported: str) -> set[str]:
    return set(re.findall(r"\w+|\*", imported))


def _parts(path: str) -> tuple[str, ...]:
    """A module as its absolute path spells it: a package is its folder."""
    file = Path(path).absolute()
    return file.parent.parts if file.stem == "__init__" else file.with_suffix("").parts


def _origin(text: str, importer: Path) -> _Origin:
    """What `..ops.all` names in a file."""
    names = text.lstrip(".")
    level, parts = len(text) - len(names), tuple(filter(None, names.split(".")))
    if not level or not parts:
        return _Origin(parts)
    around = importer.absolute().parent.parts
    return _Origin((*around[: len(around) - level + 1], *parts), whole=True)


def count_kernels(candidate: Candidate) -> int:
    """How many kernels a file has, about."""
    return len(_KERNEL.findall(words_in(candidate.data)))


def kernel_names(candidate: Candidate) -> tuple[tuple[str, Span], ...]:
    """The kernels of a file and where they are named, about, by its bytes alone."""
    return tuple((m[1].decode(errors="replace"), Span(*m.span(1))) for m in _IN_BYTES.finditer(candidate.data))


def _launchers(candidate: Candidate, imports: _Imports, modules: _Modules) -> tuple[Candidate, ...]:
    kernels = frozenset(_KERNEL.findall(words_in(candidate.data)))
    if not kernels:
        return ()
    path = PurePosixPath(candidate.path)
    module = path.parent.name if path.stem == "__init__" else path.stem
    # A package may hand on what its modules define; `from . import` names no module.
    origins = {module, "", *path.parent.parts}
    found = {
        host.path: host
        for name in kernels
        for origin, host in imports.get(name, ())
        if origin.last in origins and _may_lead(origin, candidate, kernels, modules)
    }
    for origin, host in imports.get(module, ()):
        if origin.last != module and any(
            modules.hands_on(p, frozenset({module})) for p in modules.called(origin)
        ):
            found[host.path] = host  # what a package calls so may be another module
        elif host.path not in found:
            inner = origin if origin.last == module else replace(origin, parts=(*origin.parts, module))
            found |= {host.path: host} if _may_lead(inner, candidate, kernels, modules) else {}
    found.pop(candidate.path, None)
    return tuple(h for _, h in sorted(found.items()) if not kernels.isdisjoint(_launchable(h.data)))


def _may_lead(origin: _Origin, candidate: Candidate, kernels: frozenset[str], modules: _Modules) -> bool:
    """Whether an import may bind kernels of a file: not where the modules of that name are others of the run
    that import neither such names nor a module or package of a name on the path of that file."""
    if not origin.parts or origin.is_around(_parts(candidate.path)):
        return True
    others = modules.called(origin)
    return (
        not others
        or any(modules.hands_on(path, kernels.union(_parts(candidate.path))) for path in others)
        or os.path.realpath(candidate.path) in map(os.path.realpath, others)  # by a link
    )


@lru_cache(maxsize=1024)
def _launchable(data: bytes) -> frozenset[str]:
    """The names that a file uses for more than a call, or imports under another name."""
    words = words_in(data)
    code = _COMMENT.sub("", _STATEMENT.sub("", words))
    return frozenset((*_USED.findall(code), *_RENAMED.findall(words)))
