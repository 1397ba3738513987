"""What cuTile's functions, attributes and methods mean to the checker.

Arithmetic on indices is exact. Everything that only computes data (reductions, matrix products,
transcendentals) gives an unknown of the right shape. A name that is not listed is unsupported: it might
touch memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.cutile import memory
from tilecheck.frontend.execute.expressions import call, operate, static_items
from tilecheck.frontend.execute.python_functions import (
    PYTHON,
    Handler,
    absolute,
    division,
    math_function,
    nothing,
    wait_for_launches,
)
from tilecheck.frontend.execute.state import Arguments, Executor
from tilecheck.frontend.execute.tiles import (
    as_tuple,
    assume_where_compiled,
    bits_of,
    cast,
    computed,
    constant,
    converted,
    data,
    grid_axis,
    is_integer,
    place,
    reduced,
    scanned,
    tile_index,
    tile_size,
    tile_sizes,
)
from tilecheck.frontend.values import arithmetic
from tilecheck.frontend.values.values import (
    Array,
    ArrayList,
    Const,
    DenseSlice,
    Method,
    Named,
    Num,
    Param,
    Poison,
    Range,
    RawMemory,
    Record,
    Seq,
    Shape,
    TiledView,
    Token,
    integer,
    lane,
)
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.kernel import CheckKind, block_symbol, grid_symbol

# ---- the grid ----------------------------------------------------------------------------------------------


def _bid(x: Executor, args: Arguments) -> Num:
    return Num((), E.sym(block_symbol(grid_axis(x, args, "bid"))), "int")


def _num_blocks(x: Executor, args: Arguments) -> Num:
    return Num((), E.sym(grid_symbol(grid_axis(x, args, "num_blocks"))), "int")


def _num_tiles(x: Executor, args: Arguments) -> Num:
    given = args.bind(("array", "axis", "shape", "order?"), "num_tiles")
    array = x.array_of(given["array"], "array of num_tiles")
    tile = tile_sizes(x, given["shape"])
    order = memory.axis_order(x, given.get("order", Const("C")), len(tile))
    memory.set_rank(x, array, len(tile))
    axis = constant(x, given["axis"], "axis") % len(tile)
    extent = memory.extent(x, array, order[axis])
    return Num((), E.cdiv(extent, tile[axis]), "int")


# ---- building tiles ----------------------------------------------------------------------------------------


def _arange(x: Executor, args: Arguments) -> Num:
    given = args.bind(("size", "*", "dtype?", "start?", "step?"), "arange")
    size = x.scalar(given["size"], "size of arange")
    tile_size(x, size)
    start = x.scalar(given.get("start", integer(0)), "start of arange")
    step = x.scalar(given.get("step", integer(1)), "step of arange")
    elem = E.add(start, E.mul(step, lane(0)))
    return cast(x, Num((size,), elem, "int", None), given.get("dtype", Named("cuda.tile.int32")))


def _filled(x: Executor, args: Arguments, value: Any) -> Num:
    names = ("shape", "fill_value", "dtype?") if value is None else ("shape", "dtype?")
    given = args.bind(names, "tile constructor")
    shape = tile_sizes(x, given["shape"])
    first = len(x.overflow.checks)
    num = x.number_of(given["fill_value"] if value is None else value, "fill value")
    dtype = given.get("dtype")
    if num.elem is None or not is_integer(dtype):
        is_bool = isinstance(dtype, Named) and dtype.name.endswith("bool_")
        if is_bool and num.elem is not None:
            return Num(shape, arithmetic.as_bool(num, x), "bool")
        return data(shape)
    value = converted(x, num, dtype.name.rsplit(".", 1)[-1]) if isinstance(dtype, Named) else None
    found = Num(shape, value, "int" if num.kind == "bool" else num.kind, bits_of(dtype))
    return arithmetic.rested(found, x, first, num)


def _astile(x: Executor, args: Arguments) -> Any:
    given = args.bind(("value", "*", "dtype?"), "astile")
    return cast(x, x.number_of(given["value"], "value of astile"), given.get("dtype"))


# ---- conversions and shapes --------------------------------------------------------------------------------


def _shape_of(x: Executor, args: Arguments, name: str) -> Num:
    match name:
        case "reshape":
            given = args.bind(("x", "shape"), name)
            num = x.number_of(given["x"], name)
            return arithmetic.reshape(num, _reshaped(x, num, given["shape"]), x)
        case "broadcast_to":
            given = args.bind(("x", "shape"), name)
            return arithmetic.broadcast(x.number_of(given["x"], name), tile_sizes(x, given["shape"]))
        case "expand_dims":
            given = args.bind(("x", "axis"), name)
            num = x.number_of(given["x"], name)
            axis = constant(x, given["axis"], "axis") % (len(num.shape) + 1)
            return arithmetic.reshape(num, (*num.shape[:axis], E.ONE, *num.shape[axis:]), x)
        case "permute":
            given = args.bind(("x", "axes"), name)
            num = x.number_of(given["x"], name)
            axes = [_tile_axis(x, a, num) for a in _axes(x, given["axes"])]
            return arithmetic.permute(num, axes, x)
        case _:
            return _transpose(x, args)


def _tile_axis(x: Executor, value: Any, num: Num) -> int:
    if not num.shape:
        raise UnsupportedConstruct("axis of a scalar")
    return constant(x, value, "axis") % len(num.shape)


def _axes(x: Executor, value: Any) -> tuple[Any, ...]:
    return static_items(x, value, "axes")


def _reshaped(x: Executor, num: Num, shape: Any) -> tuple[Expr, ...]:
    sizes = [x.scalar(s, "tile size") for s in (shape.items if isinstance(shape, Seq) else (shape,))]
    if any(s.value == -1 for s in sizes):
        total, known = E.ONE, E.ONE
        for s in num.shape:
            total = E.mul(total, s)
        for s in sizes:
            known = known if s.value == -1 else E.mul(known, s)
        sizes = [E.floordiv(total, known) if s.value == -1 else s for s in sizes]
    # The old sizes are powers of two, and so is their product, and so are the new ones, which have the same.
    return tuple(tile_size(x, s) for s in sizes)


def _transpose(x: Executor, args: Arguments) -> Num:
    given = args.bind(("x", "axis0?", "axis1?"), "transpose")
    num = x.number_of(given["x"], "transpose")
    rank = len(num.shape)
    first = constant(x, given.get("axis0", integer(rank - 2)), "axis") if "axis0" in given else max(rank - 2, 0)
    second = constant(x, given.get("axis1", integer(rank - 1)), "axis") if "axis1" in given else rank - 1
    axes = list(range(rank))
    if rank:
        axes[first % rank], axes[second % rank] = axes[second % rank], axes[first % rank]
    return arithmetic.permute(num, axes, x)


def _cat(x: Executor, args: Arguments) -> Num:
    given = args.bind(("tiles", "axis"), "cat")
    tiles = [x.number_of(t, "cat") for t in static_items(x, given["tiles"], "cat")]
    axis = _tile_axis(x, given["axis"], tiles[0])
    result = tiles[0]
    for tile in tiles[1:]:
        result = arithmetic.concatenate(result, tile, axis, x)
    return result


def _extract(x: Executor, args: Arguments) -> Num:
    given = args.bind(("x", "index", "shape"), "extract")
    num = x.number_of(given["x"], "extract")
    shape = tile_sizes(x, given["shape"])
    index = [x.scalar(i, "index of extract") for i in as_tuple(given["index"])]
    if len(index) != len(shape) or len(shape) != len(num.shape):
        raise UnsupportedConstruct("extract with another rank")
    return arithmetic.extract(num, index, shape, x)


def _insert(x: Executor, args: Arguments) -> Num:
    given = args.bind(("x", "index", "value"), "insert")
    num = x.number_of(given["x"], "insert")
    return Num(num.shape, None, "data", num.bits)


# ---- arithmetic --------------------------------------------------------------------------------------------

_OPERATORS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "bitwise_lshift": "<<",
    "bitwise_rshift": ">>",
    "minimum": "min",
    "maximum": "max",
}
_COMPARISONS = {
    "greater": ">",
    "greater_equal": ">=",
    "less": "<",
    "less_equal": "<=",
    "equal": "==",
    "not_equal": "!=",
}
_HINTS = ("rounding_mode?", "flush_to_zero?", "propagate_nan?")


def _operator(x: Executor, args: Arguments, op: str) -> Any:
    given = args.bind(("x", "y", "*", *_HINTS), "operator")
    return operate(x, op, given["x"], given["y"])


def _comparison(x: Executor, args: Arguments, op: str) -> Num:
    given = args.bind(("x", "y"), "comparison")
    return arithmetic.compare(op, x.number_of(given["x"], "operand"), x.number_of(given["y"], "operand"), x)


def _cdiv(x: Executor, args: Arguments) -> Any:
    given = args.bind(("x", "y"), "cdiv")
    a, b = x.number_of(given["x"], "cdiv"), x.number_of(given["y"], "cdiv")
    top = arithmetic.binary("-", arithmetic.binary("+", a, b, x), integer(1), x)
    return arithmetic.binary("//", top, b, x)


def _where(x: Executor, args: Arguments) -> Num:
    given = args.bind(("cond", "x", "y"), "where")
    cond, first, second = (x.number_of(given[n], "where") for n in ("cond", "x", "y"))
    return arithmetic.select(cond, first, second, x)


def _negative(x: Executor, args: Arguments) -> Num:
    return arithmetic.negative(x.number_of(args.bind(("x",), "negative")["x"], "operand"))


def _bitwise_not(x: Executor, args: Arguments) -> Num:
    num = x.number_of(args.bind(("x",), "bitwise_not")["x"], "operand")
    if num.kind == "bool":
        return arithmetic.invert(num, x)
    return arithmetic.binary("-", arithmetic.negative(num), integer(1), x)


def _elementwise(x: Executor, args: Arguments) -> Num:
    """Transcendentals and other data: only the shape is known."""
    shape: tuple[Expr, ...] = ()
    for value in args.positional:
        if isinstance(value, Named) and value.name.startswith("cuda.tile."):
            continue  # the dtype of a bitcast
        shape = arithmetic.broadcast_shapes(shape, x.number_of(value, "operand").shape)
    return data(shape)


def _unpack_from_bytes(x: Executor, args: Arguments) -> Num:
    """The bits of a tile of bytes as elements of another width: data, of which only the number is known."""
    given = args.bind(("x", "dtype"), "unpack_from_bytes")
    num = x.number_of(given["x"], "unpack_from_bytes")
    dtype = given["dtype"].name.rpartition(".")[2] if isinstance(given["dtype"], Named) else ""
    width = re.fullmatch(r"(?:b|t)?(?:float|u?int)(\d+)(?:_\w+)?", dtype)
    if width is None or len(num.shape) != 1:
        raise UnsupportedConstruct("unpack_from_bytes to this type")
    return data((E.floordiv(E.mul(num.shape[0], 8), int(width[1])),))


# ---- reductions, scans, matrix products ---------------------------------------------------------------------


def _reduce(x: Executor, args: Arguments) -> Any:
    """Reductions of data: the shape without the reduced axes."""
    names = ("x", "axis?", "func?", "identity?", "*", "keepdims?", *_HINTS)
    given = args.bind(names, "reduction")
    value = given["x"]
    tiles = [x.number_of(v, "reduction") for v in as_tuple(value)]
    _combine(x, args, given, tiles)
    results = [_reduced(x, tile, given) for tile in tiles]  # several tiles are reduced together
    return Seq(tuple(results)) if isinstance(value, Seq) else results[0]


def _combine(x: Executor, args: Arguments, given: Mapping[str, Any], tiles: list[Num]) -> None:
    """Execute the function of a reduction or scan, for what it may do: on two unknown elements of each tile."""
    if "func" not in given:
        return
    elements = [
        Num((), None if t.elem is None else computed(x, t, per_lane=True), t.kind, t.bits)
        for t in (*tiles, *tiles)
        if t.kind != "bool"
    ]
    if len(elements) != 2 * len(tiles):
        raise UnsupportedConstruct("reduction of booleans by a function")
    call(x, given["func"], Arguments(tuple(elements), (), args.node, args.table))


def _reduced(x: Executor, num: Num, given: Mapping[str, Any]) -> Num:
    return reduced(x, num, given.get("axis", Const(None)), given.get("keepdims", Const(False)))


def _scan(x: Executor, args: Arguments) -> Any:
    names = ("x", "axis?", "func?", "identity?", "*", "reverse?", *_HINTS)
    given = args.bind(names, "scan")
    value = given["x"]
    tiles = [x.number_of(v, "scan") for v in as_tuple(value)]
    _combine(x, args, given, tiles)
    results = [scanned(x, tile) for tile in tiles]
    return Seq(tuple(results)) if isinstance(value, Seq) else results[0]


def _arg_reduce(x: Executor, args: Arguments) -> Num:
    num, options = x.number_of(args.at(0), "argmax"), dict(_arg_keywords(args))
    return place(x, num, options.get("axis", Const(None)), _reduced(x, num, options).shape)


def _arg_keywords(args: Arguments) -> list[tuple[str, Any]]:
    found = [(name, value) for name, value in args.keywords if name in ("axis", "keepdims")]
    return [("axis", args.at(1)), *found] if len(args.positional) > 1 else found


def _mma(x: Executor, args: Arguments) -> Num:
    given = args.bind(("x", "y", "acc", "*", "use_fast_acc?"), "mma")
    return data(x.number_of(given["acc"], "accumulator").shape)


def _mma_scaled(x: Executor, args: Arguments) -> Num:
    given = args.bind(("x", "x_scale", "y", "y_scale", "acc"), "mma_scaled")
    return data(x.number_of(given["acc"], "accumulator").shape)


def _matmul(x: Executor, args: Arguments) -> Num:
    given = args.bind(("x", "y"), "matmul")
    a, b = x.number_of(given["x"], "operand"), x.number_of(given["y"], "operand")
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise UnsupportedConstruct("matmul of a vector")
    batch = arithmetic.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return data((*batch, a.shape[-2], b.shape[-1]))


# ---- compile time ------------------------------------------------------------------------------------------


def _same(x: Executor, args: Arguments) -> Any:
    return args.at(0)


def _opaque_constant(x: Executor, args: Arguments) -> Any:
    """A compile-time value that depends on the target: unknown, but the same in every block."""
    return Token(E.render(E.sym(Symbol(f"target value {x.number()}", Kind.CONSTANT))))


def _static_iter(x: Executor, args: Arguments) -> Any:
    value = args.bind(("iterable",), "static_iter")["iterable"]
    if isinstance(value, Range):
        return Range(value.start, value.stop, value.step, static=True)
    return value


def _assume_divisible(x: Executor, args: Arguments) -> Any:
    # An unchecked promise of the author's: not a fact to us.
    return args.bind(("x", "divisor"), "assume_divisible_by")["x"]


def _slice(x: Executor, args: Arguments) -> DenseSlice:
    given = args.bind(("start", "length"), "Slice")
    return DenseSlice(x.number_of(given["start"], "Slice"), x.scalar(given["length"], "length of Slice"))


_ELEMENTWISE = (
    "exp exp2 log log2 sqrt rsqrt sin cos tan sinh cosh tanh floor ceil isnan atan2 bitcast"
).split()

_DSL: Mapping[str, Handler] = {
    "bid": _bid,
    "num_blocks": _num_blocks,
    "num_tiles": _num_tiles,
    "arange": _arange,
    "full": lambda x, a: _filled(x, a, None),
    "zeros": lambda x, a: _filled(x, a, integer(0)),
    "ones": lambda x, a: _filled(x, a, integer(1)),
    "astile": _astile,
    "cdiv": _cdiv,
    "where": _where,
    "negative": _negative,
    "bitwise_not": _bitwise_not,
    "divmod": division,
    "abs": absolute,
    "unpack_from_bytes": _unpack_from_bytes,
    "cat": _cat,
    "extract": _extract,
    "insert": _insert,
    "mma": _mma,
    "mma_scaled": _mma_scaled,
    "matmul": _matmul,
    "argmax": _arg_reduce,
    "argmin": _arg_reduce,
    "static_iter": _static_iter,
    "static_eval": _same,
    "ensure_constant": _same,
    "static_assert": nothing,
    "assert_": nothing,
    "print": nothing,
    "printf": nothing,
    "grid_dependency_control_wait": wait_for_launches,
    "grid_dependency_control_launch_dependents": nothing,
    "assume_divisible_by": _assume_divisible,
    "Slice": _slice,
    "ByTarget": _opaque_constant,
    "load": memory.load,
    "store": memory.store,
    "gather": memory.gather,
    "scatter": memory.scatter,
    "load_advanced_indexing": memory.load_advanced,
    "store_advanced_indexing": memory.store_advanced,
}


_ACCESSES = frozenset(
    "load store gather scatter load_advanced_indexing store_advanced_indexing load_offset store_offset".split()
)
_DTYPES = ("float", "bfloat", "tfloat", "int", "uint", "bool_")


class CuTile:
    """The dialect object that the executor calls."""

    namespace = "cuda.tile"
    has_pointers = False

    def call(self, x: Executor, name: str, args: Arguments) -> Any:
        if name in PYTHON:
            return PYTHON[name](x, args)
        if name == "tilecheck.numel":  # in contracts
            array = x.array_of(args.at(0), "argument of numel")
            return Num((), memory.storage(x, array), "int", None)
        head, _, last = name.rpartition(".")
        if head == "math":
            return math_function(x, args)
        if not name.startswith("cuda.tile."):
            raise UnsupportedConstruct(f"call of `{name}`")
        if last in _DSL:
            return _DSL[last](x, args)
        if last.startswith(_DTYPES):
            return cast(x, x.number_of(args.bind(("value",), last)["value"], last), Named(name))
        if last in _OPERATORS and not (last in ("minimum", "maximum") and len(args.positional) == 1):
            return _operator(x, args, _OPERATORS[last])
        if last in _COMPARISONS:
            return _comparison(x, args, _COMPARISONS[last])
        if last in ("sum", "max", "min", "prod", "reduce"):
            return _reduce(x, args)
        if last in ("cumsum", "cumprod", "scan"):
            return _scan(x, args)
        if last in ("reshape", "broadcast_to", "expand_dims", "permute", "transpose"):
            return _shape_of(x, args, last)
        if last == "astype":
            given = args.bind(("x", "dtype", "*", *_HINTS), "astype")
            return cast(x, x.number_of(given["x"], "astype"), given["dtype"])
        if last in _ELEMENTWISE:
            return _elementwise(x, args)
        if last.startswith("atomic_"):
            return memory.atomic(x, last.removeprefix("atomic_"), args)
        raise UnsupportedConstruct(f"call of `ct.{last}`")

    def is_access(self, name: str) -> bool:
        last = name.rpartition(".")[2]
        return last in _ACCESSES or last.startswith("atomic_")

    def assigned(self, value: Any) -> Any:
        return value

    def method(self, x: Executor, value: Any, name: str, args: Arguments) -> Any:
        match value:
            case Param() | ArrayList() if name == "<unpack>":
                return _unpack(x, value.name, x.scalar(args.at(0), "length").value or 0)
            case Array() | Param():
                return memory.array_method(x, x.array_of(value, f"object of `.{name}`"), name, args)
            case TiledView():
                return memory.view_method(x, value, name, args)
            case RawMemory():
                return memory.raw_method(x, value, name, args)
            case Shape() if name == "<unpack>":
                length = x.scalar(args.at(0), "length").value
                return memory.shape_items(x, value, length or 0)
            case Num():
                return self._tile_method(x, value, name, args)
            case _:
                raise UnsupportedConstruct(f"method `.{name}`")

    def _tile_method(self, x: Executor, value: Num, name: str, args: Arguments) -> Any:
        if name == "item":
            return arithmetic.first_element(value, x)
        if name in ("reshape", "permute", "transpose", "extract", "insert", "astype"):
            if name in ("reshape", "permute") and len(args.positional) > 1:
                args = Arguments((Seq(args.positional),), args.keywords, args.node, args.table)
            forwarded = Arguments((value, *args.positional), args.keywords, args.node, args.table)
            return call(x, Named(f"cuda.tile.{name}"), forwarded)
        raise UnsupportedConstruct(f"tile method `.{name}`")

    def attribute(self, x: Executor, value: Any, name: str) -> Any:
        match value:
            case Array() | Param() if name in ("shape", "strides", "dtype", "ndim"):
                return _array_attribute(x, x.array_of(value, f"object of `.{name}`"), name)
            case TiledView() if name in ("tile_shape", "traversal_steps", "dtype"):
                if name == "dtype":
                    return Token(f"{value.array.name}.dtype")
                sizes = value.tile if name == "tile_shape" else value.steps
                return Seq(tuple(Num((), s, "int", None) for s in sizes))
            case Num() if name == "shape":
                return Seq(tuple(Num((), s, "int", None) for s in value.shape))
            case Num() if name == "ndim":
                return integer(len(value.shape))
            case Num() if name == "dtype":
                return Token(f"dtype of tile {x.number()}")  # two tiles may differ in it
            case RawMemory() if name == "dtype":
                return Token(f"{value.array.name}.dtype")
            case DenseSlice() | Record():
                raise UnsupportedConstruct(f"attribute `.{name}`")
            case _:
                return Method(value, name)

    def subscript(self, x: Executor, value: Any, index: Any) -> Any:
        match value:
            case Shape():
                return memory.shape_item(x, value, index)
            case Param() | ArrayList():
                return _member(x, value.name, index)
            case Num():
                return tile_index(x, value, index)
            case Token():
                return value
            case _:
                raise UnsupportedConstruct("subscript of this value")

    def quotient(self, x: Executor, op: str, dividend: Expr, divisor: Expr) -> Expr:
        """Floor division, as Python's."""
        return E.floordiv(dividend, divisor) if op == "//" else E.mod(dividend, divisor)

    def lost(self, x: Executor, function: Poison, args: Arguments) -> Any:
        raise UnsupportedConstruct(function.why)

    def offset(self, x: Executor, op: str, a: Any, b: Any) -> Any:
        raise UnsupportedConstruct("arithmetic on a pointer")

    def param(self, x: Executor, name: str) -> Num:
        """An untyped parameter used as a number."""
        x.used.add(name)
        kind = Kind.CONSTANT if name in x.constants else Kind.SCALAR
        bits = None if kind is Kind.CONSTANT else 32
        return Num((), E.sym(Symbol(name, kind, origin="untyped")), "any", bits)


def _array_attribute(x: Executor, array: Array, name: str) -> Any:
    match name:
        case "shape" | "strides":
            return Shape(array, strides=name == "strides")
        case "dtype":
            return Token(f"{array.name}.dtype")
        case _:
            rank = x.knows("ranks", array.name)
            if rank is None:
                return Num((), E.sym(Symbol(f"{array.name}.ndim", Kind.CONSTANT)), "int", None)
            return integer(rank)


def _member(x: Executor, name: str, index: Any) -> Array:
    x.lists.add(name)
    x.used.add(name)
    position = x.scalar(index, "list index")
    length = E.sym(Symbol(f"len({name})", Kind.EXTENT))
    x.check(CheckKind.MEMBER, E.all_of(E.le(0, position), E.lt(position, length)), E.render(position))
    return Array(name, member=position)


def _unpack(x: Executor, name: str, length: int) -> Seq:
    """`a, b = pair`: a list of just that many arrays, or the compiler rejects the kernel."""
    x.lists.add(name)
    x.used.add(name)
    assume_where_compiled(x, E.eq(E.sym(Symbol(f"len({name})", Kind.EXTENT)), length))
    return Seq(tuple(Array(name, member=E.const(i)) for i in range(length)))
