"""Each hazard of the oracle by a program that has it, and its twin with one edit that has none."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from proof_host_text import program

from tilecheck.proof.interleavings import hazards


@dataclass(frozen=True)
class Twin:
    """A program that is right with the lines marked `?` and without those marked `-`, and else wrong."""

    name: str
    text: str
    found: str  # code first second memory, separated by commas
    memories: str = "x y"
    returned: str = ""

    def program(self, *, right: bool):
        """Indices of actions are those of the program with the line, which else does nothing."""
        lines = []
        for line in map(str.strip, self.text.strip().splitlines()):
            kept = line[1:].strip() if line[0] in "?-" else line
            dropped = line[0] in "?-" and (line[0] == "?") is not right
            lines.append("rebind nothing" if dropped else kept)
        return program("\n".join(lines), self.memories, self.returned)

    @property
    def expected(self) -> set[tuple[str, int, int, str]]:
        parts = (one.split() for one in self.found.split(","))
        return {(code, int(first), int(second), memory) for code, first, second, memory in parts}


TWINS = (
    Twin(
        "a reader on another stream without a wait",
        """launch side writes x
        record e side
        ? await main e
        launch main reads x""",
        "TC411 0 3 x",
    ),
    Twin(
        "an event that is recorded too early",
        """- record e side
        launch side writes x
        ? record e side
        await main e
        launch main reads x""",
        "TC411 1 4 x",
    ),
    Twin(
        "a wait for an event that was recorded later",
        """launch side writes x
        ? record e side
        await main e
        record e side
        launch main reads x""",
        "TC411 0 4 x",
    ),
    Twin(
        "handed-in memory on a side stream that does not wait for the caller",
        """record e main
        ? await side e
        launch side writes x
        record f side
        await main f""",
        "TC411 -1 2 x",
        "x@in",
    ),
    Twin(
        "a host that waits for the wrong stream",
        """launch side writes x
        - join stream other
        ? join stream side
        launch main reads x""",
        "TC411 0 3 x",
    ),
    Twin(
        "work on a stream after a move",
        """move x op
        ? back x
        launch main writes x""",
        "TC412 0 2 x",
    ),
    Twin(
        "memory that is moved twice",
        """move x op
        ? back x
        move x other""",
        "TC412 0 2 x",
    ),
    Twin(
        "freed while another stream uses it",
        """launch side reads x
        record e side
        ? await main e
        free x""",
        "TC413 0 3 x",
    ),
    Twin(
        "used after it was freed",
        """allocate x
        - free x
        launch main writes x
        ? free x""",
        "TC413 1 2 x",
    ),
    Twin(
        "returned from a stream that the caller does not know",
        """launch side writes x
        record e side
        ? await main e""",
        "TC414 0 3 x",
        returned="x[0:4]",
    ),
    Twin(
        "handed-in memory that a side stream still writes",
        """record e main
        await side e
        launch side writes x
        record f side
        ? await main f""",
        "TC414 2 5 x",
        "x@in",
    ),
    Twin(
        "pinned memory that the host refills under a copy",
        """touch writes p
        copy main reads p writes x
        record e main
        ? join event e
        touch writes p""",
        "TC415 1 4 p",
        "x p@pinned",
    ),
    Twin(
        "pinned memory that is freed under a copy",
        """copy main reads p writes x
        ? join
        free p""",
        "TC415 0 2 p",
        "x p@pinned",
    ),
    Twin(
        "memory that a graph still writes is freed",
        """capture g s
        launch s writes x
        end g
        - free x
        replay g main""",
        "TC421 3 4 x",
    ),
    Twin(
        "a graph that is gone is replayed",
        """capture g s
        launch s writes x
        end g
        - destroy g
        replay g main""",
        "TC421 3 4 g",
    ),
    Twin(
        "the pool of a graph is gone",
        """capture g s
        launch s writes x
        free t
        end g
        capture h s
        allocate u
        launch s writes u
        free u
        end h
        - destroy g
        replay h main""",
        "TC421 9 10 u",
        "x t@pool=g u@pool=g",
    ),
    Twin(
        "an allocation in a capture",
        """capture g s
        - allocate x
        end g""",
        "TC422 0 1 x",
    ),
    Twin(
        "the host waits in a capture",
        """capture g s
        launch s writes x
        - join stream s
        end g""",
        "TC422 0 2 s",
    ),
    Twin(
        "the host reads in a capture",
        """- capture g s
        - forbidden item""",
        "TC422 0 1 item",
    ),
    Twin(
        "a pageable copy in a capture",
        """capture g s
        - copy s reads p writes x
        end g""",
        "TC422 0 1 p",
        "x p@pageable",
    ),
    Twin(
        "a captured tensor's name gets another tensor",
        """capture g s
        launch s reads x frozen x
        end g
        - rebind x
        replay g main""",
        "TC423 3 4 x",
    ),
    Twin(
        "a captured number has changed",
        """capture g s
        launch s reads x frozen position
        end g
        replay g main
        - rebind position
        replay g main""",
        "TC424 4 5 position",
    ),
    Twin(
        "two graphs over one memory on two streams",
        """capture g s
        launch s writes x
        end g
        capture h s
        launch s reads x
        end h
        replay g main
        record e main
        ? await side e
        replay h side""",
        "TC425 6 9 x",
    ),
    Twin(
        "two graphs over one pool on two streams",
        """capture g s
        allocate t
        launch s writes t
        free t
        end g
        capture h s
        allocate u
        launch s writes u
        end h
        replay g main
        record e main
        ? await side e
        replay h side""",
        "TC425 9 12 t",
        "t:s@pool=g u:s@pool=g",
    ),
    Twin(
        "an output that no replay has made",
        """capture g s
        launch s writes x
        end g
        ? replay g main
        launch main reads x""",
        "TC426 1 4 x",
    ),
    Twin(
        "a result that the next replay overwrites",
        """capture g s
        launch s writes x
        end g
        replay g main
        keep x first
        - replay g main
        use first""",
        "TC426 5 6 x",
    ),
    Twin(
        "a load before the wait",
        """launch main writes x
        - launch main dependent before reads x after writes y
        ? launch main dependent after reads x writes y""",
        "TC431 0 1 x",
    ),
    Twin(
        "a store before the wait to memory that is read",
        """launch main reads x
        - launch main dependent before writes x
        ? launch main dependent after writes x""",
        "TC431 0 1 x",
    ),
    Twin(
        "a kernel that never waits",
        """launch main writes x
        - launch main dependent sometimes before reads x writes y
        ? launch main reads x writes y""",
        "TC432 0 1 x",
    ),
    Twin(
        "a launch between that never waits",
        """launch main writes x
        - launch main dependent sometimes before writes y
        ? launch main dependent before writes y
        launch main dependent after reads x""",
        "TC433 0 3 x",
    ),
)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_a_wrong_program_has_its_hazard_alone(twin: Twin) -> None:
    found = hazards(twin.program(right=False))
    assert {hazard.key for hazard in found} == twin.expected


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_its_right_twin_has_none(twin: Twin) -> None:
    assert hazards(twin.program(right=True)) == ()
