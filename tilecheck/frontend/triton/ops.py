"""What Triton's functions, attributes and methods mean to the checker.

Arithmetic on indices is exact. Everything that only computes data gives an unknown of the right shape. A name
that is not listed is unsupported: it might touch memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.dataflow.load_sources import UNARY, by_extreme, by_fma, by_function
from tilecheck.frontend.dataflow.operations import way_of
from tilecheck.frontend.execute.accesses import Order
from tilecheck.frontend.execute.expressions import call, operate, static_items
from tilecheck.frontend.execute.python_functions import (
    PYTHON,
    Handler,
    absolute,
    math_function,
    nothing,
    wait_for_launches,
)
from tilecheck.frontend.execute.state import Arguments, Executor
from tilecheck.frontend.execute.tiles import (
    as_tuple,
    assume_where_compiled,
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
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.triton import dtypes, extrema, memory, pointers, scans
from tilecheck.frontend.triton.typed_zeros import typed_zero
from tilecheck.frontend.values import arithmetic, float_ranges, signs
from tilecheck.frontend.values.values import (
    BlockPointer,
    Choice,
    Const,
    Made,
    Method,
    Named,
    Num,
    Param,
    Pointer,
    Poison,
    Range,
    Seq,
    Token,
    integer,
    lane,
)
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.kernel import Barrier, CheckKind, Effect, block_symbol, grid_symbol


def _first(x: Executor, args: Arguments, what: str) -> Num:
    """The operand of a function whose other arguments are options that change no shape."""
    for value in (*args.positional[:1], *(v for k, v in args.keywords if k in ("input", "x", "tensor"))):
        return x.number_of(value, what)
    raise UnsupportedConstruct(f"{what} without an operand")


# ---- the grid ----------------------------------------------------------------------------------------------


def _program_id(x: Executor, args: Arguments) -> Num:
    axis = grid_axis(x, args, "program_id")
    return Num((), E.sym(block_symbol(axis)), "int", way=(1, "program", axis))


def _num_programs(x: Executor, args: Arguments) -> Num:
    axis = grid_axis(x, args, "num_programs")
    return Num((), E.sym(grid_symbol(axis)), "int", way=(1, "programs", axis))


# ---- building tiles ----------------------------------------------------------------------------------------


def _arange(x: Executor, args: Arguments) -> Num:
    given = args.bind(("start", "end"), "arange")
    start, end = x.scalar(given["start"], "start of arange"), x.scalar(given["end"], "end of arange")
    size = tile_size(x, E.sub(end, start))
    place = E.ZERO if size is E.ONE else lane(0)
    return Num((size,), E.add(start, place), "int", 32, way=(1, "arange", start, end))


def _full(x: Executor, args: Arguments) -> Num:
    given = args.bind(("shape", "value", "dtype?"), "full")
    return _filled(x, tile_sizes(x, given["shape"]), given["value"], given.get("dtype"))


def _zeros(x: Executor, args: Arguments) -> Num:
    given = args.bind(("shape", "dtype?"), "zeros")
    shape, dtype = tile_sizes(x, given["shape"]), given.get("dtype")
    return typed_zero(x, shape, dtype) or _filled(x, shape, integer(0), dtype)


def _like(x: Executor, args: Arguments) -> Num:
    num = _first(x, args, "zeros_like")
    zero = E.FALSE if num.kind == "bool" else E.ZERO
    return data(num.shape) if num.kind == "data" else Num(num.shape, zero, num.kind, num.bits)


def _filled(x: Executor, shape: tuple[Expr, ...], value: Any, dtype: Any) -> Num:
    if not isinstance(value, Num | Param) and not (isinstance(value, Const) and isinstance(value.value, float)):
        return data(shape)  # a compile-time value of which the text says nothing
    num = _to(x, x.number_of(value, "fill value"), dtype)
    return Num(shape, num.elem, num.kind, num.bits, rests=num.rests)


# ---- conversions -------------------------------------------------------------------------------------------


def _to(x: Executor, num: Num, dtype: Any) -> Num:
    if isinstance(dtype, Named) and dtype.name.endswith(".int1"):
        return Num(num.shape, arithmetic.as_bool(num, x), "bool")
    if isinstance(dtype, Named) and num.kind == "bool" and num.elem is not None and is_integer(dtype):
        return Num(num.shape, converted(x, num, _last(dtype.name)), "int", 64 if "64" in dtype.name else 32)
    return cast(x, num, dtype)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _cast(x: Executor, args: Arguments) -> Any:
    given = args.bind(("input", "dtype", "fp_downcast_rounding?", "bitcast?"), "cast")
    value, bitcast = given["input"], given.get("bitcast", Const(False))
    if isinstance(value, Pointer):
        raise UnsupportedConstruct("cast of a pointer")
    num = x.number_of(value, "cast")
    return _to(x, num, given["dtype"]) if x.truth(bitcast) is E.FALSE else data(num.shape)


# ---- shapes ------------------------------------------------------------------------------------------------


def _rest(args: Arguments, count: int = 1) -> Any:
    """The arguments after the operand, given one by one or as one tuple."""
    values = args.positional[count:]
    return values[0] if len(values) == 1 and isinstance(values[0], Seq) else Seq(tuple(values))


def _keyword(args: Arguments, *names: str) -> Any:
    return next((value for name, value in args.keywords if name in names), None)


def _reshape(x: Executor, args: Arguments) -> Num:
    shape = _keyword(args, "shape") or _rest(args)
    return _reshaped(x, _first(x, args, "reshape"), tile_sizes(x, shape), _keyword(args, "can_reorder"))


def _view(x: Executor, args: Arguments) -> Num:
    return _reordered(x, _first(x, args, "view"), tile_sizes(x, _keyword(args, "shape") or _rest(args)))


def _reshaped(x: Executor, num: Num, shape: tuple[Expr, ...], can_reorder: Any) -> Num:
    keeps = can_reorder is None or x.truth(can_reorder) is E.FALSE
    return arithmetic.reshape(num, shape, x) if keeps else _reordered(x, num, shape)


def _reordered(x: Executor, num: Num, shape: tuple[Expr, ...]) -> Num:
    """A reshape whose order is the compiler's choice."""
    if num.elem is None or all(s.kind is Kind.CONSTANT for s in E.symbols(num.elem)):
        return arithmetic.reshape(num, shape, x)
    if num.kind == "bool":
        return Num(shape, x.fresh("data", per_lane=True, boolean=True), "bool")
    return Num(shape, computed(x, num, per_lane=True), num.kind, num.bits)


