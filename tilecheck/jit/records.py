"""What the guard knows of a kernel: its verdict and what a launch must meet, as plain data and as JSON.

A record is found by the bytes of the kernel's file, so it needs neither the prover nor the parser, and a file
that was edited has none. It is as trustworthy as the file it comes from.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError, UsageError, refusal
from tilecheck.model import LaunchOrder, StatedContract

if TYPE_CHECKING:
    from tilecheck.model import GlobalName, KernelReport, Report

SCHEMA_VERSION = 4
ACCEPTED = ("proved", "conditional", "trusted")
VERDICTS = (*ACCEPTED, "violated", "unknown")
LANGUAGES = ("cutile", "triton")
OWNERSHIPS = ("mut", "shared", "value", "constant", "unused")
# The contracts on what is in memory, with how many numbers each may have.
CONTRACTS = {
    "filled": (1,),
    "within": (2,),
    "within_or": (3,),
    "distinct": (0, 1),
    "increasing": (0,),
    "distinct_pairs": (0,),
    "prefix_sum": (0,),
    "chunks": (1,),
    "chunk_sums": (1,),
    "disjoint": (0,),
}
# Those that may speak of a part of an array.
OF_PARTS = ("filled", "within", "within_or", "distinct", "increasing")


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a kernel as a launch fills it."""

    name: str
    ownership: str  # mut | shared | value | constant | unused
    array: bool = False
    rank: int | None = None
    members: bool = False  # a list or tuple of arrays
    scalar: str = ""  # the type of number that its annotation names: int, bool, float, str or nothing
    wide: bool = False  # annotated as 64 bits wide
    integer: bool = False  # the proof takes its value for an integer
    updated: bool = False  # what a launch leaves in the array depends on what was in it
    alike: bool = False  # its elements are of one size with those of others, and it is aligned as they are

    @property
    def is_accessed(self) -> bool:
        return self.array and self.ownership != "unused"


@dataclass(frozen=True, slots=True)
class Global:
    """What the proof took a module-level name for: `value`, the function at `line` of the file `path`, the
    module of that file (line 0), or what a library calls `library`.

    `file` is where the name is bound. Paths are relative to the folder of the kernel's file.
    """

    file: str
    name: str
    value: Any = None
    path: str = ""
    line: int = 0
    library: str = ""


@dataclass(frozen=True, slots=True)
class Waits:
    """How a kernel waits for the launch before its own: whether all of its programs do, whatever the launch,
    and the arrays that it reads and writes before. All of this is said of launches in which the compile-time
    parameters `needs` are true."""

    always: bool
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """One kernel.

    `sources` maps paths, relative to the folder of the kernel's file, to the SHA-256 of their bytes; the
    kernel's own file is among them under its name. `line` is the 1-based line of the kernel's `def`.
    `conditions` are Python expressions over parameters, shapes, strides and the grid. `contracts` are what the
    proof took for true of values in memory and cannot be seen without a look at them. `large` are the numbers
    of elements of tiles that have to be as large as a program has threads. `report` is the text that tells why
    a kernel is not accepted. `language` is what the kernel is written in.
    """

    name: str
    file: str
    line: int
    sources: dict[str, str]
    verdict: str
    reason: str | None
    arguments: tuple[Argument, ...] = ()
    grid_axes: tuple[int, ...] = ()
    conditions: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    large: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    contracts: tuple[StatedContract, ...] = ()
    globals: tuple[Global, ...] = ()
    language: str = "cutile"
    waits: Waits | None = None  # None if it never waits for the launch before its own
    report: str = field(default="", compare=False)

    @property
    def is_accepted(self) -> bool:
        return self.verdict in ACCEPTED

    def why_unordered(self, values: Sequence[Any]) -> str:
        """Why a launch with these arguments may not start before the launch before it has ended; else "".

        It may if every program first waits, and only then touches memory. All that it does then comes after
        the end of the launch before it, and so after all before that one: an ordinary launch starts when
        those have ended, and a dependent one has waited for them itself.
        """
        if self.waits is None:
            return "it does not wait for the launch before it"
        given = dict(zip((argument.name for argument in self.arguments), values, strict=True))
        for name in self.waits.needs:
            if not given[name]:
                return f"it waits for the launch before it only where `{name}` is true"
        if not self.waits.always:
            return "not all of its programs wait for the launch before it"
        early = next(iter((*self.waits.reads, *self.waits.writes)), None)
        return f"it touches `{early}` before it waits for the launch before it" if early else ""

    @property
    def where(self) -> str:
        """The kernel as messages name it, with its place and its verdict."""
        return f"kernel `{self.name}` of {self.file}:{self.line}, verdict {self.verdict}"

    @property
    def source(self) -> str:
        """The SHA-256 of the kernel's own file."""
        return self.sources[Path(self.file).name]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def records_of(report: Report) -> tuple[Record, ...]:
    """The record of every kernel of a run.

    Raises:
        UsageError: a file that a verdict rests on cannot be read any more.
    """
    return tuple(_record(kernel, report) for kernel in report.kernels)


