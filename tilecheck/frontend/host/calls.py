"""What functions of Python, torch, NumPy, triton and cuTile mean in host code. Anything else is unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.expressions import call, operate, static_items
from tilecheck.frontend.host.arguments import in_format, number, sizes, without
from tilecheck.frontend.host.iterators import is_used_at_once
from tilecheck.frontend.host.memory.mutations import read_element, read_number, read_sequence
from tilecheck.frontend.host.memory.sharing import unread_of
from tilecheck.frontend.host.memory.uninitialised import blank
from tilecheck.frontend.host.memory.unread_effects import calls_nothing
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.tensors import descriptors as host_descriptors
from tilecheck.frontend.host.tensors import layout as T
from tilecheck.frontend.host.tensors.dtypes import DEFAULT_TYPE, full_type
from tilecheck.frontend.host.tensors.index_results import RESULTS, display, random_order
from tilecheck.frontend.host.tensors.library import FUNCTIONS, OPERATIONS, of_sizes, only_size, operation
from tilecheck.frontend.host.tensors.methods import DEVICE_COUNTS, allocated, device_count, product
from tilecheck.frontend.host.values import (
    WARPS,
    BitLength,
    Config,
    Device,
    Dims,
    FloatParam,
    HostShape,
    Log2,
    Members,
    Ratio,
    Root,
    Table,
    Tensor,
    Unknown,
    Updated,
)
from tilecheck.frontend.values import arithmetic as numbers
from tilecheck.frontend.values.values import (
    Choice,
    Const,
    Function,
    Named,
    Num,
    Range,
    Record,
    Seq,
    Token,
    integer,
)
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol
from tilecheck.ir.host import DEFINED, NATURAL, OPAQUE, exact_quotient, host_rank, host_test

if TYPE_CHECKING:
    from tilecheck.frontend.execute.state import Arguments
    from tilecheck.frontend.host.run import HostExecutor

Handler = Callable[["HostExecutor", "Arguments"], Any]
_TORCH = ("torch", "torch.nn.functional")
_SPLITS = ("as_strided", "chunk", "split")  # NumPy's functions of these names are others
LIBRARIES = ("torch", "numpy", "cupy")
_OF_DEFAULT_TYPE = ("empty", "zeros", "ones", "rand", "randn")
_MOST_DOUBLINGS = 24  # of a tile size
_EXACT = 52  # bits of a number whose root a float has exactly, rounded


def meaning(name: str) -> Handler | None:
    """The handler of a function, by its full name."""
    if name in _PYTHON:
        return _PYTHON[name]
    if name == "tilecheck.verified":
        return lambda _, a: _verified(a.at(0), a)
    if name in (host_descriptors.CLASS, f"{host_descriptors.CLASS}.from_tensor"):
        return host_descriptors.made if name == host_descriptors.CLASS else host_descriptors.of_tensor
    head, _, last = name.rpartition(".")
    if head in ("numpy", "cupy") and last in ("empty", "zeros", "ones"):
        # the second argument is a type
        return blank(_formatted(_filled)) if last == "empty" else _formatted(_filled)
    if head.split(".")[0] in LIBRARIES and last in _TENSORS:
        kind = DEFAULT_TYPE if head == "torch" and last in _OF_DEFAULT_TYPE else ""
        made = _formatted(_TENSORS[last], kind)
        return blank(made) if last.startswith("empty") else made
    if head == "torch" and last in _SPLITS:
        return _as_tensor_method(last)
    if head in _TORCH and last in FUNCTIONS:
        return FUNCTIONS[last]
    if head in _TORCH and last in OPERATIONS:
        return lambda x, args: operation(x, x.tensor(args.at(0)), last, without(args, 1))
    if head == "torch" and last in RESULTS:
        return _as_tensor_method(last)
    if last == "cdiv" and head in ("cuda.tile", "triton", "triton.language"):
        return _cdiv
    if last == "next_power_of_2" and head.startswith("triton"):
        return _next_power
    return None


def _formatted(handler: Handler, usual: str = "") -> Handler:
    return lambda x, args: in_format(_typed(handler(x, args), args, usual), args)


def _typed(made: Any, args: Arguments, usual: str) -> Any:
    """What a call made, of the type that its `dtype` names, else the usual one."""
    given = [v for k, v in args.keywords if k == "dtype"]
    if not isinstance(made, Tensor):
        return made
    if not given:
        return replace(made, dtype=usual or made.dtype)
    return replace(made, dtype=full_type(given[0].name) if isinstance(given[0], Named) else "")


def checks_contracts(args: Arguments) -> bool:
    """Whether a guarded launch asks for checks of contracts on values in memory."""
    said = dict(args.keywords).get("check_contracts")
    if not isinstance(said, Num) or said.elem is None:
        return False
    return said.elem is E.TRUE or (said.kind == "int" and said.elem.value is not None)


def _verified(kernel: Any, args: Arguments) -> Any:
    """`tilecheck.verified(kernel)` launches as the kernel that it is given, behind the guard."""
    match kernel:
        case Function():
            return replace(kernel, guarded=True, checks_contracts=checks_contracts(args))
        case Choice():
            return Choice(kernel.cond, _verified(kernel.first, args), _verified(kernel.second, args))
        case _:
            return kernel


# ---- Python ------------------------------------------------------------------------------------------------


def _cdiv(x: HostExecutor, args: Arguments) -> Any:
    if len(args.positional) != 2 or args.keywords:
        raise UnsupportedConstruct("cdiv")
    a, b = (x.scalar(v, "operand of cdiv") for v in args.positional)
    x.divides(b)
    exact = exact_quotient(a, b)
    return number(E.cdiv(a, b) if exact is None else exact)


def _float_of(name: str, made: type[Root | Log2], least: int) -> Handler:
    """A function of `math` that raises below `least`: of an integer the result keeps what it is of."""

    def handler(x: HostExecutor, args: Arguments) -> Any:
        match args.at(0):
            case Num(elem=Expr() as n, kind="int", shape=()):
                x.assume(E.le(least, n))
                return made(f"math.{name}({x.short(n)})", of=n)
            case _:
                return _float(x, args)

    return handler


_sqrt = _float_of("sqrt", Root, 0)
_log2 = _float_of("log2", Log2, 1)


def _isqrt(x: HostExecutor, args: Arguments) -> Num:
    root = _sqrt(x, args)
    if not isinstance(root, Root):
        raise UnsupportedConstruct("isqrt")
    return _whole_root(x, root, "floor")


def _whole_root(x: HostExecutor, root: Root, word: str) -> Num:
    """The square root, rounded up or down: exact where the number is one that a float can be."""
    n = root.of
    whole = E.sym(Symbol(f"{word}({root.name})", Kind.HOST, origin=DEFINED))
    low, high = (E.sub(whole, 1), whole) if word == "ceil" else (whole, E.add(whole, 1))
    if word == "ceil":
        facts = (E.le(n, E.mul(high, high)), E.any_of(E.le(whole, 0), E.lt(E.mul(low, low), n)))
    else:
        facts = (E.le(E.mul(low, low), n), E.lt(n, E.mul(high, high)))
    exact = E.all_of(E.le(0, whole), E.le(whole, n), *facts)
    x.define(whole, E.any_of(E.lt(1 << _EXACT, n), exact))
    return number(whole)


def _ceil(x: HostExecutor, args: Arguments) -> Any:
    value = args.at(0)
    match value:
        case Root():
            return _whole_root(x, value, "ceil")
        case Log2():  # the float is exact enough for every size that a tensor can have
            return BitLength(E.sub(value.of, 1))
        case Ratio():
            return number(E.cdiv(value.top, value.bottom))
        case Const(float() as literal):
            return number(E.const(-int(-literal // 1)))
        case Num() if value.kind == "int" and value.elem is not None:
            return value
        case _:
            raise UnsupportedConstruct("ceil")


def _floor(x: HostExecutor, args: Arguments) -> Any:
    value = args.at(0)
    match value:
        case Root():
            return _whole_root(x, value, "floor")
        case Ratio():
            return number(E.floordiv(value.top, value.bottom))
        case Const(float() as literal):
            return number(E.const(int(literal // 1)))
        case Num() if value.kind == "int" and value.elem is not None:
            return value
        case _:
            raise UnsupportedConstruct("floor")


def _float(x: HostExecutor, args: Arguments) -> Any:
    """`float(scale)`: a number that is no size."""
    match args.at(0):
        case Num(elem=Expr(), kind="int") | Ratio() | Const():
            raise UnsupportedConstruct("float")
        case Unknown() | Token() as value:
            return FloatParam(f"float({value.name})")
        case _:
            return FloatParam("float(...)")


def _asked_of_machine(name: str) -> Handler:
    return lambda x, args: Num((), host_test(f"{name}()"), "bool", None)


def _int(x: HostExecutor, args: Arguments) -> Any:
    if len(args.positional) != 1 or args.keywords:
        raise UnsupportedConstruct("base of an integer")
    value = args.at(0)
    match value:
        case Root():
            return _whole_root(x, value, "floor")
        case Tensor() if (size := only_size(x, value)) is not None:
            return number(size)
        case Ratio():  # rounds towards zero
            floor, up = E.floordiv(value.top, value.bottom), E.cdiv(value.top, value.bottom)
            known = T.nonnegative(value.top) and T.nonnegative(value.bottom)
            return number(floor if known else E.ite(E.le(0, floor), floor, up))
        case Const(float() as literal):
            return number(E.const(int(literal)))
        case Num() if value.kind == "bool":
            return number(numbers.as_int(value, x))
        case Num() if value.elem is not None:
            # Arithmetic with arguments that may be floats: `int(n * ratio)` is none of the numbers in it.
            if value.kind == "int" or x.is_integer_memory(value.elem):
                return value
            found, sources = x.stable(f"int({E.render(value.elem)})"), E.symbols(value.elem)
            if sources and all(s.name in x.made_of and x.is_given(s.name) for s in sources):
                x.made_of[found.name] = frozenset(s.name for s in sources)
                x.integers_seen.add(found.name)
                found = replace(found, opaque=any(s.origin == OPAQUE for s in sources))
            return found
        case Updated():
            return _int(x, type(args)((x.number_of(value, "int"),), (), args.node, args.table))
        case Unknown():
            # What is an integer elsewhere too is `int(n)` itself; another type stays unknown.
            element = (read_number if value.name in x.integer_names else read_element)(x, value)
            named = x.number_of(element, "int").elem
            whole = named is not None and x.is_integer_memory(named)
            if whole:
                return element
            found = Unknown(f"int({element.name})", opaque=element.opaque)
            x.integers_seen.add(found.name)
            x.made_of[found.name] = frozenset({element.name})
            return found
        case _:
            raise UnsupportedConstruct("int of this value")


def _of_environment(x: HostExecutor, args: Arguments) -> Any:
    """`os.environ.get("TILE")`: who starts the process hands it in. Another call may find another value."""
    if not all(isinstance(value, Const | Num) for value in args.positional):
        raise UnsupportedConstruct("default of an environment variable")
    name = args.at(0).value if isinstance(args.at(0), Const) else "that is computed"
    found = replace(x.unread(f"environment variable {name}"), opaque=False)
    x.made_of[found.name] = frozenset()
    return found


def _device(x: HostExecutor, args: Arguments) -> Device:
    """`torch.device("cuda", 0)`."""
    return Device(x.unread("torch.device()").name)


def _bool(x: HostExecutor, args: Arguments) -> Any:
    return Num((), x.truth(args.at(0)), "bool", None)


def _extreme(op: str) -> Handler:
    def handler(x: HostExecutor, args: Arguments) -> Any:
        items = args.positional if len(args.positional) > 1 else static_items(x, args.at(0), op)
        if not items or args.keywords:
            raise UnsupportedConstruct(op)
        combine = E.minimum if op == "min" else E.maximum
        numbers = [_perhaps_whole(x, item, op) for item in items]
        result = numbers[0][0]
        for item, _ in numbers[1:]:
            result = combine(result, item)
        return _of_numbers(result, numbers)

    return handler


def _perhaps_whole(x: HostExecutor, value: Any, what: str) -> tuple[Expr, bool]:
    """A number, and whether the text says that it is an integer."""
    found = None if isinstance(value, Token) else x.number_of(value, what)
    if found is None or found.elem is None or found.elem.is_bool:
        raise UnsupportedConstruct(what)
    return found.elem, found.kind == "int" or x.is_integer_memory(found.elem)


def _of_numbers(found: Expr, parts: Sequence[tuple[Expr, bool]]) -> Num:
    """What is made of numbers: an integer, if all of them are."""
    return Num((), found, "int" if all(whole for _, whole in parts) else "any", None)


def _abs(x: HostExecutor, args: Arguments) -> Any:
    value, whole = _perhaps_whole(x, args.at(0), "abs")
    return _of_numbers(E.maximum(value, E.neg(value)), [(value, whole)])


def _len(x: HostExecutor, args: Arguments) -> Any:
    value = args.at(0)
    match value:
        case Seq():
            return integer(len(value.items))
        case HostShape(strides=True):
            return number(E.sym(host_rank(value.of)))
        case HostShape() | Dims():
            return number(unknown_ranks.rank(unknown_ranks.parts_of(x, value) or ()))
        case Unknown() if (parts := unknown_ranks.parts_of(x, value)) is not None:
            return number(unknown_ranks.rank(parts))
        case Unknown() if x.is_given(value.name):
            size = Symbol(f"len({read_sequence(x, value).name})", Kind.HOST, origin=NATURAL)
            x.made_of[size.name] = frozenset({value.name})
            return number(E.sym(size))
        case Tensor():
            found = T.extent(value, 0)
            return x.natural(f"len({value.name})") if found is None else number(unknown_ranks.meant(x, found))
        case _:
            raise UnsupportedConstruct("len")


def _range(x: HostExecutor, args: Arguments) -> Any:
    ends = [x.number_of(value, "loop bound") for value in args.positional]
    match ends:
        case [stop]:
            return Range(integer(0), stop, integer(1))
        case [start, stop]:
            return Range(start, stop, integer(1))
        case [start, stop, step]:
            return Range(start, stop, step)
        case _:
            raise UnsupportedConstruct("range")


def _sequence(x: HostExecutor, args: Arguments) -> Any:
    if not args.positional:
        return Seq((), True)
    value = args.at(0)
    if isinstance(value, HostShape | Dims) and not (isinstance(value, HostShape) and value.strides):
        return unknown_ranks.as_list(x, value)
    if isinstance(value, Unknown) and (text := f"list({value.name})") in x.sequence_names:
        unknown_ranks.sequence(x, value)  # a list of sizes is made of one
    parts = unknown_ranks.parts_of(x, value) if isinstance(value, Unknown) else None
    if parts is not None:
        return unknown_ranks.shape_of_parts(parts, is_list=True)
    if isinstance(value, Unknown) and x.is_given(value.name):
        found = unread_of(x, text, value)
        x.made_of[found.name] = frozenset({value.name})
        return found
    return value if isinstance(value, HostShape) else Seq(static_items(x, value, "sequence"), True)


def _tuple(x: HostExecutor, args: Arguments) -> Any:
    found = _sequence(x, args)
    if isinstance(found, Dims):
        return unknown_ranks.shape_of_parts(found.parts)
    return Seq(found.items) if isinstance(found, Seq) else found


def _sum(x: HostExecutor, args: Arguments) -> Any:
    items = [_perhaps_whole(x, item, "sum") for item in static_items(x, args.at(0), "sum")]
    return _of_numbers(E.add(_start(x, args, E.ZERO), *(item for item, _ in items)), items)


def _start(x: HostExecutor, args: Arguments, usual: Expr) -> Expr:
    """Where `sum(sizes, 3)` and `math.prod(sizes, start=2)` begin."""
    given = [*args.positional[1:], *(v for _, v in args.keywords)]
    if len(given) > 1 or any(name != "start" for name, _ in args.keywords):
        raise UnsupportedConstruct("sum or product with other arguments")
    return x.scalar(given[0], "start") if given else usual


def _zip(x: HostExecutor, args: Arguments) -> Any:
    columns = [static_items(x, value, "zip") for value in args.positional]
    return Seq(tuple(Seq(row) for row in zip(*columns, strict=False)))


def _enumerate(x: HostExecutor, args: Arguments) -> Any:
    items = static_items(x, args.at(0), "enumerate")
    return Seq(tuple(Seq((integer(k), item)) for k, item in enumerate(items)))


def _reversed(x: HostExecutor, args: Arguments) -> Any:
    return Seq(tuple(reversed(static_items(x, args.at(0), "reversed"))))


def _at_once(handler: Handler) -> Handler:
    def checked(x: HostExecutor, args: Arguments) -> Any:
        if not is_used_at_once(args.node, args.table, in_loop=True):
            raise UnsupportedConstruct("iterator that is used later")
        return handler(x, args)

    return checked


def _divmod(x: HostExecutor, args: Arguments) -> Any:
    a, b = x.scalar(args.at(0), "divmod"), x.scalar(args.at(1), "divmod")
    x.divides(b)
    return Seq((number(E.floordiv(a, b)), number(E.mod(a, b))))


def _all(x: HostExecutor, args: Arguments) -> Any:
    return Num((), E.all_of(*(x.truth(i) for i in static_items(x, args.at(0), "all"))), "bool", None)


def _any(x: HostExecutor, args: Arguments) -> Any:
    return Num((), E.any_of(*(x.truth(i) for i in static_items(x, args.at(0), "any"))), "bool", None)


def _prod(x: HostExecutor, args: Arguments) -> Any:
    value, start = args.at(0), _start(x, args, E.ONE)
    if isinstance(value, Choice):
        first, second = (
            replace(args, positional=(way, *args.positional[1:])) for way in (value.first, value.second)
        )
        return x.split(value.cond, lambda: _prod(x, first), lambda: _prod(x, second))
    if isinstance(value, HostShape | Dims) or unknown_ranks.sequence(x, value) is not None:
        found = product(x, value)
    else:
        found = product(x, Seq(static_items(x, value, "prod")))
    return number(E.mul(start, x.scalar(found, "product")))


def _reduce(x: HostExecutor, args: Arguments) -> Any:
    """`functools.reduce(operator.mul, sizes, 1)`, also with a lambda that multiplies."""
    function, start = args.at(0), E.ONE
    a, b = x.natural("a"), x.natural("b")
    if not isinstance(function, Named) or function.name not in ("operator.mul", "_operator.mul"):
        found = call(x, function, replace(args, positional=(a, b), keywords=()))
        if not isinstance(found, Num) or found.elem is not x.scalar(operate(x, "*", a, b), "product"):
            raise UnsupportedConstruct("reduce")
    if len(args.positional) > 2:
        start = x.scalar(args.at(2), "start")
    whole = _prod(x, replace(args, positional=args.positional[1:2], keywords=()))
    return number(E.mul(start, x.scalar(whole, "product")))


def _in_order(x: HostExecutor, args: Arguments) -> Any:
    """`sorted(dims, key=lambda d: stride[d])`: some numbers. A key that calls nothing changes nothing."""
    value, given = args.at(0), dict(args.keywords)
    key = given.get("key")
    if key is not None and not calls_nothing(key):
        raise UnsupportedConstruct("sorted")
    if isinstance(value, Seq) and len(value.items) == 1:
        return Seq(value.items, True)
    if not isinstance(value, Unknown) or x.sequence_names.isdisjoint((value.name,)):
        unknown_ranks.sequence(x, value)
        raise UnsupportedConstruct("sorted")
    return unread_of(x, f"sorted({value.name})", value)


def _assert(x: HostExecutor, args: Arguments) -> Any:
    x.assume(x.truth(args.at(0)))
    return Const(None)


def _isinstance(x: HostExecutor, args: Arguments) -> Any:
    value = args.at(0)
    kind = args.at(1) if len(args.positional) > 1 else None
    kinds = kind.items if isinstance(kind, Seq) else (kind,)
    own = _python_type(x, value)
    asked = {k.name for k in kinds if isinstance(k, Named)} if own else set()
    if own in asked:
        return Num((), E.TRUE, "bool", None)
    if len(asked) == len(kinds) and asked <= _TYPES:
        return Num((), E.FALSE, "bool", None)
    names = [v.name for v in (value, *kinds) if isinstance(v, Unknown | Named | Tensor | Token)]
    if len(names) == 1 + len(kinds):
        of = names[1] if len(kinds) == 1 else f"({', '.join(names[1:])})"
        return Num((), host_test(f"isinstance({names[0]}, {of})"), "bool", None)
    raise UnsupportedConstruct("isinstance")


def _python_type(x: HostExecutor, value: Any) -> str:
    """The type of a value, one of `_TYPES` or None's; empty where it is not certain."""
    match value:
        case Tensor():
            return "torch.Tensor"
        case Seq() | Dims():
            return "list" if value.is_list else "tuple"
        case Num(shape=(), elem=Expr() as number) if value.kind == "int" or x.is_integer_memory(number):
            return "" if number.is_bool else "int"
        case Const(value=None):
            return "None"
        case Const(value=str() | float()):
            return type(value.value).__name__
        case _:
            return ""


