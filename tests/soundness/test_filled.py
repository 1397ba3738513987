"""Random kernels whose author says that they fill their output: where that is called shown, no launch leaves an
element. The launches are run as plain Python, with nothing of tilecheck in them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from soundness_held import host_launches
from soundness_mutate import mutant
from soundness_sources import Source, source
from soundness_triton_sources import triton_source

from tilecheck import check_source

KERNELS = 40
LAUNCHES = 30

Draw = Callable[[int], Source]


def _said(number: int, draw: Draw) -> tuple[Source, str] | None:
    """A kernel with comments on what its host does and that it fills `out`; odd ones with small changes."""
    drawn = draw(number)
    text = drawn.text
    if number % 2:
        changed = mutant(text.encode(), random.Random(number))
        if changed is None:
            return None
        text = changed.source.decode()
    agreements = tuple(a.replace("numel(out) >=", "numel(out) ==") for a in drawn.agreements)
    positive = tuple(f"{name} >= 1" for name, _ in drawn.scalars if name in ("n", "M", "N", "columns"))
    alike = (*dict.fromkeys(agreements), *positive)
    grids = tuple(f"grid[{k}] == {axis}" for k, axis in enumerate(drawn.grid))
    comments = [f"# tilecheck: requires {fact} -- so do hosts" for fact in (*alike, *grids)]
    maker = "@triton.jit" if drawn.language == "triton" else "@ct.kernel"
    head, found, body = text.rpartition(f"{maker}\ndef kernel(")
    said = "".join(f"{line}\n" for line in ("# tilecheck: fills out", *comments))
    return replace(drawn, agreements=alike), f"{head}{said}{found}{body}"


def _places(array: np.ndarray[Any, Any]) -> set[int]:
    """The offsets of the elements of an array."""
    steps = [s // array.itemsize for s in array.strides]
    return {sum(i * s for i, s in zip(at, steps, strict=True)) for at in np.ndindex(array.shape)}


@pytest.mark.parametrize("draw", [source, triton_source])
def test_no_launch_leaves_an_element_of_what_is_filled(draw: Draw) -> None:
    shown: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for number in range(KERNELS):
        said = _said(number, draw)
        if said is None:
            continue
        of, text = said
        report = check_source(text, "kernel.py")
        if report.kernels[0].verdict.value not in ("proved", "conditional"):
            continue
        claimed = not any(d.code == "TC501" for d in report.diagnostics)
        kind = "changed" if number % 2 else "drawn"
        shown[kind] += claimed
        whole = True
        for launch, memory in host_launches(of, text, str(number), LAUNCHES):
            if not launch.reading.holds(" and ".join(report.kernels[0].conditions) or "1 == 1"):
                continue
            written = {
                at
                for (name, at), by in memory.touched.items()
                if name == "out" and any(e == "write" for _, e in by)
            }
            missing = _places(launch.arguments["out"]) - written
            assert not (claimed and missing), f"kernel {number}: {launch} leaves {min(missing)}\n{text}"
            whole = whole and not missing
        left[kind] += not whole
    assert shown["drawn"] >= KERNELS // 8
    assert left["changed"] >= KERNELS // 20  # it is not that nothing goes wrong
