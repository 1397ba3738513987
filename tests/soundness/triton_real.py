"""Triton's own interpreter as one more oracle: what a launch touches there, next to the stand-in of
`soundness_triton_plain`.

The interpreter runs in a process of its own (`triton_worker.py`), which needs torch and triton: `pip install
'tilecheck[oracle]'`.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from soundness_plain import Memory, Refused, compiled
from soundness_triton_plain import run

WORKER = Path(__file__).with_name("triton_worker.py")

Program = tuple[int, int, int]
Touched = dict[tuple[str, int], set[tuple[Program, str]]]


class Unlike(Exception):
    """The interpreter and the stand-in do different things."""


def missing() -> str | None:
    """Why the interpreter cannot be asked; None when it can."""
    absent = [name for name in ("torch", "triton") if importlib.util.find_spec(name) is None]
    return f"{' and '.join(absent)} not installed (the extra `oracle`)" if absent else None


@dataclass
class Seen:
    """What the interpreter did in one launch."""

    touched: Touched
    outside: set[str]
    buffers: dict[str, list[float]]
    overrun: list[str]


class Interpreter:
    """The process that runs kernels. Mutable: it counts what it was asked for."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TRITON_INTERPRET": "1"},
        )
        self.versions: dict[str, str] = self._read()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    def oracle(self, text: str) -> Both:
        """What runs the launches of a text, for `soundness_held.attacked`."""
        return Both(self, text)

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return pickle.load(self._process.stdout)

    def launch(
        self, text: str, name: str, grid: Program, arguments: Mapping[str, Any], order: Sequence[Program]
    ) -> Seen:
        """Run the programs in this order.

        Raises:
            Refused: the interpreter does not take the kernel.
        """
        assert self._process.stdin is not None
        request = {"text": text, "name": name, "grid": grid, "arguments": dict(arguments), "order": list(order)}
        pickle.dump(request, self._process.stdin)
        self._process.stdin.flush()
        answer = self._read()
        if "refused" in answer:
            self.refusals[answer["refused"].splitlines()[0][:160]] += 1
            raise Refused(answer["refused"])
        lengths = {n: len(a) for n, a in arguments.items() if isinstance(a, np.ndarray)}
        return Seen(*_places(answer["events"], lengths), answer["buffers"], answer["overrun"])


def _places(
    events: Sequence[tuple[Program, str, str | None, list[int]]], lengths: Mapping[str, int]
) -> tuple[Touched, set[str]]:
    """The elements that were touched, and what happened outside the arrays, in the words of the stand-in."""
    touched: Touched = {}
    outside = set()
    for program, effect, array, offsets in events:
        for at in offsets:
            if array is None:
                outside.add("far away")
            elif not 0 <= at < lengths[array]:
                outside.add(f"{effect} at {at} of {array}, which has {lengths[array]} in block {program}")
            else:
                touched.setdefault((array, at), set()).add((program, effect))
    return touched, outside


# ---- both ----------------------------------------------------------------------------------------------------


@dataclass
class Both:
    """Runs the launches of one text in the stand-in, and in the interpreter in two orders of the programs.

    What it returns is what the stand-in saw; where the interpreter saw something else it raises `Unlike`. Cells
    written around an argument, and results that depend on the order, are added to what is undefined.
    """

    interpreter: Interpreter
    text: str
    stand_in: Callable[[str, Sequence[int], Mapping[str, Any]], Memory] = field(init=False)
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def __post_init__(self) -> None:
        self.stand_in = partial(run, compiled(self.text))

    def __call__(self, name: str, grid: Sequence[int], arguments: Mapping[str, Any]) -> Memory:
        counts = self.interpreter.counts
        given = {n: _filled(a) if isinstance(a, np.ndarray) else a for n, a in arguments.items()}
        own = {n: a.copy() if isinstance(a, np.ndarray) else a for n, a in given.items()}
        memory = self.stand_in(name, grid, own)
        if memory.lost:
            counts["not compared: a division by zero"] += 1
            return memory
        x, y, z = (*grid, 1, 1, 1)[:3]
        programs = list(product(range(x), range(y), range(z)))
        mixed = self.rng.sample(programs, len(programs))
        try:
            first = self.interpreter.launch(self.text, name, (x, y, z), given, programs)
            second = self.interpreter.launch(self.text, name, (x, y, z), given, mixed)
        except Refused:
            counts["not compared: the interpreter refuses the kernel"] += 1
            return memory
        counts["launches"] += 1
        counts["accesses"] += sum(map(len, first.touched.values()))
        difference = _difference(memory, own, first)
        if difference:
            raise Unlike(f"grid {tuple(grid)}, {_shown(arguments)}: {difference}\n{self.text}")
        if memory.undefined or memory.races():
            counts["launches that go wrong"] += 1
        else:
            counts["launches with equal results"] += 1
            wrong = [f"cells around {name} are written" for name in first.overrun + second.overrun]
            if first.buffers != second.buffers:
                wrong.append(f"the result depends on the order of the programs: {mixed}")
            memory.undefined += wrong
        return memory


def _filled(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Small integers, which single precision adds and multiplies exactly."""
    return (np.arange(array.size) % 5 + 1.0).reshape(array.shape)


def _shown(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {n: a.shape if isinstance(a, np.ndarray) else a for n, a in arguments.items()}


def _difference(memory: Memory, own: Mapping[str, Any], seen: Seen) -> str | None:
    """What of a launch is unlike, between the stand-in's `memory` and arrays and what the interpreter did."""
    touched = {place: set(by) for place, by in memory.touched.items()}
    for place in sorted(touched.keys() | seen.touched.keys()):
        ours, theirs = touched.get(place, set()), seen.touched.get(place, set())
        if ours != theirs:
            return f"{place}: here {sorted(ours)}, in the interpreter {sorted(theirs)}"
    outside = {what for what in memory.undefined if ", which has " in what}
    if "far away" not in seen.outside and outside != seen.outside:
        return f"outside: here {sorted(outside)}, in the interpreter {sorted(seen.outside)}"
    if bool(outside) != bool(seen.outside):
        return f"outside: here {sorted(outside)}, in the interpreter {sorted(seen.outside)}"
    if memory.undefined or memory.races():
        return None  # then values mean nothing
    for name, values in seen.buffers.items():
        known = ~np.isnan(own[name])  # the others hold what was loaded where a mask was off
        if np.any(own[name][known] != np.array(values)[known]):
            return f"{name}: here {own[name].tolist()}, in the interpreter {values}"
    return None