_TYPES = frozenset({"int", "float", "bool", "str", "list", "tuple", "dict", "set", "torch.Tensor"})


def _dict(x: HostExecutor, args: Arguments) -> Any:
    if args.positional:
        raise UnsupportedConstruct("dict")
    return Table(dict(args.keywords))


def _getattr(x: HostExecutor, args: Arguments) -> Any:
    """`getattr(properties, "multi_processor_count", 1)`."""
    name = args.at(1)
    if isinstance(name, Const) and name.value in DEVICE_COUNTS and isinstance(args.at(0), Unknown):
        return device_count(name.value)
    raise UnsupportedConstruct("getattr")


def _config(x: HostExecutor, args: Arguments) -> Any:
    """`triton.Config(kwargs, num_warps=4, ...)`."""
    kwargs = args.at(0) if args.positional else dict(args.keywords).get("kwargs")
    if not isinstance(kwargs, Table):
        raise UnsupportedConstruct("configuration that is not a dictionary display")
    warps = args.at(1) if len(args.positional) > 1 else dict(args.keywords).get("num_warps", integer(WARPS))
    return Config(kwargs, warps)


def _namespace(x: HostExecutor, args: Arguments) -> Any:
    return Record(dict(args.keywords))


def _next_power(x: HostExecutor, args: Arguments) -> Num:
    """`triton.next_power_of_2(n)`: 0 below 1, as Triton computes it."""
    n = x.scalar(args.at(0), "number")
    return number(E.ite(E.lt(n, 1), 0, numbers.as_int(power_above(x, E.sub(n, 1)), x)))


