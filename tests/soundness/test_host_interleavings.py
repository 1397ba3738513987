"""The oracle on random host programs: against all interleavings, against vector clocks, against edits."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations

import pytest
from soundness_host_programs import CODES, SITE, random_program

from tilecheck.ir.host_program import (
    Action,
    Await,
    Capture,
    Destroy,
    EndCapture,
    Free,
    HostProgram,
    Join,
    Rebind,
    Work,
)
from tilecheck.proof.interleavings import hazards
from tilecheck.proof.interleavings.hazard import BEFORE, Step, Verb
from tilecheck.proof.interleavings.host import Host
from tilecheck.proof.interleavings.machine import Machine

RACES = {"TC411", "TC413", "TC414", "TC415", "TC421", "TC425", "TC431", "TC432", "TC433"}
_MOST_STATES = 4_000


@cache
def drawn(count: int = 500) -> tuple[HostProgram, ...]:
    return tuple(random_program(random.Random(f"interleavings {k}")) for k in range(count))


def machine_of(program: HostProgram) -> Machine:
    host = Host(program)
    for action in program.actions:
        host.step(action)
    host.leave()
    return Machine(host.device.items, host.waits)


def all_pairs(machine: Machine) -> set[tuple[int, int]] | None:
    """Each two parts that run in one reachable state, by visiting every state; None if there are too many."""
    begin = (BEFORE, 0, 0)
    seen, todo, found = {begin}, [begin], set()
    while todo:
        host, started, ended = todo.pop()
        running = [part.number for part in machine.parts if part.bit & started & ~ended]
        found.update(combinations(running, 2))
        after = []
        if host < len(machine.waits) and not (host >= 0 and machine.waits[host] & ~ended):
            after.append((host + 1, started, ended))
        for part in machine.parts:
            if part.step > host or part.bit & ended:
                continue
            if part.bit & started:
                after.append((host, started, ended | part.bit))
                continue
            if part.optional:  # left out
                after.append((host, started, ended | part.bit))
            if not (part.needs_started & ~started or part.needs_ended & ~ended):
                after.append((host, started | part.bit, ended))
        fresh = [state for state in after if state not in seen]
        seen.update(fresh)
        todo += fresh
        if len(seen) > _MOST_STATES:
            return None
    return found


def test_one_run_for_a_pair_finds_what_all_interleavings_show() -> None:
    checked = Counter()
    for program in drawn():
        machine = machine_of(program)
        explored = all_pairs(machine)
        if explored is None:
            continue
        ran = {
            (one.number, other.number)
            for one, other in combinations(machine.parts, 2)
            if machine.together(one, other) is not None
        }
        assert ran == explored, program.actions
        checked["programs"] += 1
        checked["pairs"] += len(ran)
        checked["optional"] += any(part.optional for part in machine.parts)
        checked["host waits"] += any(machine.waits)
    assert checked["programs"] > 200
    assert checked["pairs"] > 200
    assert checked["optional"] > 10
    assert checked["host waits"] > 20


def leads_to(machine: Machine, schedule: tuple[Step, ...], held: int) -> bool:
    """Whether the steps can be done in this order, and the parts in `held` run at the end."""
    host, started, ended = BEFORE, 0, machine.optional & ~held
    for step in schedule:
        if step.verb is Verb.HOST:
            if step.path != (host + 1,) or (host >= 0 and machine.waits[host] & ~ended):
                return False
            host += 1
            continue
        done = started if step.verb is Verb.START else ended
        able = [
            part
            for part in machine.parts
            if part.path == step.path and part.step <= host and not part.bit & (done | machine.optional & ended)
            if not (part.needs_started & ~started or part.needs_ended & ~ended)
            if step.verb is Verb.START or part.bit & started & ~held
        ]
        if not able:
            return False
        if step.verb is Verb.START:
            started |= able[0].bit
        else:
            ended |= able[0].bit
    return started & ~ended & held == held


def test_schedules_are_runs_of_the_machine_without_a_step_too_many() -> None:
    schedules = 0
    for program in drawn()[:150]:
        machine = machine_of(program)
        for one, other in combinations(machine.parts, 2):
            schedule, held = machine.together(one, other), one.bit | other.bit
            if schedule is None:
                continue
            assert leads_to(machine, schedule, held)
            for k in range(len(schedule)):
                assert not leads_to(machine, schedule[:k] + schedule[k + 1 :], held)
            schedules += 1
    assert schedules > 200


def test_what_vector_clocks_order_has_no_hazard() -> None:
    """The drawer's own clocks put all waits here, and nothing slips."""
    work = 0
    for k in range(500):
        program = random_program(random.Random(f"careful {k}"), careless=0.0)
        assert hazards(program) == (), program.actions
        work += sum(isinstance(action, Await) for action in program.actions)
    assert work > 500


