"""The exit codes, in one table."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """4 wins over 1, 1 over 3; 2 only if nothing could be analysed."""

    OK = 0  # every kernel proved, conditional or trusted, and no finding at or above --fail-on
    FINDINGS = 1  # at least one finding at or above --fail-on
    USAGE = 2  # the invocation is wrong, a path is missing or unreadable, or verify found no kernels
    UNDECIDED = 3  # nothing found, but a kernel is unknown or a file does not parse
    INTERNAL = 4  # a bug in tilecheck
    INTERRUPTED = 130
