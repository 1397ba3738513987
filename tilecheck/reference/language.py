"""What differs between the interpreted languages; statements, scopes, modules and calls are shared."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilecheck.reference.machine import Machine

if TYPE_CHECKING:
    from tilecheck.reference.interpret.interpreter import Interpreter
    from tilecheck.reference.values.values import Closure

ABSENT = object()  # what `attribute` and `item` give where the shared lookup is to decide


@dataclass(frozen=True, slots=True)
class Language:
    """The operations that one language gives its own meaning.

    `attribute` and `item` look at `owner.name` and `owner[index]` before the shared lookups do. `boolean`
    joins the lazily evaluated operands of `and` (its flag is False) or `or` (True). `assigned` is what an
    assignment stores of a value, `merged` what a constant is where two paths of a runtime branch meet,
    `chosen` what a branch of a runtime choice gives.
    """

    name: str
    asserts: bool  # whether `assert` is a statement of the device (which does not stop it)
    builtins: Mapping[str, Any]
    transparent: frozenset[str]  # decorators of functions that a kernel may call
    compile_time: frozenset[str]  # those of functions that run as host code
    static_names: frozenset[str]  # operations whose first argument is evaluated at compile time
    binary: Callable[[Machine, str, Any, Any], Any]
    unary: Callable[[Machine, str, Any], Any]
    product: Callable[[Machine, Any, Any], Any]
    compare: Callable[[Machine, ast.cmpop, Any, Any], Any]
    negated: Callable[[Machine, Any], Any]
    boolean: Callable[[Interpreter, Iterator[Any], bool], Any]
    chain: Callable[[Interpreter, Iterator[Any]], Any]
    truth: Callable[[Any], tuple[bool, bool]]
    assigned: Callable[[Any], Any]
    merged: Callable[[Any], Any]
    chosen: Callable[[Any], Any]
    convert: Callable[[Any, Any], Any]  # a data type that is called
    attribute: Callable[[Interpreter, Any, str], Any]
    item: Callable[[Interpreter, Any, Any], Any]
    parameters: Callable[[Interpreter, Closure, Mapping[str, Any]], dict[str, Any]]
