"""The interpreter that the parts of this package share: expressions, statements and calls meet here."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from tilecheck.reference.interpret.modules import Module, Modules
from tilecheck.reference.language import Language
from tilecheck.reference.machine import Machine, Place, Reject
from tilecheck.reference.values.values import Frame

OPERATION_ERRORS = (TypeError, ValueError, IndexError, KeyError, OverflowError, ZeroDivisionError)


@dataclass(frozen=True, slots=True)
class Signal:
    """How a list of statements ended early: `break`, `continue`, or `return` with a value."""

    kind: str
    value: Any = None


class Evaluate(Protocol):
    """Gives the value of an expression."""

    def __call__(self, interpreter: Interpreter, node: ast.expr, frame: Frame) -> Any: ...


class Execute(Protocol):
    """Runs statements."""

    def __call__(self, interpreter: Interpreter, body: Sequence[ast.stmt], frame: Frame) -> Signal | None: ...


class Invoke(Protocol):
    """Calls a function value."""

    def __call__(
        self, interpreter: Interpreter, function: Any, arguments: Sequence[Any], keywords: dict[str, Any]
    ) -> Any: ...


class Interpreter:
    """One launch's interpreter: the machine it runs on and the modules it reads."""

    def __init__(
        self,
        machine: Machine,
        language: Language,
        evaluate: Evaluate,
        execute: Execute,
        invoke: Invoke,
        attribute: Callable[[Any, str], Any],
    ) -> None:
        self.machine = machine
        self.language = language  # the kernel's, once it is found
        self.depth = 0  # user functions that are running
        self.static = 0  # above 0 inside `static_eval` and its like, which follow Python
        self._evaluate = evaluate
        self._execute = execute
        self._invoke = invoke
        self.modules = Modules(self.fold, attribute)
        machine.call = lambda function, arguments: self.invoke(function, arguments, {})

    def evaluate(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression."""
        return self._evaluate(self, node, frame)

    def execute(self, body: Sequence[ast.stmt], frame: Frame) -> Signal | None:
        """Run statements; the signal says how they ended, None at their end."""
        return self._execute(self, body, frame)

    def invoke(self, function: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Call a function value."""
        return self._invoke(self, function, arguments, keywords)

    def fold(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression on the host (module constants, defaults): nothing is logged."""
        with self.on_host():
            return self.evaluate(node, frame)

    def fold_statements(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Run statements of host code."""
        with self.on_host():
            self.execute(body, frame)

    @contextmanager
    def on_host(self) -> Iterator[None]:
        """Inside, code means what it means to Python, and nothing is logged as undefined."""
        machine = self.machine
        place, depth = machine.place, self.depth
        machine.host += 1
        try:
            yield
        finally:
            machine.host -= 1
            machine.place, self.depth = place, depth

    def at(self, module: Module, node: ast.expr | ast.stmt) -> _At:
        """Whatever is logged inside belongs to `node`; after an error the place stays, for the message."""
        return _At(self.machine, module.source.place(node))

    def compute(
        self, module: Module, node: ast.expr | ast.stmt, function: Callable[..., Any], *arguments: Any
    ) -> Any:
        """What `function` gives inside `computing`. Most operations are run so: it costs less."""
        machine = self.machine
        previous, machine.place = machine.place, module.source.place(node)
        try:
            result = function(*arguments)
        except OPERATION_ERRORS as error:
            raise Reject(str(error)) from error
        machine.place = previous
        return result

    def computing(self, module: Module, node: ast.expr | ast.stmt) -> _Computing:
        """`at` for one operation: what NumPy or Python refuse (shapes, types) the compiler refuses too."""
        return _Computing(self.machine, module.source.place(node))


class _At:
    __slots__ = ("_machine", "_place", "_previous")

    def __init__(self, machine: Machine, place: Place) -> None:
        self._machine = machine
        self._place = place
        self._previous = place

    def __enter__(self) -> None:
        self._previous = self._machine.place
        self._machine.place = self._place

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._machine.place = self._previous


class _Computing(_At):
    __slots__ = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._machine.place = self._previous
        elif issubclass(kind, OPERATION_ERRORS):
            raise Reject(str(error)) from error


def unsupported(node: ast.AST) -> Reject:
    """A construct that is not run."""
    return Reject(f"`{type(node).__name__}` syntax")
