"""`.tilecheck-baseline.json`: how it is read, and how it is changed by several runs at a time.

One entry a line and everything sorted: a change of the project shows as a change of the lines that speak of it,
and two branches merge.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tilecheck.errors import UsageError, refusal
from tilecheck.history.baseline import Baseline, Entry, KernelKey, Key, Recorded
from tilecheck.history.baseline_location import FILE
from tilecheck.model import Verdict

_FORMAT, _VERSION = "tilecheck_baseline", 1
_VERDICTS = frozenset(verdict.value for verdict in Verdict)


def load(path: Path) -> tuple[Baseline, bytes]:
    """A baseline, and the bytes that it was read from.

    Raises:
        UsageError: it cannot be read, or is not a baseline that this version understands.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the baseline {path}: {refusal(error)}",
            '`tilecheck baseline write --reason "..." PATH`',
        ) from None
    return parse(data, str(path)), data


def parse(data: bytes, name: str) -> Baseline:
    """The baseline in the bytes of the file `name`."""
    try:
        found = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        conflict = b"<<<<<<<" in data or b">>>>>>>" in data
        hint = "resolve the merge in it, keeping the lines of both sides" if conflict else _AGAIN
        raise UsageError(f"the baseline {name} is no JSON", hint) from None
    version = found.get(_FORMAT) if isinstance(found, dict) else None
    if isinstance(version, bool) or not isinstance(version, int):
        raise UsageError(f"{name} is no baseline of tilecheck: it lacks `{_FORMAT}`", _AGAIN)
    if version != _VERSION:
        raise UsageError(
            f"the baseline {name} has format {version}; this version of tilecheck reads {_VERSION}",
            "upgrade tilecheck" if version > _VERSION else _AGAIN,
        )
    reader = _Reader(name)
    findings = [reader.finding(*item) for item in reader.entries(found, "findings")]
    kernels = [reader.kernel(*item) for item in reader.entries(found, "kernels")]
    return Baseline(tuple(sorted(findings)), tuple(sorted(kernels, key=lambda known: known.kernel)))


_AGAIN = "write it again with `tilecheck baseline write`, or restore it from version control"


class _Reader:
    """Reads entries, each with what it is called in messages."""

    def __init__(self, name: str) -> None:
        self._name = name

    def entries(self, found: dict[str, Any], kind: str) -> Iterator[tuple[dict[str, Any], str]]:
        listed = found.get(kind)
        if not isinstance(listed, list):
            raise UsageError(f"the baseline {self._name} has no list `{kind}`", _AGAIN)
        for number, entry in enumerate(listed, 1):
            where = f"entry {number} of `{kind}` in the baseline {self._name}"
            if not isinstance(entry, dict):
                raise UsageError(f"{where} is no object", _AGAIN)
            yield entry, where

    def finding(self, entry: dict[str, Any], where: str) -> Entry:
        path, kernel, rule, code = (
            self._text(entry, key, where) for key in ("path", "kernel", "rule", "operation")
        )
        claim = self._text(entry, "message", where) if "message" in entry else ""
        key = Key(path, kernel, rule, code, claim, self._number(entry, where))
        reason = self._text(entry, "reason", where)
        if not reason.strip():
            raise UsageError(f"{where} has no reason", "say in `reason` why the finding may stand")
        return Entry(key, reason)

    def kernel(self, entry: dict[str, Any], where: str) -> Recorded:
        verdict = self._text(entry, "verdict", where)
        if verdict not in _VERDICTS:
            raise UsageError(f"{where}: `{verdict}` is no verdict", _AGAIN)
        key = KernelKey(
            self._text(entry, "path", where), self._text(entry, "kernel", where), self._number(entry, where)
        )
        return Recorded(key, verdict, self._text(entry, "reason", where) if "reason" in entry else None)

    def _text(self, entry: dict[str, Any], key: str, where: str) -> str:
        value = entry.get(key)
        if not isinstance(value, str):
            raise UsageError(f"{where} has no text `{key}`", _AGAIN)
        return value

    def _number(self, entry: dict[str, Any], where: str) -> int:
        value = entry.get("occurrence", 0)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise UsageError(f"{where}: `occurrence` is no count", _AGAIN)
        return value


# ---- writing -----------------------------------------------------------------------------------------------


def text(baseline: Baseline) -> str:
    """The file of a baseline."""
    findings = ",\n".join(_line(_finding(entry)) for entry in baseline.findings)
    kernels = ",\n".join(_line(_kernel(known)) for known in baseline.kernels)
    return f'{{\n"{_FORMAT}": {_VERSION},\n"findings": [\n{findings}\n],\n"kernels": [\n{kernels}\n]\n}}\n'


def _finding(entry: Entry) -> dict[str, Any]:
    key = entry.key
    return {
        "path": key.path,
        "kernel": key.kernel,
        "rule": key.rule,
        "operation": key.operation,
        **({"message": key.claim} if key.claim else {}),
        **({"occurrence": key.occurrence} if key.occurrence else {}),
        "reason": entry.reason,
    }


def _kernel(known: Recorded) -> dict[str, Any]:
    return {
        "path": known.kernel.path,
        "kernel": known.kernel.name,
        **({"occurrence": known.kernel.occurrence} if known.kernel.occurrence else {}),
        "verdict": known.verdict,
        **({"reason": known.reason} if known.reason else {}),
    }


def _line(entry: dict[str, Any]) -> str:
    line = json.dumps(entry, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # a file name that is no text
        return json.dumps(entry)
    return line


def update(path: Path, change: Callable[[Baseline], Baseline]) -> tuple[Baseline, Baseline]:
    """Change a baseline, which need not exist yet, by what stands in it now; the one before and the one after.

    Two runs that do so at a time take turns, and who reads meanwhile sees the file before or after.

    Raises:
        UsageError: it cannot be read or written.
    """
    target = Path(os.path.realpath(path))
    try:
        with _turn(target.parent):
            before = load(path)[0] if target.exists() else Baseline()
            after = change(before)
            if after != before or not target.exists():
                _replace(target, text(after).encode())
    except OSError as error:
        raise UsageError(f"cannot write the baseline {path}: {refusal(error)}") from None
    return before, after


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Waits for others that write in the folder; where the system has no such locks, nothing does."""
    try:
        import fcntl  # not on Windows
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(target: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f"{FILE}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        written = Path(name)
        written.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        written.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
