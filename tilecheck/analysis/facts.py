"""What the rules are given: one kernel and its borrow graph."""

from __future__ import annotations

from tilecheck.analysis.borrow import BorrowGraph
from tilecheck.dataclass import dataclass
from tilecheck.ir.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Facts:
    """The results of analysis for one kernel."""

    kernel: Kernel
    graph: BorrowGraph
