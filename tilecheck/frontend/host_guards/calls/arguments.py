"""The arguments of a call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host_guards.kinds import NOTHING, PLAIN, Kind
from tilecheck.frontend.host_guards.read.expressions import elements, evaluate
from tilecheck.frontend.host_guards.run import Run

Node = cst.BaseExpression | None


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a call, each with its expression; `more` and `others` are in starred ones."""

    node: cst.CSTNode
    positional: tuple[tuple[Kind, Node], ...] = ()
    keywords: dict[str, tuple[Kind, Node]] = field(default_factory=dict)
    more: Kind = NOTHING
    others: Kind = NOTHING

    def get(self, at: int, name: str) -> Kind:
        """An argument by its position or name; nothing if it is not given."""
        if name in self.keywords:
            return self.keywords[name][0]
        return self.positional[at][0] if 0 <= at < len(self.positional) else self.more | self.others

    def every(self) -> Iterator[tuple[int | str, Kind, Node]]:
        """All arguments, by position or name, those in starred ones as `*` and `**`."""
        yield from ((at, *one) for at, one in enumerate(self.positional))
        yield from ((name, *one) for name, one in self.keywords.items())
        if self.more:
            yield "*", self.more, None
        if self.others:
            yield "**", self.others, None

    def kind(self) -> Kind:
        return NOTHING.union(*(kind for _, kind, _ in self.every()))


def arguments(r: Run, node: cst.Call) -> Given:
    """The arguments of a call, evaluated."""
    positional: list[tuple[Kind, Node]] = []
    keywords: dict[str, tuple[Kind, Node]] = {}
    more: Kind = NOTHING
    others: Kind = NOTHING
    for arg in node.args:
        kind = evaluate(r, arg.value)
        if arg.keyword is not None:
            keywords[arg.keyword.value] = (kind, arg.value)
        elif arg.star == "**":
            others |= elements(r, arg.value, kind) | PLAIN
        elif arg.star == "*":
            more |= elements(r, arg.value, kind) | PLAIN
        elif more:
            more |= kind
        else:
            positional.append((kind, arg.value))
    return Given(node, tuple(positional), keywords, more, others)


def of_values(r: Run, node: cst.CSTNode, *kinds: Kind) -> Given:
    """Arguments that no expression of the text gives."""
    return Given(node, tuple((kind, None) for kind in kinds))
