"""The guard: what must hold of a launch for the verdict to apply, checked before it is forwarded.

`compile_guard` turns a record into one function of the grid and the arguments. What depends on shapes, strides,
element types, grid and numbers is checked once for each combination of them and remembered; what remains for
every launch is to compare addresses, a few comparisons for each pair of arrays of which one is written.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from tilecheck.errors import LaunchRefused
from tilecheck.jit.conditions import EACH, FUNCTIONS, Condition, NotCheckable, compile_condition, view
from tilecheck.jit.contracts import Broken, Contracts
from tilecheck.jit.layouts import (
    Layout,
    NotAnArray,
    element_type,
    is_reinterpreted,
    layout_of,
    share_memory,
    solid,
)
from tilecheck.jit.records import Argument, Record

Check = Callable[[tuple[int, ...], Sequence[Any]], None]

INT32_ELEMENTS = 2**31
_INTEGERS = ("int32", "int64")  # of which tables are
_REMEMBERED = 4096  # combinations of shapes; beyond them the guard starts to forget


def compile_guard(
    record: Record,
    captured: Mapping[str, Any] | None = None,
    *,
    granule: int = 1,
    most: int | None = None,
) -> Guard:
    """The guard of a kernel: called with grid and arguments it returns, or raises `LaunchRefused`.

    Args:
        record: the kernel's.
        captured: values of names that are no parameters, such as the free variables of a nested kernel.
        granule: the compiler may store whole pieces of this many bytes, past the end of a row.
        most: how many elements an array may have whose contracts are checked; None checks no contract.

    Raises:
        LaunchRefused: the kernel is not verified, or one of its conditions cannot be evaluated.
    """
    check_accepted(record, "cutile")
    return Guard(record, captured or {}, granule, most)


def check_accepted(record: Record, language: str) -> None:
    """A kernel is launched only if it is verified, as what it is.

    Raises:
        LaunchRefused: it is not.
    """
    if not record.is_accepted:
        because = f"{record.verdict} ({record.reason})" if record.reason else record.verdict
        raise LaunchRefused(
            f"`{record.name}` is not launched: its verdict is {because}", record.report or record.where
        )
    if record.language != language:
        raise LaunchRefused(
            f"`{record.name}` is not launched: it was verified as a kernel of another language", record.where
        )


class Guard:
    """The compiled guard of one kernel. `check` does what a call does, without the detour.

    Mutable: it remembers the combinations that passed.
    """

    constants: frozenset[type] = frozenset((int, bool))  # types of numbers that do not change
    questions = False  # whether conditions may ask if an argument is None, or a certain text
    flat = False  # whether the proof's arrays have one axis, whatever the tensor's shape

    def __init__(
        self, record: Record, captured: Mapping[str, Any], granule: int, most: int | None = None
    ) -> None:
        self.record = record
        self.granule = granule
        self.captured = captured
        taken = {a.name for a in record.arguments} & {"grid", EACH, *FUNCTIONS}
        if taken:
            raise self.refusal(f"its parameter `{min(taken)}` has a name that conditions use otherwise", ())
        self.conditions = [self._compiled(text) for text in (*record.conditions, *record.limits)]
        checked = record.contracts if most is not None else ()
        bounds = {c: [self._compiled(text) for text in c.bounds] for c in checked}
        self.contracts = Contracts(bounds, most or 0, flat=self.flat)
        self.read = [*self.conditions, *self.contracts.numbers()]
        self.arrays = [i for i, a in enumerate(record.arguments) if a.is_accessed]
        # Those whose layout matters: a condition may speak of an array that the kernel never touches.
        read = {name for c in self.read for name in c.arrays}
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
        self.key: Callable[[Any, Sequence[Any]], Any] | None = None  # of a combination in `seen`
        self.check: Check = self._check_any
        if not self.contracts.stated and not any(a.members for a in record.arguments):
            self.check = self._generated()

    def __call__(self, grid: Any, args: Sequence[Any]) -> None:
        self.check(grid, args)

    def remembers(self, grid: Any, args: Sequence[Any]) -> bool:
        """Whether a launch that has passed passes again while the layouts and addresses of its arrays, its
        numbers and its grid stay the same."""
        return self.key is not None and self.key(grid, args) in self.seen

    # ---- conditions ------------------------------------------------------------------------------------------

    def _compiled(self, text: str) -> Condition:
        try:
            return compile_condition(text, self.record.arguments, self.captured, questions=self.questions)
        except (SyntaxError, RecursionError, MemoryError):
            raise self.refusal(f"its condition `{text}` is not readable", ()) from None
        except NotCheckable as error:
            raise self.refusal(f"its condition `{text}` cannot be checked at a launch ({error})", ()) from None

    def numbers(self) -> list[int]:
        """The positions of arguments whose value a condition reads."""
        read = {atom for condition in self.read for atom in condition.atoms}
        return [i for i, a in enumerate(self.record.arguments) if i not in self.described and a.name in read]

    def integers(self) -> list[int]:
        """The positions of arguments that the proof took for integers."""
        declared = [
            i
            for i, a in enumerate(self.record.arguments)
            if a.scalar in ("int", "bool") and a.ownership != "unused" and i not in self.described
        ]
        return sorted({*self.numbers(), *declared})

    # ---- the fast path ---------------------------------------------------------------------------------------

    def key_parts(self) -> list[str]:
        """All that the checks depend on, addresses apart, as Python over the arguments a0, a1, ..."""
        key = [f"a{i}.shape, a{i}.stride(), a{i}.dtype" for i in self.described]
        key += [f"a{i}" for i in self.numbers()]
        return key + [f"type(a{i})" for i in self.integers()]  # 1.0 is equal to 1, and no integer

    def address(self, i: int) -> str:
        """The address of an array, as Python."""
        return f"a{i}.data_ptr()"

    def located(self) -> list[int]:
        """The positions of the arrays whose addresses every launch looks at."""
        return sorted({i for pair in self.pairs for i in pair})

    def fast_checks(self) -> list[str]:
        """What else every launch must pass, as lines of Python over the addresses p0, p1, ..."""
        return []

    def _generated(self) -> Check:
        """The check as straight-line Python for PyTorch tensors; other arrays take the general way."""
        count = len(self.record.arguments)
        names = "".join(f"a{i}, " for i in range(count))
        take = f"{names}= args" if count else "() = args"
        key = "".join(f"{part}, " for part in ("grid", *self.key_parts()))
        lines = [
            f"def key_of(grid, args):\n    {take}\n    return ({key})",
            "def check(grid, args):",
            "    try:",
            f"        {take}",
            f"        spans, allowed = seen[{key}]",
            *(f"        p{i} = {self.address(i)}" for i in self.located()),
            "    except (KeyError, AttributeError, TypeError, ValueError):",
            "        return slow(grid, args)",
            *self.fast_checks(),
        ]
        for number, (i, j) in enumerate(self.pairs):
            n, m = self.described.index(i), self.described.index(j)
            lines += [
                f"    if p{i} < p{j} + spans[{m}] and p{j} < p{i} + spans[{n}]:",
                f"        if ({number}, p{j} - p{i}) not in allowed:",
                "            return slow(grid, args)",
            ]
        scope: dict[str, Any] = {"seen": self.seen, "slow": self._check_any}
        exec(compile("\n".join(lines), f"<guard of {self.record.name}>", "exec"), scope)  # noqa: S102 - our own text: no name of the user is in it
        self.key = scope["key_of"]
        check: Check = scope["check"]
        return check

    # ---- the general way -------------------------------------------------------------------------------------

    def _check_any(self, grid: tuple[int, ...], args: Sequence[Any]) -> None:
        if not isinstance(args, (tuple, list)) or len(args) != len(self.record.arguments):
            expected = ", ".join(a.name for a in self.record.arguments)
            raise self.refusal(f"it takes {len(self.record.arguments)} arguments: {expected}", ())
        blocks = self._grid(grid)
        described = {i: list(self.layouts(self.record.arguments[i], args[i])) for i in self.described}
        arrays = {i: described[i] for i in self.arrays}
        self.check_shapes(described)
        self._check_elements(args)
        scope = self._scope(blocks, args, described)
        self._check_conditions(scope)
        self._check_standing(blocks, arrays)
        self.check_overlap(arrays)
        self._check_contracts(args, arrays, scope)
        if not self._check_row_ends(args, arrays):
            self._remember(grid, args, described)

    def _grid(self, grid: Any) -> tuple[int, int, int]:
        try:
            # What else can be iterated may give other numbers the next time.
            sizes = tuple(map(operator.index, grid)) if isinstance(grid, (tuple, list)) else None
        except TypeError:
            sizes = None
        if sizes is None:
            raise self.refusal(f"the grid {grid!r} is not a tuple of integers", ())
        if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
            raise self.refusal(f"the grid {grid!r} is not one to three positive integers", ())
        x, y, z = (*sizes, 1, 1)[:3]
        return x, y, z

    def layouts(self, argument: Argument, value: Any) -> Iterator[tuple[str, int, Layout]]:
        """The name, address and layout of an array, or of each member of a list."""
        if argument.members:
            if not isinstance(value, (list, tuple)):
                raise self.refusal(f"`{argument.name}` is not a list of arrays", ())
            for k, member in enumerate(value):
                yield self.layout(f"{argument.name}[{k}]", member)
        else:
            yield self.layout(argument.name, value)

    def layout(self, name: str, value: Any) -> tuple[str, int, Layout]:
        try:
            return (name, *layout_of(value))
        except NotAnArray as error:
            raise self.refusal(f"`{name}` is not an array that can be launched with: {error}", ()) from None

    def check_shapes(self, arrays: Arrays) -> None:
        for i, members in arrays.items():
            rank = self.record.arguments[i].rank
            for name, _, layout in members:
                if rank is not None and len(layout.shape) != rank:
                    raise self.refusal(f"`{name}` has {len(layout.shape)} axes where it needs {rank}", ())
                if any(stride < 0 for stride in layout.strides):
                    raise self.refusal(f"`{name}` has a negative stride", ())
                steps = [s for n, s in zip(layout.shape, layout.strides, strict=True) if n > 1]
                if max(steps, default=0) >= INT32_ELEMENTS and not self.record.arguments[i].wide:
                    raise self.refusal(
                        f"`{name}` has a stride of {max(steps)}, which 32 bits do not hold",
                        ("help: annotate it `ct.IndexedWithInt64`",),
                    )

    def _check_elements(self, args: Sequence[Any]) -> None:
        """S6: narrower integers wrap sooner than the proof allows for, and others have no sign or no order."""
        for i in self.described:
            argument = self.record.arguments[i]
            if not argument.integer:
                continue
            for member in args[i] if argument.members else (args[i],):
                found = element_type(member)
                if member is not None and found not in _INTEGERS:
                    raise self.refusal(
                        f"the elements of `{argument.name}` are {found}; int32 or int64 is expected",
                        ("the proof takes them for integers of 32 bits or more, with a sign",),
                    )

    def _scope(self, grid: tuple[int, int, int], args: Sequence[Any], arrays: Arrays) -> dict[str, Any]:
        """What the names in conditions stand for."""
        scope: dict[str, Any] = {**self.captured, **FUNCTIONS, "grid": grid, "__builtins__": {}}
        return scope | self.values(args, arrays)

    def _check_conditions(self, scope: dict[str, Any]) -> None:
        for condition in self.conditions:
            for chosen in itertools.product(*(scope[name] for name in condition.each)):
                scope[EACH] = SimpleNamespace(**dict(zip(condition.each, chosen, strict=True)))
                self._check_condition(condition, scope)

    def values(self, args: Sequence[Any], arrays: Arrays) -> dict[str, Any]:
        """What the names of arguments stand for in conditions."""
        found: dict[str, Any] = {}
        for i, members in arrays.items():
            views = [view(layout) for _, _, layout in members]
            argument = self.record.arguments[i]
            found[argument.name] = views if argument.members else views[0]
        for i in self.integers():
            found[self.record.arguments[i].name] = self.integer(self.record.arguments[i], args[i])
        return found

    def _check_condition(self, condition: Condition, scope: dict[str, Any]) -> None:
        try:
            holds = eval(condition.code, scope)  # noqa: S307 - only the whitelisted nodes of `conditions`
        except Exception as error:  # noqa: BLE001 - what cannot be evaluated does not hold
            raise self.refusal(f"its condition cannot be evaluated: {error}", (condition.text,)) from None
        if not holds:
            raise self.refusal(
                "the launch breaks a condition of its proof",
                (condition.text, f"here {condition.shown(scope)}"),
            )

    def _check_contracts(self, args: Sequence[Any], arrays: Arrays, scope: dict[str, Any]) -> None:
        places = {a.name: i for i, a in enumerate(self.record.arguments)}
        try:
            self.contracts.check({n: (args[i], arrays.get(i, [])) for n, i in places.items()}, scope)
        except Broken as broken:
            raise self.refusal("the launch breaks a contract of its proof", broken.notes) from None

    def integer(self, argument: Argument, value: Any) -> int:
        """The Python integer that conditions compute with: those of NumPy wrap around.

        The kernel must see the same number, so one of 32 bits must be given one.
        """
        try:
            found = operator.index(value)
        except TypeError:
            raise self.refusal(f"`{argument.name}` is no integer, and the proof takes it for one", ()) from None
        narrow = argument.ownership == "value" and not argument.wide
        if narrow and not -INT32_ELEMENTS <= found < INT32_ELEMENTS:
            raise self.refusal(f"`{argument.name}` is {found}, which 32 bits do not hold", ())
        return found

    def _check_standing(self, grid: tuple[int, int, int], arrays: Arrays) -> None:
        for axis in self.unread_axes if self.stores else ():
            if grid[axis] != 1:
                raise self.refusal(
                    f"the grid has {grid[axis]} blocks along axis {axis}, which the kernel never reads: "
                    "they would all write the same elements",
                    ("S3: a grid axis that the kernel never reads is 1",),
                )
        for i, members in arrays.items():
            written = self.record.arguments[i].ownership == "mut"
            for name, _, layout in members:
                if self.length(layout) >= INT32_ELEMENTS:
                    raise self.refusal(
                        f"`{name}` has {self.length(layout)} elements",
                        ("S4: each array has fewer than 2^31 elements",),
                    )
                if written and layout.overlaps_itself() is not False:
                    decided = "overlaps" if layout.overlaps_itself() else "may overlap"
                    raise self.refusal(
                        f"`{name}` is written and {decided} itself: its shape is {layout.shape}, its strides "
                        f"are {layout.strides}",
                        ("S2: a written array does not overlap itself",),
                    )

    def length(self, layout: Layout) -> int:
        """How many elements an array has, as the proof counts them."""
        return layout.size

    def check_overlap(self, arrays: Arrays) -> None:
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
                raise self.refusal(
                    f"`{name}` and `{other}` {decided} in memory, and `{written}` is written: `{other}` begins "
                    f"{there - at} bytes from `{name}`",
                    ("S1: arguments of which one is written do not overlap",),
                )

    def _check_row_ends(self, args: Sequence[Any], arrays: Arrays) -> bool:
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
        raise self.refusal(
            f"`{name}` is written in rows of {layout.shape[-1] * layout.itemsize} bytes, and the installed "
            f"compiler may overwrite what follows a row up to a multiple of {self.granule}",
            (
                "the Tile IR compiler before release 13.5 stores whole pieces where rows begin on a multiple",
                f"help: install a later one, or give the rows of `{name}` a multiple of {self.granule} bytes",
            ),
        )

    def _remember(self, grid: Any, args: Sequence[Any], arrays: Arrays) -> None:
        """Let the fast path pass what was just checked. Its key holds all that the checks above depend on."""
        if self.key is None:
            return
        known = {type(args[i]) for i in {*self.numbers(), *self.integers()}}
        if type(grid) is not tuple or not {*map(type, grid)} <= {int, bool} or not known <= self.constants:
            return  # a mutable number, such as a tensor in a grid, stays equal to itself when it changes
        if any(is_reinterpreted(args[i]) for i in self.described):
            return  # the key does not hold the size that its elements have without that
        try:
            if len(self.seen) >= _REMEMBERED:
                self.seen.clear()
            spans = tuple(arrays[i][0][2].span if arrays[i] else 0 for i in self.described)
            _, allowed = self.seen.setdefault(self.key(grid, args), (spans, set()))
        except (AttributeError, TypeError):
            return  # not PyTorch's interface, or not hashable: checked in full every time
        for number, (i, j) in enumerate(self.pairs):
            if not arrays[i] or not arrays[j]:
                continue
            distance = arrays[j][0][1] - arrays[i][0][1]
            if -arrays[j][0][2].span < distance < arrays[i][0][2].span and len(allowed) < _REMEMBERED:
                allowed.add((number, distance))

    def refusal(self, what: str, notes: tuple[str, ...] = ()) -> LaunchRefused:
        shown = "\n".join(f"   = {note}" for note in (*notes, self.record.where))
        return LaunchRefused(f"this launch of `{self.record.name}` is refused: {what}", shown)


Arrays = dict[int, list[tuple[str, int, Layout]]]


def _ends_storage(value: Any, end: int) -> bool:
    """Whether nothing follows an address in the array's storage; allocations end on multiples of a piece."""
    try:
        storage = value.untyped_storage()
        return bool(storage.data_ptr() + storage.nbytes() <= end)
    except AttributeError:  # not PyTorch's interface
        return False
