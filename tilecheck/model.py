"""The values that cross stages: places in files, findings, verdicts, reports. Frozen, no imports of ours."""

from __future__ import annotations

import enum
from dataclasses import field

from tilecheck.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A byte range of a file, end exclusive. Lines and columns are computed at the edge, by `report`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Site:
    """A span in a file; `file` is the path as the user gave it, POSIX style."""

    file: str
    span: Span


class Severity(enum.IntEnum):
    """How bad a finding is; the order is strength."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        return self.name.lower()


class Verdict(enum.Enum):
    """One word for each kernel."""

    PROVED = "proved"
    CONDITIONAL = "conditional"
    TRUSTED = "trusted"
    VIOLATED = "violated"
    UNKNOWN = "unknown"


class Reason(enum.Enum):
    """Why a kernel is unknown; a closed list, each word documented by `tilecheck explain`."""

    UNSUPPORTED = "unsupported"  # written `unsupported:<construct>`
    BUDGET = "budget"
    NONLINEAR = "nonlinear"
    NEEDS_CONTRACT = "needs-contract"
    LAUNCH = "launch"
    VACUOUS = "vacuous"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that a finding speaks of."""

    site: Site
    message: str


class Literal(str):
    """Text that means what it says: names of a host function's values stand among those of the kernel's."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Witness:
    """A replayed counterexample: the launch, one or two blocks, and the element that they touch. One of `order`
    has no launch: two steps of a host function touch the element.

    `values` maps the user's names (`x.shape[0]`, `T`, `grid[0]`) to integers or to short lists of memory
    contents; `blocks` and `element` are index tuples.
    """

    kind: str  # overlap | bounds | undefined | overflow | ownership | alias | order
    grid: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]
    values: dict[str, int | list[int]]
    array: str
    element: tuple[int, ...] | None = None
    lanes: tuple[tuple[int, ...], ...] | None = None
    iterations: tuple[tuple[int, ...], ...] | None = None
    replayed: bool = True


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why a finding is out of the exit code although it stands.

    `kind` is "inSource" for a comment beside the code, "external" for what is written elsewhere: the
    configuration or a baseline.
    """

    kind: str  # inSource | external
    reason: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `message` stands alone; `label` is short and is printed under the source line."""

    code: str
    name: str
    severity: Severity
    message: str
    site: Site
    kernel: str | None = None
    label: str | None = None
    related: tuple[Related, ...] = ()
    witness: Witness | None = None
    notes: tuple[str, ...] = ()
    help: str | None = None
    suppression: Suppression | None = None

    @property
    def suppressed(self) -> bool:
        """Whether it is out of the exit code. It stays in the report, and the verdict stays as it is."""
        return self.suppression is not None


@dataclass(frozen=True, slots=True)
class ConditionAt:
    """A requirement at one visible launch, and whether the host's text meets it."""

    text: str
    status: str  # holds | caller | unmet | broken
    witness: Witness | None = None  # the replayed launch that breaks it


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """One visible launch and how its text meets each requirement.

    An `unread` launch is one whose text is not understood: `problem` says why. A `guarded` launch goes through
    `tilecheck.launch` or `tilecheck.verified`, which check launch values when it happens, and contracts on
    values in memory if it `checks_contracts`. The status `guarded` is that of launches through
    `tilecheck.host`, whose text is not looked at: the same check is all that they have.
    """

    site: Site
    conditions: tuple[ConditionAt, ...]
    status: str = "read"  # read | guarded | unread
    problem: str = ""
    function: str = ""  # the host function that launches
    guarded: bool = False
    checks_contracts: bool = False

    @property
    def is_read(self) -> bool:
        return self.status == "read"

    @property
    def is_unread(self) -> bool:
        return self.status == "unread"


@dataclass(frozen=True, slots=True)
class Premise:
    """A contract that a verdict rests on. Launches in view show it or check it, or it is somebody's word."""

    text: str
    reason: str | None
    origin: str  # source | config | pack | gate
    status: str = "promised"  # holds | guarded | promised


@dataclass(frozen=True, slots=True)
class ObligationReport:
    """What became of one obligation, and the rung that settled it."""

    rule: str
    verdict: str  # proved | conditional | trusted | violated | unknown
    rung: str  # provenance | fold | entail | digits | smt | launch | none
    sites: tuple[Site, ...]
    time_ms: float


@dataclass(frozen=True, slots=True)
class TrustedBlock:
    """An unsafe block that a verdict rests on."""

    site: Site
    reason: str


@dataclass(frozen=True, slots=True)
class ParamReport:
    """A parameter and what the kernel does with it."""

    name: str
    ownership: str  # mut | shared | value | constant | unused
    declared: bool
    array: bool = False
    rank: int | None = None
    members: bool = False  # a list or tuple of arrays
    scalar: str = ""  # the type of number that its annotation names: int, bool, float, str or nothing
    wide: bool = False  # annotated as 64 bits wide
    integer: bool = False  # its value is used as an integer, or its elements are
    updated: bool = False  # what a launch leaves in it depends on what was in it: it is read as well, or atomic
    alike: bool = False  # its elements are of one size with those of others, and it is aligned as they are (S7)


