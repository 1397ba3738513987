"""Texts that stand for files: what an editor holds that was not saved yet.

Whoever reads a source file asks here first, so everything that one run reads of a file is one text. Only names
of files and bytes are known here; the front end and the backend that replays share no more than that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_seen: ContextVar[dict[str, bytes | bool] | None] = ContextVar("seen", default=None)
_texts: ContextVar[Mapping[str, bytes] | None] = ContextVar("texts", default=None)


@contextmanager
def overlaid(texts: Mapping[str, bytes]) -> Iterator[None]:
    """In this block `texts`, by path, stand for what lies at these paths, and for files that do not exist."""
    known = dict(_texts.get() or {})
    token = _texts.set(known | {os.path.realpath(path): data for path, data in texts.items()})
    try:
        yield
    finally:
        _texts.reset(token)


def text_at(path: str | os.PathLike[str]) -> bytes | None:
    """The bytes that stand for the file at `path`, if any do."""
    texts = _texts.get()
    return texts.get(os.path.realpath(path)) if texts else None


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file at `path`, or a text that stands for one."""
    found = text_at(path) is not None or Path(path).is_file()
    seen = _seen.get()
    if seen is not None:
        seen.setdefault(os.fspath(path), found)
    return found


def read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of the file at `path`, or those that stand for it.

    Raises:
        OSError: there are none.
    """
    held = text_at(path)
    seen = _seen.get()
    try:
        data = Path(path).read_bytes() if held is None else held
    except OSError:
        if seen is not None:
            seen[os.fspath(path)] = False
        raise
    if seen is not None:
        seen[os.fspath(path)] = data
    return data


def is_above_texts(path: str | os.PathLike[str]) -> bool:
    """Whether a text stands for a file at `path` or in a folder of that name."""
    real = os.path.realpath(path)
    return any(held == real or held.startswith(real + os.sep) for held in _texts.get() or ())


@contextmanager
def watched() -> Iterator[Mapping[str, bytes | bool]]:
    """What this block reads or asks for, by path: the bytes, else whether there is a file."""
    seen: dict[str, bytes | bool] = {}
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)
        around = _seen.get()
        if around is not None:
            around.update(seen)
