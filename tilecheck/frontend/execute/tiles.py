"""What operations on tiles mean in every language: sizes, conversions, reductions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.dataflow.load_sources import by_cast
from tilecheck.frontend.dataflow.operations import combined, way_of
from tilecheck.frontend.execute.expressions import static_items
from tilecheck.frontend.execute.state import ROUNDED, Arguments, Executor
from tilecheck.frontend.values import arithmetic, float_ranges, signs, unsigned
from tilecheck.frontend.values.values import NOTHING, Const, Named, Num, Seq
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, memory_names


def data(shape: tuple[Expr, ...] = ()) -> Num:
    return Num(shape, None, "data")


def tile_size(x: Executor, size: Expr) -> Expr:
    """Note that `size` is a tile size: the compiler takes powers of two only, so it is at least 1.

    One that varies is a constant of one round of a loop that the compiler unrolls, or the code does not
    compile; nothing is known of it, and tiles of such a size touch no memory (`fresh_lanes`).
    """
    if size.value is None and not any(s.varies for s in E.symbols(size)):
        assume_where_compiled(x, E.le(1, size))
        x.powers[size] = None
    elif size.value is not None and size.value < 1:
        raise UnsupportedConstruct("tile size below 1")
    elif size.value is not None and size.value & (size.value - 1) and _always_compiled(x):
        x.powers[size] = None  # the kernel never compiles
    return size


def _always_compiled(x: Executor) -> bool:
    """Whether no compile-time condition decides whether this code is compiled."""
    return not x.unrolled and _compiled(x, x.guard) is E.TRUE


def assume_where_compiled(x: Executor, fact: Expr) -> None:
    """Note what the compiler demands of its constants here: it holds wherever this code is compiled.

    Code under a compile-time condition that fails is not compiled; a run-time condition is no obstacle.
    """
    runs = E.all_of(*(_once(loop.trips) for loop in x.unrolled))  # the compiler copies the body so often
    x.facts[E.any_of(E.negate(E.all_of(runs, _compiled(x, x.guard))), fact)] = None


def _once(trips: Expr) -> Expr:
    """Whether a loop has a round: 1 <= max(0, n) is 1 <= n."""
    if trips.op == "max":
        more = [e for e in trips.args if e.value is None or e.value > 0]
        return E.le(1, more[0]) if len(more) == 1 else E.le(1, trips)
    return E.le(1, trips)


def _compiled(x: Executor, guard: Expr) -> Expr:
    """What makes sure that code under `guard` is compiled: each run-time condition in it may hold.

    Not one on the number of a static loop, but for its own bounds: each copy of the body has its own number.
    Nor one on numbers of the launch alone: where they are 1, Triton compiles them as constants.
    """
    if any(guard in loop.bounds for loop in x.unrolled):
        return E.TRUE
    if guard.op in ("all", "any"):
        join = E.all_of if guard.op == "all" else E.any_of
        return join(*(_compiled(x, part) for part in guard.args))
    if guard.op == "not" and guard.args[0].op in ("all", "any"):
        join = E.any_of if guard.args[0].op == "all" else E.all_of
        return join(*(_compiled(x, E.negate(part)) for part in guard.args[0].args))
    own = E.symbols(guard)
    if any(loop.number in own for loop in x.unrolled):
        return E.FALSE
    return guard if all(s.kind in (Kind.CONSTANT, Kind.SCALAR) for s in own) else E.TRUE


def tile_sizes(x: Executor, shape: Any) -> tuple[Expr, ...]:
    """A tile shape: a tuple or list of constants, or one constant."""
    items = static_items(x, shape, "tile shape") if isinstance(shape, Seq) else (shape,)
    return tuple(tile_size(x, x.scalar(item, "tile size")) for item in items)


def constant(x: Executor, value: Any, what: str) -> int:
    number = x.scalar(value, what).value
    if number is None:
        raise UnsupportedConstruct(f"symbolic {what}")
    return number


def bits_of(dtype: Any, default: int | None = 32) -> int | None:
    name = dtype.name.rsplit(".", 1)[-1] if isinstance(dtype, Named) else ""
    return 64 if "64" in name else default


def is_integer(dtype: Any) -> bool | None:
    """Whether a dtype holds signed integers; None when the text does not say.

    Unsigned ones are not modelled: their differences, comparisons and quotients are those of a ring.
    """
    if not isinstance(dtype, Named):
        return None
    name = dtype.name.rsplit(".", 1)[-1]
    return name.startswith("int")


def _is_uint64(dtype: Any) -> bool:
    return isinstance(dtype, Named) and dtype.name.rpartition(".")[2] == "uint64"


def _is_float(dtype: Any) -> bool:
    """Whether a dtype certainly holds floats; that of an array's elements (`.dtype.element_ty`) may be any."""
    return isinstance(dtype, Named) and dtype.name.rpartition(".")[2].startswith(
        ("float", "bfloat", "fp", "bf")
    )


