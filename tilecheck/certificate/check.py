"""Checks a folder of certificates: every obligation is proved again, by another solver, from what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tilecheck.certificate.index import (
    CERTIFIED,
    OBLIGATIONS,
    Kernel,
    Obligation,
    digest,
    read_kernels,
    read_obligations,
    read_text,
)
from tilecheck.certificate.linear import linear_query
from tilecheck.certificate.reader import parsed
from tilecheck.certificate.terms import CertificateError

# The one rule with goals that are no formulas: the language chains the accesses of an array by tokens.
_ABOUT_ORDER = "TC204"
Ask = Callable[[str], str]  # from a query to "unsat", "sat" or "unknown"


Digest = Callable[[str], str]  # from the name of a source to the SHA-256 of its text, "" where there is none


@dataclass(frozen=True, slots=True)
class Checked:
    """One obligation. `how` it was proved again: linear | nonlinear | language (which answers goals about
    order) | none (it was never proved); or an `error` that says why its certificate is rejected. Without an
    `obligation` the error is about the kernel."""

    kernel: Kernel
    obligation: Obligation | None
    how: str = ""
    error: str = ""


@dataclass
class Checker:
    """Asks each question once: many obligations of a kernel are alike. Mutable: it remembers."""

    ask: Ask
    _answers: dict[str, str] = field(default_factory=dict)

    def check(self, folder: Path, source: Digest | None = None) -> Iterator[Checked]:
        """Check every obligation in a folder of certificates, and that none is missing. With `source`, check
        too that the sources of the kernels are those that were certified.

        Raises:
            CertificateError: the index of the folder is missing or damaged.
        """
        for kernel in read_kernels(folder):
            yield from (Checked(kernel, None, error=error) for error in _changed_files(folder, kernel))
            if source is not None:
                yield from (Checked(kernel, None, error=error) for error in _changed_sources(kernel, source))
            try:
                obligations = read_obligations(folder / kernel.folder) if kernel.folder else []
                _demand_verdict(kernel, obligations)
                _demand_sources(kernel)
            except CertificateError as error:
                yield Checked(kernel, None, error=str(error))
                continue
            for obligation in obligations:
                yield self._checked(folder, kernel, obligation)

    def _checked(self, folder: Path, kernel: Kernel, obligation: Obligation) -> Checked:
        try:
            return Checked(kernel, obligation, how=self._how(folder / kernel.folder, kernel, obligation))
        except CertificateError as error:
            return Checked(kernel, obligation, error=str(error))

    def _how(self, folder: Path, kernel: Kernel, obligation: Obligation) -> str:
        if obligation.status not in CERTIFIED:
            return "none"
        if not {obligation.goal, obligation.query} <= {"", *kernel.files}:
            raise CertificateError("its files are not among those of the kernel")
        if not obligation.goal:
            if (obligation.rule, obligation.rung, obligation.query) != (_ABOUT_ORDER, "provenance", ""):
                raise CertificateError("no file says what its goal is")
            return "language"
        goal = read_text(folder / obligation.goal)
        query = read_text(folder / obligation.query) if obligation.query else ""
        return self._prove(goal, query)

    def _prove(self, goal: str, query: str) -> str:
        """Refute the goal's negation: nothing of `query` is believed, it must be what the goal leads to."""
        certificate = parsed(goal)
        built = linear_query(certificate.terms, [*certificate.assertions, *certificate.lemmas])
        if query and query != built:
            raise CertificateError("its linear query is not what its goal, premises and lemmas lead to")
        answer = self._answer(built if query else goal)
        if answer == "sat":
            raise CertificateError("its goal does not follow from its premises and lemmas: cvc5 says `sat`")
        if answer != "unsat":
            raise CertificateError("cvc5 cannot tell whether its goal holds: a limit was reached")
        return "linear" if query else "nonlinear"

    def _answer(self, query: str) -> str:
        if query not in self._answers:
            self._answers[query] = self.ask(query)
        return self._answers[query]


def _demand_verdict(kernel: Kernel, obligations: list[Obligation]) -> None:
    """A kernel is proved, with or without conditions, only if each of its obligations is."""
    certified = kernel.folder and all(o.status in CERTIFIED for o in obligations)
    if kernel.verdict in CERTIFIED and not certified:
        raise CertificateError(f"`{kernel.name}` of {kernel.file} is {kernel.verdict}, its obligations are not")


def _changed_files(folder: Path, kernel: Kernel) -> Iterator[str]:
    """What was changed, exchanged or removed since it was written: an obligation too, since all are listed."""
    if kernel.folder and OBLIGATIONS not in kernel.files:
        yield f"the list of its obligations, {OBLIGATIONS}, is not among its files"
    for name, expected in kernel.files.items():
        try:
            found = digest((folder / kernel.folder / name).read_bytes())
        except OSError:
            yield f"{name} is missing"
            continue
        if found != expected:
            what = "the list of obligations" if name == OBLIGATIONS else name
            yield f"{what} is not what was written: its SHA-256 differs"


def _changed_sources(kernel: Kernel, source: Digest) -> Iterator[str]:
    for name, expected in kernel.sources.items():
        found = source(name)
        if not found:
            yield f"its source {name} cannot be read"
        elif found != expected:
            yield f"its source {name} is not what was certified: its SHA-256 differs"


def _demand_sources(kernel: Kernel) -> None:
    """A kernel whose source is not named could be any other's."""
    if kernel.verdict in CERTIFIED and kernel.file not in kernel.sources:
        raise CertificateError(f"no SHA-256 says what {kernel.file} held")