def _expand_dims(x: Executor, args: Arguments) -> Any:
    axis = _keyword(args, "axis") or args.at(1)
    value = args.at(0) if args.positional else _keyword(args, "input")
    result = x.number_of(value, "expand_dims")
    axes = as_tuple(axis)
    for k in sorted(constant(x, item, "axis") % (len(result.shape) + len(axes)) for item in axes):
        result = arithmetic.reshape(result, (*result.shape[:k], E.ONE, *result.shape[k:]), x)
    return result


def _unsqueeze(x: Executor, args: Arguments) -> Num:
    given = args.bind(("x", "dim"), "unsqueeze")
    num = x.number_of(given["x"], "unsqueeze")
    k = constant(x, given["dim"], "axis") % (len(num.shape) + 1)
    return arithmetic.reshape(num, (*num.shape[:k], E.ONE, *num.shape[k:]), x)


def _squeeze(x: Executor, args: Arguments) -> Num:
    given = args.bind(("x", "dim"), "squeeze")
    num = x.number_of(given["x"], "squeeze")
    k = constant(x, given["dim"], "axis") % max(1, len(num.shape))
    if num.shape[k : k + 1] != (E.ONE,):
        raise UnsupportedConstruct("squeeze of an axis that is not known to have one element")
    return arithmetic.reshape(num, (*num.shape[:k], *num.shape[k + 1 :]), x)


def _broadcast_to(x: Executor, args: Arguments) -> Any:
    shape = tile_sizes(x, _keyword(args, "shape") or _rest(args))
    value = args.at(0) if args.positional else _keyword(args, "input")
    if isinstance(value, Pointer):
        return Pointer(value.array, arithmetic.broadcast_to(value.offset, shape))
    return arithmetic.broadcast_to(x.number_of(value, "broadcast_to"), shape)


def _broadcast(x: Executor, args: Arguments) -> Seq:
    given = args.bind(("input", "other"), "broadcast")
    a, b = x.number_of(given["input"], "broadcast"), x.number_of(given["other"], "broadcast")
    shape = arithmetic.broadcast_shapes(a.shape, b.shape)
    return Seq((arithmetic.broadcast(a, shape), arithmetic.broadcast(b, shape)))


def _permute(x: Executor, args: Arguments) -> Num:
    num = _first(x, args, "permute")
    order = _keyword(args, "dims") or _rest(args)
    axes = [constant(x, a, "axis") % max(1, len(num.shape)) for a in as_tuple(order)]
    if not axes:  # `trans` without an order swaps the last two axes
        axes = [*range(len(num.shape) - 2), len(num.shape) - 1, len(num.shape) - 2]
    if sorted(axes) != list(range(len(num.shape))):
        raise UnsupportedConstruct("permute by something that is no permutation")
    return arithmetic.permute(num, axes, x)


def _ravel(x: Executor, args: Arguments) -> Num:
    num = _first(x, args, "ravel")
    allowed = _keyword(args, "can_reorder") or next(iter(args.positional[1:]), None)
    return _reshaped(x, num, (E.mul(E.ONE, *num.shape),), allowed)


def _join(x: Executor, args: Arguments) -> Num:
    given = args.bind(("a", "b"), "join")
    a, b = x.number_of(given["a"], "join"), x.number_of(given["b"], "join")
    return data((*arithmetic.broadcast_shapes(a.shape, b.shape), E.const(2)))


def _split(x: Executor, args: Arguments) -> Seq:
    num = _first(x, args, "split")
    if not num.shape:
        raise UnsupportedConstruct("split of a number")
    half = data(num.shape[:-1])
    return Seq((half, half))


def _interleave(x: Executor, args: Arguments) -> Num:
    joined = _join(x, args)
    return data((*joined.shape[:-2], E.mul(2, joined.shape[-2])) if len(joined.shape) > 1 else (E.const(2),))


def _cat(x: Executor, args: Arguments) -> Num:
    given = args.bind(("input", "other", "can_reorder?", "dim?"), "cat")
    a, b = x.number_of(given["input"], "cat"), x.number_of(given["other"], "cat")
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise UnsupportedConstruct("cat of tiles of several axes")
    return data((E.add(a.shape[0], b.shape[0]),))  # the compiler may reorder the elements


# ---- arithmetic --------------------------------------------------------------------------------------------


def _extreme(x: Executor, args: Arguments, op: str) -> Any:
    given = args.bind(("x", "y", "propagate_nan?"), op)
    result = _with_nan(operate(x, op, given["x"], given["y"]), given)
    for value, other in ((given["x"], given["y"]), (given["y"], given["x"])):
        if not isinstance(value, Num) or not isinstance(result, Num):
            continue
        if _is_finite(other):
            return replace(result, made=by_extreme(value, None, result.kind))
        if isinstance(other, Num) and other.is_scalar:
            result = replace(result, made=result.made | by_extreme(value, other, result.kind))
    return result


def _is_finite(value: Any) -> bool:
    """Whether a value is a finite literal."""
    if isinstance(value, Num):
        return value.elem is not None and value.elem.value is not None
    return isinstance(value, Const) and isinstance(value.value, float) and math.isfinite(value.value)


