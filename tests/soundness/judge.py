"""Judges the verdict of one kernel against launches of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from soundness_launches import ORDERS, Trial, Values, started
from soundness_oracle import safe_launches, wrongs
from soundness_texts import Reading

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.ir.expr import symbols, walk
from tilecheck.ir.kernel import Kernel, extent_symbol, grid_symbol, stride_symbol
from tilecheck.model import Diagnostic, KernelReport, Report, Verdict, Witness
from tilecheck.options import Options
from tilecheck.proof.refute.concrete import FILLS, Concrete, arguments, kernel_expressions
from tilecheck.verify.pipeline import verify_paths


@dataclass(frozen=True)
class Judgement:
    """The verdict on a kernel, how many launches it was held against, and what speaks against it."""

    verdict: str
    launches: int
    problems: tuple[str, ...] = ()


def judge(
    path: Path,
    name: str,
    launches: int,
    seed: str,
    options: Options | None = None,
    report: Report | None = None,
) -> Judgement:
    """Verify one kernel, unless the report of its file is given, and hold its verdict against launches."""
    report = verify_paths([f"{path}::{name}"], options) if report is None else report
    [kernel] = [k for k in report.kernels if k.name == name]
    findings = [d for d in report.diagnostics if d.kernel == name and d.witness is not None]
    if kernel.internal_error is not None:
        return Judgement("internal", 0, (f"{path}::{name}: {kernel.internal_error}",))
    if kernel.verdict in (Verdict.PROVED, Verdict.CONDITIONAL):
        return _safe(path, kernel, launches, seed)
    if kernel.verdict is Verdict.VIOLATED:
        problems = [p for d in findings for p in _unreal(path, kernel, d)]
        return Judgement("violated", len(findings), tuple(problems))
    return Judgement(kernel.verdict.value, 0)


def lowered(path: Path, name: str) -> Kernel | None:
    definitions = [d for d in find_kernels(Project().add(load(str(path)))) if d.name == name]
    try:
        return lower(definitions[-1]) if definitions else None
    except UnsupportedConstruct:
        return None


def _safe(path: Path, report: KernelReport, launches: int, seed: str) -> Judgement:
    kernel = lowered(path, report.name)
    if kernel is None:
        return Judgement(report.verdict.value, 0)
    ran, problems = 0, []
    for trial, wrong in safe_launches(kernel, str(path), report, launches, seed):
        ran += 1
        if wrong:
            said = f"{report.verdict.value} if {report.conditions} given {report.requires}"
            problems.append(f"{said}\n{trial.describe()}\n  " + "\n  ".join(wrong[:4]))
    return Judgement(report.verdict.value, ran, tuple(problems))


# ---- witnesses -----------------------------------------------------------------------------------------------


def _unreal(path: Path, report: KernelReport, finding: Diagnostic) -> list[str]:
    """Why the witness of a finding cannot be seen when its launch is run again."""
    witness = finding.witness
    kernel = lowered(path, report.name)
    # Witnesses of launches in view (TC4, TC5) name the host's values, not the kernel's.
    if witness is None or kernel is None or finding.code.startswith(("TC1", "TC4", "TC5")):
        return []
    texts = report.requires
    refused = 0
    for trial in _runs_of(witness, kernel, path):
        reading = Reading(trial.grid, {**_scalars(witness), **trial.contents})
        if not all(reading.holds(t) for t in (*report.conditions, *texts)):
            refused += 1
            continue
        if _is_seen(witness, trial):
            return []
    return [f"{path}::{report.name} {finding.code}: no run shows {witness} ({refused} runs break a contract)"]


def _scalars(witness: Witness) -> dict[str, int]:
    return {n: v for n, v in witness.values.items() if isinstance(v, int)}


def _runs_of(witness: Witness, kernel: Kernel, path: Path) -> list[Trial]:
    """The launch of a witness, with each way to fill what it does not show, blocks in each of the orders."""
    by_name = {s.name: s for s in symbols(*kernel_expressions(kernel)) if not s.varies}
    values: Values = {grid_symbol(k): n for k, n in enumerate(witness.grid)}
    for param in kernel.params:
        for k in range(param.rank or 1):
            by_name |= {s.name: s for s in (extent_symbol(param.name, k), stride_symbol(param.name, k))}
    flags = {n.args[0] for n in _flags(kernel)}
    for name, value in witness.values.items():
        if isinstance(value, int) and name in by_name:
            values[by_name[name]] = bool(value) if by_name[name] in flags else value
    trials = []
    for fill, order in product(FILLS, ORDERS):
        for integers in (False, True):
            wraps = witness.kind == "overflow"  # of a launch that no machine has the memory for
            concrete = Concrete(values, fill=fill, integers=integers, virtual=wraps).settled(kernel)
            given = arguments(concrete, kernel)
            if given is None:
                continue
            for name, value in witness.values.items():
                if isinstance(value, list) and isinstance(given.get(name), np.ndarray):
                    flat = given[name].reshape(-1)
                    flat[: len(value)] = value
                    given[name][...] = flat.reshape(given[name].shape)
            x, y, z = (*witness.grid, 1, 1, 1)[:3]
            trial = started(
                kernel, str(path), concrete, (x, y, z), given, order=order, only=witness.blocks if wraps else ()
            )
            trials += [] if trial is None else [trial]
    return trials


def _flags(kernel: Kernel) -> list[object]:
    return [n for n in walk(*kernel_expressions(kernel)) if n.op == "bsym"]


def _is_seen(witness: Witness, trial: Trial) -> bool:
    if witness.kind == "overlap" and len(witness.blocks) > 1:
        return any(wrongs(trial, only_races=True))
    if witness.kind == "overlap" and len(witness.iterations or ()) > 1:
        return _is_written_twice(witness, trial)
    return bool(trial.log.undefined)


def _is_written_twice(witness: Witness, trial: Trial) -> bool:
    """Whether one block writes the element in two operations."""
    block, element = (*witness.blocks[0], 0, 0)[:3], list(witness.element or ())
    writes = [r for r in trial.log.accesses if (r.array, r.block, r.effect) == (witness.array, block, "write")]
    return sum(element in r.elements.tolist() for r in writes) > 1


def summary(judgements: Sequence[Judgement]) -> dict[str, int]:
    found: dict[str, int] = {}
    for judgement in judgements:
        found[judgement.verdict] = found.get(judgement.verdict, 0) + 1
    return dict(sorted(found.items()))