def cast(x: Executor, num: Num, dtype: Any) -> Num:
    """`num` in another type."""
    first = len(x.overflow.checks)
    return arithmetic.rested(_cast(x, num, dtype), x, first, num)


def _cast(x: Executor, num: Num, dtype: Any) -> Num:
    integral = is_integer(dtype)
    way = combined("to", (1, dtype.name), way_of(num)) if isinstance(dtype, Named) else None
    if not integral:
        if isinstance(dtype, Named) and dtype.name.endswith("bool_"):
            return Num(num.shape, arithmetic.as_bool(num, x), "bool")
        single = _is_float(dtype) and bits_of(dtype) != 64  # of what is no number, a double converts otherwise
        made = by_cast(num, "float" if _is_float(dtype) else "unknown")
        natural = signs.natural(num, x) if single else E.FALSE
        whole = unsigned.converted(num, x) if _is_uint64(dtype) else None
        wholes = signs.wholes(num)
        found = Num(num.shape, None, "data", made=made, natural=natural, single=single, unsigned=whole, way=way)
        return replace(found, wholes=wholes, span=float_ranges.as_float(num, dtype, x))
    # Of Triton the caller's floats have 32 bits, and so has what integers become beside them.
    to = dtype.name.rsplit(".", 1)[-1] if x.dialect.has_pointers else ""
    if num.elem is None:
        unknown = x.fresh(ROUNDED, per_lane=bool(num.shape))
        elem = signs.rounded(num, unknown, to, x)
        elem = float_ranges.rounded(num, unknown, elem, to) if x.bounds_floats else elem
        return Num(num.shape, elem, "int", bits_of(dtype), by_cast(num, "integer"))
    name = dtype.name.rsplit(".", 1)[-1]
    made = by_cast(num, "integer") if name in ("int32", "int64") else NOTHING
    if num.kind == "any":
        wide = name == "int64"
        elem = _truncated(x, num.elem, per_lane=bool(num.shape), wide=wide)
        if elem.op == "sym" and elem.args[0].kind is Kind.OPAQUE:
            elem = signs.rounded(num, elem, to, x)
        num = Num(num.shape, elem, "any", num.bits)
    if num.bits == 32 and num.elem is not None and arithmetic.may_have_wrapped(num.elem):
        # Widening happens after the 32-bit value was computed.
        elem = x.fits(num.elem, num.shape)
        num = Num(num.shape, elem, num.kind, num.bits)
    kind = "any" if num.kind == "any" else "int"
    return Num(num.shape, converted(x, num, name), kind, bits_of(dtype), made, way=way)


def converted(x: Executor, num: Num, name: str) -> Expr:
    """An integer in another integer type: itself where the type holds it, else some other integer."""
    value = arithmetic.as_int(num, x)
    if num.kind == "bool" and name in ("int32", "int64"):
        return value
    unknown = x.fresh("data", per_lane=bool(num.shape))
    if name == "int32" and num.bits == 64:
        if any(node.op == "read" for node in E.walk(value)):  # whatever the size of what memory holds
            return E.ite(E.all_of(E.le(-(2**31), value), E.lt(value, 2**31)), value, unknown)
        value = x.fits(value, num.shape)
    elif name not in ("int32", "int64"):
        return unknown
    return value