def _clamp(x: Executor, args: Arguments) -> Any:
    given = args.bind(("x", "min", "max", "propagate_nan?"), "clamp")
    found = _with_nan(operate(x, "min", operate(x, "max", given["x"], given["min"]), given["max"]), given)
    if not isinstance(found, Num) or found.elem is not None or found.span is None:
        return found
    other = operate(x, "max", operate(x, "min", given["x"], given["max"]), given["min"])
    # Where the ends are the wrong way round, either may be taken last.
    return replace(found, span=float_ranges.by_choice(found, other, found.shape, x))


def _with_nan(result: Any, given: Mapping[str, Any]) -> Any:
    """What may be no number, if it is asked for: where that is of 64 bits, it may become a negative integer."""
    if isinstance(result, Num) and "propagate_nan" in given:
        return replace(result, natural=E.FALSE, span=None)
    return result


def _cdiv(x: Executor, args: Arguments) -> Any:
    given = args.bind(("x", "div"), "cdiv")
    top = operate(x, "-", operate(x, "+", given["x"], given["div"]), integer(1))
    return operate(x, "//", top, given["div"])


def _where(x: Executor, args: Arguments) -> Any:
    given = args.bind(("condition", "x", "y"), "where")
    a, b = given["x"], given["y"]
    cond = x.number_of(given["condition"], "where")
    if isinstance(a, Pointer) or isinstance(b, Pointer):
        if not (isinstance(a, Pointer) and isinstance(b, Pointer)):
            raise UnsupportedConstruct("where between a pointer and a number")
        if a.array != b.array and (cond.shape or a.offset.shape != b.offset.shape):
            raise UnsupportedConstruct("tile of pointers into two parameters")
        if a.array != b.array:
            return Choice(x.truth(cond), a, b)
        return Pointer(a.array, arithmetic.select(cond, a.offset, b.offset, x))
    return arithmetic.select(cond, x.number_of(a, "where"), x.number_of(b, "where"), x)


def _operator(x: Executor, args: Arguments, op: str) -> Any:
    given = args.bind(("x", "y", "sanitize_overflow?"), "operator")
    return operate(x, op, given["x"], given["y"])


def _elementwise(x: Executor, args: Arguments) -> Num:
    """Functions of data: only the shape is known."""
    shape: tuple[Expr, ...] = ()
    for value in (*args.positional, *(v for _, v in args.keywords)):
        if isinstance(value, Num | Param):
            shape = arithmetic.broadcast_shapes(shape, x.number_of(value, "operand").shape)
    x.widened(shape, *(v for v in (*args.positional, *(v for _, v in args.keywords)) if isinstance(v, Num)))
    return data(shape)


def _function(x: Executor, name: str, args: Arguments) -> Num:
    """A function of data, by its name."""
    result = _elementwise(x, args)
    if name in ("fma", "fmaf") and all(isinstance(value, Num) for value in args.positional):
        return replace(result, made=by_fma(args.positional))
    if name in signs.KEEPING and len(args.positional) == 1 and isinstance(args.at(0), Num):
        rounded = args.at(0)
        natural, single = signs.natural(rounded, x), signs.is_of_32_bits(rounded, x)
        span = float_ranges.kept(rounded.span) if name in float_ranges.KEEPING else None
        result = replace(result, natural=natural, single=single, wholes=signs.wholes(rounded), span=span)
    if name not in UNARY or len(args.positional) != 1 or args.keywords or not isinstance(args.at(0), Num):
        return result
    return replace(result, made=by_function(args.at(0)))


def _dot(x: Executor, args: Arguments) -> Num:
    a = x.number_of(args.at(0) if args.positional else _keyword(args, "input"), "operand")
    b = x.number_of(args.at(1) if len(args.positional) > 1 else _keyword(args, "other"), "operand")
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise UnsupportedConstruct("dot of a vector")
    return data((*a.shape[:-1], b.shape[-1]))


def _dot_scaled(x: Executor, args: Arguments) -> Num:
    a, b = x.number_of(args.at(0), "operand"), x.number_of(args.at(3), "operand")
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise UnsupportedConstruct("dot of a vector")
    return data((*a.shape[:-1], b.shape[-1]))


# Instructions that touch memory or order it, in the text of inline assembly. PTX writes addresses in brackets;
# AMD's instructions have names such as these, but for arithmetic.
_TOUCHES_MEMORY = re.compile(
    r"\[|\b(s|ds|flat|global|scratch|buffer|tbuffer|image)_\w|"
    r"\b(ld|ldu|st|atom|red|cp|mbarrier|bar|barrier|fence|membar|prefetch|tcgen05|wgmma|ldmatrix|stmatrix|multimem|"
    r"griddepcontrol|call|tex|suld|sust|sured)\b"
)


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OF_LAUNCHES = {"griddepcontrol.wait": wait_for_launches, "griddepcontrol.launch_dependents": nothing}


def _inline_assembly(x: Executor, args: Arguments) -> Any:
    """`tl.inline_asm_elementwise`: where it is declared pure and is given no pointer, a function of data. What
    `gdc_wait` and `gdc_launch_dependents` are made of is read as these are."""
    given = args.bind(("asm", "constraints", "args", "dtype", "is_pure", "pack"), "inline assembly")
    text = given["asm"].value if isinstance(given["asm"], Const) else None
    operands = static_items(x, given["args"], "operands")
    lines = _COMMENT.sub("", text).split(";") if isinstance(text, str) else []
    orders = [line.strip() for line in lines if line.strip()]
    if orders and _OF_LAUNCHES.keys() >= set(orders) and x.truth(given["is_pure"]) is E.FALSE and not operands:
        for order in orders:
            _OF_LAUNCHES[order](x, args)
        return _to(x, data(()), given["dtype"])
    known = isinstance(text, str) and _TOUCHES_MEMORY.search(text) is None
    if not known or x.truth(given["is_pure"]) is not E.TRUE:
        raise UnsupportedConstruct("inline assembly that may touch memory")
    shape: tuple[Expr, ...] = ()
    for operand in operands:
        shape = arithmetic.broadcast_shapes(shape, x.number_of(operand, "operand of inline assembly").shape)
    x.widened(shape, *(operand for operand in operands if isinstance(operand, Num)))
    results = tuple(_to(x, data(shape), dtype) for dtype in as_tuple(given["dtype"]))
    return Seq(results) if isinstance(given["dtype"], Seq) else results[0]


