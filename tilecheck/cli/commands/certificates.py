"""`verify --certify` and `certificate check`: proofs that another program proves again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cli.command import Verb
from tilecheck.cli.streams import Streams
from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError, UsageError, refusal
from tilecheck.exit_codes import ExitCode
from tilecheck.model import Report

if TYPE_CHECKING:
    import argparse

    from tilecheck.certificate.check import Checked
    from tilecheck.cli.engine import Engine


def add(verb: Verb) -> None:
    certificate = verb("certificate", check_certificates, "check the certificates that verify --certify wrote")
    certificate.add_argument("action", choices=("check",), metavar="check", help="the only action so far")
    certificate.add_argument("folder", metavar="DIR", help="the folder with the certificates")
    certificate.add_argument(
        "--source", metavar="PATH",
        help="the folder in which verify ran: check too that the sources have not changed since",
    )  # fmt: skip


def prepare_folder(name: str) -> None:
    """Make an empty folder for certificates or queries: those of another run must not stand beside them."""
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"{name} is not empty", "name a folder that does not exist yet")
    except OSError as error:
        raise UsageError(f"cannot write to {name}: {refusal(error)}") from None


def write_index(name: str, report: Report, streams: Streams) -> None:
    """Write the index of the folder `name`, last of all, and say what it holds."""
    from tilecheck.certificate.index import INDEX, Kernel, digests, folder_name, kernels_text  # lazy

    kernels: list[Kernel] = []
    for kernel in report.kernels:
        folder = folder_name(kernel.site.file, kernel.name)
        if any(k.folder == folder for k in kernels):
            raise UsageError(
                f"the certificates of two kernels would share the folder {folder}", "certify them one at a time"
            )
        written = folder if kernel.obligations or (Path(name) / folder).is_dir() else ""
        sources = {} if kernel.terms is None else dict(kernel.terms.files)
        try:
            files = digests(Path(name) / written) if written else {}
        except OSError as error:
            raise UsageError(f"cannot read {Path(name) / written}: {refusal(error)}") from None
        verdict = kernel.verdict.value
        kernels.append(Kernel(kernel.site.file, kernel.name, verdict, written, files, sources))
    try:
        (Path(name) / INDEX).write_text(kernels_text(kernels), encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"cannot write to {name}: {refusal(error)}") from None
    streams.log(f"tilecheck: certificates in {name}; `tilecheck certificate check {name}` checks them")


def check_certificates(arguments: argparse.Namespace, streams: Streams, engine: Engine) -> ExitCode:
    """Prove every obligation in a folder of certificates again, and say which are not."""
    from tilecheck.certificate.check import Checker  # lazy
    from tilecheck.certificate.index import INDEX  # lazy
    from tilecheck.certificate.second_solver import ask, is_installed  # lazy
    from tilecheck.certificate.terms import CertificateError  # lazy

    folder = Path(arguments.folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "`tilecheck verify PATH --certify DIR` writes certificates")
    if not (folder / INDEX).exists():
        raise UsageError(
            f"{folder} holds no certificates: {INDEX} is missing", "an interrupted `verify` leaves none"
        )
    if arguments.source is not None and not Path(arguments.source).is_dir():
        raise UsageError(f"{arguments.source} is no folder", "name the folder in which `verify` ran")
    if not is_installed():
        raise UsageError("cvc5 is not installed, and checks certificates", "pip install 'tilecheck[certify]'")
    results: list[Checked] = []
    error = ""
    try:
        source = None if arguments.source is None else _Sources(Path(arguments.source)).digest
        for checked in Checker(ask).check(folder, source):
            results.append(checked)
            if checked.error:
                streams.out(f"error: {_named(checked)}\n  {checked.error}\n")
    except CertificateError as problem:
        error = str(problem)
        streams.out(f"error: {folder}: {error}\n")
    streams.out(_summary(results, compared=arguments.source is not None))
    return ExitCode.FINDINGS if error or any(r.error for r in results) else ExitCode.OK


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where the sources of certified kernels lie. Names of files are as `verify` was given them."""

    folder: Path

    def digest(self, name: str) -> str:
        """The SHA-256 of the text of a source, "" for one that cannot be read."""
        from tilecheck.certificate.index import digest  # lazy: only on demand
        from tilecheck.text import decode

        try:
            return digest(decode(name, (self.folder / name).read_bytes()).data)
        except (OSError, SourceError):
            return ""


def _named(checked: Checked) -> str:
    kernel, obligation = checked.kernel, checked.obligation
    if obligation is None:
        return f"`{kernel.name}` of {kernel.file}"
    file = f" ({obligation.goal})" if obligation.goal else ""
    return (
        f"{obligation.rule} at {obligation.place} of `{kernel.name}` is not proved again: "
        f"never that {obligation.cause}{file}"
    )


_HOW = {
    "linear": "proved again in linear arithmetic",
    "nonlinear": "proved again in non-linear arithmetic",
    "language": "about the order of accesses, which the language answers",
    "none": "without a proof",
}


def _summary(results: list[Checked], *, compared: bool) -> str:
    counts = Counter("rejected" if r.error else r.how for r in results if r.obligation is not None)
    kernels = len({(r.kernel.file, r.kernel.name) for r in results})
    parts = [f"{counts[how]} {text}" for how, text in _HOW.items() if counts[how]]
    parts += [f"{counts['rejected']} rejected"] if counts["rejected"] else []
    wrong = Counter((r.kernel.file, r.kernel.name) for r in results if r.obligation is None)
    parts += [f"{len(wrong)} kernels changed"] if wrong else []
    sources = "" if compared else "; not compared with their sources (--source)"
    return f"{counts.total()} obligations of {kernels} kernels: {', '.join(parts) or 'none'}{sources}\n"
