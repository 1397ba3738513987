"""The IR of a kernel as a key: each expression is written once, and places are those of tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilecheck.cache.keys import NoKey, Writer, key_of
from tilecheck.ir.expr import Expr
from tilecheck.model import Site


def digest_of(value: Any, place: Callable[[Site], str]) -> str:
    """The digest of a value; `place` writes a site so that edits elsewhere leave it as it is.

    Raises:
        NoKey: it has none.
    """
    writer = _IrWriter(place)
    try:
        top = writer.write(value)
    except RecursionError:
        raise NoKey("nested too deeply") from None
    return key_of((*writer.nodes, top))


class _IrWriter(Writer):
    """Expressions share their parts: written as a tree one may be endless."""

    def __init__(self, place: Callable[[Site], str]) -> None:
        self.nodes: list[str] = []
        self._known: dict[Expr, str] = {}
        self._place = place

    def special(self, value: Any) -> str | None:
        if isinstance(value, Expr):
            return self._expr(value)
        return f"Site({self._place(value)})" if isinstance(value, Site) else None

    def _expr(self, root: Expr) -> str:
        """The number of a node. Operands come first, without recursion: sums are deep."""
        stack = [root]
        while stack:
            node = stack[-1]
            if node in self._known:
                stack.pop()
                continue
            missing = [e for e in node.args if isinstance(e, Expr) and e not in self._known]
            if missing:
                stack.extend(missing)
                continue
            inner = ",".join(map(self.write, node.args))  # operands are known; symbols may hold a bound
            self._known[node] = f"#{len(self.nodes)}"
            self.nodes.append(f"{node.op}({inner})")
            stack.pop()
        return self._known[root]