def power_above(x: HostExecutor, value: Expr) -> Num:
    """The least power of two above `value`: exact while that is at most 2**24, then some number."""
    name = f"next_power_of_2({x.short(E.add(value, 1))})"
    power = E.sym(Symbol(name, Kind.HOST, origin=DEFINED))
    result = power
    for exponent in range(_MOST_DOUBLINGS, -1, -1):
        result = E.ite(E.lt(value, 1 << exponent), E.const(1 << exponent), result)
    least = E.any_of(E.lt(value, 1), E.le(power, E.mul(2, value)))
    x.define(power, E.all_of(E.le(1, power), E.lt(value, power), least, E.eq(power, result)))
    return number(power)


_PYTHON: Mapping[str, Handler] = {
    "assert": _assert,
    "torch._assert": _assert,
    "torch._check": _assert,
    "cuda.tile.cdiv": _cdiv,
    "math.ceil": _ceil,
    "numpy.ceil": _ceil,
    "math.floor": _floor,
    "int": _int,
    "bool": _bool,
    **dict.fromkeys(("float", "math.exp", "math.log", "math.pow"), _float),
    "math.log2": _log2,
    "math.sqrt": _sqrt,
    "numpy.sqrt": _sqrt,
    "math.isqrt": _isqrt,
    **{
        name: _asked_of_machine(name)
        for device in ("cuda", "xpu", "npu", "mps", "musa", "mlu")
        for name in (f"torch.{device}.is_available", f"torch.{device}.is_initialized")
    },
    "min": _extreme("min"),
    "max": _extreme("max"),
    "abs": _abs,
    "len": _len,
    "range": _range,
    "list": _sequence,
    "tuple": _tuple,
    "torch.Size": _tuple,
    "frozenset": lambda x, args: Members(static_items(x, args.at(0), "frozenset") if args.positional else ()),
    "sum": _sum,
    "zip": _at_once(_zip),
    "enumerate": _at_once(_enumerate),
    "reversed": _at_once(_reversed),
    "divmod": _divmod,
    "all": _all,
    "any": _any,
    "math.prod": _prod,
    "numpy.prod": _prod,
    "functools.reduce": _reduce,
    "sorted": _in_order,
    "isinstance": _isinstance,
    "dict": _dict,
    "getattr": _getattr,
    "types.SimpleNamespace": _namespace,
    "triton.Config": _config,
    **dict.fromkeys(("os.environ.get", "os.getenv"), _of_environment),
    "torch.device": _device,
}


