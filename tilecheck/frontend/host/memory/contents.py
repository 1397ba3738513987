"""What tensors of host code hold, as far as its text says it, until something may write them.

Entries are kept by storage, so that every view of a tensor has them. One is dropped at any event that may
change the storage (`mutations`), and counts only on paths that went through what set it: at a launch whose
path condition says all that was said there, in the same iteration of the loops around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.tensors.index_results import RESULTS, elements, listed, random_integers
from tilecheck.frontend.host.values import Device, Pair, Tensor
from tilecheck.frontend.values.values import Const, Method, Named, Num, Param, Seq, Token, integer
from tilecheck.ir import expr as E
from tilecheck.ir.contents import Contents, filled, permuted, ranged
from tilecheck.ir.expr import Expr

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor

_WIDE = frozenset("int32 int64 int long".split())  # types that hold every index
_LARGEST = 127  # what every type of integer holds
_SAME_VALUES = frozenset("int long cuda cpu".split())  # conversions that keep integers
LIBRARIES = ("torch", "numpy", "cupy")


@dataclass(frozen=True, slots=True)
class Held:
    """The contents of one storage, and where they were set: on which path, in which loops, and when."""

    contents: Contents
    facts: frozenset[Expr]
    nest: tuple[object, ...]
    fresh: bool
    number: int


def contents_of(x: HostExecutor, t: Tensor) -> Contents | None:
    """What a tensor holds at this point of the run; None where the text does not say."""
    held = x.contents.get(t.storage)
    if held is None or t.among or t.part is None or t.recast or held.fresh is not t.fresh:
        return None
    if t.copied and t.copy <= held.number:
        return None  # a copy of what was there before
    if not held.facts <= _facts(x) or _nest(x)[: len(held.nest)] != held.nest:
        return None
    if t.expanded:
        return held.contents.repeated()
    if t.part or not t.contiguous:
        return held.contents.of_part(ordered=t.part != () and len(t.shape or ()) == 1)
    return held.contents


def forget_tensor(x: HostExecutor, value: Tensor | Param | Named) -> None:
    """Drop what a tensor holds, and what those do that may share its memory."""
    if isinstance(value, Tensor) and value.fresh and not {value.storage, *value.among} & x.handed_on:
        for storage in (value.storage, *value.among):
            x.contents.pop(storage, None)
    else:
        forget_shared(x)


def forget_shared(x: HostExecutor) -> None:
    """Drop what the tensors hold that other code may reach: it may have changed any of them."""
    for storage in [s for s, held in x.contents.items() if not held.fresh or s in x.handed_on]:
        del x.contents[storage]


def after_call(x: HostExecutor, function: Any, args: Arguments, result: Any) -> None:
    """Keep what a call says of the elements of its result, which is a tensor that it made or filled."""
    name = function.name if isinstance(function, Named | Method) else ""
    if "out" in dict(args.keywords) or not name:
        return
    if isinstance(function, Method) and name == "sort" and isinstance(function.value, Tensor):
        forget_tensor(x, function.value)  # in place, if it is an array of NumPy
    if isinstance(result, Pair) and name.rpartition(".")[2] in ("sort", "topk"):
        result = result.indices
    if not isinstance(result, Tensor):
        return
    try:
        if isinstance(function, Method):
            made = _of_method(x, function, name, args, result)
        else:
            made = _of_function(x, name, args, result)
    except UnsupportedConstruct:
        made = None
    if made is not None:
        keep(x, result, made)


def after_filling(x: HostExecutor, function: Any, args: Arguments) -> None:
    """`x.zero_()` and `x.fill_(c)` of what the caller passes."""
    if isinstance(function, Method) and function.name in _FILLING and isinstance(function.value, Param):
        after_call(x, function, args, T.free(function.value.name))


def keep(x: HostExecutor, t: Tensor, contents: Contents) -> None:
    """Say what all of a tensor holds from here on. Before a loop is known, nothing is: it may come round."""
    if x.dry or t.part != () or t.among or t.copied or t.expanded:
        x.contents.pop(t.storage, None)
    else:
        x.contents[t.storage] = Held(contents, _facts(x), _nest(x), t.fresh, x.number())


def cast(x: HostExecutor, t: Tensor, name: str, args: Arguments) -> Tensor:
    """A converted tensor: its elements are the same integers, unless the type may be too small for them."""
    given = (*args.positional, *(v for k, v in args.keywords if k not in ("non_blocking", "copy")))
    keeps = name in _SAME_VALUES or (name in ("to", "astype") and all(map(_is_harmless, given)))
    held = x.contents.get(t.storage)
    if name == "int" or any(map(_is_32_bits, given)):
        keeps = keeps and (held is None or held.contents.fits_32_bits)
    return t if keeps else replace(t, recast=True)


def _is_32_bits(value: Any) -> bool:
    return isinstance(value, Named | Token) and value.name.rpartition(".")[2] in ("int32", "int")


def _is_harmless(value: Any) -> bool:
    """Whether an argument of `to` is a wide type, or a device."""
    match value:
        case Device():
            return True
        case Named(name) | Token(name):
            last = name.rpartition(".")[2]
            return last in _WIDE or last == "device"
        case Const(str() as text):
            return text.partition(":")[0] in ("cuda", "cpu")
        case _:
            return False


def _facts(x: HostExecutor) -> frozenset[Expr]:
    from tilecheck.frontend.host.run import facts_of  # that module needs this one

    return frozenset(facts_of(x.guard))


def _nest(x: HostExecutor) -> tuple[object, ...]:
    return tuple(symbol for symbol, _ in x.nest)


# ---- what is made ------------------------------------------------------------------------------------------


def _of_function(x: HostExecutor, name: str, args: Arguments, made: Tensor) -> Contents | None:
    head, _, last = name.rpartition(".")
    if head.split(".")[0] not in LIBRARIES:
        return None
    if last in _MADE:
        return _MADE[last](x, args, made)
    if last in RESULTS and head == "torch" and args.positional:
        return _computed(x, last, args.at(0), args.positional[1:], args)
    return None


def _of_method(x: HostExecutor, method: Method, name: str, args: Arguments, result: Tensor) -> Contents | None:
    if name in ("clone", "copy") and isinstance(method.value, Tensor):
        held = contents_of(x, method.value)
        return held if held is None or result.contiguous else held.of_part(ordered=False)
    if name in RESULTS:
        return _computed(x, name, method.value, args.positional, args)
    made = _METHODS.get(name)
    return None if made is None else made(x, args, result)


def _computed(x: HostExecutor, name: str, source: Any, rest: Sequence[Any], args: Arguments) -> Contents | None:
    """What a function of a tensor computes. A type that is named must hold every index."""
    if not isinstance(source, Tensor | Param) or not _is_wide(args):
        return None
    t = x.tensor(source)
    named = {k: v for k, v in args.keywords if k != "dtype"}
    found = elements(x, name, t, rest, named, contents_of(x, t))
    is_narrow = any(k == "dtype" and _is_32_bits(v) for k, v in args.keywords)
    return None if found is None or (is_narrow and not found.fits_32_bits) else found


def _zeros(x: HostExecutor, args: Arguments, made: Tensor) -> Contents | None:
    return filled(E.ZERO, T.numel(made))


def _ones(x: HostExecutor, args: Arguments, made: Tensor) -> Contents | None:
    return filled(E.ONE, T.numel(made))


def _full(at: int) -> Callable[[HostExecutor, Arguments, Tensor], Contents | None]:
    """`full(size, value)`, `full_like(x, value)`, `t.fill_(value)`: the value is the argument `at`."""

    def contents(x: HostExecutor, args: Arguments, made: Tensor) -> Contents | None:
        named = [v for k, v in args.keywords if k in ("fill_value", "value")]
        given = named[0] if named else args.at(at) if len(args.positional) > at else None
        value = _integer(x, given)
        if value is None or not (_is_wide(args) or _fits_all(value)):
            return None
        return filled(value, T.numel(made))

    return contents


def _arange(x: HostExecutor, args: Arguments, made: Tensor) -> Contents | None:
    given = dict(args.keywords)
    place = {1: 1, 2: 0, 3: 0}.get(len(args.positional), 1)
    start = _integer(x, args.at(0) if place == 0 else given.get("start", integer(0)))
    step = _integer(x, args.at(2) if len(args.positional) == 3 else given.get("step", integer(1)))
    count = T.numel(made)
    if start is None or step is None or count is None or not _is_wide(args):
        return None
    return ranged(start, step, count)


def _integer(x: HostExecutor, value: Any) -> Expr | None:
    """A number that the text says to be an integer."""
    if not isinstance(value, Num) or value.kind not in ("int", "bool") or value.elem is None or value.shape:
        return None
    return x.scalar(value, "value")


def _is_wide(args: Arguments) -> bool:
    """Whether the elements have a type that holds every index: the usual one, or one that is named."""
    given = [v for k, v in args.keywords if k == "dtype"]
    return all(isinstance(v, Named | Token) and v.name.rpartition(".")[2] in _WIDE for v in given)


def _fits_all(value: Expr) -> bool:
    return value.value is not None and 0 <= value.value <= _LARGEST


def _random_integers(x: HostExecutor, args: Arguments, made: Tensor) -> Contents | None:
    """`randint(high, size)`, `randint(low, high, size)`."""
    given = dict(args.keywords)
    ends = [x.scalar(v, "end") for v in args.positional if not isinstance(v, Seq)][:2]
    low = x.scalar(given["low"], "low") if "low" in given else ends[0] if len(ends) > 1 else E.ZERO
    high = x.scalar(given["high"], "high") if "high" in given else ends[-1] if ends else None
    return None if low is None or high is None else random_integers(low, high)


def _random_order(x: HostExecutor, args: Arguments, made: Tensor) -> Contents | None:
    count = T.numel(made)
    return permuted(count) if count is not None and _is_wide(args) else None


def _display(x: HostExecutor, args: Arguments, made: Tensor) -> Contents | None:
    return listed(x, args.at(0)) if _is_wide(args) else None


_MADE: Mapping[str, Callable[[HostExecutor, Arguments, Tensor], Contents | None]] = {
    "zeros": _zeros,
    "zeros_like": _zeros,
    "ones": _ones,
    "ones_like": _ones,
    "full": _full(1),
    "full_like": _full(1),
    "arange": _arange,
    "randint": _random_integers,
    "randperm": _random_order,
    "tensor": _display,
}
_FILLING = ("zero_", "fill_")
_METHODS: Mapping[str, Callable[[HostExecutor, Arguments, Tensor], Contents | None]] = {
    "new_zeros": _zeros,
    "new_ones": _ones,
    "new_full": _full(1),
    "zero_": _zeros,
    "fill_": _full(0),
}
