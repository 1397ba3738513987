"""Judges mutants of visible launches: what a run says of each, and whether it really does harm."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soundness_launch_guess import hosts
from soundness_launch_judged import holds
from soundness_launch_mutate import Change, mutants
from soundness_launch_truth import PROCESSORS, REFUSALS, Host, inputs, load
from soundness_virtual_machine import Machine, Outcome

from tilecheck.options import Options
from tilecheck.report.emitters.json import to_object
from tilecheck.verify.pipeline import verify_paths

_PASSES = ("proved", "conditional", "trusted")
_DRAWS = 30
_PATIENCE = 12  # draws after which a call that starts nothing is given up
_BLOCKS = 64
_LITERAL_BLOCKS = 1 << 12


@dataclass(frozen=True)
class Mutant:
    """One mutant.

    `truth` is `wrong`, `harmless`, `never` (no input starts it any more), `not run`, or `caller's`: it passes,
    and each call that does harm breaks a condition that is left to the caller, who hands in several things
    apart. The same text is right for other calls.
    """

    file: str
    change: Change
    truth: str
    came: str = ""  # passed | unmet | violated | unknown
    example: str = ""


@dataclass(frozen=True)
class Known:
    """Calls under which the launches of a kernel do no harm."""

    host: Host
    calls: tuple[tuple[dict[str, Any], int], ...]


def of_file(path: Path, shown: str, most: int | None = None, seed: int = 0) -> list[Mutant]:
    """The mutants of the launches of one file, of kernels that pass; at most so many, drawn at random."""
    text = path.read_text(encoding="utf-8")
    before = _verdicts(path)
    passing = {name for name, came in before.items() if came == "passed"}
    changes = list(mutants(text, passing))
    rng = random.Random(f"{shown} {seed}")
    if most is not None and len(changes) > most:
        changes = rng.sample(changes, most)
    known = {kernel: _known(text, kernel, rng) for kernel in {c.kernel for c in changes}}
    with tempfile.TemporaryDirectory() as folder:
        beside = Path(folder) / path.parent.name
        shutil.copytree(path.parent, beside)  # what the file imports
        return [_judged(text, shown, change, known[change.kernel], beside / path.name) for change in changes]


def _verdicts(path: Path) -> dict[str, str]:
    """What each kernel of a file comes to, by name."""
    return {name: came for name, (came, _) in _reports(str(path)).items()}


def _reports(target: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """What each kernel comes to, and the conditions that are left to the callers of its launches."""
    report = to_object(verify_paths([target], Options()))
    errors = {d["kernel"] for d in report["diagnostics"] if d["severity"] == "error"}
    return {k["name"]: (_came(k, k["name"] in errors), _callers(k)) for k in report["kernels"]}


def _callers(kernel: Mapping[str, Any]) -> tuple[str, ...]:
    conditions = (c for launch in kernel["launches"] for c in launch["conditions"])
    return tuple(c["text"] for c in conditions if c["status"] == "caller")


def _came(kernel: Mapping[str, Any], is_error: bool) -> str:
    if kernel["verdict"] not in _PASSES:
        return str(kernel["verdict"])
    statuses = {c["status"] for launch in kernel["launches"] for c in launch["conditions"]}
    unread = any(launch.get("status") == "unread" for launch in kernel["launches"])
    return "unmet" if unread or is_error or statuses - {"holds", "caller"} else "passed"


# ---- truth ---------------------------------------------------------------------------------------------------


class Runner:
    """Runs the hosts of one text. Mutable: it keeps the module that it loaded for a number of processors."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._loaded: dict[int, tuple[Machine, dict[str, Any]]] = {}

    def launches(self, host: Host, given: dict[str, Any], processors: int) -> list[Outcome] | None:
        """The launches of one call; None where the host refuses it. What the stand-ins lack raises."""
        if processors not in self._loaded:
            machine = Machine(processors)
            self._loaded[processors] = machine, load(self._text, machine)
        machine, names = self._loaded[processors]
        machine.most = _BLOCKS if given else _LITERAL_BLOCKS
        machine.outcomes = []
        try:
            names[host.function](**given)
        except REFUSALS:
            return None
        return machine.outcomes


def _known(text: str, kernel: str, rng: random.Random) -> Known | None:
    """Calls that start a kernel and do no harm; None where no host can be run."""
    runner = Runner(text)
    for host in (host for candidates in hosts(text, kernel) for host in candidates):
        try:
            calls = tuple(_calls(runner, host, kernel, rng))
        except Exception:  # noqa: BLE001 - the stand-ins lack something that this host or kernel uses
            continue
        if calls:
            return Known(host, calls)
    return None


def _calls(runner: Runner, host: Host, kernel: str, rng: random.Random) -> Iterator[tuple[dict[str, Any], int]]:
    found = 0
    for number, given in enumerate(inputs(host.args, _DRAWS if host.args else 1, rng)):
        if number == _PATIENCE and not found:
            return
        processors = rng.choice(PROCESSORS)
        ran = [o for o in runner.launches(host, given, processors) or () if o.kernel == kernel]
        if any(o.started for o in ran) and not any(o.harms for o in ran):
            found += 1
            yield given, processors


def _judged(text: str, shown: str, change: Change, known: Known | None, place: Path) -> Mutant:
    """The mutant, which is written to `place` if it is wrong."""
    changed = change.applied(text)
    if known is None:
        return Mutant(shown, change, "not run")
    truth, harmful = _truth(changed, change.kernel, known)
    if truth != "wrong":
        return Mutant(shown, change, truth)
    place.write_text(changed, encoding="utf-8")
    came, callers = _reports(f"{place}::{change.kernel}").get(change.kernel, ("missing", ()))
    excused = all(any(holds(c, outcome) is False for c in callers) for outcome, _ in harmful)
    if came == "passed" and excused and len(harmful[0][1]) > 1:
        truth = "caller's"
    outcome, given = harmful[0]
    return Mutant(shown, change, truth, came, f"{given} grid {outcome.grid} {outcome.harms[0]}")


def _truth(text: str, kernel: str, known: Known) -> tuple[str, list[tuple[Outcome, dict[str, Any]]]]:
    """What a mutant does at calls at which the original does no harm, and the launches that do some."""
    started, harmful, runner = False, [], Runner(text)
    try:
        for given, processors in known.calls:
            for outcome in runner.launches(known.host, given, processors) or ():
                started = started or (outcome.kernel == kernel and outcome.started)
                if outcome.kernel == kernel and outcome.is_harmful:
                    harmful.append((outcome, given))
    except Exception:  # noqa: BLE001 - as above
        return "not run", []
    return ("wrong" if harmful else "harmless" if started else "never"), harmful
