"""Checks a folder of certificates: every obligation is proved again, by another solver, from what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tilecheck.certificate.index import (
    CERTIFIED,
    Kernel,
    Obligation,
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


@dataclass(frozen=True, slots=True)
class Checked:
    """One obligation. `how` it was proved again: linear | nonlinear | language (which answers goals about
    order) | none (it was never proved); or an `error` that says why its certificate is rejected."""

    kernel: Kernel
    obligation: Obligation
    how: str = ""
    error: str = ""


@dataclass
class Checker:
    """Asks each question once: many obligations of a kernel are alike. Mutable: it remembers."""

    ask: Ask
    _answers: dict[str, str] = field(default_factory=dict)

    def check(self, folder: Path) -> Iterator[Checked]:
        """Check every obligation in a folder of certificates.

        Raises:
            CertificateError: the index of the folder, or of one of its kernels, is missing or damaged.
        """
        for kernel in read_kernels(folder):
            obligations = read_obligations(folder / kernel.folder) if kernel.folder else []
            _demand_verdict(kernel, obligations)
            for obligation in obligations:
                yield self._checked(folder, kernel, obligation)

    def _checked(self, folder: Path, kernel: Kernel, obligation: Obligation) -> Checked:
        try:
            return Checked(kernel, obligation, how=self._how(folder / kernel.folder, obligation))
        except CertificateError as error:
            return Checked(kernel, obligation, error=str(error))

    def _how(self, folder: Path, obligation: Obligation) -> str:
        if obligation.status not in CERTIFIED:
            return "none"
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
