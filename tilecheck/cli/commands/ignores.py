"""`--add-ignore`: comments that silence what was found, with the reason that the user gives."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from tilecheck.cli.output import count
from tilecheck.cli.streams import Streams
from tilecheck.errors import SourceError, UsageError, refusal
from tilecheck.hygiene import NEVER_SUPPRESSED
from tilecheck.lsp.edits import Edit, ignored
from tilecheck.lsp.outline import Outline, outline
from tilecheck.model import Diagnostic, Report, Severity
from tilecheck.text import decode


def add_ignores(report: Report, arguments: argparse.Namespace, streams: Streams) -> None:
    """Write a comment for each finding that nothing silences yet into the files that were named.

    An error says that a kernel is wrong: it is silenced only if that is asked for too. The verdict stays, and
    the exit code tells what was found before.

    Raises:
        UsageError: a file cannot be written.
    """
    open_ = [d for d in report.diagnostics if not d.suppressed and d.code not in NEVER_SUPPRESSED]
    errors = [d for d in open_ if d.severity is Severity.ERROR and not arguments.force]
    wanted: dict[str, list[Diagnostic]] = {}
    for diagnostic in open_:
        if diagnostic not in errors and _is_named(diagnostic.site.file, arguments.paths):
            wanted.setdefault(diagnostic.site.file, []).append(diagnostic)
    written = {file: _write(file, found, arguments.add_ignore) for file, found in sorted(wanted.items())}
    done, files = sum(written.values()), sum(1 for number in written.values() if number)
    streams.log(f"tilecheck: silenced {count(done, 'finding')} in {count(files, 'file')}")
    if errors:
        streams.log(f"  hint: {count(len(errors), 'error')} left: with --force they are silenced too")
    if len(open_) - len(errors) > done:
        streams.log(f"  hint: no comment can be written for {len(open_) - len(errors) - done} of them")


def _is_named(file: str, paths: list[str]) -> bool:
    """Whether a file lies below a path of the command line: no other is written to."""
    own = Path(file).resolve()
    named = (Path(path.partition("::")[0]).resolve() for path in paths)
    return any(own == path or path in own.parents for path in named)


def _write(file: str, found: list[Diagnostic], reason: str) -> int:
    """Write the comments for a file; returns how many findings they silence."""
    try:
        data = Path(file).read_bytes()
        source = decode(file, data)
        read = outline(source)
        if read is None or source.data != data:  # written in another encoding than UTF-8
            return 0
        edits = dict(_edits(read, found, reason))
        for edit in sorted(edits, key=lambda edit: edit.span.start, reverse=True):
            data = data[: edit.span.start] + edit.text.encode() + data[edit.span.end :]
        Path(file).write_bytes(data)
    except SourceError:
        return 0
    except OSError as error:
        raise UsageError(f"cannot write {file}: {refusal(error)}") from None
    return sum(edits.values())


def _edits(read: Outline, found: list[Diagnostic], reason: str) -> Iterator[tuple[Edit, int]]:
    """One comment for the findings at one place, and how many they are."""
    places: dict[int, list[Diagnostic]] = {}
    for diagnostic in found:
        edit = ignored(read, diagnostic.site.span.start, diagnostic.code, reason)
        if edit is not None:
            places.setdefault(edit.span.start, []).append(diagnostic)
    for here in places.values():
        codes = ", ".join(sorted({diagnostic.code for diagnostic in here}))
        edit = ignored(read, here[0].site.span.start, codes, reason)
        if edit is not None:
            yield edit, len(here)