def _truncated(x: Executor, elem: Expr, *, per_lane: bool, wide: bool = False) -> Expr:
    """Memory of unknown dtype cast to an integer, of 64 bits if `wide`: some function of the memory's value,
    not that value.

    Of what was computed from it nothing is known: 0.5 becomes 0 and 2 * 0.5 becomes 1.
    """
    if elem.op == "ite":
        test, first, second = elem.args
        first, second = (_truncated(x, e, per_lane=per_lane, wide=wide) for e in (first, second))
        return E.ite(test, first, second)
    if x.is_integer_memory(elem):  # also what has been converted before
        return elem
    # Which parameters are pointers an earlier run has found: an address may be converted too.
    integers, pointers = x.knows("integers"), x.knows("pointers")
    beside = _beside_integers(elem, integers, wide=wide) if pointers else set()
    if beside and not beside & pointers and memory_names(elem) <= integers | beside:
        x.integers |= beside
        return elem
    match elem.op:
        case "read":
            return E.read(f"{elem.args[0]}:int", *elem.args[1:])
        case "sym" if elem.args[0].origin == "untyped":
            return E.sym(replace(elem.args[0], origin="converted"))
        case "sym" if elem.args[0].kind is Kind.OPAQUE:
            return x.moved(replace(elem.args[0], origin=f"{elem.args[0].origin}:int"), ())
        case _:
            origin = arithmetic.origin(elem)
            is_untyped = any(s.origin == "untyped" for s in E.symbols(elem))
            converted = origin.startswith("data") and is_untyped
            return x.fresh("converted" if converted else origin, per_lane=per_lane)


def _beside_integers(elem: Expr, integers: Collection[str], *, wide: bool) -> set[str]:
    """The parameters that are terms of a sum, a minimum or a maximum with values that vary inside a launch.

    All of the latter are integers; like one that is compared with an integer, such a parameter is taken for an
    integer too, and the guard makes sure of it. So are in what is made `wide` the factors of a product beside
    one of the `integers`: `(i * (B * n)).to(tl.int64)`, for which 32 bits may be too few; and, where what it is
    multiplied with varies, a factor that is called a stride, as strides count elements.
    """
    names: set[str] = set()
    stack, varies = [elem], False
    while stack:
        node = stack.pop()
        own = _untyped(node.args) if wide and node.op == "mul" else set()
        if node.op in ("add", "min", "max") or not own.isdisjoint(integers) or _are_strides(own):
            stack += node.args
        elif node.op == "mul" and len(node.args) == 2 and node.args[0].value == -1:
            stack.append(node.args[1])
        elif node.op == "sym" and node.args[0].origin == "untyped":
            names.add(node.args[0].name)
        else:
            varies |= any(s.varies for s in E.symbols(node))
    return names if varies or (elem.op == "mul" and not names.isdisjoint(integers)) else set()


def _are_strides(names: Collection[str]) -> bool:
    return bool(names) and all("stride" in name.lower().split("_") for name in names)


def _untyped(values: Collection[Expr]) -> set[str]:
    return {e.args[0].name for e in values if e.op == "sym" and e.args[0].origin == "untyped"}


def computed(x: Executor, num: Num, *, per_lane: bool) -> Expr:
    """A number that is computed from the elements of a tile: an integer only if they are."""
    assert num.elem is not None
    return x.fresh(x.derived(num.elem) if num.kind == "any" else arithmetic.origin(num.elem), per_lane=per_lane)


def mask_of(x: Executor, value: Any) -> Num:
    """An optional mask: all lanes where it is absent or None."""
    if value is None or (isinstance(value, Const) and value.value is None):
        return Num((), E.TRUE, "bool")
    return x.number_of(value, "mask")


