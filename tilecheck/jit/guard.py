"""The guard: what must hold of a launch for the verdict to apply, checked before it is forwarded.

`compile_guard` turns a record into one function of the grid and the arguments. What depends on shapes, strides,
element types, grid and numbers is checked once for each combination of them and remembered; what remains for
every launch is to compare addresses, a few comparisons for each pair of arrays of which one is written.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tilecheck.errors import LaunchRefused
from tilecheck.jit.layouts import Layout, NotAnArray, layout_of, share_memory, solid
from tilecheck.jit.records import Argument, Record

Check = Callable[[tuple[int, ...], Sequence[Any]], None]

INT32_ELEMENTS = 2**31
_REMEMBERED = 4096  # combinations of shapes; beyond them the guard starts to forget


def compile_guard(record: Record, captured: Mapping[str, Any] | None = None, *, granule: int = 1) -> Check:
    """A function of grid and arguments that returns, or raises `LaunchRefused` with what is broken.

    Args:
        record: the kernel's.
        captured: values of names that are no parameters, such as the free variables of a nested kernel.
        granule: the compiler may store whole pieces of this many bytes, past the end of a row.

    Raises:
        LaunchRefused: the kernel is not verified, or one of its conditions cannot be evaluated.
    """
    if not record.is_accepted:
        because = f"{record.verdict} ({record.reason})" if record.reason else record.verdict
        raise LaunchRefused(
            f"`{record.name}` is not launched: its verdict is {because}", record.report or _where(record)
        )
    return _Guard(record, captured or {}, granule).check


@dataclass(frozen=True, slots=True)
class _Condition:
    text: str
    atoms: tuple[str, ...]  # the launch values it reads: `grid[0]`, `x.shape[1]`, `x.stride(0)`, `N`
    arrays: tuple[str, ...]  # the names in it whose layout it reads (and names that are no arguments)
    each: tuple[str, ...]  # the lists of whose every member it speaks
    code: Any


class _Guard:
    """The compiled guard of one kernel. Mutable: it remembers the combinations that passed."""

    def __init__(self, record: Record, captured: Mapping[str, Any], granule: int) -> None:
        self.record = record
        self.granule = granule
        self.captured = captured
        taken = {a.name for a in record.arguments} & {"grid", _EACH, *_FUNCTIONS}
        if taken:
            raise self._refusal(f"its parameter `{min(taken)}` has a name that conditions use otherwise", ())
        self.conditions = [self._compiled(text) for text in (*record.conditions, *record.limits)]
        self.arrays = [i for i, a in enumerate(record.arguments) if a.is_accessed]
        # Those whose layout matters: a condition may speak of an array that the kernel never touches.
        read = {name for c in self.conditions for name in c.arrays}
        self.described = [i for i, a in enumerate(record.arguments) if i in self.arrays or a.name in read]
        # Those accessed by offsets from their first element, which reach the gaps between rows as well.
        raw = {f"numel({a.name})": i for i, a in enumerate(record.arguments)}
        self.raw = {raw[atom] for c in self.conditions for atom in c.atoms if atom in raw}
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
        # `parts[*].shape[0]` speaks of every member of a list: the guard evaluates it once for each.
        each = tuple(dict.fromkeys(_MEMBERS.findall(text)))
        lists = {a.name for a in self.record.arguments if a.members}
        try:
            tree = ast.parse(_MEMBERS.sub(rf"{_EACH}.\1", text), mode="eval")
            atoms = dict.fromkeys(_atoms(tree.body, known, lists))
        except (SyntaxError, RecursionError, MemoryError):
            raise self._refusal(f"its condition `{text}` is not readable", ()) from None
        except _NotCheckable as error:
            raise self._refusal(f"its condition `{text}` cannot be checked at a launch ({error})", ()) from None
        arrays = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id not in atoms]
        return _Condition(text, tuple(atoms), (*arrays, *each), each, compile(tree, "<condition>", "eval"))

    def _numbers(self) -> list[int]:
        """The positions of arguments whose value a condition reads."""
        read = {atom for condition in self.conditions for atom in condition.atoms}
        return [i for i, a in enumerate(self.record.arguments) if i not in self.described and a.name in read]

    def _integers(self) -> list[int]:
        """The positions of arguments that the proof took for integers."""
        declared = [
            i
            for i, a in enumerate(self.record.arguments)
            if a.scalar in ("int", "bool") and a.ownership != "unused" and i not in self.described
        ]
        return sorted({*self._numbers(), *declared})

    # ---- the fast path ---------------------------------------------------------------------------------------

    def _is_plain(self) -> bool:
        return not any(a.members for a in self.record.arguments)

    def _generated(self) -> Check:
        """The check as straight-line Python for PyTorch tensors; other arrays take the general way."""
        count = len(self.record.arguments)
        names = [f"a{i}" for i in range(count)]
        key = ["grid", *(f"{names[i]}.shape, {names[i]}.stride(), {names[i]}.dtype" for i in self.described)]
        key += [names[i] for i in self._numbers()]
        key += [f"type({names[i]})" for i in self._integers()]  # 1.0 is equal to 1, and no integer
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
            n, m = self.described.index(i), self.described.index(j)
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
        described = {i: list(self._layouts(self.record.arguments[i], args[i])) for i in self.described}
        arrays = {i: described[i] for i in self.arrays}
        self._check_shapes(described)
        self._check_conditions(blocks, args, described)
        self._check_standing(blocks, arrays)
        self._check_overlap(arrays)
        if not self._check_row_ends(args, arrays):
            self._remember(grid, args, described)

    def _grid(self, grid: Any) -> tuple[int, int, int]:
        try:
            # What else can be iterated may give other numbers the next time.
            sizes = tuple(map(operator.index, grid)) if isinstance(grid, (tuple, list)) else None
        except TypeError:
            sizes = None
        if sizes is None:
            raise self._refusal(f"the grid {grid!r} is not a tuple of integers", ())
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
                steps = [s for n, s in zip(layout.shape, layout.strides, strict=True) if n > 1]
                if max(steps, default=0) >= INT32_ELEMENTS and not self.record.arguments[i].wide:
                    raise self._refusal(
                        f"`{name}` has a stride of {max(steps)}, which 32 bits do not hold",
                        ("help: annotate it `ct.IndexedWithInt64`",),
                    )

    def _check_conditions(self, grid: tuple[int, int, int], args: Sequence[Any], arrays: _Arrays) -> None:
        scope: dict[str, Any] = {**self.captured, **_FUNCTIONS, "grid": grid, "__builtins__": {}}
        for i, members in arrays.items():
            views = [_view(layout) for _, _, layout in members]
            argument = self.record.arguments[i]
            scope[argument.name] = views if argument.members else views[0]
        for i in self._integers():
            scope[self.record.arguments[i].name] = self._integer(self.record.arguments[i], args[i])
        for condition in self.conditions:
            for chosen in itertools.product(*(scope[name] for name in condition.each)):
                scope[_EACH] = SimpleNamespace(**dict(zip(condition.each, chosen, strict=True)))
                self._check_condition(condition, scope)

    def _check_condition(self, condition: _Condition, scope: dict[str, Any]) -> None:
        try:
            holds = eval(condition.code, scope)  # noqa: S307 - only the whitelisted nodes of `_compiled`
        except Exception as error:  # noqa: BLE001 - what cannot be evaluated does not hold
            raise self._refusal(f"its condition cannot be evaluated: {error}", (condition.text,)) from None
        if not holds:
            values = ", ".join(f"{_shown(name)} = {_value(name, scope)}" for name in condition.atoms)
            raise self._refusal(
                "the launch breaks a condition of its proof", (condition.text, f"here {values}")
            )

    def _integer(self, argument: Argument, value: Any) -> int:
        """The Python integer that conditions compute with: those of NumPy wrap around.

        The kernel must see the same number, so one of 32 bits must be given one.
        """
        try:
            found = operator.index(value)
        except TypeError:
            raise self._refusal(
                f"`{argument.name}` is no integer, and the proof takes it for one", ()
            ) from None
        narrow = argument.ownership == "value" and not argument.wide
        if narrow and not -INT32_ELEMENTS <= found < INT32_ELEMENTS:
            raise self._refusal(f"`{argument.name}` is {found}, which 32 bits do not hold", ())
        return found

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
        members = [
            (i, name, at, solid(layout) if i in self.raw else layout)
            for i, found in arrays.items()
            for name, at, layout in found
        ]
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

    def _check_row_ends(self, args: Sequence[Any], arrays: _Arrays) -> bool:
        """Whether a written array's rows end within a piece that the compiler may store whole.

        What follows the last row is asked of the array's storage, which the fast path does not see: such a
        combination is not remembered.
        """
        risky = False
        for i, members in arrays.items() if self.granule > 1 else ():
            if self.record.arguments[i].ownership != "mut":
                continue
            values = args[i] if self.record.arguments[i].members else (args[i],)
            for value, (name, at, layout) in zip(values, members, strict=True):
                if not layout.ends_within(self.granule):
                    continue
                risky = True
                last = layout.size == layout.shape[-1] and _ends_storage(value, at + layout.span)
                if at % self.granule == 0 and not last:
                    self._refuse_row_ends(name, layout)
        return risky

    def _refuse_row_ends(self, name: str, layout: Layout) -> None:
        raise self._refusal(
            f"`{name}` is written in rows of {layout.shape[-1] * layout.itemsize} bytes, and the installed "
            f"compiler may overwrite what follows a row up to a multiple of {self.granule}",
            (
                "the Tile IR compiler before release 13.5 stores whole pieces where rows begin on a multiple",
                f"help: install a later one, or give the rows of `{name}` a multiple of {self.granule} bytes",
            ),
        )

    def _remember(self, grid: Any, args: Sequence[Any], arrays: _Arrays) -> None:
        """Let the fast path pass what was just checked. Its key holds all that the checks above depend on."""
        if self.check == self._check_any:
            return
        numbers = [args[i] for i in self._numbers()]
        kinds = [type(args[i]) for i in self._integers()]
        if type(grid) is not tuple or not {*map(type, grid), *kinds} <= {int, bool}:
            return  # a mutable number, such as a tensor in a grid, stays equal to itself when it changes
        try:
            layouts = [
                part for i in self.described for part in (args[i].shape, args[i].stride(), args[i].dtype)
            ]
            if len(self.seen) >= _REMEMBERED:
                self.seen.clear()
            spans = tuple(arrays[i][0][2].span for i in self.described)
            _, allowed = self.seen.setdefault((grid, *layouts, *numbers, *kinds), (spans, set()))
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
    return (a + b - 1) // b  # what the proof means by it, also where b is negative


_ON_INTEGERS: dict[str, Any] = {"cdiv": _cdiv, "min": min, "max": max, "abs": abs}
_FUNCTIONS: dict[str, Any] = {**_ON_INTEGERS, "len": len, "numel": operator.attrgetter("numel")}
_EACH = "each"  # stands for the list in `parts[*]`: `each.parts` is the member looked at
_MEMBERS = re.compile(r"\b(\w+)\[\*\]")


def _view(layout: Layout) -> SimpleNamespace:
    """An array as conditions see it."""
    numel = layout.span // layout.itemsize  # elements that an offset from the first one can name
    return SimpleNamespace(shape=layout.shape, stride=layout.strides.__getitem__, numel=numel)


def _ends_storage(value: Any, end: int) -> bool:
    """Whether nothing follows an address in the array's storage; allocations end on multiples of a piece."""
    try:
        storage = value.untyped_storage()
        return bool(storage.data_ptr() + storage.nbytes() <= end)
    except AttributeError:  # not PyTorch's interface
        return False