@dataclass(frozen=True, slots=True)
class GlobalName:
    """What a module-level name was to the proof: a plain value, the function whose name is at `site`, the
    module of the project in the file `module`, or what a library calls `library` (`cuda.tile.load`).

    `name` is dotted for a field of a class or object (`Config.TILE`).
    """

    file: str
    name: str
    value: object = None
    site: Site | None = None
    module: str = ""
    library: str = ""


@dataclass(frozen=True, slots=True)
class StatedContract:
    """A named contract on what is in memory when a launch begins: its arrays, and its numbers as Python
    expressions like the conditions. `text` is what the author wrote. `part` are the elements it speaks of, for
    each axis the first index and the step, 0 for a single index; without axes it speaks of all."""

    kind: str
    arrays: tuple[str, ...]
    bounds: tuple[str, ...]
    text: str
    part: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchTerms:
    """What a launch must meet beside the conditions, for the guard.

    `files` are the kernel's file and all that its verdict was read from, each with the SHA-256 of its text
    as it was read (`Source.data`). `grid_axes` are the grid axes that the kernel reads. `requires` are the
    author's preconditions on launch values and `limits` the sizes at which S5 holds, both as Python expressions
    like the conditions. `large` are the numbers of elements of tiles that have to be as large as a program has
    threads (S8), as such expressions. `globals` are names of modules that the proof read, `contracts` what it
    took for true of values in memory.
    """

    files: tuple[tuple[str, str], ...]
    grid_axes: tuple[int, ...]
    requires: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    large: tuple[str, ...] = ()
    globals: tuple[GlobalName, ...] = ()
    contracts: tuple[StatedContract, ...] = ()


@dataclass(frozen=True, slots=True)
class Touched:
    """The arrays that a part of a kernel loads, and those that it stores or updates atomically."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """What a kernel touches before and after it waits for the launches before its own.

    It waits `always` if each of its programs does, whatever the launch. All of this is said of launches in
    which the compile-time parameters `needs` are true.
    """

    always: bool
    before: Touched
    after: Touched
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelReport:
    """What the user learns of one kernel."""

    name: str
    language: str
    site: Site
    verdict: Verdict
    reason: str | None = None  # only for UNKNOWN: `budget`, `unsupported:match statement`, ...
    reason_site: Site | None = None
    conditions: tuple[str, ...] = ()
    standing: tuple[str, ...] = ()
    launches: tuple[LaunchReport, ...] = ()
    trusted: tuple[TrustedBlock, ...] = ()
    premises: tuple[Premise, ...] = ()
    params: tuple[ParamReport, ...] = ()
    obligations: tuple[ObligationReport, ...] = ()
    launch_order: LaunchOrder | None = None  # None when it never waits for other launches
    terms: LaunchTerms | None = None  # None when the kernel could not be read
    cached: bool = False
    time_ms: float = 0.0
    steps: int = 0  # what its obligations cost the solver, in its resource units: the same at every run
    internal_error: str | None = None  # traceback text, when a bug of ours ended the analysis
    accepted: bool = False  # unknown, as the baseline has it: no reason to fail the run

    @property
    def requires(self) -> tuple[str, ...]:
        """The texts of the premises, each once."""
        return tuple(dict.fromkeys(premise.text for premise in self.premises))


@dataclass(frozen=True, slots=True)
class HostReport:
    """What the user learns of one host function that uses streams, events, graphs, dependent launches or
    asynchronous copies. It is `guarded` if all that is not decided goes through `tilecheck.host`, which refuses
    what is out of order as it runs. `reason` and `reason_site` say why it is unread, and where; `findings` are
    the rules that it breaks."""

    name: str
    site: Site
    status: str  # ordered | guarded | violated | unread
    reason: str = ""
    reason_site: Site | None = None
    findings: tuple[str, ...] = ()
    internal_error: str | None = None  # traceback text, when a bug of ours ended the analysis


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one run. `sources` maps each file that a site names to its bytes."""

    kernels: tuple[KernelReport, ...]
    diagnostics: tuple[Diagnostic, ...]
    files: int
    unreadable: tuple[str, ...] = ()  # files that could not be read or parsed (each has a TC901)
    skipped: tuple[tuple[str, str], ...] = ()  # files and folders in which no kernel was looked for, and why
    time_s: float = 0.0
    parse_time_s: float = 0.0
    sources: dict[str, bytes] = field(default_factory=dict)
    not_kept: str = ""  # the folder in which results should have been kept, and why they are not
    baselined: int = 0  # findings that the baseline suppresses
    since: str = ""  # the revision of which `unchanged` speaks
    unchanged: tuple[tuple[str, str], ...] = ()  # kernels that were not looked at: file and name
    hosts: tuple[HostReport, ...] = ()

    @property
    def judged(self) -> tuple[KernelReport | HostReport, ...]:
        """All that a run says something of."""
        return (*self.kernels, *self.hosts)

    def count(self, verdict: Verdict) -> int:
        return sum(1 for kernel in self.kernels if kernel.verdict is verdict)
