"""What kernels cost may fall and never rise: verdicts, the rungs that prove them, and the solver's steps.

`fixtures/ratchet` pins them, a file for each source. `pytest tests/test_ratchet.py --bless` pins what got
better and new kernels, and refuses while anything is worse; `--bless-worse` pins that too. Review the diff.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from tilecheck.model import Report, Verdict
from tilecheck.options import RUNGS

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "fixtures" / "ratchet"
FOLDERS = ("kernels", "fixtures/cutile/loops", "fixtures/cutile/models", "fixtures/cutile/swizzle")
SOURCES = sorted(p for f in FOLDERS for p in (ROOT / f).glob("*.py") if "@ct.kernel" in p.read_text())
SOLVER = metadata.version("z3-solver")

# A change of verdict that is for the better: more is proved, or what was open is decided.
BETTER = {
    Verdict.UNKNOWN: {Verdict.PROVED, Verdict.CONDITIONAL, Verdict.TRUSTED, Verdict.VIOLATED},
    Verdict.TRUSTED: {Verdict.PROVED, Verdict.CONDITIONAL},
    Verdict.CONDITIONAL: {Verdict.PROVED},
    Verdict.PROVED: set(),
    Verdict.VIOLATED: set(),
}
DEAR = ("smt", "launch", "none")  # each with all that are dearer is counted: the solver, conditions, nothing
FREE = 10_000  # steps below this are no cost: other kernels' ceilings are a hundred times as high
SLACK = 1.2

Pin = dict  # "verdict", "rungs" (how many obligations each proves), and "ceiling" (of the solver's steps)


def found_in(report: Report) -> dict[str, Pin]:
    """The kernels of one source; the ceiling is a little above what each cost."""
    return {
        kernel.name: {
            "verdict": kernel.verdict.value,
            "rungs": _in_order(Counter(o.rung for o in kernel.obligations)),
            "steps": kernel.steps,
            "ceiling": _rounded_up(kernel.steps * SLACK),
        }
        for kernel in report.kernels
    }


def _in_order(rungs: Counter[str]) -> dict[str, int]:
    return {name: rungs[name] for name in (*RUNGS, "none") if rungs[name]}


def _rounded_up(steps: float) -> int:
    """Two digits, so that a pin changes only when a cost does."""
    number = max(FREE, int(steps))
    unit = 10 ** (len(str(number)) - 2)
    return -(-number // unit) * unit


def worse(pinned: dict[str, Pin], found: dict[str, Pin], *, same_solver: bool = True) -> Iterator[str]:
    """What is worse than it is pinned. Another version of the solver takes other steps: up to twice as many."""
    for name, pin in pinned.items():
        if name not in found:
            yield f"{name} is gone"
            continue
        now = found[name]
        old, new = Verdict(pin["verdict"]), Verdict(now["verdict"])
        if old is not new and new not in BETTER[old]:
            yield f"{name} was {old.value} and is {new.value}"
        for k, rung in enumerate(DEAR):
            before, after = (sum(p["rungs"].get(r, 0) for r in DEAR[k:]) for p in (pin, now))
            if after > before:
                told = f"{after} obligations, and needed it for {before}"
                yield f"{name} needs rung `{rung}` or a dearer one for {told}"
        ceiling = pin["ceiling"] * (1 if same_solver else 2)
        if now["steps"] > ceiling:
            yield f"{name} costs the solver {now['steps']} steps, and may cost {ceiling}"


def blessed(pinned: dict[str, Pin], found: dict[str, Pin], *, loosen: bool) -> dict[str, Pin]:
    """What to pin: ceilings fall, and rise only when told to."""
    pins = {}
    for name, now in found.items():
        pin = {key: value for key, value in now.items() if key != "steps"}
        if name in pinned and not loosen:
            pin["ceiling"] = min(pin["ceiling"], pinned[name]["ceiling"])
        elif name in pinned and now["steps"] <= pinned[name]["ceiling"] <= pin["ceiling"]:
            pin["ceiling"] = pinned[name]["ceiling"]  # it is not this that got worse
        pins[name] = pin
    return pins


def text_of(pins: dict[str, Pin]) -> str:
    """A line for each kernel."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(pin)}" for name, pin in pins.items())
    return f'{{\n "z3": {json.dumps(SOLVER)},\n "kernels": {{\n{lines}\n }}\n}}\n'


def file_of(source: Path) -> Path:
    return PINS / f"{source.relative_to(ROOT).with_suffix('').as_posix().replace('/', '-')}.json"


