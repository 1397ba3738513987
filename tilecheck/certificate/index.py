"""The index of a folder of certificates: which kernels, which obligations, and which file speaks of each.

- `certificates.json` lists the kernels, each with the SHA-256 of the sources that it was read from and of the
  files in its folder. It is written last, so that an interrupted run leaves none.
- `FOLDER/obligations.json`, in a folder for each kernel, lists all of its obligations, proved or not.
- `FOLDER/003.goal.smt2` holds the premises and the negated goal of one, and instances of lemmas.
- `FOLDER/003.linear.smt2` is the linear query that these lead to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from tilecheck.certificate.terms import CertificateError

FORMAT = 2
INDEX = "certificates.json"
OBLIGATIONS = "obligations.json"
CERTIFIED = ("proved", "conditional")


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel. `folder` holds its certificates; it is "" for a kernel that was not read.

    `files` are the names of all files in the folder, and `sources` the kernel's file and all others that it was
    read from, as `verify` was given them; each has its SHA-256 (that of a source is of its text in UTF-8).
    """

    file: str
    name: str
    verdict: str
    folder: str
    files: dict[str, str]
    sources: dict[str, str]


@dataclass(frozen=True, slots=True)
class Obligation:
    """One obligation: what holds is never `cause`. `goal` and `query` are names of files.

    There is no `query` where no linear one was found, and no `goal` where there is no formula: a goal about the
    order of accesses, which the language answers ("language"), or an obligation that was not proved.
    """

    rule: str
    place: str
    cause: str
    status: str
    rung: str
    goal: str
    query: str


def folder_name(file: str, kernel: str) -> str:
    """The folder of a kernel's certificates: one plain name."""
    parts = [p for p in Path(file).with_suffix("").parts if p not in (Path(file).anchor, "..", ".")]
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in "-".join([*parts, kernel]))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file in the folder of a kernel."""
    return {path.name: digest(path.read_bytes()) for path in sorted(folder.iterdir())}


def kernels_text(kernels: list[Kernel]) -> str:
    return _text({"format": FORMAT, "kernels": [asdict(k) for k in kernels]})


def obligations_text(obligations: list[Obligation]) -> str:
    return _text({"format": FORMAT, "obligations": [asdict(o) for o in obligations]})


def read_kernels(folder: Path) -> list[Kernel]:
    """The kernels of a folder of certificates.

    Raises:
        CertificateError: the index is missing or damaged.
    """
    return [_record(Kernel, r, INDEX) for r in _list(folder / INDEX, "kernels")]


def read_obligations(folder: Path) -> list[Obligation]:
    """As `read_kernels`, for the folder of one kernel."""
    return [_record(Obligation, r, OBLIGATIONS) for r in _list(folder / OBLIGATIONS, "obligations")]


def read_text(path: Path) -> str:
    """The text of a file of a certificate."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CertificateError(f"{path.name} cannot be read: {_why(error)}") from None


def _why(error: Exception) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else "it is no text"


def _text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1) + "\n"


def _list(path: Path, what: str) -> list[object]:
    text = read_text(path)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise CertificateError(f"{path.name} is damaged or truncated: it is no JSON") from None
    if not isinstance(value, dict) or not isinstance(value.get(what), list):
        raise CertificateError(f"{path.name} has no list of {what}")
    if value.get("format") != FORMAT:
        raise CertificateError(f"{path.name} has another format than this tilecheck reads, which is {FORMAT}")
    found: list[object] = value[what]
    return found


_Record = TypeVar("_Record")


def _record(kind: type[_Record], value: object, file: str) -> _Record:
    wanted = {f.name: f.type for f in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(value, dict) or set(value) != set(wanted) or not all(map(_is_plain, value.values())):
        raise CertificateError(f"{file} has an entry that does not say {', '.join(sorted(wanted))}")
    if any(isinstance(value[name], dict) is (type_ == "str") for name, type_ in wanted.items()):
        raise CertificateError(f"{file} has an entry in which a text stands for a table, or a table for a text")
    names = [value.get(key, "") for key in ("folder", "goal", "query")]
    if any(name == ".." or Path(name).name != name for name in [*names, *value.get("files", ())]):
        raise CertificateError(f"{file} names a file outside of its folder")
    return kind(**value)


def _is_plain(value: object) -> bool:
    """Whether a value is a text, or a table from texts to texts."""
    return isinstance(value, str) or (
        isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    )
