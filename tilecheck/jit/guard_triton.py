"""The guard of Triton kernels.

A pointer parameter is a flat array to the proof: its elements from the first that the tensor's shape and
strides reach to the last. An integer is one of 32 bits. Nothing in a kernel's text says what its parameters
are, so the guard holds every argument against what the proof took it for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, NoReturn

from tilecheck.jit.conditions import FUNCTIONS, view
from tilecheck.jit.guard import INT32_ELEMENTS, Arrays, Guard, check_accepted
from tilecheck.jit.jitted import WARP
from tilecheck.jit.layouts import Layout
from tilecheck.jit.records import Argument, Record

_ALIGNED = 16  # bytes: what Triton's compiler asks of a pointer
_NUMBERS = (int, bool, float, NoneType)
_WARPS = "num_warps"  # an option of a launch

Threads = Callable[[Any, Sequence[Any], int], None]


def compile_guard(
    record: Record, captured: Mapping[str, Any] | None = None, *, most: int | None = None
) -> Guard:
    """The guard of a kernel: called with grid and arguments it returns, or raises `LaunchRefused`.

    `most` is how many elements an array may have whose contracts are checked; None checks no contract.

    Raises:
        LaunchRefused: the kernel is not verified, or one of its conditions cannot be evaluated.
    """
    check_accepted(record, "triton")
    return _Guard(record, captured or {}, 1, most)


def compile_threads(record: Record, captured: Mapping[str, Any] | None = None) -> Threads | None:
    """A function of a launch's `num_warps`, its arguments and how many threads a warp has; None if S8 asks for
    nothing. It returns, or raises `LaunchRefused` if a tile that has to be as large as the program has threads
    is smaller.

    Raises:
        LaunchRefused: the number of a tile's elements cannot be evaluated.
    """
    if not record.large:
        return None
    return _Guard(record, {**(captured or {}), _WARPS: None}, 1).check_threads


class _Guard(Guard):
    constants = frozenset((*_NUMBERS, str))
    questions = True
    flat = True

    def __init__(
        self, record: Record, captured: Mapping[str, Any], granule: int, most: int | None = None
    ) -> None:
        super().__init__(record, captured, granule, most)
        self.raw = set(self.arrays)  # every access is by an offset from the first element
        self.large = [self._compiled(text) for text in record.large]

    # ---- the fast path ---------------------------------------------------------------------------------------

    def key_parts(self) -> list[str]:
        count = range(len(self.record.arguments))
        key = [
            f"a{i} if a{i} is None else (a{i}.shape, a{i}.stride(), a{i}.dtype)"
            if self._is_optional(i)
            else f"a{i}.shape, a{i}.stride(), a{i}.dtype"
            for i in self.described
        ]
        read = self.numbers()
        key += [f"a{i}" for i in read]
        key += [f"{-INT32_ELEMENTS} <= a{i} < {INT32_ELEMENTS}" for i in self._integers() if i not in read]
        # 1.0 and True are equal to 1, and have other types in the kernel.
        return key + [f"type(a{i})" for i in count if i not in self.described]

    def address(self, i: int) -> str:
        return f"-1 if a{i} is None else a{i}.data_ptr()" if self._is_optional(i) else super().address(i)

    def located(self) -> list[int]:
        return self.arrays

    def fast_checks(self) -> list[str]:
        """Tensors without memory, such as those on PyTorch's device `meta`, are looked at in full, and so are
        those that are not aligned alike where they have to be."""
        if not self.arrays:
            return []
        lines = [
            f"    if not ({' and '.join(f'p{i}' for i in self.arrays)}):",
            "        return slow(grid, args)",
        ]
        alike = self._alike()
        if len(alike) > 1:
            lines += [
                f"    if not ({' == '.join(f'(p{i} % {_ALIGNED} == 0)' for i in alike)}):",
                "        return slow(grid, args)",
            ]
        return lines

    def _alike(self) -> list[int]:
        return [i for i in self.arrays if self.record.arguments[i].alike]

    def _is_optional(self, i: int) -> bool:
        """Whether the proof looked at both cases, that an argument is None and that it is not."""
        name = self.record.arguments[i].name
        return any(q.name == name and q.text is None for c in self.conditions for q in c.questions)

    def numbers(self) -> list[int]:
        read = {a for c in self.read for a in (*c.atoms, *(q.name for q in c.questions))}
        return [i for i, a in enumerate(self.record.arguments) if i not in self.described and a.name in read]

    def _integers(self) -> list[int]:
        """The positions of arguments that the proof took for integers."""
        arguments = enumerate(self.record.arguments)
        return [i for i, a in arguments if i not in self.described and _is_integer(a)]

    # ---- the general way -------------------------------------------------------------------------------------

    def layouts(self, argument: Argument, value: Any) -> Iterator[tuple[str, int, Layout]]:
        """The address and layout of a tensor; nothing of None."""
        if value is None:
            return
        if not hasattr(value, "data_ptr") or _is_of_triton(value):
            self._refuse_type(argument, value, "a tensor is")
        name, at, layout = self.layout(argument.name, value)
        if layout.size and not at and argument.is_accessed:
            raise self.refusal(f"`{name}` has no memory", ())
        yield name, at, layout

    def check_shapes(self, arrays: Arrays) -> None:
        """Of shapes and strides the kernel sees none but those that it is given as numbers.

        S7: where elements differ in size, or addresses in what the compiler knows of them, a load and a store
        of one element may be made by two threads.
        """
        alike = [members[0] for i, members in arrays.items() if members and self.record.arguments[i].alike]
        for name, at, layout in alike[1:]:
            first, start, other = alike[0]
            if layout.itemsize != other.itemsize:
                sizes = f"{layout.itemsize} bytes, and those of `{first}` {other.itemsize}"
                raise self.refusal(
                    f"the elements of `{name}` have {sizes}",
                    ("its threads load and store the same elements only if all have one size",),
                )
            if (at % _ALIGNED == 0) != (start % _ALIGNED == 0):
                raise self.refusal(
                    f"of `{name}` and `{first}` one begins at a multiple of {_ALIGNED} bytes, and one does not",
                    ("its threads load and store the same elements only if all are aligned alike",),
                )

    def check_threads(self, warps: Any, args: Sequence[Any], warp: int = WARP) -> None:
        """S8: of a smaller tile several threads load each element, and some may load it too late."""
        if type(warps) is not int or warps < 1:
            raise self.refusal(f"`{_WARPS}` is {warps!r}, which is no number of warps", ())
        numbers = {a.name: value for a, value in zip(self.record.arguments, args, strict=True)}
        for size in self.large:
            scope = {**self.captured, **FUNCTIONS, **numbers, "__builtins__": {}}
            try:
                elements = eval(size.code, scope)  # noqa: S307 - only the whitelisted nodes of `conditions`
                is_large = type(elements) is int and elements >= warp * warps
            except Exception as error:  # noqa: BLE001 - what cannot be evaluated does not hold
                raise self.refusal(f"its tile cannot be evaluated: {error}", (size.text,)) from None
            if not is_large:
                raise self.refusal(
                    f"a tile of `{size.text}` elements has {elements}, and the program {warp * warps} threads",
                    (
                        "its threads are in order only if each of them loads elements of its own",
                        f"help: launch it with fewer warps (`{_WARPS}={warps}`), or with larger tiles",
                    ),
                )

    def length(self, layout: Layout) -> int:
        return layout.reach

    def values(self, args: Sequence[Any], arrays: Arrays) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for i, argument in enumerate(self.record.arguments):
            if i in arrays:
                # The proof's array has one axis, whatever the tensor's shape.
                flat = [view(_elements(layout)) for _, _, layout in arrays[i]]
                found[argument.name] = flat[0] if flat else _NOTHING
            elif argument.ownership != "unused":
                found[argument.name] = self._value(argument, args[i])
            else:  # Triton takes it, and the kernel does nothing with it
                found[argument.name] = args[i] if type(args[i]) in (int, bool) else _NOTHING
        for condition in self.conditions:
            for question in condition.questions:
                at = next(i for i, a in enumerate(self.record.arguments) if a.name == question.name)
                found[question.atom] = question.answer(args[at])
        return found

    def _value(self, argument: Argument, value: Any) -> Any:
        """What conditions may compute with; the type must be one that the proof allows for.

        Exact types: what Triton makes of a subclass, such as an enumeration or a NumPy scalar, is not modelled.
        """
        constant = argument.ownership == "constant"
        kind = type(value)
        if kind not in _NUMBERS and not (constant and (kind is str or _is_dtype(value))):
            self._refuse_type(argument, value, "a number is")
        if argument.scalar == "bool" and kind is not bool:
            self._refuse_type(argument, value, "a bool is")
        if _is_integer(argument):
            if value is None and self._is_optional(self.record.arguments.index(argument)):
                return _NOTHING
            # At compile time True is 1; passed at the launch it is a number of one bit.
            if kind is not int and not (kind is bool and constant):
                self._refuse_type(argument, value, "the proof takes it for an integer:", "an int is")
        if kind is bool:
            return value
        if kind is not int:
            return _NOTHING
        is_read = argument.name in {atom for c in self.read for atom in c.atoms}
        narrow = (is_read or _is_integer(argument)) and not argument.wide
        if narrow and not -INT32_ELEMENTS <= value < INT32_ELEMENTS:
            raise self.refusal(f"`{argument.name}` is {value}, which 32 bits do not hold", ())
        return value

    def _refuse_type(self, argument: Argument, value: Any, *expected: str) -> NoReturn:
        kind = type(value)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise self.refusal(f"`{argument.name}` is a {name}; {' '.join(expected)} expected", ())


def _is_integer(argument: Argument) -> bool:
    return argument.ownership != "unused" and (argument.integer or argument.scalar == "int")


def _elements(layout: Layout) -> Layout:
    """A tensor as a flat array of elements."""
    return Layout((layout.reach,), (1,), layout.itemsize)


def _is_of_triton(value: Any) -> bool:
    """Whether a value is one of Triton's own objects: a descriptor, or a tensor taken for another type."""
    return type(value).__module__.partition(".")[0] == "triton"


def _is_dtype(value: Any) -> bool:
    return _is_of_triton(value) and type(value).__name__ == "dtype"


class _Nothing:
    """Stands for an argument that is no number: a condition that computes with it cannot be evaluated."""

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "no number"

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError("an argument in it is None, or no number")

    __bool__ = __eq__ = __ne__ = __getattr__ = _refuse


_NOTHING = _Nothing()
