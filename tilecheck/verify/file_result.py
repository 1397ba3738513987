"""What the analysis of one file gives, or a cache in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilecheck.dataclass import dataclass
from tilecheck.model import Diagnostic, HostReport, KernelReport
from tilecheck.verify.discover import Candidate

if TYPE_CHECKING:
    from tilecheck.frontend.text.pragmas import Pragma

Work = tuple[Candidate, tuple[Candidate, ...]]  # a file, and those that may launch its kernels


@dataclass(frozen=True, slots=True)
class FileResult:
    """What one file gave."""

    kernels: tuple[KernelReport, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    pragmas: tuple[Pragma, ...] = ()
    hosts: tuple[HostReport, ...] = ()
    unreadable: bool = False
    parse_time_s: float = 0.0
    data: bytes | None = None  # the text in UTF-8: the bytes that spans count
