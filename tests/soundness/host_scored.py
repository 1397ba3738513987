"""Verifies drawn host functions and compares their records with the rules that their plans break."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from soundness_host_sources import KINDS, UNMUTATED, Function, drawn

from tilecheck.model import Report
from tilecheck.options import Options
from tilecheck.verify.pipeline import verify_source


class Came(enum.Enum):
    """What became of a function. The order is that of the table."""

    FOUND = "found"  # wrong, with a code that it deserves
    OTHER = "other code"  # wrong, with none of them
    UNREAD = "unread"
    PASSED = "passed"


@dataclass(frozen=True)
class Scored:
    """One function of the module of a seed."""

    seed: int
    family: str
    function: Function
    came: Came
    codes: frozenset[str]
    reason: str

    @property
    def is_wrong(self) -> bool:
        return bool(self.function.codes)

    @property
    def is_missed(self) -> bool:
        """A wrong function passes."""
        return self.is_wrong and self.came is Came.PASSED

    @property
    def is_false_alarm(self) -> bool:
        """A right function is refused, or a wrong one for what it does not do."""
        return self.came in {Came.FOUND, Came.OTHER} and not self.codes <= self.function.codes

    def __str__(self) -> str:
        deserved, said = (", ".join(sorted(codes)) or "none" for codes in (self.function.codes, self.codes))
        where = f"seed {self.seed}, {self.function.name} ({self.family}, {self.function.kind})"
        return f"{where}: deserves {deserved}; {self.came.value}: {said} {self.reason}".rstrip()


def scored(seed: int, most: int = 12) -> list[Scored]:
    """The functions of one seed."""
    module = drawn(seed, most)
    report = verify_source(module.text.encode(), f"host_{seed}.py", Options())
    return [_one(seed, module.family, function, report) for function in module.functions]


def _one(seed: int, family: str, function: Function, report: Report) -> Scored:
    """A function without a record uses nothing that needs an order."""
    records = [host for host in report.hosts if host.name == function.name]
    codes = frozenset(code for host in records for code in host.findings)
    came = Came.PASSED
    if codes:
        came = Came.FOUND if codes & function.codes else Came.OTHER
    elif any(host.status == "unread" for host in records):
        came = Came.UNREAD
    return Scored(
        seed, family, function, came, codes, "; ".join(host.reason for host in records if host.reason)
    )


def table(found: Iterable[Scored]) -> str:
    """The confusion matrix: for each kind of mutant what became of the wrong and of the right ones."""
    listed = list(found)
    counts = Counter((s.function.kind, s.is_wrong, s.came) for s in listed)
    width = max(map(len, (UNMUTATED, *KINDS, "all")))
    columns = [(wrong, came) for wrong in (True, False) for came in Came]
    names = [came.value if came is not Came.FOUND or wrong else "refused" for wrong, came in columns]
    cells = max(map(len, names)) + 2
    lines = [f"{'':{width}}  {'wrong':<{cells * len(Came)}}  right"]
    lines.append(" " * width + "".join(f"{name:>{cells}}" for name in names))
    for kind in (UNMUTATED, *KINDS, "all"):
        kinds = {kind} if kind != "all" else {UNMUTATED, *KINDS}
        row = [sum(counts[(k, *column)] for k in kinds) for column in columns]
        lines.append(f"{kind:{width}}" + "".join(f"{number:>{cells}}" for number in row))
    return "\n".join(lines)
