"""The truth of labelled launches: each host runs for real, on tensors without contents, over many inputs.

A host is a function with a comment above it that says its ordinary calls:

    # args: x[M,N] w[N] t=1..8 flag=bool n=N      names of extents are free, and agree where they are the same
    # args: x[M,N]~ rows:int32[M]                 `~`: any layout without overlap; a type
"""

from __future__ import annotations

import ast
import builtins
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from soundness_virtual_cutile import cutile_modules
from soundness_virtual_machine import CannotStart, Machine, Outcome, Storage
from soundness_virtual_tensors import DTYPES, Tensor, empty
from soundness_virtual_torch import torch_module
from soundness_virtual_triton import triton_modules

SIZES = (
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    15,
    16,
    17,
    31,
    32,
    33,
    63,
    64,
    65,
    100,
    127,
    128,
    129,
    200,
    255,
    256,
    257,
    384,
    513,
    1000,
    1025,
)
PROCESSORS = (1, 2, 3, 8, 132)
REFUSALS = (AssertionError, ValueError, RuntimeError, IndexError, CannotStart, ZeroDivisionError)
_MOST_ELEMENTS = 1 << 18
_MOST_LITERAL = 1 << 13  # blocks of a launch that says all its sizes
_LABEL = re.compile(r"#\s*expect:\s*(violated|passes|unmet|unread|refused)\b(?:\s*--\s*(.*))?")
_KIND = re.compile(r"#\s*kind:\s*([\w-]+)")
_ARGS = re.compile(r"#\s*args:\s*(.*)")
_ONE = re.compile(r"(?P<name>\w+)(?::(?P<dtype>\w+))?(?:\[(?P<shape>[^\]]*)\](?P<any>~?)|=(?P<value>\S+))")


@dataclass(frozen=True)
class Label:
    """What the comment above a kernel expects."""

    kernel: str
    word: str
    kind: str
    line: int


@dataclass(frozen=True)
class Host:
    """A host function with the text of its ordinary calls."""

    function: str
    args: str


@dataclass
class Seen:
    """What all runs of one kernel came to. `example` is the first harmful input."""

    launches: int = 0
    started: int = 0
    harmful: int = 0
    strict: int = 0  # launches with a harm of any kind, S8 and strays included
    example: str = ""
    kinds: set[str] = field(default_factory=set)


# ---- reading -------------------------------------------------------------------------------------------------


