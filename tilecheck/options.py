"""What one run is asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from tilecheck.model import Severity

RUNGS = ("provenance", "fold", "entail", "digits", "smt", "launch")
DEFAULT_BUDGET = 2_000_000


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that changes the result of a run, apart from the paths.

    `without` names the rungs that are left out. `budget` is the solver's deterministic resource limit for
    one obligation. `jobs` is how many processes may work; it changes the time alone. The last three decide the
    exit code alone.
    """

    without: frozenset[str] = frozenset()
    budget: int = DEFAULT_BUDGET
    jobs: int = 1
    certify: str | None = None  # a folder for certificates
    dump_smt: str | None = None  # a folder for the queries that decided obligations
    fail_on: Severity = Severity.ERROR
    undecided_fails: bool = True  # an unknown kernel ends the run with 3 (`verify`), or not (`check`)
    needs_kernels: bool = True  # a run that finds no kernels ends with 2 (`verify`), or not (`check`)
