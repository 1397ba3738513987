"""Mutants of visible launches: one change of a grid, an allocation, an argument or a configuration."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_ALLOCATIONS = ("empty", "zeros", "ones", "full", "new_empty", "new_zeros")
_COUNTS = ("n", "m", "k", "rows", "columns", "cols", "blocks", "programs", "slots", "step", "steps", "sms")
_LIKE = ("empty_like", "zeros_like", "ones_like")


@dataclass(frozen=True)
class Change:
    """Replace `start:end` of the text (in characters) by `by`; `what` names the kind of mutant."""

    what: str
    kernel: str
    line: int
    start: int
    end: int
    by: str

    def applied(self, text: str) -> str:
        return text[: self.start] + self.by + text[self.end :]


@dataclass(frozen=True)
class Site:
    """One launch in the text: its grid, its arguments, and the function around it."""

    kernel: str
    grid: ast.expr
    arguments: tuple[ast.expr, ...]
    function: ast.FunctionDef


class Text:
    """The text with the offsets of its nodes."""

    def __init__(self, text: str) -> None:
        self.text, self.tree = text, ast.parse(text)
        lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))
        self._lines = lines

    def span(self, node: ast.expr) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno or 0, node.end_col_offset or 0)

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def of(self, node: ast.expr) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def change(self, what: str, site: Site, node: ast.expr, by: str) -> Change:
        return Change(what, site.kernel, node.lineno, *self.span(node), by)


def sites(source: Text, kernels: set[str]) -> Iterator[Site]:
    """The launches whose kernel is named in the text."""
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name):
                name = node.func.value.id
                given = (*node.args, *(k.value for k in node.keywords))
                if name in kernels:
                    yield Site(name, node.func.slice, given, function)
            elif isinstance(node.func, ast.Attribute) and node.func.attr == "launch" and len(node.args) == 4:
                kernel, arguments = node.args[2], node.args[3]
                if isinstance(kernel, ast.Name) and kernel.id in kernels and isinstance(arguments, ast.Tuple):
                    yield Site(kernel.id, node.args[1], tuple(arguments.elts), function)


def mutants(text: str, kernels: set[str]) -> Iterator[Change]:
    """Every mutant of every launch of these kernels."""
    source = Text(text)
    for site in sites(source, kernels):
        yield from _of_grid(source, site)
        yield from _of_buffers(source, site)
        yield from _of_strides(source, site)
        yield from _of_tensors(source, site)
        yield from _of_numbers(source, site)
    yield from _of_configurations(source, kernels)


def _grid(site: Site) -> ast.Tuple | None:
    """The tuple that says the grid: in the launch, in a lambda, or assigned to a name before."""
    node: ast.expr | None = site.grid
    if isinstance(node, ast.Name):
        values = [
            n.value
            for n in ast.walk(site.function)
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and n.targets[0].id == node.id
        ]
        node = values[-1] if values else None
    if isinstance(node, ast.Lambda):
        node = node.body
    return node if isinstance(node, ast.Tuple) and node.elts else None


def _of_grid(source: Text, site: Site) -> Iterator[Change]:
    grid = _grid(site)
    if grid is None:
        return
    for axis, element in enumerate(grid.elts):
        if isinstance(element, ast.Constant) and element.value == 1 and axis:
            continue
        own = source.of(element)
        yield source.change(f"grid[{axis}] + 1", site, element, f"({own}) + 1")
        yield source.change(f"grid[{axis}] * 2", site, element, f"({own}) * 2")
    if len(grid.elts) > 1 and source.of(grid.elts[0]) != source.of(grid.elts[1]):
        a, b, *rest = map(source.of, grid.elts)
        yield source.change("swapped axes", site, grid, f"({', '.join((b, a, *rest))})")
    if len(grid.elts) < 3:
        listed = ", ".join(map(source.of, grid.elts))
        yield source.change("extra axis", site, grid, f"({listed}, 2)")


def _of_buffers(source: Text, site: Site) -> Iterator[Change]:
    passed = {a.id for a in site.arguments if isinstance(a, ast.Name)}
    for node in ast.walk(site.function):
        if not (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id in passed
        ):
            continue
        call = node.value
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
            continue
        first = call.args[0]
        if call.func.attr in _LIKE and isinstance(first, ast.Name):
            yield source.change("smaller buffer", site, first, f"{first.id}[: {first.id}.shape[0] // 2]")
        elif call.func.attr in _ALLOCATIONS:
            size = first.elts[0] if isinstance(first, (ast.Tuple, ast.List)) and first.elts else first
            if not isinstance(size, (ast.Tuple, ast.List, ast.Attribute)):
                yield source.change("smaller buffer", site, size, f"({source.of(size)}) // 2")


def _of_strides(source: Text, site: Site) -> Iterator[Change]:
    strides = [
        a
        for a in site.arguments
        if isinstance(a, ast.Call) and isinstance(a.func, ast.Attribute) and a.func.attr == "stride" and a.args
    ]
    for node in strides:
        others = [source.of(s) for s in strides if source.of(s) != source.of(node)]
        for other in others[:2]:
            yield source.change("other stride", site, node, other)


def _of_tensors(source: Text, site: Site) -> Iterator[Change]:
    """One tensor under two names: the argument that was allocated here is another one."""
    made = {
        n.targets[0].id
        for n in ast.walk(site.function)
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and _is_allocation(n.value)
    }
    names = [a for a in site.arguments if isinstance(a, ast.Name)]
    for node in names:
        others = [a.id for a in names if a.id != node.id and a.id not in made]
        if node.id in made and others:
            yield source.change("same tensor twice", site, node, others[0])


def _is_allocation(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in (*_LIKE, *_ALLOCATIONS)
    )


def _of_numbers(source: Text, site: Site) -> Iterator[Change]:
    """Numbers that are passed: steps, slots, extents and tiles, halved and doubled."""
    for node in site.arguments:
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1:
            yield source.change("constant * 2", site, node, str(2 * node.value))
            yield source.change("constant // 2", site, node, str(node.value // 2))
        elif _is_number(node):
            yield source.change("halved number", site, node, f"max(1, ({source.of(node)}) // 2)")
            yield source.change("number - 1", site, node, f"max(1, ({source.of(node)}) - 1)")


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.Div)
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name in ("numel", "cdiv", "next_power_of_2", "min", "max", "size")
    return isinstance(node, ast.Name) and (node.id.isupper() or node.id in _COUNTS or "n_" in node.id)


def _of_configurations(source: Text, kernels: set[str]) -> Iterator[Change]:
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.FunctionDef) or function.name not in kernels:
            continue
        for decorator in function.decorator_list:
            sizes = [
                value
                for node in ast.walk(decorator)
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Config") and node.args
                for value in getattr(node.args[0], "values", [])
                if isinstance(value, ast.Constant) and type(value.value) is int
            ]
            for value in sizes[-1:]:
                site = Site(function.name, value, (), function)
                yield source.change("wrong configuration", site, value, str(2 * value.value))
