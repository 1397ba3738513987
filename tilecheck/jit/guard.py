"""The guard: what must hold of a launch for the verdict to apply, checked before it is forwarded.

`compile_guard` turns a record into one function of the grid and the arguments. What depends on shapes, strides,
element types, grid and numbers is checked once for each combination of them and remembered; what remains for
every launch is to compare addresses, a few comparisons for each pair of arrays of which one is written.
"""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tilecheck.errors import LaunchRefused
from tilecheck.jit.layouts import Layout, NotAnArray, layout_of, share_memory
from tilecheck.jit.records import Argument, Record

Check = Callable[[tuple[int, ...], Sequence[Any]], None]

INT32_ELEMENTS = 2**31
_REMEMBERED = 4096  # combinations of shapes; beyond them the guard starts to forget


def compile_guard(record: Record, captured: Mapping[str, Any] | None = None) -> Check:
    """A function of grid and arguments that returns, or raises `LaunchRefused` with what is broken.

    Args:
        record: the kernel's.
        captured: values of names that are no parameters, such as the free variables of a nested kernel.

    Raises:
        LaunchRefused: the kernel is not verified, or one of its conditions cannot be evaluated.
    """
    if not record.is_accepted:
        because = f"{record.verdict} ({record.reason})" if record.reason else record.verdict
        raise LaunchRefused(
            f"`{record.name}` is not launched: its verdict is {because}", record.report or _where(record)
        )
    return _Guard(record, captured or {}).check


@dataclass(frozen=True, slots=True)
class _Condition:
    text: str
    atoms: tuple[str, ...]  # the launch values it reads: `grid[0]`, `x.shape[1]`, `x.stride(0)`, `N`
    code: Any


