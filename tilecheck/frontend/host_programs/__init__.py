"""Reads host functions into the programs of what they ask of the device (`ir/host_program.py`).

Functions are read by running their text with unknown inputs, one path at a time (`choices`). A path keeps what
has been enqueued, recorded, captured and given back (`machine`), by the calls that it meets (`calls`,
`streams`, `tensors`, `launches`). Loops are read for as many rounds as stand for all (`loops`). What is not
understood and may touch streams, graphs or memory makes the function unread.
"""

from __future__ import annotations

from tilecheck.frontend.host_programs.hosts import HostFunction, read_host_programs

__all__ = ["HostFunction", "read_host_programs"]