def _philox(x: Executor, args: Arguments) -> Seq:
    tile = _elementwise(x, args)
    return Seq((tile,) * 4)


def _swizzle(x: Executor, args: Arguments) -> Seq:
    """`tl.swizzle2d(i, j, size_i, size_j, size_g)`: column-major within groups of `size_g` rows."""
    given = args.bind(("i", "j", "size_i", "size_j", "size_g"), "swizzle2d")
    i, j, rows, columns, group = (given[n] for n in ("i", "j", "size_i", "size_j", "size_g"))
    place = operate(x, "+", operate(x, "*", i, columns), j)
    in_group = operate(x, "*", group, columns)
    number = operate(x, "//", place, in_group)
    start = operate(x, "*", number, group)
    height = operate(x, "min", operate(x, "-", rows, start), group)
    place = operate(x, "%", place, in_group)
    return Seq((operate(x, "+", start, operate(x, "%", place, height)), operate(x, "//", place, height)))


# ---- reductions and scans ----------------------------------------------------------------------------------


def _reduce(x: Executor, args: Arguments) -> Any:
    names = ("input", "axis?", "return_indices?", "return_indices_tie_break_left?", "keep_dims?", "dtype?")
    given = args.bind(names, "reduction")
    num = x.number_of(given["input"], "reduction")
    some = reduced(x, num, given.get("axis", Const(None)), given.get("keep_dims", Const(False)))
    values = extrema.between(x, num, some)
    if x.truth(given.get("return_indices", Const(False))) is E.FALSE:
        return values
    return Seq((values, place(x, num, given.get("axis", Const(None)), values.shape)))


def _sum(x: Executor, args: Arguments) -> Any:
    given = args.bind(("input", "axis?", "keep_dims?", "dtype?"), "sum")
    num = x.number_of(given["input"], "sum")
    return reduced(x, num, given.get("axis", Const(None)), given.get("keep_dims", Const(False)))


def _bitwise(x: Executor, args: Arguments) -> Num:
    """`tl.xor_sum`, `tl.reduce_or`: unlike sums, they leave single bits what they are."""
    given = args.bind(("input", "axis?", "keep_dims?"), "reduction")
    num = x.number_of(given["input"], "reduction")
    keep = given.get("keep_dims", Const(False))
    return reduced(x, num, given.get("axis", Const(None)), keep, widens=False)


def _arg_reduce(x: Executor, args: Arguments) -> Num:
    given = args.bind(("input", "axis?", "tie_break_left?", "keep_dims?"), "argmax")
    num = x.number_of(given["input"], "argmax")
    axis = given.get("axis", Const(None))
    return place(x, num, axis, reduced(x, num, axis, given.get("keep_dims", Const(False))).shape)


def _reduction(x: Executor, name: str, args: Arguments) -> Any:
    """A sum, minimum or maximum: an exchange whose result needs all elements."""
    result = _sum(x, args) if name == "sum" else _reduce(x, args)
    first = result.items[0] if isinstance(result, Seq) else result
    whole = all(s is E.ONE for s in first.shape)
    given = [*args.positional[:1], *(v for n, v in args.keywords if n == "input")]
    tiles = [v for v in given if isinstance(v, Num) and len(v.shape) == 1 and whole]
    loads = frozenset[int]().union(*(tile.made.loads for tile in tiles))
    exchanged = x.exchanged(*given, whole=whole, loads=loads, shape=tiles[0].shape if tiles else ())
    parts = [part for value in given for part in as_tuple(value) if isinstance(part, Num)]
    typed, real = (all(getattr(p.made, name) for p in parts) for name in ("typed", "real"))
    made = Made(exchanges=exchanged if whole else frozenset(), closed=whole, typed=typed, real=real)
    if isinstance(result, Seq):
        return Seq((replace(first, made=made), *result.items[1:]))
    return replace(first, made=made)


def _scan(x: Executor, args: Arguments) -> Num:
    """A scan, or another order of the elements: of integers, some integers."""
    return scanned(x, _first(x, args, "scan"), widens=False)


def _topk(x: Executor, args: Arguments) -> Num:
    """The largest elements along the last axis, the only one that Triton takes: of integers, some integers."""
    given = args.bind(("x", "k", "dim?"), "topk")
    num, sizes = x.number_of(given["x"], "topk"), tile_sizes(x, given["k"])
    if not num.shape or len(sizes) != 1:
        raise UnsupportedConstruct("topk of a number")
    return replace(scanned(x, num, widens=False), shape=(*num.shape[:-1], *sizes))


def _histogram(x: Executor, args: Arguments) -> Num:
    given = args.bind(("input", "num_bins", "mask?"), "histogram")
    sizes = tile_sizes(x, given["num_bins"])
    if len(sizes) != 1:
        raise UnsupportedConstruct("histogram")
    return Num(sizes, x.fresh("data", per_lane=True), "int", 32)


def _gather(x: Executor, args: Arguments) -> Num:
    given = args.bind(("src", "index", "axis"), "gather")
    source, index = x.number_of(given["src"], "gather"), x.number_of(given["index"], "gather")
    return replace(scanned(x, source, widens=False), shape=index.shape)


# ---- loops and compile time ----------------------------------------------------------------------------------


_PLAIN_OPTIONS = 7  # arguments of `tl.range` before `warp_specialize`


