"""Running a launch: blocks one after another, each to its end, everything logged."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from tilecheck.reference.cutile.language import CUTILE
from tilecheck.reference.interpret.attributes import static_attribute
from tilecheck.reference.interpret.calls import invoke, run_function
from tilecheck.reference.interpret.entry import find_kernel
from tilecheck.reference.interpret.expressions import evaluate
from tilecheck.reference.interpret.interpreter import Interpreter
from tilecheck.reference.interpret.statements import execute
from tilecheck.reference.languages import language_of
from tilecheck.reference.log import Launch, Log, NotInterpretable, ReplayError
from tilecheck.reference.machine import Abandoned, Machine, Reject


def run_launch(launch: Launch, *, record: bool = True) -> Log:
    """Run a launch and report everything that it did.

    Arrays in `launch.arguments` are changed in place, as the GPU would. Names beside the parameters bind
    free variables of a kernel that stands inside a function. Raises `NotInterpretable` with the place and
    the construct, `StepLimit` when the kernel does not end. Without `record` the log has no accesses, only
    what was undefined: for running a kernel rather than judging it.
    """
    machine = Machine(launch.grid, launch.max_steps, recording=record)
    machine.idle, machine.idle_at = launch.idle, launch.idle_at
    interpreter = Interpreter(machine, CUTILE, evaluate, execute, invoke, static_attribute)
    try:
        with np.errstate(all="ignore"):
            _run_whole(interpreter, launch)
    except ReplayError as error:
        error.steps = launch.max_steps - machine.steps
        raise
    machine.log.steps = launch.max_steps - machine.steps
    return machine.log


def _run_whole(interpreter: Interpreter, launch: Launch) -> None:
    machine = interpreter.machine
    try:
        _run_blocks(interpreter, launch)
    except Reject as error:
        message = f"{machine.place.path or launch.path}:{machine.place.line}: {error}"
        raise NotInterpretable(message) from error
    except MemoryError as error:
        message = f"{launch.path}:{machine.place.line}: a value that is too large to hold"
        raise NotInterpretable(message) from error
    except RecursionError as error:
        message = f"{launch.path}:{machine.place.line}: nesting that is too deep"
        raise NotInterpretable(message) from error


def _run_blocks(interpreter: Interpreter, launch: Launch) -> None:
    module = interpreter.modules.load(launch.path)
    kernel = find_kernel(interpreter, module, launch.kernel, launch.arguments)
    interpreter.language = language_of(interpreter, kernel)
    parameters = interpreter.language.parameters(interpreter, kernel, launch.arguments)
    for block in _blocks(launch):
        interpreter.machine.enter(block)
        interpreter.depth = interpreter.static = 0
        try:
            run_function(interpreter, kernel, (), parameters)
        except Abandoned:
            continue


def _blocks(launch: Launch) -> Iterator[tuple[int, int, int]]:
    """The blocks in order; by default all of them, axis 0 fastest."""
    if launch.blocks is not None:
        yield from launch.blocks
        return
    x, y, z = launch.grid
    for k, j, i in itertools.product(range(z), range(y), range(x)):
        yield (i, j, k)
