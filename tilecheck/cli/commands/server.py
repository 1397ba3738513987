"""`server`: diagnostics and more for editors, over stdin and stdout."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.command import Verb
from tilecheck.cli.streams import Streams
from tilecheck.errors import UsageError
from tilecheck.exit_codes import ExitCode

if TYPE_CHECKING:
    from tilecheck.cli.engine import Engine

_HINT = "install it with `pip install 'tilecheck[lsp]'`"


def add(verb: Verb) -> None:
    parser = verb("server", serve, "a language server for editors, over stdin and stdout")
    parser.add_argument("--stdio", action="store_true", help="what many editors say; there is no other way")


def serve(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Serve one client until it says `exit`."""
    if importlib.util.find_spec("pygls") is None:
        raise UsageError("`tilecheck server` needs pygls, which is not installed", _HINT)
    _forget_the_working_directory()
    from tilecheck.lsp.verifier import Verifier  # lazy: not for other commands

    verifier = Verifier()
    verifier.start()  # it imports the analysis while pygls is imported here
    try:
        from tilecheck.lsp.server import serve as run  # lazy: loads pygls
    except ImportError as error:
        verifier.stop()
        raise UsageError(f"`tilecheck server` needs pygls 2: {error}", _HINT) from None
    return ExitCode(run(verifier))


def _forget_the_working_directory() -> None:
    """`python -m tilecheck` puts the working directory first on the path. An editor starts its servers in the
    folder that it shows, and a file `numpy.py` there must not be run."""
    here = Path.cwd()
    ours = Path(__file__).resolve().parents[3]
    if (
        sys.path
        and not getattr(sys.flags, "safe_path", False)
        and Path(sys.path[0] or ".").resolve() == here != ours
    ):
        del sys.path[0]
