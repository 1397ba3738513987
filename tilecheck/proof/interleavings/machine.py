"""The machine that runs what the host enqueued: which parts of work may start, run and end, and when.

Work has one part, from its start to its end, or two if it depends on the start of the launch before it: one
before its wait, one after it. The state of the machine is how far the host has come, which parts have started,
and which have ended. A part starts when the host has enqueued it and its guards hold; it may end at any later
time. A part after the wait of work that need not wait may also be left out: on that path nothing waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilecheck.dataclass import dataclass
from tilecheck.proof.interleavings.boxes import Access
from tilecheck.proof.interleavings.hazard import BEFORE, Path, Step, Verb
from tilecheck.proof.interleavings.recording import Item


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of work that runs in one go. Guards are sets of parts, as bits."""

    number: int
    item: int
    path: Path
    accesses: tuple[Access, ...]
    needs_started: int
    needs_ended: int
    early: bool = False  # before the wait of dependent work
    optional: bool = False

    @property
    def bit(self) -> int:
        return 1 << self.number

    @property
    def step(self) -> int:
        """The action that enqueues it."""
        return self.path[0]


class Machine:
    """All parts of a program's items, and what the host waits for after each action."""

    def __init__(
        self, items: Sequence[Item], waits: Sequence[Sequence[int]], *, dependent: bool = True
    ) -> None:
        """With `dependent` false no launch starts before the one before it has ended."""
        self.parts: list[Part] = []
        self._of_item: list[int] = []  # the parts of each item, as bits
        self._first: list[int] = []
        for number, item in enumerate(items):
            first = len(self.parts)
            if item.launch_before is not None and dependent:
                self._dependent(number, item, item.launch_before)
            else:
                after = item.after if item.launch_before is None else (item.launch_before,)
                self._add(number, item, item.accesses, 0, self._all(after))
            self._first.append(1 << first)
            self._of_item.append((1 << len(self.parts)) - (1 << first))
        self.waits = [self._all(numbers) for numbers in waits]
        self.optional = sum(part.bit for part in self.parts if part.optional)
        self._reached: dict[int, int] = {}
        self._of_step: dict[int, list[Part]] = {}
        for part in self.parts:
            self._of_step.setdefault(part.step, []).append(part)

    def _dependent(self, number: int, item: Item, launch: int) -> None:
        early = self._add(number, item, item.early, self._first[launch], 0, early=True)
        self._add(number, item, item.late, early, self._all((launch,)), optional=not item.waits)

    def _add(
        self,
        number: int,
        item: Item,
        accesses: tuple[Access, ...],
        needs_started: int,
        needs_ended: int,
        *,
        early: bool = False,
        optional: bool = False,
    ) -> int:
        part = Part(len(self.parts), number, item.path, accesses, needs_started, needs_ended, early, optional)
        self.parts.append(part)
        return part.bit

    def _all(self, items: Sequence[int]) -> int:
        bits = 0
        for item in items:
            bits |= self._of_item[item]
        return bits

    def together(self, one: Part, other: Part) -> tuple[Step, ...] | None:
        """The steps to a state in which both parts run; None if there is no such state.

        One run decides it. Steps only ever make more steps possible: every guard asks that parts have started
        or ended, none that they have not, and no part starts again. So all steps that can be done without the
        end of the two parts can be done in any order, and a run that does them all, and never ends the two,
        gets as far as any run in which neither has ended. If both run in some state of the machine, neither
        has ended there, and both have started in this run. The one choice, whether an optional part is left
        out, is best made by leaving it out, unless it is one of the two: that counts as ended at once.
        """
        held = one.bit | other.bit
        for mine, its in ((one, other), (other, one)):
            # Cheaper, once for each part: what is not reached with one end held is not with two.
            if not its.optional and not self._reached_with(mine) & its.bit:
                return None
        started, done = self._run(held)
        return self._needed(done, held) if started & held == held else None

    def _reached_with(self, part: Part) -> int:
        """The parts that start without the end of this one."""
        if part.number not in self._reached:
            self._reached[part.number], _ = self._run(part.bit)
        return self._reached[part.number]

    def _run(self, held: int) -> tuple[int, list[tuple[Verb, int]]]:
        """Do all that can be done without the end of some parts: what has started, and the steps.

        A step of the host comes with the action, a step of a part with the number of the part.
        """
        started, ended = 0, self.optional & ~held
        done: list[tuple[Verb, int]] = []
        for step in range(BEFORE, len(self.waits) + 1):
            if step > 0 and self.waits[step - 1] & ~ended:
                break
            done.append((Verb.HOST, step))
            # Guards name only what was enqueued earlier: one pass does all that can be done.
            for part in self._of_step.get(step, ()):
                bit = 1 << part.number
                if bit & ended or part.needs_started & ~started or part.needs_ended & ~ended:
                    continue
                started |= bit
                done.append((Verb.START, part.number))
                if not bit & held:
                    ended |= bit
                    done.append((Verb.END, part.number))
        return started, done

    def _needed(self, done: list[tuple[Verb, int]], started: int) -> tuple[Step, ...]:
        """The steps that lead to the start of some parts: those that a later one needs, from the last on."""
        ended, host = 0, BEFORE
        kept = []
        for verb, number in reversed(done):
            if verb is Verb.HOST:
                if BEFORE < number <= host:
                    kept.append(Step(verb, (number,)))
                    ended |= self.waits[number - 1] if number else 0
                continue
            part = self.parts[number]
            if part.bit & (started if verb is Verb.START else ended):
                kept.append(Step(verb, part.path))
                started |= part.needs_started | part.bit
                ended |= part.needs_ended if verb is Verb.START else 0
                host = max(host, part.step)
        return tuple(reversed(kept))
