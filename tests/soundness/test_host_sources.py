"""Drawn host functions are what they are said to be, and what the tool says of them is never wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from soundness_host_families import FAMILIES
from soundness_host_kernels import HEAD, Kernel, Wait
from soundness_host_plans import (
    MAIN,
    Allocate,
    Capture,
    Delete,
    HostTouch,
    HostWait,
    Keep,
    Launch,
    Loop,
    Part,
    Plan,
    Rebind,
    Record,
    RecordStream,
    Replay,
    SetNumber,
    Step,
    Update,
    WaitEvent,
    WaitStream,
)
from soundness_host_recorded import KERNELS, recorded
from soundness_host_scored import Came, Scored, scored
from soundness_host_sources import KINDS, Module, drawn
from soundness_host_truth import ROUNDS, broken

from tilecheck.model import Verdict
from tilecheck.options import Options
from tilecheck.proof.interleavings import hazards
from tilecheck.verify.pipeline import verify_source

SEEDS = range(30)
VERIFIED = range(100, 103)


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    return [drawn(seed) for seed in SEEDS]


# ---- the rules, one pair each --------------------------------------------------------------------------------


def launch(operation: str, *buffers: str, wait: Wait = Wait.NEVER, **given: object) -> Launch:
    return Launch(Kernel(operation, wait), tuple(map(Part, buffers)), **given)  # type: ignore[arg-type]  # by name


def temporary(name: str, stream: str = MAIN) -> Allocate:
    return Allocate(name, "torch.empty_like({first})", stream)


FORK, JOIN = WaitStream("side", MAIN), WaitStream(MAIN, "side")
MADE = launch("scale", "x", "t", stream="side")
USED = launch("scale", "t", "y")
SIDE = launch("scale", "x", "y", stream="side")
LOWER = Launch(Kernel("scale"), (Part("x", (0, 2)), Part("y", (0, 2))), "side")
UPPER = Launch(Kernel("scale"), (Part("x", (2, 4)), Part("y", (2, 4))))
MORE = replace(LOWER, arguments=(Part("x", (0, 3)), Part("y", (0, 3))))
COPY = Update("t", "copy_", "p", asynchronous=True)
PINNED = Allocate("p", "torch.empty({n}, pin_memory=True)", pinned=True)
STEP = Capture("g", (launch("scale", "x", "t", number="k"), launch("scale", "t", "y")))
READS, WRITES = Capture("g", (USED,)), Capture("h", (launch("scale", "x", "t"),))
FIRST = launch("scale", "x", "t")
WAITING = launch("scale", "t", "y", wait=Wait.FIRST, dependent=True)

# What is right, the same with one step changed or left out, and the code of that.
PAIRS: list[tuple[list[Step], list[Step], str]] = [
    ([temporary("t"), FORK, MADE, JOIN, USED], [temporary("t"), FORK, MADE, USED, JOIN], "TC411"),
    ([FORK, temporary("t"), MADE, JOIN], [temporary("t"), MADE, JOIN], "TC411"),  # of the caller's work on x
    (
        [temporary("t"), FORK, MADE, Record("e", "side"), WaitEvent("e", MAIN), USED],
        [temporary("t"), FORK, Record("e", "side"), MADE, WaitEvent("e", MAIN), USED, JOIN],
        "TC411",
    ),
    (
        [temporary("t"), FORK, MADE, RecordStream("t", "side"), Delete("t"), JOIN],
        [temporary("t"), FORK, MADE, Delete("t"), JOIN],
        "TC413",
    ),
    ([FORK, SIDE, JOIN], [FORK, SIDE, HostWait(MAIN)], "TC414"),
    (
        [temporary("t"), PINNED, COPY, HostWait(MAIN), HostTouch("p", write=True)],
        [temporary("t"), PINNED, COPY, HostTouch("p", write=True)],
        "TC415",
    ),
    (
        [temporary("t"), STEP, Replay("g"), Delete("t")],
        [temporary("t"), STEP, Delete("t"), Replay("g")],
        "TC421",
    ),
    (
        [temporary("t"), STEP, Replay("g")],
        [temporary("t"), replace(STEP, steps=(*STEP.steps, HostWait())), Replay("g")],
        "TC422",
    ),
    (
        [temporary("t"), STEP, Update("x", "copy_", "z"), Replay("g")],
        [temporary("t"), STEP, Rebind("x", "z"), Replay("g")],
        "TC423",
    ),
    (
        [SetNumber("k", "1.0"), temporary("t"), STEP, Replay("g"), SetNumber("k", "2.0")],
        [SetNumber("k", "1.0"), temporary("t"), STEP, SetNumber("k", "2.0"), Replay("g")],
        "TC424",
    ),
    (
        [temporary("t"), READS, WRITES, Replay("g"), FORK, Replay("h", "side"), JOIN],
        [temporary("t"), READS, WRITES, FORK, Replay("g"), Replay("h", "side"), JOIN],
        "TC425",
    ),
    (
        [temporary("t"), STEP, Loop((Replay("g"), Keep("kept", "y", copied=True)))],
        [temporary("t"), STEP, Loop((Replay("g"), Keep("kept", "y", copied=False)))],
        "TC426",
    ),
    ([temporary("t"), STEP, Replay("g"), USED], [temporary("t"), STEP, USED, Replay("g")], "TC426"),
    (
        [temporary("t"), FIRST, WAITING],
        [temporary("t"), FIRST, replace(WAITING, kernel=Kernel("scale", Wait.LATE))],
        "TC431",
    ),
    (
        [temporary("t"), FIRST, WAITING],
        [temporary("t"), FIRST, replace(WAITING, kernel=Kernel("scale")), HostWait()],
        "TC432",
    ),
    (
        [temporary("t"), FIRST, launch("scale", "y", "z", wait=Wait.FIRST, dependent=True), WAITING],
        [temporary("t"), FIRST, launch("scale", "z", "z", dependent=True), WAITING, HostWait()],
        "TC433",
    ),
    ([FORK, LOWER, UPPER, JOIN], [FORK, MORE, UPPER, JOIN], "TC411"),
]


@pytest.mark.parametrize(("right", "wrong", "code"), PAIRS)
def test_one_step_makes_the_difference(right: list[Step], wrong: list[Step], code: str) -> None:
    def codes(steps: list[Step]) -> frozenset[str]:
        lists = tuple(inner.results for step in steps if isinstance(step, Loop) for inner in step.steps[1:])
        return broken(Plan(("x", "y", "z"), tuple(steps), lists))

    assert (codes(right), codes(wrong)) == (frozenset(), {code})


# ---- drawn functions -----------------------------------------------------------------------------------------


def test_plans_break_what_interleavings_of_their_texts_show(modules: list[Module]) -> None:
    """The texts are run, and the oracle explores what they ask of the device. It knows nothing of plans."""
    for module in modules:
        for function in module.functions:
            programs = [recorded(module.text, function.name, rounds) for rounds in ROUNDS]
            shown = {hazard.code for program in programs for hazard in hazards(program)}
            assert shown == function.codes, f"{function.name}, {function.kind}\n{module.text}"


def test_every_family_and_every_kind_of_mutant_is_drawn(modules: list[Module]) -> None:
    assert {module.family for module in modules} == {family.__name__ for family in FAMILIES}
    wrong = Counter(f.kind for module in modules for f in module.functions if f.codes)
    right = Counter(f.kind for module in modules for f in module.functions if not f.codes)
    assert wrong.keys() == KINDS.keys()
    assert min(wrong.values()) >= 1
    assert {"dropped wait", "wrong stream", "freed buffer", "PDL wait too late"} <= right.keys()


def test_mutants_break_rules_of_their_kind(modules: list[Module]) -> None:
    for module in modules:
        for function in module.functions[1:]:
            assert function.codes <= KINDS[function.kind]


def test_kernels_touch_before_their_wait_what_the_plans_say() -> None:
    """And all of them are safe in themselves."""
    kernels = {kernel.name: kernel for kernel in KERNELS.values()}
    text = "\n\n".join((HEAD, *(kernel.text() for kernel in kernels.values())))
    found = verify_source(text.encode(), "kernels.py", Options()).kernels
    assert {report.name for report in found} == kernels.keys()
    for report in found:
        assert report.verdict is Verdict.CONDITIONAL
        kernel, order = kernels[report.name], report.launch_order
        assert (order is not None) == (kernel.wait is not Wait.NEVER)
        if order is not None:
            assert order.always
            assert {name.removesuffix("_ptr") for name in order.before.reads} == kernel.early()


# ---- what the tool says of them ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judged() -> list[Scored]:
    return [one for seed in VERIFIED for one in scored(seed)]


def test_no_wrong_function_passes(judged: list[Scored]) -> None:
    assert not [str(one) for one in judged if one.is_missed]


def test_no_function_is_refused_for_what_it_does_not_do(judged: list[Scored]) -> None:
    assert not [str(one) for one in judged if one.is_false_alarm]


def test_wrong_functions_are_found(judged: list[Scored]) -> None:
    assert any(one.came is Came.FOUND for one in judged)
