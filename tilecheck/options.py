"""What one run is asked to do."""

from __future__ import annotations

from tilecheck.dataclass import dataclass
from tilecheck.model import Severity

RUNGS = ("provenance", "fold", "entail", "covers", "digits", "tables", "smt", "launch")
DEFAULT_BUDGET = 2_000_000
DEMANDS = ("proved", "launches", "conditional")  # what `--require` may ask of a kernel, the strictest first
# Of reports; `report.formats` has the same names.
FORMATS = ("full", "concise", "grouped", "json", "json-lines", "sarif", "github", "gitlab", "junit")


@dataclass(frozen=True, slots=True)
class ConfigChoice:
    """What a run says of its configuration.

    `values` are what flags and variables say: a key of `[tool.tilecheck]`, its value as TOML has it, and who
    says it. They take the place of what a file says; what says `ignore` or `extend-exclude` adds to it.
    """

    file: str | None = None  # read instead of those that lie above the paths
    isolated: bool = False  # read no file
    values: tuple[tuple[str, object, str], ...] = ()
    force_exclude: bool = False  # patterns keep out paths that are named, too


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that changes the result of a run, apart from the paths.

    `without` names the rungs that are left out. `budget` is the solver's deterministic resource limit for
    one obligation. `jobs` is how many processes may work; it changes the time alone. Those from `fail_on` to
    `require` decide the exit code alone. With `propose`, contracts that a report names are verified: no verdict
    changes. With `trust_source` the gate takes contracts that stand in a source.
    """

    without: frozenset[str] = frozenset()
    budget: int = DEFAULT_BUDGET
    jobs: int = 1
    config: ConfigChoice = ConfigChoice()
    certify: str | None = None  # a folder for certificates
    dump_smt: str | None = None  # a folder for the queries that decided obligations
    since: str | None = None  # leave out kernels that are as they were at this revision of git
    cache: str | None = None  # a folder with the results of earlier runs; it changes the time alone
    progress: bool = False  # show on standard error how far the run is, if it takes long
    fail_on: Severity = Severity.ERROR
    undecided_fails: bool = True  # an unknown kernel ends the run with 3 (`verify`), or not (`check`)
    needs_kernels: bool = True  # a run that finds no kernels ends with 2 (`verify`), or not (`check`)
    require: str = "conditional"  # what is asked of every kernel, one of DEMANDS
    propose: bool = False
    trust_source: bool = False
