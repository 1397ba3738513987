"""Small changes to the text of a kernel: the mistakes that people make with indices, and some that they do not.

Every change replaces a range of bytes, so that comments and everything else stay as they are.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Edit:
    """The bytes from `start` to `end` become `text`."""

    start: int
    end: int
    text: str
    what: str


@dataclass(frozen=True)
class Mutant:
    """A changed file, and the kernel that was changed in it."""

    kernel: str
    source: bytes
    what: str


def kernels(source: bytes) -> tuple[str, ...]:
    """The names of the functions with a decorator that says `kernel` or `jit`."""
    return tuple(f.name for f in functions(source))


def mutant(source: bytes, rng: random.Random, kernel: str | None = None) -> Mutant | None:
    """One kernel of the file with one to three changes, or None when nothing in it can be changed."""
    own = [f for f in functions(source) if kernel in (None, f.name)]
    if not own:
        return None
    function = rng.choice(own)
    edits = list(_edits(source, function))
    rng.shuffle(edits)
    wanted = rng.choice((1, 1, 1, 2, 3))
    chosen: list[Edit] = []
    for edit in edits:
        if len(chosen) == wanted:
            break
        if all(edit.end <= other.start or other.end <= edit.start for other in chosen):
            chosen.append(edit)
    if not chosen:
        return None
    changed = source
    for edit in sorted(chosen, reverse=True):
        changed = changed[: edit.start] + edit.text.encode() + changed[edit.end :]
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return Mutant(function.name, changed, "; ".join(e.what for e in sorted(chosen)))


def functions(source: bytes) -> list[ast.FunctionDef]:
    """The functions with a decorator that says `kernel` or `jit`."""
    nodes = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]
    said = ("kernel", "triton.jit")
    return [n for n in nodes if any(word in ast.unparse(d) for d in n.decorator_list for word in said)]


class _Lines:
    """Byte offsets of nodes."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[end_line - 1] + end_column

    def text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()


def _edits(source: bytes, function: ast.FunctionDef) -> Iterator[Edit]:
    lines = _Lines(source)
    stored = (n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    names = sorted({n.id for n in stored})
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.expr | ast.stmt):
                start, end = lines.span(node)
                for text in _replacements(node, lines, names):
                    was = lines.text(node)
                    yield Edit(start, end, text, f"line {node.lineno}: {was!r} -> {text!r}")
    yield from _without_contracts(source, function, lines)


def _without_contracts(source: bytes, function: ast.FunctionDef, lines: _Lines) -> Iterator[Edit]:
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
    for number in range(max(0, first - 4), first - 1):
        start, end = lines.starts[number], lines.starts[number + 1]
        if b"requires" in source[start:end]:
            yield Edit(start, end, "# no contract\n", f"line {number + 1}: contract dropped")


_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


def _replacements(node: ast.expr | ast.stmt, lines: _Lines, names: list[str]) -> Iterator[str]:
    match node:
        case ast.BinOp() if type(node.op) in _OPERATORS:
            left, right = lines.text(node.left), lines.text(node.right)
            yield left
            yield right
            own = _OPERATORS[type(node.op)]
            yield from (f"({left}) {op} ({right})" for op in _OPERATORS.values() if op != own)
            yield f"({right}) {own} ({left})"
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            yield from (str(v) for v in (value + 1, value - 1, value * 2, value // 2) if v >= 0)
        case ast.Compare() if len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
            left, right = lines.text(node.left), lines.text(node.comparators[0])
            yield from (f"{left} {op} {right}" for op in _COMPARISONS.values())
        case ast.Call():
            yield from _calls(node, lines)
        case ast.Tuple() if len(node.elts) > 1:
            parts = [lines.text(e) for e in node.elts]
            yield f"({', '.join(reversed(parts))})"
            yield f"({', '.join((*parts[1:], parts[0]))})"
        case ast.Name(ctx=ast.Load()) if node.id in names:
            yield from (other for other in names if other != node.id)
            yield from (f"({node.id} + 1)", f"({node.id} - 1)", f"({node.id} // 2)", f"({node.id} * 2)", "0")
        case ast.If():
            yield "pass"
        case ast.Continue() | ast.Break() | ast.Return():
            yield "pass"
        case ast.Expr():
            yield "pass"
            yield f"{lines.text(node)}; {lines.text(node)}"


def _calls(node: ast.Call, lines: _Lines) -> Iterator[str]:
    text, called = lines.text(node), ast.unparse(node.func)
    name = called.rpartition(".")[2]
    if name in ("bid", "num_blocks", "num_tiles", "cdiv", "program_id", "num_programs"):
        yield from (f"({text} {change})" for change in ("+ 1", "- 1", "// 2", "* 2", "% 2"))
        yield from ("0", "1")
    if name in ("min", "max", "minimum", "maximum"):
        start = lines.span(node.func)
        other = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}[name]
        yield called.replace(name, other) + text[start[1] - start[0] :]
        yield from (lines.text(a) for a in node.args)
    if name in ("bid", "num_blocks", "program_id", "num_programs"):
        yield from (f"{called}({axis})" for axis in range(3))
    in_triton = called.startswith("tl.")
    if name in ("load", "store", "gather", "scatter") and "check_bounds" not in text and not in_triton:
        yield f"{text[:-1].rstrip().rstrip(',')}, check_bounds=False)"
    if (in_triton or name in ("gather", "scatter")) and any(k.arg == "mask" for k in node.keywords):
        own = next(lines.span(k.value) for k in node.keywords if k.arg == "mask")
        start, end = lines.span(node)
        yield lines.source[start : own[0]].decode() + "None" + lines.source[own[1] : end].decode()
    if name == "range" and node.args:
        parts = [lines.text(a) for a in node.args]
        stop = min(1, len(parts) - 1)
        yield f"range({', '.join((*parts[:stop], f'{parts[stop]} + 1', *parts[stop + 1 :]))})"
        if len(parts) == 3:
            yield f"range({parts[0]}, {parts[1]})"
            yield f"range({parts[0]}, {parts[1]}, 1)"
            yield f"range(0, {parts[1]}, {parts[2]})"