def _above(lines: Sequence[str], line: int, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """The match in the comments directly above a line (1-based)."""
    at = line - 2
    while at >= 0 and lines[at].lstrip().startswith("#"):
        found = pattern.search(lines[at])
        if found:
            return found
        at -= 1
    return None


def read_labels(text: str) -> list[Label]:
    """The labelled kernels of a file, in order."""
    lines, found = text.splitlines(), []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            label, kind = _above(lines, first, _LABEL), _above(lines, first, _KIND)
            if label:
                found.append(Label(node.name, label[1], kind[1] if kind else "", node.lineno))
    return sorted(found, key=lambda label: label.line)


def read_hosts(text: str) -> list[Host]:
    lines, found = text.splitlines(), []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            args = _above(lines, min([node.lineno, *(d.lineno for d in node.decorator_list)]), _ARGS)
            if args:
                found.append(Host(node.name, args[1].strip()))
    return found


# ---- inputs --------------------------------------------------------------------------------------------------


def _names(args: str) -> list[str]:
    found: dict[str, None] = {}
    for one in _ONE.finditer(args):
        text = one["shape"] if one["shape"] is not None else one["value"]
        if one["shape"] is None and (".." in text or text == "bool"):
            continue
        for name in re.findall(r"[A-Z]\w*", text):
            found[name] = None
    return [n for n in found if n not in ("True", "False", "None")]


def inputs(args: str, count: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Arguments for a call: all extents small, one of them large, or all."""
    names = _names(args)
    for number in range(count):
        large = names if number % 3 == 0 else rng.sample(names, min(len(names), number % 3 - 1))
        extents = {n: rng.choice(SIZES) if n in large else rng.randint(1, 4) for n in names}
        made = _call(args, extents, rng)
        if sum(v.numel() for v in made.values() if isinstance(v, Tensor)) <= _MOST_ELEMENTS or not names:
            yield made


def _call(args: str, extents: dict[str, int], rng: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for one in _ONE.finditer(args):
        if one["shape"] is not None:
            shape = eval(f"({one['shape']},)" if one["shape"].strip() else "()", {}, dict(extents))
            made[one["name"]] = _tensor(shape, one["dtype"], bool(one["any"]), rng)
        else:
            made[one["name"]] = _number(one["value"], extents, rng)
    return made


def _tensor(shape: tuple[int, ...], dtype: str | None, any_layout: bool, rng: random.Random) -> Tensor:
    if not any_layout or rng.random() < 0.3:
        return empty(*shape, dtype=DTYPES[dtype or "float32"])
    order = list(range(len(shape)))
    rng.shuffle(order)
    strides, reach = [0] * len(shape), rng.choice((1, 1, 2))
    for axis in reversed(order):
        strides[axis] = reach
        reach = reach * shape[axis] + rng.choice((0, 0, 3))
    return Tensor(Storage(reach), shape, strides, 0, DTYPES[dtype or "float32"])


def _number(text: str, extents: dict[str, int], rng: random.Random) -> Any:
    if text == "bool":
        return rng.random() < 0.5
    low, dots, high = text.partition("..")
    if dots:
        return rng.randint(int(low), int(high))
    return eval(text, {}, dict(extents))


# ---- running -------------------------------------------------------------------------------------------------


def load(text: str, machine: Machine, filename: str = "<host>") -> dict[str, Any]:
    """The names of a module that is run with the virtual libraries."""
    known = {"torch": torch_module(machine), **triton_modules(machine), **cutile_modules(machine)}
    names: dict[str, Any] = {"__name__": "host"}
    names["__builtins__"] = {**vars(builtins), "__import__": _importer(known)}
    exec(compile(text, filename, "exec"), names)
    return names


def _importer(known: dict[str, Any]) -> Callable[..., Any]:
    def importing(name: str, *given: Any, **named: Any) -> Any:
        fromlist = given[2] if len(given) > 2 else named.get("fromlist")
        if name in known:
            return known[name] if fromlist or "." not in name else _dotted(known, name)
        top = name.partition(".")[0]
        if top == "torch":
            found: Any = known["torch"]
            for part in name.split(".")[1:]:
                found = getattr(found, part)
            return found if fromlist else known["torch"]
        if top in ("triton", "cuda"):
            raise ImportError(name)
        return builtins.__import__(name, *given, **named)

    return importing


def _dotted(known: dict[str, Any], name: str) -> Any:
    """`import a.b as c` takes the attribute `b` of what this returns."""
    top, _, rest = name.partition(".")
    return known.get(top) or SimpleNamespace(**{rest: known[name]})


def call(text: str, host: Host, given: dict[str, Any], processors: int, most: int) -> list[Outcome] | None:
    """The launches of one call; None where the host refuses it."""
    machine = Machine(processors, most)
    names = load(text, machine)
    try:
        names[host.function](**given)
    except REFUSALS:
        return None
    return machine.outcomes


def truth(text: str, *, count: int = 40, seed: int = 0, most: int = 200, stop: bool = False) -> dict[str, Seen]:
    """What the launches of a file's hosts do, by kernel."""
    rng = random.Random(seed)
    found: dict[str, Seen] = {}
    for host in read_hosts(text):
        free = bool(_names(host.args)) or ".." in host.args or "bool" in host.args
        for given in inputs(host.args, count if free else 2, rng):
            outcomes = call(text, host, given, rng.choice(PROCESSORS), most if free else _MOST_LITERAL)
            for outcome in outcomes or ():
                _note(found.setdefault(outcome.kernel, Seen()), outcome, given)
            if stop and any(s.harmful for s in found.values()):
                break
    return found


def _note(seen: Seen, outcome: Outcome, given: dict[str, Any]) -> None:
    seen.launches += 1
    seen.started += outcome.started
    seen.strict += bool(outcome.harms)
    seen.kinds.update(h.kind for h in outcome.harms)
    if outcome.is_harmful:
        seen.harmful += 1
        seen.example = seen.example or f"{_shown(given)} grid {outcome.grid} {outcome.harms[0]}"


def _shown(given: dict[str, Any]) -> str:
    return ", ".join(f"{k}={tuple(v.shape) if isinstance(v, Tensor) else v}" for k, v in given.items())


def wrong_labels(text: str, **options: Any) -> list[str]:
    """Labels that the runs do not bear out."""
    seen, found = truth(text, **options), []
    for label in read_labels(text):
        mine = seen.get(label.kernel, Seen())
        if label.word == "unread":
            continue
        if label.word == "refused":
            if not mine.launches or mine.started:
                found.append(
                    f"{label.line}: `{label.kernel}` is called refused, and {mine.started} launches start"
                )
        elif not mine.started:
            found.append(f"{label.line}: `{label.kernel}` is never launched")
        elif label.word == "violated" and not mine.harmful:
            found.append(
                f"{label.line}: `{label.kernel}` is called wrong, and no run of {mine.started} shows it"
            )
        elif label.word == "unmet" and not mine.strict:
            found.append(
                f"{label.line}: `{label.kernel}` is called unmet, and no run of {mine.started} shows it"
            )
        elif label.word == "passes" and mine.strict:
            found.append(f"{label.line}: `{label.kernel}` is called right: {mine.kinds}, {mine.example}")
    return found


def main(paths: Sequence[str]) -> int:
    """Check the labels of files; print what is not borne out."""
    bad = 0
    for path in paths:
        for problem in wrong_labels(Path(path).read_text(encoding="utf-8")):
            bad += 1
            print(f"{path}:{problem}")  # noqa: T201 - the result of a script
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