def _range(x: Executor, args: Arguments) -> Range:
    split = _keyword(args, "warp_specialize")
    if split is not None and (isinstance(split, Param) or x.truth(split) is not E.FALSE):
        x.splits_warps = True
    x.splits_warps |= len(args.positional) > _PLAIN_OPTIONS
    options = ("num_stages", "loop_unroll_factor", "disallow_acc_multi_buffer", "flatten", "warp_specialize",
               "disable_licm")  # fmt: skip
    given = Arguments(args.positional[:3], (), args.node, args.table)
    named = {k: v for k, v in args.keywords if k not in options}
    if named.keys() <= {"step"} and named and len(args.positional) < 3:
        start = (integer(0),) if len(args.positional) == 1 else ()
        given = Arguments((*start, *args.positional, named["step"]), (), args.node, args.table)
    elif named:
        raise UnsupportedConstruct("range with these arguments")
    return PYTHON["range"](x, given)  # type: ignore[no-any-return]


def _static_range(x: Executor, args: Arguments) -> Range:
    found = _range(x, args)
    return Range(found.start, found.stop, found.step, static=True)


def _same(x: Executor, args: Arguments) -> Any:
    values = (*args.positional, *(v for _, v in args.keywords))
    if not values:
        raise UnsupportedConstruct("call without an argument")
    return values[0]


def _number(x: Executor, args: Arguments) -> Any:
    num = _first(x, args, "conversion")
    return Num(num.shape, arithmetic.as_int(num, x), "any" if num.kind == "any" else "int", num.bits)


def _static_assert(x: Executor, args: Arguments) -> Const:
    """A kernel whose static assertion fails does not compile, so it holds wherever this code is compiled."""
    cond = x.truth(args.at(0))
    if all(s.kind is Kind.CONSTANT for s in E.symbols(cond)):
        assume_where_compiled(x, cond)
    return Const(None)


def _barrier(x: Executor, args: Arguments) -> Const:
    if not x.dry:
        x.barriers.append(Barrier(x.guard, x.number(), tuple(k for k, _ in x.nest)))
    return Const(None)


def _ask(x: Executor, args: Arguments) -> Token:
    """A compile-time question about the target or the values: the same answer in every block."""
    return Token(f"compile-time answer {x.number()}")


def _next_power_of_two(x: Executor, args: Arguments) -> Num | Token:
    """`triton.next_power_of_2(n)` of a number of compile time: from n to 2 * n - 1, and 0 for n < 1.

    It is a constant with a name of its own, one wherever it is asked of the same n; conditions may hold it.
    That it is a power of two counts where it is a tile size.
    """
    value = x.number_of(args.bind(("n",), "next_power_of_2")["n"], "next_power_of_2")
    if value.shape or value.elem is None or any(s.kind is not Kind.CONSTANT for s in E.symbols(value.elem)):
        return _ask(x, args)
    n = arithmetic.as_int(value, x)
    if n.value is not None:
        return integer(1 << (n.value - 1).bit_length() if n.value > 0 else 0)
    x.use_as_integer(n)
    power = E.sym(Symbol(f"next_power_of_2({E.render(n)})", Kind.CONSTANT))
    bounded = E.all_of(E.le(n, power), E.lt(power, E.mul(2, n)))
    x.facts[E.any_of(E.lt(n, 1), bounded)] = None
    x.facts[E.any_of(E.le(1, n), E.eq(power, 0))] = None
    return Num((), power, "int", None)


def _descriptor_load(x: Executor, args: Arguments) -> Num:
    block, offsets = args.at(0), args.at(1)
    return memory.descriptor_access(x, _descriptor(block), offsets, Effect.READ)


def _descriptor_store(x: Executor, args: Arguments) -> Const:
    """`store_tensor_descriptor(desc, offsets, value)`; the experimental form takes the value first."""
    lists = [v for v in args.positional[1:] if isinstance(v, Seq)]
    if len(lists) != 1:
        raise UnsupportedConstruct("descriptor store without a list of offsets")
    memory.descriptor_access(x, _descriptor(args.at(0)), lists[0], Effect.WRITE)
    return Const(None)


def _descriptor(value: Any) -> BlockPointer:
    if not isinstance(value, BlockPointer) or not value.descriptor:
        raise UnsupportedConstruct("tensor descriptor that the host made")
    return value


def _advance(x: Executor, args: Arguments) -> BlockPointer:
    given = args.bind(("base", "offsets"), "advance")
    if not isinstance(given["base"], BlockPointer):
        raise UnsupportedConstruct("advance of something that is no block pointer")
    return memory.advance(x, given["base"], given["offsets"])


_ELEMENTWISE = frozenset(
    "exp exp2 log log2 sqrt sqrt_rn rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh "
    "floor ceil erf erfc erfinv fma div_rn fdiv fast_expf fast_dividef fast_exp2f fast_logf fast_powf "
    "fast_sinf fast_cosf fast_tanf sigmoid softmax umulhi rand randn randint pow expm1 log1p "
    "log10 isnan isinf isnand isinfd finitef isfinited atan2 nearbyint rint round trunc lgamma tgamma "
    "hypot cbrt copysign fmod ldexp llrint signbit rcp_rn mul_rn add_rn sub_rn fabs div_rz div_rd "
    "div_ru mul24 brev clz ffs popc byte_perm float_as_int int_as_float float2int_rn float2int_rz j0 j1 "
    "y0 y1 cyl_bessel_i0 cyl_bessel_i1 remainder exp10 normcdf normcdfinv erfcx erfcinv xor_sum "
    "bitwise_count relu gelu silu tanhshrink nextafter fdim scalbn ilogb logb sincos rsqrt_rn fmaf "
    "uint_to_uniform_float".split()
)
# Operations after which a thread holds what other threads loaded.
_EXCHANGES = frozenset(
    "reshape view expand_dims broadcast_to broadcast permute trans ravel join split interleave cat dot "
    "dot_scaled max min sum xor_sum reduce_or argmax argmin cumprod flip sort topk histogram "
    "gather".split()
)
# Those and others after which a tile of several axes, or what is left of it, may lie in threads in its own way.
_FOLDS = (_EXCHANGES - {"expand_dims", "broadcast_to", "broadcast"}) | frozenset(
    "reduce associative_scan cumsum reduce_or topk bitonic_merge matmul xor_sum argmax argmin".split()
)
# Those that leave elements in other threads than loads and stores have them, and hints by which the compiler
# knows more of a number than how it is computed.
_UNEVEN = (_FOLDS - {"reduce", "max", "min", "sum", "xor_sum", "reduce_or", "argmax", "argmin"}) | frozenset(
    "multiple_of max_contiguous max_constancy inline_asm_elementwise".split()
)
# What the compiler or Python answers, once for a launch.
_QUESTIONS = frozenset("constexpr_function get_num_sms num_threads num_warps get_int_dtype dtype _log2".split())
_OPERATORS = {"add": "+", "sub": "-", "mul": "*"}
_OF_MACHINE_NUMBERS = frozenset({"minimum", "maximum", "clamp", "where", "abs"})  # whatever they are given

