"""Values that arithmetic leaves open: they may be tensors or numbers.

On a stream of its own and in a capture, arithmetic with such a value counts as work that perhaps touches it.
A value is a number if it, or what is computed from it, is used as one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.host_programs.knowledge import Relearn
from tilecheck.frontend.host_programs.values import values as V

if TYPE_CHECKING:
    from tilecheck.frontend.host_programs.machine import Machine


def operand(m: Machine, value: V.Value, node: cst.CSTNode) -> V.Tensor | None:
    """The tensor that an operand of arithmetic is or may be; None where it counts as a number.

    Raises:
        Relearn: arithmetic with it came before, on the stream of the caller.
    """
    if isinstance(value, V.Tensor):
        return value
    if not isinstance(value, V.Unknown) or value.plain or value.name in m.modules | m.knowledge.numbers:
        return None
    if value.name not in m.knowledge.guessed:
        if not m.captures and m.stream == m.caller:
            m.operated.add(value.name)
            return None
        m.knowledge.guessed.add(value.name)
        if value.name in m.operated:
            raise Relearn
    found = m.handed_in(value.name, node)
    m.guessed.setdefault(found.memory, frozenset({value.name}))
    return replace(found, holes=True, perhaps=True)


def note_result(m: Machine, result: V.Tensor, operands: list[V.Value]) -> None:
    """A result of arithmetic with nothing but guesses is a guess: of whether its operands are tensors."""
    tensors = [value for value in operands if isinstance(value, V.Tensor)]
    if all(tensor.memory in m.guessed for tensor in tensors):
        m.guessed[result.memory] = frozenset().union(*(m.guessed[tensor.memory] for tensor in tensors))


def learn_number(m: Machine, value: V.Value) -> None:
    """A value is used as a number.

    Raises:
        Relearn: it was taken for a tensor.
    """
    names: frozenset[str] = frozenset()
    if isinstance(value, V.Tensor) and value.perhaps:
        names = m.guessed.get(value.memory, names)
    elif isinstance(value, V.Unknown) and not value.plain and value.name not in m.given:
        names = frozenset({value.name})
    new = names - m.knowledge.numbers - m.knowledge.shown
    m.knowledge.numbers |= new
    if new & m.knowledge.guessed:
        raise Relearn


def learn_tensor(m: Machine, value: V.Unknown) -> None:
    """A value is used as a tensor alone is.

    Raises:
        Relearn: it was taken for a number.
    """
    m.knowledge.shown.add(value.name)
    if value.name in m.knowledge.numbers:
        m.knowledge.numbers.discard(value.name)
        raise Relearn