class _NotCheckable(Exception):
    """A condition holds something that is no expression over launch values."""


def _atoms(node: ast.expr, known: set[str], lists: set[str]) -> Iterator[str]:
    """The launch values in a condition. Nothing else may stand in it: it is evaluated, and comes from a file.

    Raises:
        _NotCheckable: something else does.
    """
    match node:
        case ast.Constant(value=bool() | int()):
            return
        case ast.Name(id=name) if name in known:
            yield name
        case ast.Subscript(value=ast.Name(id="grid"), slice=ast.Constant(value=int())):
            yield ast.unparse(node)
        case (
            ast.Subscript(value=ast.Attribute(value=array, attr="shape"), slice=ast.Constant(value=int()))
            | ast.Call(
                func=ast.Attribute(value=array, attr="stride"), args=[ast.Constant(value=int())], keywords=[]
            )
        ) if _is_array(array, known, lists):
            yield ast.unparse(node)
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]) if name in lists:
            yield ast.unparse(node)
        case ast.Call(func=ast.Name(id="numel"), args=[ast.Name(id=name)], keywords=[]) if (
            name in known - lists
        ):
            yield ast.unparse(node)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _ON_INTEGERS:
            for argument in args:
                yield from _atoms(argument, known, lists)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _atoms(value, known, lists)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield from _atoms(operand, known, lists)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            yield from _atoms(left, known, lists)
            yield from _atoms(right, known, lists)
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            isinstance(op, _COMPARISONS) for op in ops
        ):
            for part in (left, *others):
                yield from _atoms(part, known, lists)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            for part in (test, body, orelse):
                yield from _atoms(part, known, lists)
        case _:
            raise _NotCheckable(ast.unparse(node))


def _is_array(node: ast.expr, known: set[str], lists: set[str]) -> bool:
    """Whether an expression is an array argument or a member of a list of arrays."""
    match node:
        case ast.Name(id=name):
            return name in known
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int())):
            return name in lists
        case ast.Attribute(value=ast.Name(id=head), attr=name):
            return head == _EACH and name in lists
    return False


_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def _shown(atom: str) -> str:
    return re.sub(rf"\b{_EACH}\.(\w+)", r"\1[*]", atom)


def _value(atom: str, scope: dict[str, Any]) -> Any:
    try:
        return eval(atom, scope)  # noqa: S307 - a part of a condition that was just evaluated
    except Exception:  # noqa: BLE001 - in a branch of the condition that was not taken
        return "?"
