"""An oracle for host programs: the machine that runs them, and every collision that some run of it shows.

`hazards` takes a `HostProgram` with numbers for its sizes. `host` does its actions, which puts items into the
queues of streams or of captured graphs; `machine` runs the parts of the items in every order that the queues
allow; `races` looks for two parts that touch one element at once; `ownership` follows what the host alone
does, in its order, to memory, graphs and values. It shares nothing with the analysis that it is a check of.

The machine is the one of `ir/host_program.py`. Where that leaves something open:

- The caller. Work on the caller's stream writes all device memory that was handed in before the first action
  (index -1), and may still run. After the last action (index `len(actions)`) work on that stream reads what is
  returned and all that was handed in, host memory too. Whether the caller may write what was handed in while
  work on another stream still reads it is for the caller to know.
- `Free` of device memory. The next owner may use the whole of it from the moment at which the last item of the
  memory's stream, and of each stream in `also_after`, has ended, as they were at the `Free`. Items that are
  enqueued later do not wait for the next owner, and nothing orders it before them: in a caching allocator
  the memory is anybody's who allocates on that stream. A stream that is being captured counts with what it
  held before. Freed host memory has its next owner at once (after `also_after`, if that is given).
- `Free` of memory in the pool of a graph. It has no next owner until the graph is destroyed. What a later
  `Allocate` during a capture gets from the same pool on the same stream may lie in it: then a conflict of the
  two is a conflict of one memory. An allocation of the same capture does not get it if `also_after` names
  other streams, because no event ends in a capture. `Destroy` gives what had been freed to the pool to the
  next owner, after all that was enqueued. What the program still owns stays its own.
- Copies of pageable memory (`Work` that is no launch). The host goes on when it has read the pageable
  memory, or when the copy that writes it has ended.
- Dependent launches that need not wait (`waits` is false): on some paths the part after the wait waits for
  the launch before and runs; on others it is left out, and the launch may end before that one.
- `Record` is no item: a launch after it is still right behind the one before it. `Await` is one. An event
  that was recorded outside a capture orders nothing inside, nor the other way round.
- Each `Allocate` of a name is memory of its own.

Which two actions, and which code:

- For work of a replayed graph the action is the `Replay`; for two works of one replay, the captured actions.
- A race has the first code that fits: TC421 the next owner of freed memory and a replay; TC413 the next owner
  (TC415 where host memory was freed after the work was enqueued); TC414 the caller's work after the program;
  TC415 the host's touch; TC425 two replays; TC413 memory that a pool handed out again. Then, if the two would
  be ordered were no launch dependent, and the later one's part is before its wait, TC431, or TC432 if that
  launch need not wait; if it is not, TC433. Else TC411.
- TC412: the `Move`, and a `Work`, `Touch`, `Move` or `Replay` that uses the memory; not by what it moved into.
- TC413 for memory of a pool: the `Free`, and a `Work` or `Touch` of the program.
- TC421: the `Destroy`, and a `Replay` of that graph.
- TC422: the `Capture`, and the `Forbidden`, `Join`, second `Capture`, `Allocate` of device or pinned memory
  outside any pool, or captured `Work` on pageable memory.
- TC423 and TC424: the last `Rebind`, and the `Replay`. TC423 if a memory of the program has that name.
- TC426: the captured `Work`, and the read before any replay (no read is a `return`); or the first `Replay`
  that writes the memory after the `Keep`, and the `UseKept`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.ir.expr import FALSE
from tilecheck.ir.host_program import HostProgram
from tilecheck.proof.interleavings.hazard import Hazard
from tilecheck.proof.interleavings.host import Host
from tilecheck.proof.interleavings.ownership import Ownership
from tilecheck.proof.interleavings.races import races


def hazards(program: HostProgram) -> tuple[Hazard, ...]:
    """Every hazard that some interleaving of the program shows, in the order of its actions.

    Args:
        program: all bounds of its regions are numbers (`HostProgram.at`).

    Raises:
        ValueError: a bound is no number, the facts do not hold, or the program is malformed: it names unknown
            memory, replays a graph that is not complete, or has boxes of different ranks in one memory.
    """
    if FALSE in program.facts:
        raise ValueError("the sizes contradict the program's facts")
    found: dict[tuple[str, int, int, str], Hazard] = {}
    for hazard in _all(program):
        known = found.get(hazard.key)
        if known is None or (hazard.exact and not known.exact):
            found[hazard.key] = hazard
    return tuple(sorted(found.values(), key=lambda hazard: (hazard.first, hazard.second, hazard.key)))


def _all(program: HostProgram) -> Iterator[Hazard]:
    host = Host(program)
    ownership = Ownership(host)
    for index, action in enumerate(program.actions):
        yield from ownership.see(index, action)
        host.step(action)
    host.leave()
    yield from races(host)