_DSL: Mapping[str, Handler] = {
    "program_id": _program_id,
    "num_programs": _num_programs,
    "arange": _arange,
    "full": _full,
    "zeros": _zeros,
    "zeros_like": _like,
    "cast": _cast,
    "to": _cast,
    "reshape": _reshape,
    "view": _view,
    "expand_dims": _expand_dims,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "broadcast_to": _broadcast_to,
    "broadcast": _broadcast,
    "permute": _permute,
    "trans": _permute,
    "ravel": _ravel,
    "join": _join,
    "split": _split,
    "interleave": _interleave,
    "cat": _cat,
    "minimum": lambda x, a: _extreme(x, a, "min"),
    "maximum": lambda x, a: _extreme(x, a, "max"),
    "clamp": _clamp,
    "cdiv": _cdiv,
    "next_power_of_2": _next_power_of_two,
    "where": _where,
    "abs": absolute,
    "dot": _dot,
    "dot_scaled": _dot_scaled,
    "philox": _philox,
    "philox_impl": _philox,
    "randint4x": _philox,
    "rand4x": _philox,
    "randn4x": _philox,
    "swizzle2d": _swizzle,
    "inline_asm_elementwise": _inline_assembly,
    "max": _reduce,
    "min": _reduce,
    "sum": _sum,
    "xor_sum": _bitwise,
    "reduce_or": _bitwise,
    "argmax": _arg_reduce,
    "argmin": _arg_reduce,
    "reduce": scans.reduce_by,
    "associative_scan": scans.scan_by,
    "cumsum": scans.running_sum,
    "cumprod": _scan,
    "flip": _scan,
    "sort": _scan,
    "bitonic_merge": _scan,
    "topk": _topk,
    "histogram": _histogram,
    "gather": _gather,
    "range": _range,
    "static_range": _static_range,
    "constexpr": _same,
    "multiple_of": _same,
    "max_contiguous": _same,
    "max_constancy": _same,
    "static_assert": _static_assert,
    "static_print": nothing,
    "device_assert": nothing,
    "device_print": nothing,
    "assume": nothing,  # an unchecked promise of the author's: not a fact to us
    "debug_barrier": _barrier,
    # They order launches of one stream. No part of this launch waits for another: they are no barriers.
    "gdc_wait": wait_for_launches,
    "gdc_launch_dependents": nothing,
    "load": memory.load,
    "store": memory.store,
    "make_block_ptr": memory.make_block_pointer,
    "advance": _advance,
    "make_tensor_descriptor": memory.make_descriptor,
    "_experimental_make_tensor_descriptor": memory.make_descriptor,
    "load_tensor_descriptor": _descriptor_load,
    "store_tensor_descriptor": _descriptor_store,
    "_experimental_descriptor_load": _descriptor_load,
    "_experimental_descriptor_store": _descriptor_store,
}
_ACCESSES = frozenset(
    "load store load_tensor_descriptor store_tensor_descriptor _experimental_descriptor_load "
    "_experimental_descriptor_store".split()
)
_DTYPES = ("float", "bfloat", "int", "uint", "fp", "bf", "pi32_t", "block_type", "pointer_type")


def functions() -> frozenset[str]:
    """The names of `triton.language` that a kernel may call."""
    atomics = (f"atomic_{kind}" for kind in memory.ATOMICS)
    return frozenset(_DSL).union(_OPERATORS, _ELEMENTWISE, _QUESTIONS, atomics)


def _divided_out(dividend: Expr, divisor: Expr) -> Expr | None:
    """a for the integer a * d and the divisor d, which is positive; of a sum each term."""
    parts = []
    for term in dividend.args if dividend.op == "add" else (dividend,):
        factors = list(term.args) if term.op == "mul" else [term]
        if divisor not in factors:
            return None
        factors.remove(divisor)
        parts.append(E.mul(E.ONE, *factors))
    return E.add(E.ZERO, *parts)


def _chooses_by_launch(e: Expr) -> bool:
    """Whether a number of the launch decides which number this is: one side may be a constant then."""
    tests = (node.args[0] for node in E.walk(e) if node.op == "ite")
    return any(any(s.kind is Kind.SCALAR for s in E.symbols(test)) for test in tests)


def _array_name(value: Any) -> str:
    match value:
        case Pointer():
            return value.array
        case Param():
            return value.name
    raise UnsupportedConstruct("numel of something that is no parameter")


_METHODS = {  # called as methods: `x.__lshift__(4)`
    "__add__": "+",
    "__sub__": "-",
    "__mul__": "*",
    "__floordiv__": "//",
    "__mod__": "%",
    "__truediv__": "/",
    "__and__": "&",
    "__or__": "|",
    "__xor__": "^",
    "__lshift__": "<<",
    "__rshift__": ">>",
}