def _record(kernel: KernelReport, report: Report) -> Record:
    from tilecheck.report.places import Places  # lazy: a machine that only launches makes no records

    terms, order = kernel.terms, kernel.launch_order
    file = kernel.site.file
    main = {file: digest(report.sources[file])} if file in report.sources else {}
    files = {**main, **dict(() if terms is None else terms.files)}
    folder = Path(file).parent
    return Record(
        name=kernel.name,
        file=file,
        line=Places(report.sources).of(kernel.site).line,
        sources={_relative(f, folder): _digest(f, read) for f, read in files.items()},
        verdict=kernel.verdict.value,
        reason=kernel.reason,
        arguments=tuple(
            Argument(
                name=p.name,
                ownership=p.ownership,
                array=p.array,
                rank=p.rank,
                members=p.members,
                scalar=p.scalar,
                wide=p.wide,
                integer=p.integer,
                updated=p.updated,
                alike=p.alike,
            )
            for p in kernel.params
        ),
        grid_axes=() if terms is None else terms.grid_axes,
        conditions=tuple(dict.fromkeys((*(() if terms is None else terms.requires), *kernel.conditions))),
        limits=() if terms is None else terms.limits,
        large=() if terms is None else terms.large,
        standing=kernel.standing,
        contracts=() if terms is None else terms.contracts,
        globals=() if terms is None else tuple(_global(g, folder) for g in terms.globals),
        language=kernel.language,
        waits=None if order is None else _waits_of(order, frozenset(p.name for p in kernel.params)),
        report="" if kernel.verdict.value in ACCEPTED else _text(kernel, report),
    )


def _waits_of(order: LaunchOrder, arguments: frozenset[str]) -> Waits | None:
    """How the kernel waits; None, as if it never did, if something decides it that is no argument."""
    if not arguments >= {*order.needs}:
        return None
    return Waits(order.always, order.before.reads, order.before.writes, order.needs)


def _relative(file: str, folder: Path) -> str:
    return Path(os.path.relpath(file, folder)).as_posix()


def _global(name: GlobalName, folder: Path) -> Global:
    from tilecheck.text import decode_leniently  # lazy: as above

    file = _relative(name.file, folder)
    if name.site is None:
        path = _relative(name.module, folder) if name.module else ""
        return Global(file, name.name, name.value, path, library=name.library)
    line, _ = decode_leniently(name.site.file, read_file(name.site.file)).position(name.site.span.start)
    return Global(file, name.name, path=_relative(name.site.file, folder), line=line)


def _digest(file: str, read: str) -> str:
    """The SHA-256 of a file, whose text had that of `read` when it was verified."""
    from tilecheck.text import decode  # lazy: as above

    data = read_file(file)
    try:
        same = digest(decode(file, data).data) == read
    except SourceError:
        same = False
    if not same:
        raise UsageError(f"{file} changed while it was verified", "verify it again")
    return digest(data)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {refusal(error)}") from None


def _text(kernel: KernelReport, report: Report) -> str:
    """The findings of this kernel alone, as `verify` prints them."""
    from tilecheck.report.emitters.full import render_findings  # lazy
    from tilecheck.report.style import plain  # lazy

    own = tuple(d for d in report.diagnostics if d.kernel == kernel.name and not d.suppressed)
    return plain(render_findings(replace(report, kernels=(kernel,), diagnostics=own))).strip()


# ---- as a file -----------------------------------------------------------------------------------------------


def dump(records: Iterable[Record]) -> str:
    """The text of a verdict file."""
    from tilecheck import __version__  # lazy: the package's own interface imports this module

    found = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "tilecheck", "version": __version__},
        "kernels": [as_json(record) for record in records],
    }
    return json.dumps(found, indent=1) + "\n"


def as_json(record: Record) -> dict[str, Any]:
    """The JSON object of a record."""
    return asdict(record)