# ---- tensors -----------------------------------------------------------------------------------------------


def _sized(x: HostExecutor, args: Arguments) -> Tensor:
    """`torch.empty(2, 3)`, `torch.zeros((2, 3))`, `torch.ones(x.shape)`."""
    return allocated(x, "empty", sizes(x, args))


def _filled(x: HostExecutor, args: Arguments) -> Tensor:
    """`torch.full(size, value)`, `numpy.empty(size, dtype)`: the first argument alone is the size."""
    return _sized(x, type(args)(args.positional[:1], args.keywords, args.node, args.table))


def _like(x: HostExecutor, args: Arguments) -> Tensor:
    source = args.at(0)
    if isinstance(source, Choice):
        raise UnsupportedConstruct("empty_like of this value")
    return T.like(x.laid_out(x.known_rank(x.tensor(source))), "empty", x.storage("empty"))


def _as_tensor_method(name: str) -> Handler:
    def handler(x: HostExecutor, args: Arguments) -> Any:
        rest = type(args)(args.positional[1:], args.keywords, args.node, args.table)
        return x.dialect.method(x, x.tensor(args.at(0)), name, rest)

    return handler


def _arange(x: HostExecutor, args: Arguments) -> Tensor:
    given = {"end" if k == "stop" else k: v for k, v in args.keywords if k in ("start", "end", "stop", "step")}
    names = ("end",) if len(args.positional) == 1 and "end" not in given else ("start", "end", "step")
    if given.keys() & set(names[: len(args.positional)]) or len(args.positional) > 3:
        raise UnsupportedConstruct("arange")
    given |= dict(zip(names, args.positional, strict=False))
    step = x.number_of(given.pop("step", integer(1)), "step").elem
    ends = {k: x.scalar(v, "arange") for k, v in given.items()}
    if "end" not in ends or step is None or not x.is_integer_memory(step):  # a step may be a fraction
        raise UnsupportedConstruct("arange")
    start, end = ends.get("start", E.ZERO), ends["end"]
    length = E.cdiv(E.sub(end, start), step)
    if not T.nonnegative(step):  # downwards there are as many as upwards
        length = E.ite(E.lt(step, 0), E.cdiv(E.sub(start, end), E.neg(step)), length)
    return T.fresh("arange", x.storage("arange"), (E.maximum(0, length),))


