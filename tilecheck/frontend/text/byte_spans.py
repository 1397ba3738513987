"""Where the nodes of a libcst tree stand in its text, counted in UTF-8 bytes.

A node's span has none of the whitespace that the node owns, as in libcst's `ByteSpanPositionProvider`. For that
provider libcst copies the tree first, to guard against shared nodes. The parser makes a fresh object for each
node, so no copy is needed; a shared node would show as a span that does not fit.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState  # the tree prints itself to a subclass of it


def byte_spans(module: cst.Module) -> dict[int, tuple[int, int]]:
    """The bytes of each node, by its identity, in the text that libcst keeps: the first, and the one behind."""
    printed = _Printed(module)
    module._codegen(printed)  # noqa: SLF001 - what libcst's own providers call
    return printed.spans


class _Printed(CodegenState):
    """What a tree was printed to: only the lengths count."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__(module.default_indent, module.default_newline)
        self.at = 0
        self.spans: dict[int, tuple[int, int]] = {}
        self._starts: list[int] = []

    def add_indent_tokens(self) -> None:
        self.tokens.extend(self.indent_tokens)
        self.at += sum(map(_length, self.indent_tokens))

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.at += len(value) if value.isascii() else _length(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append(self.at)

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._starts.pop()
        self.spans.setdefault(id(node), (start, self.at))  # unless its span without whitespace is known

    def record_syntactic_position(self, node: cst.CSTNode, **ends: Any) -> Any:
        return _Place(self, node, **ends)


def _length(value: str) -> int:
    return len(value.encode())


class _Place:
    """Notes what is printed inside its `with` as the span of a node."""

    __slots__ = ("end_node", "node", "printed", "start", "start_node")

    def __init__(
        self,
        printed: _Printed,
        node: cst.CSTNode,
        *,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> None:
        self.printed, self.node, self.start_node, self.end_node = printed, node, start_node, end_node
        self.start = printed.at

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        spans = self.printed.spans
        start = self.start if self.start_node is None else spans[id(self.start_node)][0]
        spans[id(self.node)] = start, self.printed.at if self.end_node is None else spans[id(self.end_node)][1]