def test_all_codes_are_drawn() -> None:
    found = Counter(
        code for program in drawn() for code in {hazard.code for hazard in hazards(program)} or {""}
    )
    assert {code: found[code] for code in CODES if found[code] < 3} == {}
    assert 0.4 < found[""] / len(drawn()) < 0.65


def _races(program: HostProgram) -> set[tuple[int, int, str]]:
    return {(h.first, h.second, h.memory) for h in hazards(program) if h.code in RACES}


def _others(program: HostProgram) -> set[tuple[str, int, int, str]]:
    return {hazard.key for hazard in hazards(program) if hazard.code not in RACES}


def _outside_of_captures(program: HostProgram) -> Iterator[tuple[int, Action]]:
    captures = 0
    for index, action in enumerate(program.actions):
        captures += isinstance(action, Capture) - isinstance(action, EndCapture)
        if not captures:
            yield index, action


def test_a_host_that_waits_for_all_has_no_race_of_time() -> None:
    """What is left: a use after the end of memory, and what races within one graph."""
    left = Counter()
    for program in drawn():
        outside = {index for index, _ in _outside_of_captures(program)}
        actions: list[Action] = [Join(SITE)]
        within = set()
        for index, action in enumerate(program.actions):
            if index not in outside:
                within.add(len(actions))
            actions.append(action)
            if index in outside:
                actions.append(Join(SITE))
        for hazard in hazards(replace(program, actions=tuple(actions))):
            if hazard.code not in RACES:
                continue
            gone = hazard.first >= 0 and isinstance(actions[hazard.first], Free | Destroy)
            assert gone or {hazard.first, hazard.second} <= within, hazard
            left["gone" if gone else "within"] += 1
    assert left["gone"] > 5
    assert left["within"] > 5


def test_a_wait_that_is_taken_out_takes_no_hazard_out() -> None:
    taken = more = 0
    for program in drawn()[:250]:
        races, others = _races(program), _others(program)
        for index, action in _outside_of_captures(program):
            if isinstance(action, Await | Join):
                actions = (*program.actions[:index], Rebind(SITE, "nothing"), *program.actions[index + 1 :])
                edited = replace(program, actions=actions)
                assert races <= _races(edited)
                assert others == _others(edited)
                taken += 1
                more += races != _races(edited)
    assert taken > 200
    assert more > 50


@pytest.mark.parametrize(("change", "grows"), [({"waits": False}, True), ({"dependent": False}, False)])
def test_launches_that_wait_for_more_have_no_more_hazards(change: dict[str, bool], grows: bool) -> None:
    changed = 0
    for program in drawn():
        if not any(isinstance(action, Work) and action.dependent for action in program.actions):
            continue
        actions = tuple(replace(a, **change) if isinstance(a, Work) else a for a in program.actions)
        before, after = _races(program), _races(replace(program, actions=actions))
        assert before <= after if grows else after <= before
        changed += before != after
    assert changed > 5
