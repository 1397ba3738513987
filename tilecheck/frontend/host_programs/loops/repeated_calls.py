"""How often a method must be called for its calls to stand for any number of them.

Two calls do where the object is the same after each. Where its fields take turns, as the buffers of a ring do,
the calls must go round once more. A number that does not come back, such as one that counts the calls, may be
any at the start of each call.
"""

from __future__ import annotations

from dataclasses import field

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_programs.knowledge import Relearn
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol

_MOST = 5  # calls


_Calls = tuple[cst.FunctionDef | cst.Module, ...]


def repeated(m: Machine, calls: _Calls) -> tuple[_Calls, int | None]:
    """Calls of which the last is made as often as stands for all, and where it comes first; None if it is made
    once."""
    *_, before, last = (None, None, *calls)
    if last is None or before is not last:
        return calls, None
    return (*calls, *[last] * (m.knowledge.repeats - 2)), len(calls) - 2


@dataclass(slots=True)
class Repeats:
    """The calls of one method, one after the other. Mutable: what the object held at the start of each."""

    m: Machine
    owner: V.Object
    known: frozenset[str] = frozenset()
    states: list[dict[str, object]] = field(default_factory=list)

    def begin(self) -> None:
        """A call begins, or the last one has ended."""
        if not self.states:
            self.known = frozenset(filter(None, map(_name, V.contents(self.owner))))
        for name in self.m.knowledge.counting & self.owner.fields.keys():
            text = f"{self.owner.name}.{name}, call {len(self.states)}"
            self.owner.fields[name] = V.Number(E.sym(Symbol(text, Kind.HOST)))
        self.states.append({name: self._identity(value) for name, value in self.owner.fields.items()})

    def end(self) -> None:
        """The last call has ended.

        Raises:
            Relearn: more calls are needed.
        """
        self.begin()
        knowledge, calls = self.m.knowledge, len(self.states) - 1
        last = self._following(self.states[-1])
        earlier = [at for at, state in enumerate(self.states[:-1]) if self._following(state) == last]
        if earlier:
            self._need(min(calls - earlier[-1], _MOST - 1) + 1)
            return
        if calls < _MOST:
            self._need(_MOST)
            return
        changing = {n for n, value in last if isinstance(value, V.Number) and value != self.states[-2].get(n)}
        if changing - knowledge.counting:
            knowledge.counting |= changing
            knowledge.repeats = 2
            raise Relearn

    def _need(self, calls: int) -> None:
        if calls > self.m.knowledge.repeats:
            self.m.knowledge.repeats = calls
            raise Relearn

    def _following(self, state: dict[str, object]) -> list[tuple[str, object]]:
        return [(name, value) for name, value in sorted(state.items()) if name not in self.m.knowledge.counting]

    def _identity(self, value: V.Value) -> object:
        """What takes turns: a number, or what was there before the first call."""
        if isinstance(value, V.Number):
            return value
        if isinstance(value, V.Sequence):
            names = tuple(map(_name, value.items))
            return names if self.known.issuperset(names) else None
        name = _name(value)
        return name if name in self.known else None


def _name(value: V.Value) -> str:
    match value:
        case V.Tensor(memory=memory):
            return memory
        case V.Stream(name=name) | V.Event(name=name) | V.Graph(name=name):
            return name
        case _:
            return ""