class _Guard:
    """The compiled guard of one kernel. Mutable: it remembers the combinations that passed."""

    def __init__(self, record: Record, captured: Mapping[str, Any]) -> None:
        self.record = record
        self.captured = captured
        taken = {a.name for a in record.arguments} & {"grid", *_FUNCTIONS}
        if taken:
            raise self._refusal(f"its parameter `{min(taken)}` has a name that conditions use otherwise", ())
        self.conditions = [self._compiled(text) for text in (*record.conditions, *record.limits)]
        self.arrays = [i for i, a in enumerate(record.arguments) if a.is_accessed]
        self.unread_axes = tuple(k for k in range(3) if k not in record.grid_axes)
        self.stores = any(a.ownership == "mut" for a in record.arguments)
        self.pairs = [  # accessed arrays of which one is written
            (i, j)
            for i, j in itertools.combinations(self.arrays, 2)
            if "mut" in (record.arguments[i].ownership, record.arguments[j].ownership)
        ]
        # What passed: for each combination of layouts, grid and numbers the spans of the arrays in bytes, and
        # the distances at which a pair of arrays was found to interleave without sharing an element.
        self.seen: dict[Any, tuple[tuple[int, ...], set[tuple[int, int]]]] = {}
        self.check: Check = self._generated() if self._is_plain() else self._check_any

    # ---- conditions ------------------------------------------------------------------------------------------

    def _compiled(self, text: str) -> _Condition:
        known = {a.name for a in self.record.arguments} | set(self.captured)
        try:
            tree = ast.parse(text, mode="eval")
            atoms = dict.fromkeys(_atoms(tree.body, known))
        except SyntaxError:
            raise self._refusal(f"its condition `{text}` is not readable", ()) from None
        except _NotCheckable as error:
            raise self._refusal(f"its condition `{text}` cannot be checked at a launch ({error})", ()) from None
        return _Condition(text, tuple(atoms), compile(tree, "<condition>", "eval"))

    def _numbers(self) -> list[int]:
        """The positions of arguments whose value a condition reads."""
        read = {atom for condition in self.conditions for atom in condition.atoms}
        return [i for i, a in enumerate(self.record.arguments) if not a.array and a.name in read]

    # ---- the fast path ---------------------------------------------------------------------------------------

    def _is_plain(self) -> bool:
        return not any(a.members for a in self.record.arguments)

    def _generated(self) -> Check:
        """The check as straight-line Python for PyTorch tensors; other arrays take the general way."""
        count = len(self.record.arguments)
        names = [f"a{i}" for i in range(count)]
        key = ["grid", *(f"{names[i]}.shape, {names[i]}.stride(), {names[i]}.dtype" for i in self.arrays)]
        key += [names[i] for i in self._numbers()]
        lines = [
            "def check(grid, args):",
            "    try:",
            f"        {', '.join(names)}{',' if count == 1 else ''} = args" if count else "        () = args",
            f"        spans, allowed = seen[{', '.join(key)},]",
            *(f"        p{i} = a{i}.data_ptr()" for i in sorted({i for pair in self.pairs for i in pair})),
            "    except (KeyError, AttributeError, TypeError, ValueError):",
            "        return slow(grid, args)",
        ]
        for number, (i, j) in enumerate(self.pairs):
            n, m = self.arrays.index(i), self.arrays.index(j)
            lines += [
                f"    if p{i} < p{j} + spans[{m}] and p{j} < p{i} + spans[{n}]:",
                f"        if ({number}, p{j} - p{i}) not in allowed:",
                "            return slow(grid, args)",
            ]
        scope = {"seen": self.seen, "slow": self._check_any}
        exec(compile("\n".join(lines), f"<guard of {self.record.name}>", "exec"), scope)  # noqa: S102 - our own text: no name of the user is in it
        check: Check = scope["check"]  # type: ignore[assignment]
        return check

    # ---- the general way -------------------------------------------------------------------------------------

    def _check_any(self, grid: tuple[int, ...], args: Sequence[Any]) -> None:
        if not isinstance(args, (tuple, list)) or len(args) != len(self.record.arguments):
            expected = ", ".join(a.name for a in self.record.arguments)
            raise self._refusal(f"it takes {len(self.record.arguments)} arguments: {expected}", ())
        blocks = self._grid(grid)
        arrays = {i: list(self._layouts(self.record.arguments[i], args[i])) for i in self.arrays}
        self._check_shapes(arrays)
        self._check_conditions(blocks, args, arrays)
        self._check_standing(blocks, arrays)
        self._check_overlap(arrays)
        self._remember(grid, args, arrays)

    def _grid(self, grid: Any) -> tuple[int, int, int]:
        try:
            sizes = tuple(operator.index(g) for g in grid)
        except TypeError:
            raise self._refusal(f"the grid {grid!r} is not a tuple of integers", ()) from None
        if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
            raise self._refusal(f"the grid {grid!r} is not one to three positive integers", ())
        x, y, z = (*sizes, 1, 1)[:3]
        return x, y, z

    def _layouts(self, argument: Argument, value: Any) -> Iterator[tuple[str, int, Layout]]:
        """The name, address and layout of an array, or of each member of a list."""
        if argument.members:
            if not isinstance(value, (list, tuple)):
                raise self._refusal(f"`{argument.name}` is not a list of arrays", ())
            for k, member in enumerate(value):
                yield self._layout(f"{argument.name}[{k}]", member)
        else:
            yield self._layout(argument.name, value)

    def _layout(self, name: str, value: Any) -> tuple[str, int, Layout]:
        try:
            return (name, *layout_of(value))
        except NotAnArray as error:
            raise self._refusal(f"`{name}` is not an array that can be launched with: {error}", ()) from None

    def _check_shapes(self, arrays: _Arrays) -> None:
        for i, members in arrays.items():
            rank = self.record.arguments[i].rank
            for name, _, layout in members:
                if rank is not None and len(layout.shape) != rank:
                    raise self._refusal(f"`{name}` has {len(layout.shape)} axes where it needs {rank}", ())
                if any(stride < 0 for stride in layout.strides):
                    raise self._refusal(f"`{name}` has a negative stride", ())

    def _check_conditions(self, grid: tuple[int, int, int], args: Sequence[Any], arrays: _Arrays) -> None:
        scope: dict[str, Any] = {**_FUNCTIONS, **self.captured, "grid": grid, "__builtins__": {}}
        for i, argument in enumerate(self.record.arguments):
            scope[argument.name] = args[i]
            if i in arrays and not argument.members:
                layout = arrays[i][0][2]
                scope[argument.name] = SimpleNamespace(
                    shape=layout.shape, stride=layout.strides.__getitem__, ndim=len(layout.shape)
                )
        for condition in self.conditions:
            try:
                holds = eval(condition.code, scope)  # noqa: S307 - only the whitelisted nodes of `_compiled`
            except Exception as error:  # noqa: BLE001 - what cannot be evaluated does not hold
                raise self._refusal(f"its condition cannot be evaluated: {error}", (condition.text,)) from None
            if not holds:
                values = ", ".join(f"{name} = {_value(name, scope)}" for name in condition.atoms)
                raise self._refusal(
                    "the launch breaks a condition of its proof", (condition.text, f"here {values}")
                )

    def _check_standing(self, grid: tuple[int, int, int], arrays: _Arrays) -> None:
        for axis in self.unread_axes if self.stores else ():
            if grid[axis] != 1:
                raise self._refusal(
                    f"the grid has {grid[axis]} blocks along axis {axis}, which the kernel never reads: "
                    "they would all write the same elements",
                    ("S3: a grid axis that the kernel never reads is 1",),
                )
        for i, members in arrays.items():
            written = self.record.arguments[i].ownership == "mut"
            for name, _, layout in members:
                if layout.size >= INT32_ELEMENTS:
                    raise self._refusal(
                        f"`{name}` has {layout.size} elements",
                        ("S4: each array has fewer than 2^31 elements",),
                    )
                if written and layout.overlaps_itself() is not False:
                    decided = "overlaps" if layout.overlaps_itself() else "may overlap"
                    raise self._refusal(
                        f"`{name}` is written and {decided} itself: its shape is {layout.shape}, its strides "
                        f"are {layout.strides}",
                        ("S2: a written array does not overlap itself",),
                    )

    def _check_overlap(self, arrays: _Arrays) -> None:
        members = [(i, *member) for i, found in arrays.items() for member in found]
        for (i, name, at, layout), (j, other, there, second) in itertools.combinations(members, 2):
            if "mut" not in (self.record.arguments[i].ownership, self.record.arguments[j].ownership):
                continue
            shared = share_memory(layout, second, there - at)
            if shared is not False:
                written = name if self.record.arguments[i].ownership == "mut" else other
                decided = "overlap" if shared else "may overlap"
                raise self._refusal(
                    f"`{name}` and `{other}` {decided} in memory, and `{written}` is written: `{other}` begins "
                    f"{there - at} bytes from `{name}`",
                    ("S1: arguments of which one is written do not overlap",),
                )

    def _remember(self, grid: Any, args: Sequence[Any], arrays: _Arrays) -> None:
        """Let the fast path pass what was just checked. Its key holds all that the checks above depend on."""
        if self.check == self._check_any:
            return
        numbers = [args[i] for i in self._numbers()]
        if not all(type(number) in (int, float, bool) for number in numbers):
            return  # something mutable may stand behind it
        try:
            layouts = [part for i in self.arrays for part in (args[i].shape, args[i].stride(), args[i].dtype)]
            if len(self.seen) >= _REMEMBERED:
                self.seen.clear()
            spans = tuple(arrays[i][0][2].span for i in self.arrays)
            _, allowed = self.seen.setdefault((grid, *layouts, *numbers), (spans, set()))
        except (AttributeError, TypeError):
            return  # not PyTorch's interface, or not hashable: checked in full every time
        for number, (i, j) in enumerate(self.pairs):
            distance = arrays[j][0][1] - arrays[i][0][1]
            if -arrays[j][0][2].span < distance < arrays[i][0][2].span and len(allowed) < _REMEMBERED:
                allowed.add((number, distance))

    def _refusal(self, what: str, notes: tuple[str, ...]) -> LaunchRefused:
        shown = "\n".join(f"   = {note}" for note in (*notes, _where(self.record)))
        return LaunchRefused(f"this launch of `{self.record.name}` is refused: {what}", shown)