def grid_axis(x: Executor, args: Arguments, what: str) -> int:
    """The axis that a function of the grid is asked about; the kernel reads it."""
    value = x.scalar(args.bind(("axis",), what)["axis"], f"axis of {what}").value
    if value not in (0, 1, 2):
        raise UnsupportedConstruct(f"{what} of a symbolic axis")
    x.grid_axes.add(value)
    return value


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value.items if isinstance(value, Seq) else (value,)


def reduced(x: Executor, num: Num, axis: Any, keepdims: Any, *, widens: bool = True) -> Num:
    """What a reduction along `axis` (None: all axes) gives: of integers, some integer. Of truths too if it
    `widens` them, as sums do, else some truth."""
    keep = x.truth(keepdims)
    if isinstance(axis, Const) and axis.value is None:
        axes = set(range(len(num.shape)))
    else:
        rank = max(len(num.shape), 1)
        axes = {constant(x, a, "axis") % rank for a in as_tuple(axis)}
    if keep is not E.TRUE and keep is not E.FALSE:
        raise UnsupportedConstruct("symbolic keepdims")
    shape = tuple(
        E.ONE if k in axes else size for k, size in enumerate(num.shape) if k not in axes or keep is E.TRUE
    )
    if num.kind == "bool" and num.elem is not None and not widens:
        return Num(shape, x.fresh("data", per_lane=bool(shape), boolean=True), "bool", num.bits)
    if num.kind in ("int", "bool", "any") and num.elem is not None:
        # Some integer; which one is not modelled.
        kind = "any" if num.kind == "any" else "int"
        return Num(shape, computed(x, num, per_lane=bool(shape)), kind, num.bits)
    return data(shape)


def place(x: Executor, num: Num, axis: Any, shape: tuple[Expr, ...]) -> Num:
    """Where along `axis` (None: of all elements) a smallest or largest element stands, for each of `shape`.

    It is the place of some element whatever they are, NaNs included: a reduction of pairs of an element and its
    place gives one of the places.
    """
    sizes = num.shape
    if sizes and not (isinstance(axis, Const) and axis.value is None):
        sizes = (sizes[constant(x, axis, "axis") % len(sizes)],)
    last = E.sub(E.mul(E.ONE, *sizes), 1)
    unknown = x.fresh("data", per_lane=bool(shape))
    return Num(shape, E.maximum(0, E.minimum(unknown, last)), "int", 32)


def scanned(x: Executor, num: Num, *, widens: bool = True) -> Num:
    """A scan, or another order of the elements: of integers, some integers. Of truths too if it `widens` them,
    else some truths."""
    if num.elem is None:
        return data(num.shape)
    if num.kind == "bool" and not widens:
        return Num(num.shape, x.fresh("data", per_lane=True, boolean=True), "bool", num.bits)
    kind = "int" if num.kind == "bool" else num.kind
    return Num(num.shape, computed(x, num, per_lane=True), kind, num.bits)


def tile_index(x: Executor, value: Num, index: Any) -> Num:
    """`tile[:, None]` and the like: only full slices, None and Ellipsis.

    Triton makes a tile of one element of a number that is given an axis, whatever full slices are beside it.
    """
    parts = index.items if isinstance(index, Seq) and index.items[:1] != (Named("slice"),) else (index,)
    if x.dialect.has_pointers and not value.shape and sum(part == Const(None) for part in parts) == 1:
        parts = tuple(part for part in parts if not _is_full_slice(part))
    shape: list[Expr] = []
    rest = list(value.shape)
    consuming = sum(1 for p in parts if isinstance(p, Seq))
    for part in parts:
        match part:
            case Const(None):
                shape.append(E.ONE)
            case Const() if part.value is ...:
                keep = len(rest) - consuming
                shape += rest[:keep]
                rest = rest[keep:]
            case Seq() if _is_full_slice(part) and rest:
                shape.append(rest.pop(0))
                consuming -= 1
            case _:
                raise UnsupportedConstruct("tile subscript")
    return arithmetic.reshape(value, (*shape, *rest), x)


def _is_full_slice(part: Any) -> bool:
    return isinstance(part, Seq) and all(isinstance(e, Const) and e.value is None for e in part.items[1:])
