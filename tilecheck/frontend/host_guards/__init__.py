"""Whether all that a host function leaves in flight goes through `tilecheck.host`, which checks it as it runs.

The order of such work is not decided here: the library compares each piece with what is in flight, and refuses
what is not in order. What has to be shown is that nothing goes past it. So this reads the function, and all of
the project's code that it may run, without regard to paths, and asks of each call what it may be:

- one of the library's, on handles, or on memory that nobody else names;
- a function of the project, which is read as well;
- Python, NumPy, or work of PyTorch on the current stream, which the library knows of.

Everything else is a reason why the function is not guarded: streams, events and graphs of others, asynchronous
copies, callbacks that are not in view, drivers and kernels of the program's own. So is what the library cannot
see of graphs: a number or array that a capture keeps and that changes afterwards.
"""

from __future__ import annotations

from tilecheck.frontend.host_guards.guards import Guarding, Guards

__all__ = ["Guarding", "Guards"]
