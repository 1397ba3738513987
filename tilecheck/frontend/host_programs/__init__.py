"""Reads host functions into the programs of what they ask of the device (`ir/host_program.py`).

Functions are read by running their text with unknown inputs, one path at a time (`choices`). A path keeps what
has been enqueued, recorded, captured and given back (`machine`), by the calls that it meets (`calls`,
`streams`, `tensors`, `launches`). Loops are read for as many rounds as stand for all (`loops`). What is not
understood and may touch streams, graphs or memory makes the function unread.

What is read rests on these premises:

- Code that is not in view works on the current stream, and orders what it does elsewhere before it returns. It
  keeps no tensor that it is given, unless it is told to store it.
- An object that is not in view touches what it holds and what it is given. A call of it may write what it holds
  alone; a method may write what objects share, as an optimizer and its model do. What is put into a container
  may be what is taken from it.
- What stands in arithmetic on another stream or in a capture may be a tensor, unless it is used as a number.
- Tensors that the caller passes under different names share no memory, and all lie on one device.
- Streams and events that the caller passes, or gets back, are ordered by the caller. A function that does no
  more with a stream of the caller than to launch cuTile kernels on it is called with the current one.
- The caller of a method, or of a generator, uses what it gets before it goes on, and then drops it.
- Sizes are positive, and slices lie inside their tensors. A loop that replays a graph runs at least once.
- Exceptions come from `raise` and `assert` alone. Nothing but the program's names keeps memory (no autograd).
"""

from __future__ import annotations

from tilecheck.frontend.host_programs.hosts import HostFunction, read_host_programs

__all__ = ["HostFunction", "read_host_programs"]