@pytest.mark.parametrize("path", [pytest.param(p, id=p.relative_to(ROOT).as_posix()) for p in SOURCES])
def test_no_kernel_is_worse_than_it_is_pinned(path: Path, verified, request: pytest.FixtureRequest) -> None:
    file = file_of(path)
    table = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"z3": SOLVER, "kernels": {}}
    pinned, found = table["kernels"], found_in(verified(path))
    problems = list(worse(pinned, found, same_solver=table["z3"] == SOLVER))
    loosen = request.config.getoption("--bless-worse")
    assert loosen or not problems, "\n".join([*problems, "only `--bless-worse` pins what got worse"])
    if loosen or request.config.getoption("--bless"):
        PINS.mkdir(exist_ok=True)
        file.write_text(text_of(blessed(pinned, found, loosen=loosen)), encoding="utf-8", newline="\n")
        pinned = json.loads(file.read_text(encoding="utf-8"))["kernels"]
    assert list(found) == list(pinned), "new kernels, or another order: `pytest tests/test_ratchet.py --bless`"


def test_every_pin_is_of_a_source() -> None:
    assert {path.name for path in PINS.iterdir()} == {file_of(source).name for source in SOURCES}


# ---- the ratchet itself --------------------------------------------------------------------------------------

PIN = {"verdict": "conditional", "rungs": {"fold": 2, "smt": 3, "launch": 4}, "ceiling": 50_000}
NOW = PIN | {"steps": 41_000}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"verdict": "proved"}, None),
        ({"verdict": "trusted"}, "k was conditional and is trusted"),
        ({"verdict": "violated"}, "k was conditional and is violated"),
        ({"verdict": "unknown"}, "k was conditional and is unknown"),
        ({"rungs": {"fold": 9, "smt": 7}}, None),
        ({"rungs": {"fold": 1, "smt": 4, "launch": 4}}, "rung `smt` or a dearer one for 8 obligations"),
        ({"rungs": {"fold": 2, "smt": 2, "launch": 5}}, "rung `launch` or a dearer one for 5 obligations"),
        ({"rungs": {"smt": 3, "launch": 3, "none": 1}}, "rung `none` or a dearer one for 1 obligations"),
        ({"steps": 50_000}, None),
        ({"steps": 50_001}, "k costs the solver 50001 steps, and may cost 50000"),
    ],
)
def test_what_is_worse(change: dict, said: str | None) -> None:
    problems = list(worse({"k": PIN}, {"k": NOW | change, "new": NOW}))
    assert len(problems) == (said is not None)
    assert said is None or said in problems[0]


def test_a_kernel_that_is_gone_is_noticed() -> None:
    assert list(worse({"k": PIN, "gone": PIN}, {"k": NOW})) == ["gone is gone"]


def test_another_version_of_the_solver_may_take_other_steps() -> None:
    assert not list(worse({"k": PIN}, {"k": NOW | {"steps": 99_000}}, same_solver=False))
    assert list(worse({"k": PIN}, {"k": NOW | {"steps": 101_000}}, same_solver=False))


@pytest.mark.parametrize("verdict", Verdict)
def test_a_violated_kernel_stays_so_and_a_proved_one_too(verdict: Verdict) -> None:
    for old in (Verdict.VIOLATED, Verdict.PROVED):
        problems = list(worse({"k": PIN | {"verdict": old.value}}, {"k": NOW | {"verdict": verdict.value}}))
        assert bool(problems) is (verdict is not old)


def test_blessing_tightens() -> None:
    dearer = NOW | {"ceiling": 60_000}
    assert blessed({"k": PIN}, {"k": dearer}, loosen=False)["k"]["ceiling"] == 50_000
    assert blessed({"k": PIN}, {"k": NOW | {"ceiling": 30_000}}, loosen=False)["k"]["ceiling"] == 30_000
    assert blessed({"k": PIN}, {"k": dearer}, loosen=True)["k"]["ceiling"] == 50_000
    assert blessed({"k": PIN}, {"k": dearer | {"steps": 50_001}}, loosen=True)["k"]["ceiling"] == 60_000
    assert "steps" not in blessed({}, {"k": NOW}, loosen=False)["k"]


@pytest.mark.parametrize(
    ("steps", "ceiling"), [(0, 10_000), (10_000, 10_000), (10_001, 11_000), (123_456, 130_000)]
)
def test_ceilings_have_two_digits(steps: int, ceiling: int) -> None:
    assert _rounded_up(steps) == ceiling
