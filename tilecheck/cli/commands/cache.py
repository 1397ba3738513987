"""Where the results of earlier runs are kept, and the commands that show and delete them."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.command import CACHE, Verb
from tilecheck.cli.settings import environment, settings_of_run
from tilecheck.cli.streams import Streams
from tilecheck.errors import UsageError
from tilecheck.exit_codes import ExitCode
from tilecheck.options import Options

if TYPE_CHECKING:
    from tilecheck.cli.engine import Engine
    from tilecheck.config.settings import Settings
    from tilecheck.model import Report


def add(verb: Verb) -> None:
    cache = verb("cache", show_or_clean, "show or delete the results that earlier runs kept")
    cache.add_argument("action", choices=("show", "clean"), metavar="show|clean", help="what to do")
    cache.add_argument(
        "folder", nargs="?", metavar="DIR", help="the folder (default: that of runs from the working directory)"
    )


def with_cache(arguments: argparse.Namespace, options: Options, settings: Settings) -> Options:
    """The options with the folder in which results are kept: that of the settings, else the usual one."""
    if arguments.no_cache or options.certify is not None or options.dump_smt is not None:
        return options
    return replace(options, cache=settings.cache_dir or _usual(arguments.paths))


def log_problem(report: Report, streams: Streams) -> None:
    """A warning if the results of a run could not be kept."""
    if report.not_kept:
        streams.log(f"tilecheck: warning: no results are kept in {report.not_kept}")


def _usual(paths: Sequence[str]) -> str:
    """The folder for a run over `paths`: beside the closest project file."""
    here = Path.cwd()
    start = Path(paths[0].partition("::")[0]) if paths and paths[0] != "-" else here
    start = here / start
    for folder in (start, *start.parents):
        if os.path.isfile(folder / "pyproject.toml"):  # noqa: PTH113 - a folder may not be readable
            return str(folder / CACHE)
    return str(here / CACHE)


def show_or_clean(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Show what a folder holds, or delete it."""
    from tilecheck.cache.store import FolderStore  # lazy: not for `explain`

    folder = arguments.folder or settings_of_run(environment()).cache_dir or _usual(())
    store = FolderStore(folder)
    if not Path(folder).exists():
        if arguments.folder:
            raise UsageError(f"{folder} does not exist")
        streams.out(f"{folder}: nothing is kept\n")
        return ExitCode.OK
    if not store.is_cache():
        raise UsageError(
            f"{folder} is no cache of tilecheck", "its CACHEDIR.TAG is missing or another program's"
        )
    if arguments.action == "clean":
        streams.out(f"{folder}: {_results(store.clean())} deleted\n")
        return ExitCode.OK
    from tilecheck.cache.results import is_current  # lazy: as above

    sizes = [status.st_size for _, status in store.entries()]
    kinds = Counter(is_current(data) for data in store.results())
    streams.out(f"{folder}: {_results(len(sizes))}, {sum(sizes) / 1e6:.1f} MB\n")
    old = len(sizes) - kinds[True]
    if old:
        streams.out(f"{_results(old)} of another version of tilecheck, which this one does not use\n")
    return ExitCode.OK


def _results(number: int) -> str:
    return f"{number} result{'' if number == 1 else 's'}"
