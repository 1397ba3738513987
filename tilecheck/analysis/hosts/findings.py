"""What a query over the host borrow graph finds."""

from __future__ import annotations

from tilecheck.analysis.hosts.regions import Answer, Meeting
from tilecheck.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class HostFinding:
    """Two steps of a host program that break a rule together.

    `first` and `second` are indices of actions: -1 for what the caller did before, the number of actions for
    what it does afterwards. `holders` are the nodes of the graph. A finding is certain if it is `exact` and
    its `meeting` has values.
    """

    code: str
    first: int
    second: int
    memory: str
    exact: bool
    meeting: Meeting
    holders: tuple[str, str]

    @property
    def certainty(self) -> int:
        """2 if every run has the overlap with the sizes of the meeting, 1 if some element may be shared."""
        if self.meeting.answer is not Answer.MEET:
            return 0
        return 2 if self.exact else 1