class Triton:
    """The dialect object that the executor calls."""

    namespace = "triton.language"
    has_pointers = True

    def call(self, x: Executor, name: str, args: Arguments) -> Any:
        result = self._called(x, name, args)
        last = name.rpartition(".")[2]
        x.uneven |= last in _UNEVEN or (last == "range" and bool(args.keywords or args.positional[3:]))
        if last in _FOLDS:
            given = (*args.positional, *(value for _, value in args.keywords), result)
            x.folds(*(part for value in given for part in as_tuple(value)))
        return result

    def is_access(self, name: str) -> bool:
        last = name.rpartition(".")[2]
        return last in _ACCESSES or last.startswith("atomic_")

    def _called(self, x: Executor, name: str, args: Arguments) -> Any:
        if name == "range":
            return _range(x, args)  # what Python's takes no options for is left out
        if name in PYTHON:
            return _number(x, args) if name == "int" and len(args.positional) == 1 else PYTHON[name](x, args)
        if name == "tilecheck.numel":  # in contracts
            return Num((), memory.flat(x, _array_name(args.at(0)))[1], "int", None)
        head, _, last = name.rpartition(".")
        if head == "math":
            return math_function(x, args)
        if head in ("torch", "numpy") and last in ("finfo", "iinfo"):
            return Token(f"{last} {x.number()}")
        dtype = Named(head.removesuffix(".value"))
        if dtypes.is_dtype(dtype):
            return dtypes.asked(dtype, last)
        if name == "isinstance":
            return _ask(x, args)
        if not name.startswith("triton.") or name.startswith("triton.experimental."):
            raise UnsupportedConstruct(f"call of `{name}`")
        if ".libdevice" in name or head.endswith((".language.math", ".libdevice")):
            return absolute(x, args) if last == "abs" else _function(x, last, args)
        if last in ("max", "min", "sum"):
            return _reduction(x, last, args)
        if last in _EXCHANGES:
            given = (*args.positional[:2], *(value for _, value in args.keywords))
            x.exchanged(*(part for value in given for part in as_tuple(value)))
        if last in _OF_MACHINE_NUMBERS:
            return self.assigned(_DSL[last](x, args))
        if last in _DSL:
            return _DSL[last](x, args)
        if last in _OPERATORS:
            return self.assigned(_operator(x, args, _OPERATORS[last]))
        if last in _ELEMENTWISE:
            return _function(x, last, args)
        if last.startswith("atomic_") and last.removeprefix("atomic_") in memory.ATOMICS:
            return memory.atomic(x, last.removeprefix("atomic_"), args)
        if last in ("float16", "float32", "float64", "bfloat16", "int1", "int8", "int16", "int32", "int64"):
            return _to(x, _first(x, args, last), Named(name))
        if last in _QUESTIONS:
            return _ask(x, args)
        if last == "_unwrap_if_constexpr":
            return _same(x, args)
        raise UnsupportedConstruct(f"call of `tl.{last}`")

    def method(self, x: Executor, value: Any, name: str, args: Arguments) -> Any:
        match value:
            case BlockPointer() if value.descriptor and name in ("load", "store"):
                return self._descriptor_method(x, value, name, args)
            case BlockPointer() if value.descriptor and name.startswith("atomic_"):
                kind = name.removeprefix("atomic_")
                order = Order("RELAXED", "DEVICE", kind)
                given = args.bind(("offsets", "value"), name)
                memory.descriptor_access(x, value, given["offsets"], Effect.ATOMIC, order)
                return Const(None)
            case BlockPointer() if name == "advance":
                return memory.advance(x, value, args.bind(("offsets",), name)["offsets"])
            case Token() | Param() if name.startswith("is_"):  # a question about a dtype
                return dtypes.answer(value.name, name)
            case Param() if name in ("load", "store") and isinstance(args.at(0), Seq):
                given = args.bind(("offsets", "value?"), name)
                return memory.host_descriptor_access(x, value.name, given["offsets"], given.get("value"))
            case Num() | Param() | Pointer():
                if name == "<unpack>":
                    raise UnsupportedConstruct("unpacking of a tile")
                if name in _METHODS:
                    return operate(x, _METHODS[name], value, args.bind(("other",), name)["other"])
                forwarded = Arguments((value, *args.positional), args.keywords, args.node, args.table)
                return call(x, Named(f"triton.language.{name}"), forwarded)
            case Token() if name == "to":  # a float that is passed
                return self.method(x, x.number_of(value, "operand"), name, args)
            case Const(value=float()):  # a variable that holds a literal is a scalar of the kernel
                return self.method(x, x.number_of(value, "operand"), name, args)
            case _:
                raise UnsupportedConstruct(f"method `.{name}`")

    def _descriptor_method(self, x: Executor, value: BlockPointer, name: str, args: Arguments) -> Any:
        if name == "load":
            return memory.descriptor_access(x, value, args.bind(("offsets",), name)["offsets"], Effect.READ)
        given = args.bind(("offsets", "value"), name)
        memory.descriptor_access(x, value, given["offsets"], Effect.WRITE)
        return Const(None)

    def attribute(self, x: Executor, value: Any, name: str) -> Any:
        match value:
            case Token():
                called = name.startswith("is_") or name == "to"
                return Method(value, name) if called else Token(f"{value.name}.{name}")
            case Pointer() | Param() if name in ("dtype", "type"):
                return Token(f"{value.array if isinstance(value, Pointer) else value.name}.dtype")
            case BlockPointer() if name in ("dtype", "type"):
                return Token(f"{value.base.array}.dtype")
            case Num() | Const() if name == "value":
                return value
            case Param() if name == "value":
                return value
            case Param() if name in dtypes.WIDTHS:
                return Token(f"{value.name}.{name}")
            case Num() if name == "shape":
                return Seq(tuple(Num((), s, "int", None) for s in value.shape))
            case Pointer() if name == "shape":
                return Seq(tuple(Num((), s, "int", None) for s in value.offset.shape))
            case Num() if name in ("dtype", "type"):
                return Token(f"dtype of tile {x.number()}")  # two tiles may differ in it
            case Num() if name == "numel":
                return Num((), E.mul(E.ONE, *value.shape), "int", None)
            case Num() if name == "T":
                if len(value.shape) != 2:
                    raise UnsupportedConstruct("transpose of a tile without two axes")
                x.folds(value)
                return arithmetic.permute(value, [1, 0], x)
            case _:
                return Method(value, name)

    def subscript(self, x: Executor, value: Any, index: Any) -> Any:
        match value:
            case Num():
                if value.shape:  # what every thread has moves to no other
                    x.exchanged(value)
                return tile_index(x, value, index)
            case Pointer():
                return Pointer(value.array, tile_index(x, value.offset, index))
            case Param():
                return self.subscript(x, x.number_of(value, "value"), index)
            case Token():
                return value
            case _:
                raise UnsupportedConstruct("subscript of this value")

    def quotient(self, x: Executor, op: str, dividend: Expr, divisor: Expr) -> Expr:
        """Division that truncates, of which the divisor is positive.

        It is floor division where the dividend is not negative. A launch value is asked to be that, by an
        obligation of its own; any other dividend is taken apart: -(-a // d) for a < 0, and the remainder has
        the sign of the dividend. So `n + d - 1` is not negative where n is not: d has an obligation of its own.
        Where the guard says that the dividend is not negative, no other is divided. Multiples of the divisor
        come out even.
        """
        whole = _divided_out(dividend, divisor)
        if whole is not None and x.is_integer_memory(dividend) and x.is_integer_memory(divisor):
            return whole if op == "//" else E.ZERO
        positive = x.positive | {divisor}
        known = signs.guarded(x)
        scalars = {s for s in E.symbols(dividend) if s.kind in (Kind.SCALAR, Kind.CONSTANT)}
        scalars = {s for s in scalars if E.sym(s) not in positive}
        floor = E.floordiv if op == "//" else E.mod
        if known and signs.is_natural(dividend, frozenset(), positive, known):
            return floor(dividend, divisor)
        if signs.is_natural(dividend, frozenset(scalars), positive):
            if scalars:
                goal = E.all_of(*(E.le(0, E.sym(s)) for s in sorted(scalars, key=lambda s: s.name)))
                x.check(CheckKind.DIVIDEND, goal, E.render(dividend))
            return floor(dividend, divisor)
        truncated = E.ite(E.le(0, dividend), floor(dividend, divisor), E.neg(floor(E.neg(dividend), divisor)))
        own = E.symbols(dividend, divisor)
        numbers_of_launch = [s for s in own if s.kind is Kind.SCALAR]
        varies = any(s.kind not in (Kind.SCALAR, Kind.CONSTANT) for s in own)
        if not numbers_of_launch or (varies and not _chooses_by_launch(dividend)):
            return truncated
        # A number of the launch that is 1 is compiled as a constant, and with constants Python divides; unless
        # it was assigned to a name before.
        ones = E.all_of(*(E.eq(E.sym(s), 1) for s in numbers_of_launch))
        either = x.fresh("data", per_lane=False, boolean=True)
        return E.ite(E.all_of(ones, either), floor(dividend, divisor), truncated)

    def assigned(self, value: Any) -> Any:
        """A machine number, of 32 bits where it fits: Triton makes one of what is assigned."""
        match value:
            case Const(bool() as b):
                return Num((), E.TRUE if b else E.FALSE, "bool", 32)
            case Const(float()):
                # Of 32 bits: what is folded is not what Python computes.
                literal = value.value
                natural, single = signs.of_literal(literal), signs.is_single(literal)
                way, span = (1, "literal", literal), float_ranges.of_literal(literal, assigned=True)
                return Num((), None, "data", 32, natural=natural, single=single, way=way, span=span)
            case Num() if value.bits is None and value.elem is not None:
                number = value.elem.value
                if number is None or -(2**31) <= number < 2**31:
                    return replace(value, bits=32, way=way_of(value))
                if 2**31 <= number < 2**32 or not -(2**63) <= number < 2**63:
                    return data(value.shape)  # an unsigned one
                return replace(value, bits=64, way=way_of(value))
            case Num() if value.folded is not E.FALSE:
                return replace(value, folded=E.FALSE)
            case Param():
                return replace(value, assigned=True)
            case Seq():
                return replace(value, items=tuple(map(self.assigned, value.items)))
            case Choice():
                return replace(value, first=self.assigned(value.first), second=self.assigned(value.second))
            case _:
                return value

    def lost(self, x: Executor, function: Poison, args: Arguments) -> Any:
        """A call of something that is not known, by the name of a function of data. Without a pointer among its
        arguments it reaches no memory: what a Triton function may touch it is given."""
        name = dotted(args.node.func).rpartition(".")[2] if isinstance(args.node, cst.Call) else ""
        values = (*args.positional, *(v for _, v in args.keywords))
        if name.lstrip("_") in _ELEMENTWISE and all(isinstance(v, Num | Const | Param) for v in values):
            return _elementwise(x, args)
        raise UnsupportedConstruct(function.why)

    def offset(self, x: Executor, op: str, a: Any, b: Any) -> Any:
        return pointers.offset(x, op, a, b)

    def param(self, x: Executor, name: str) -> Num:
        """An untyped parameter used as a number."""
        x.used.add(name)
        kind = Kind.CONSTANT if name in x.constants else Kind.SCALAR
        return Num(
            (),
            E.sym(Symbol(name, kind, origin="untyped")),
            "any",
            None if kind is Kind.CONSTANT else 32,
            way=(1, "parameter", name),
        )