def load(path: str | os.PathLike[str]) -> tuple[Record, ...]:
    """The records of a verdict file, or of a folder in which `tilecheck verify` kept its results.

    Raises:
        UsageError: it cannot be read, or is no verdict file of this version.
    """
    if Path(path).is_dir():
        return _load_folder(Path(path))
    try:
        found = parse(read_file(path))
        if found["schema_version"] != SCHEMA_VERSION:
            raise UsageError(
                f"{path} is a verdict file of another version ({found['schema_version']})",
                "write it again with `tilecheck verify --emit-verdicts`",
            )
        return tuple(record_from(item) for item in _list(found["kernels"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            f"{path} is not a verdict file", "`tilecheck verify --emit-verdicts FILE` writes one"
        ) from None


def _load_folder(folder: Path) -> tuple[Record, ...]:
    """The records of a cache, the latest first: what a record says holds for the texts that it names."""
    from tilecheck.cache.results import records_in  # lazy: most verdicts come in a file
    from tilecheck.cache.store import FolderStore

    store = FolderStore(folder)
    if not store.is_cache():
        raise UsageError(f"{folder} is no cache of tilecheck", "`tilecheck verify --cache-dir DIR` makes one")
    found: list[Record] = []
    for data in store.results():
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            found += [record_from(item) for item in _list(records_in(data))]
    if not found:
        raise UsageError(
            f"{folder} holds no verdicts of this tilecheck", "verify again with the version that launches"
        )
    return tuple(found)


def parse(text: bytes) -> Any:
    """What a JSON text holds.

    Raises:
        ValueError: it is not one.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def record_from(item: dict[str, Any]) -> Record:
    """The record that a JSON object describes.

    Raises:
        KeyError, TypeError, ValueError: it describes none. Nothing is left out or guessed: a record without
            its conditions would let every launch pass.
    """
    listed = ("grid_axes", "conditions", "limits", "large", "standing")
    lists = {name: tuple(_list(item[name])) for name in listed}
    if item["language"] not in LANGUAGES:
        raise ValueError("no language that is known")
    record = Record(
        **{
            **item,
            **lists,
            "arguments": tuple(_argument(argument) for argument in _list(item["arguments"])),
            "contracts": tuple(_contract(contract) for contract in _list(item["contracts"])),
            "globals": tuple(Global(**name) for name in _list(item["globals"])),
            "waits": _waits_from(item["waits"]),
        }
    )
    names = [a.name for a in record.arguments]
    sound = (
        _all(str, record.name, record.file, record.verdict, record.report, record.reason or "")
        and _all(str, *record.sources.keys(), *record.sources.values(), *names)
        and _all(str, *(a.scalar for a in record.arguments))
        and _all(str, *record.conditions, *record.limits, *record.large, *record.standing)
        and _all(int, record.line, *record.grid_axes, *(g.line for g in record.globals))
        and _all(str, *(text for g in record.globals for text in (g.file, g.name, g.path, g.library)))
        and all(_all(bool, a.array, a.members, a.wide, a.integer, a.updated, a.alike) for a in record.arguments)
        and all(a.rank is None or type(a.rank) is int for a in record.arguments)
        and all(a.ownership in OWNERSHIPS for a in record.arguments)
        and record.verdict in VERDICTS
        and (
            record.waits is None or {*record.waits.reads, *record.waits.writes, *record.waits.needs} <= {*names}
        )
        and all(c.kind in CONTRACTS and {*c.arrays} <= {*names} for c in record.contracts)
        and len(set(names)) == len(names)
        and Path(record.file).name in record.sources
    )
    if not sound:
        raise ValueError("no record")
    return record


def _argument(item: dict[str, Any]) -> Argument:
    if item.keys() != Argument.__dataclass_fields__.keys():
        raise KeyError("an argument with other fields")
    return Argument(**item)


def _waits_from(item: dict[str, Any] | None) -> Waits | None:
    if item is None:
        return None
    lists = {name: tuple(_list(item[name])) for name in ("reads", "writes", "needs")}
    waits = Waits(**{**item, **lists})
    if type(waits.always) is not bool:
        raise ValueError("no order of launches")
    return waits


def _contract(item: dict[str, Any]) -> StatedContract:
    stated = StatedContract(
        **{
            **item,
            "arrays": tuple(_list(item["arrays"])),
            "bounds": tuple(_list(item["bounds"])),
            "part": tuple(_axis(axis) for axis in _list(item.get("part", []))),
        }
    )
    fits = len(stated.bounds) in CONTRACTS.get(stated.kind, ())
    fits = fits and (not stated.part or stated.kind in OF_PARTS)
    if not fits or not stated.arrays or not _all(str, stated.text, *stated.arrays, *stated.bounds):
        raise ValueError("no contract")
    return stated


def _axis(value: Any) -> tuple[int, int]:
    first, step = _list(value)
    if not _all(int, first, step) or step < 0 or (first < 0 and step):
        raise ValueError("no part of an axis")
    return first, step


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return value


def _all(kind: type, *values: Any) -> bool:
    return all(type(value) is kind for value in values)