def _random_integers(x: HostExecutor, args: Arguments) -> Tensor:
    sizes = [v for v in args.positional if isinstance(v, Seq)] or [v for k, v in args.keywords if k == "size"]
    if not sizes:
        raise UnsupportedConstruct("randint")
    return _sized(x, type(args)((sizes[0],), (), args.node, args.table))


_TENSORS: Mapping[str, Handler] = {
    **dict.fromkeys(("empty", "zeros", "ones", "rand", "randn"), _sized),
    "full": _filled,
    "randint": _random_integers,
    "arange": _arange,
    **dict.fromkeys(("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like"), _like),
    "randint_like": _like,
    "randperm": random_order,
    "tensor": lambda x, args: of_sizes(x, args) or display(x, args),
    **{
        name: _as_tensor_method(name)
        for name in (
            "broadcast_to",
            "clone",
            "flatten",
            "movedim",
            "moveaxis",
            "narrow",
            "permute",
            "ravel",
            "reshape",
            "view_as_real",
            "select",
            "squeeze",
            "swapaxes",
            "swapdims",
            "t",
            "transpose",
            "unflatten",
            "unsqueeze",
            "unbind",
        )
    },
    "ascontiguousarray": _as_tensor_method("contiguous"),
    "numel": _as_tensor_method("numel"),
}