_Arrays = dict[int, list[tuple[str, int, Layout]]]


def _where(record: Record) -> str:
    return f"kernel `{record.name}` of {record.file}:{record.line}, verdict {record.verdict}"


# ---- conditions ----------------------------------------------------------------------------------------------


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


_FUNCTIONS: dict[str, Any] = {"cdiv": _cdiv, "min": min, "max": max, "abs": abs}


class _NotCheckable(Exception):
    """A condition holds something that is no expression over launch values."""


def _atoms(node: ast.expr, known: set[str]) -> Iterator[str]:
    """The launch values in a condition. Nothing else may stand in it: it is evaluated, and comes from a file.

    Raises:
        _NotCheckable: something else does.
    """
    match node:
        case ast.Constant(value=bool() | int()):
            return
        case ast.Name(id=name) if name in known:
            yield name
        case (
            ast.Subscript(value=ast.Name(id="grid"), slice=ast.Constant(value=int()))
            | ast.Subscript(
                value=ast.Attribute(value=ast.Name(), attr="shape"), slice=ast.Constant(value=int())
            )
            | ast.Call(
                func=ast.Attribute(value=ast.Name(), attr="stride"),
                args=[ast.Constant(value=int())],
                keywords=[],
            )
        ):
            yield ast.unparse(node)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            for argument in args:
                yield from _atoms(argument, known)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _atoms(value, known)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield from _atoms(operand, known)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            yield from _atoms(left, known)
            yield from _atoms(right, known)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            isinstance(op, _COMPARISONS) for op in ops
        ):
            for part in (left, *others):
                yield from _atoms(part, known)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            for part in (test, body, orelse):
                yield from _atoms(part, known)
        case _:
            raise _NotCheckable(ast.unparse(node))


_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def _value(atom: str, scope: dict[str, Any]) -> Any:
    return eval(atom, scope)  # noqa: S307 - a part of a condition that was just evaluated
