"""What a line of the gate's input says, and the shape of an answer."""

from __future__ import annotations

import json
import re
from dataclasses import field
from typing import Any

from tilecheck.dataclass import dataclass
from tilecheck.errors import did_you_mean

MAX_LINE = 20_000_000  # bytes
MAX_ID = 1_000  # characters
KEYS = ("id", "source", "contracts", "launch")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


Id = str | int


class BadLine(Exception):
    """A line that asks for nothing that can be done. `name` is its id, as far as it could be read."""

    def __init__(self, problem: str, name: Id | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.name = name


@dataclass(frozen=True, slots=True)
class Item:
    """One line: a module of source with kernels, contracts, and host code that stands after the source.

    `contracts` are for every kernel, `contracts_of` for the kernels that they name.
    """

    name: Id
    source: str
    contracts: tuple[str, ...] = ()
    contracts_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    launch: str = ""


def read_line(line: bytes) -> Item:
    """Read one line.

    Raises:
        BadLine: it is no JSON object of the right form.
    """
    said = _object(line)
    name = said.get("id")
    if "id" not in said:
        raise BadLine("`id` is missing")
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise BadLine(f"`id` must be a text or a whole number, not {_kind(name)}")
    if isinstance(name, str) and len(name) > MAX_ID:
        raise BadLine(f"`id` has {len(name):,} characters; more than {MAX_ID:,} are not kept")
    try:
        return _item(name, said)
    except BadLine as bad:
        raise BadLine(bad.problem, name) from None


def answer(name: Id | None, kernels: list[Any], diagnostics: list[Any], error: str | None) -> bytes:
    """An answer as one line of ASCII."""
    said = {"id": name, "kernels": kernels, "diagnostics": diagnostics, "error": error}
    return json.dumps(said, separators=(", ", ": ")).encode("ascii") + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    if not line.strip():
        raise BadLine("the line is empty")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadLine(f"byte 0x{line[error.start]:02x} at {error.start + 1} is not UTF-8") from None
    try:
        said = json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise BadLine(f"no JSON: {_lowered(error.msg)} at character {error.pos + 1}") from None
    except RecursionError:
        raise BadLine("the JSON is nested too deeply to read") from None
    except ValueError as error:  # a number with too many digits
        raise BadLine(f"no JSON: {_lowered(str(error))}") from None
    if not isinstance(said, dict):
        raise BadLine(f"the line must be a JSON object, not {_kind(said)}")
    return said


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Which of two values counts must not depend on who reads the line."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise BadLine(f"the key {_shown(repeated)} is given twice")
    return found


def _item(name: Id, said: dict[str, Any]) -> Item:
    for key in said:
        if key not in KEYS:
            listed = f"known are {', '.join(f'`{k}`' for k in KEYS)}"
            hint = did_you_mean(key[:MAX_ID], KEYS, listed)
            raise BadLine(f"there is no key {_shown(key)}: {hint}")
    if "source" not in said:
        raise BadLine("`source` is missing")
    source, launch = said["source"], said.get("launch")
    if not isinstance(source, str):
        raise BadLine(f"`source` must be a text, not {_kind(source)}")
    if not isinstance(launch, str | None):
        raise BadLine(f"`launch` must be a text, not {_kind(launch)}")
    every, each = _contracts(said.get("contracts"))
    for what, text in (("source", source), ("launch", launch or "")):
        problem = _surrogate(text)
        if problem:
            raise BadLine(f"`{what}` holds {problem}")
    return Item(name, source, every, each, launch or "")


def _contracts(said: object) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    if said is None:
        return (), {}
    if isinstance(said, dict):
        return (), {kernel: _texts(texts) for kernel, texts in said.items()}
    return _texts(said), {}


def _texts(said: object) -> tuple[str, ...]:
    if not isinstance(said, list) or not all(isinstance(text, str) for text in said):
        raise BadLine("`contracts` must be a list of texts, or an object with such a list for each kernel")
    for text in said:
        if _CONTROL.search(text) or _surrogate(text):
            raise BadLine(f"the contract {_shown(text)} holds a line break, a control character or a surrogate")
    return tuple(said)


def _surrogate(text: str) -> str:
    """What is wrong with a text that has no UTF-8 form."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"a lone surrogate, U+{ord(text[error.start]):04X}, at character {error.start + 1}"
    return ""


def _shown(text: str) -> str:
    return f"`{text if len(text) <= 60 else text[:57] + '...'}`"


_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "a truth value",
    float: "a fraction",
    type(None): "null",
}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a number")


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
