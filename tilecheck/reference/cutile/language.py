"""cuTile: the meaning that it gives to what the languages share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilecheck.reference.cutile.operations import METHODS
from tilecheck.reference.cutile.ops_math import matmul
from tilecheck.reference.interpret.interpreter import Interpreter
from tilecheck.reference.interpret.parameters import bind_parameters
from tilecheck.reference.interpret.python_functions import BUILTINS
from tilecheck.reference.language import ABSENT, Language
from tilecheck.reference.machine import Machine
from tilecheck.reference.values.arithmetic import binary, logical_not, unary
from tilecheck.reference.values.comparisons import compare
from tilecheck.reference.values.values import Method, cast, harden, truth


def _boolean(interpreter: Interpreter, operands: Iterator[Any], stop_at: bool) -> Any:
    """Short-circuit, and give a boolean; a runtime operand makes it a runtime one."""
    runtime_seen = False
    holds, value = not stop_at, None
    for value in operands:
        holds, runtime = truth(value)
        runtime_seen = runtime_seen or runtime
        if holds is stop_at:
            break
    if interpreter.machine.host or (interpreter.static and not runtime_seen):
        return value
    return harden(holds) if runtime_seen else holds


def _chain(interpreter: Interpreter, results: Iterator[Any]) -> Any:
    """`a < b < c` ends at the first comparison that does not hold."""
    result: Any = True
    for result in results:
        if not truth(result)[0]:
            break
    return result


def _negated(machine: Machine, value: Any) -> Any:
    holds, runtime = truth(value)
    return logical_not(value) if runtime else not holds


def _attribute(interpreter: Interpreter, owner: Any, name: str) -> Any:
    found = METHODS.get((type(owner).__name__, name))
    return ABSENT if found is None else Method(owner, found, name)


CUTILE = Language(
    name="cuTile",
    asserts=False,
    builtins=BUILTINS,
    transparent=frozenset({"function", "property", "staticmethod", "lru_cache", "cache", "kernel"}),
    compile_time=frozenset(),
    static_names=frozenset({"static_assert", "static_eval", "static_iter"}),
    binary=binary,
    unary=unary,
    product=matmul,
    compare=compare,
    negated=_negated,
    boolean=_boolean,
    chain=_chain,
    truth=truth,
    assigned=lambda value: value,
    merged=harden,
    chosen=harden,
    convert=cast,
    attribute=_attribute,
    item=lambda interpreter, owner, index: ABSENT,
    parameters=bind_parameters,
)
