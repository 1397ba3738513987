"""Arithmetic on tiles and scalars: broadcasting, integer semantics, and what each operation asks for.

Ring operations (+, -, *, <<) on machine integers may wrap and still be right in the end, because two's
complement arithmetic is a ring: only where a value *leaves* the ring (a division, a comparison, an index,
a widening) must it fit. So `fits` is asked for there, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.dataflow.load_sources import by_binary, by_choice, by_comparison, by_logic
from tilecheck.frontend.dataflow.operations import combined, way_of
from tilecheck.frontend.execute.overflow import Overflow, coarse, spread, stretching
from tilecheck.frontend.values import float_ranges, signs, unsigned
from tilecheck.frontend.values.comparisons import compared
from tilecheck.frontend.values.values import NOTHING, Num, Rests, lane
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, Kind, Symbol

INT32_MAX = 2**31 - 1
LARGEST = 20_000  # nodes of an expression, written out: published kernels have a few hundred


class Machine(Protocol):
    """What arithmetic needs from the executor: fresh unknowns, and a place for its obligations."""

    def fresh(self, origin: str, *, per_lane: bool, boolean: bool = False) -> Expr: ...

    def divides(self, divisor: Expr) -> None: ...

    def quotient(self, op: str, x: Expr, y: Expr) -> Expr: ...

    def power_of_two(self, n: Num, *, shifts: bool) -> Num | None: ...

    def fits(self, value: Expr, shape: tuple[Expr, ...] = ()) -> Expr: ...

    def made(self, value: Expr) -> None: ...

    @property
    def positive(self) -> frozenset[Expr]: ...

    @property
    def dialect(self) -> Any: ...

    @property
    def overflow(self) -> Overflow: ...

    @property
    def carries_no_rests(self) -> bool: ...

    def compared(self, op: str, a: Num, b: Num) -> None: ...

    def asked(self, op: str, a: Num, b: Num) -> None: ...

    def shifted(self, op: str, a: Num, b: Num) -> None: ...

    def integral(self, *values: Num) -> None: ...

    def turns_back(self) -> None: ...

    def numeric(self, *values: Num) -> None: ...

    def widened(self, shape: tuple[Expr, ...], *values: Num) -> frozenset[int]: ...

    def is_integer_memory(self, value: Expr) -> bool: ...

    def unfolded(self, value: Expr, x: Expr, y: Expr, *, per_lane: bool) -> Expr: ...

    def moved(self, symbol: Symbol, positions: tuple[tuple[Expr, Expr], ...]) -> Expr: ...


def broadcast_shapes(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The common shape; equal or 1, aligned at the right. Symbolic sizes that differ take the larger."""
    rank = max(len(a), len(b))
    a = (E.ONE,) * (rank - len(a)) + a
    b = (E.ONE,) * (rank - len(b)) + b
    shape = []
    for x, y in zip(a, b, strict=True):
        if _is_one_or(x, y):
            shape.append(x)
        elif _is_one_or(y, x):
            shape.append(y)
        elif x.value is not None and y.value is not None:
            raise UnsupportedConstruct(f"broadcast of tile sizes {x.value} and {y.value}")
        else:
            shape.append(E.maximum(x, y))
    return tuple(shape)


def _is_one_or(size: Expr, other: Expr) -> bool:
    """Whether `other` is `size` or 1, by a condition of compile time if need be: no size is below 1, so the
    larger of the two is `size`."""
    if other.op in ("ite", "max"):
        return all(_is_one_or(size, branch) for branch in other.args[1 if other.op == "ite" else 0 :])
    return other is size or other is E.ONE


def stretch(value: Num, shape: tuple[Expr, ...]) -> Expr | None:
    """The element of `value` broadcast to `shape`: along an axis of size 1 every lane reads position 0."""
    return None if value.elem is None else E.substitute(value.elem, stretching(value.shape, shape))


def mask_of(mask: Num, shape: tuple[Expr, ...], machine: Machine) -> tuple[Expr, Rests]:
    """The mask of an access of this shape over its placeholders, and the overflow checks that it rests on."""
    first = len(machine.overflow.checks)
    test = stretch(Num(mask.shape, as_bool(mask, machine), "bool"), shape) or E.TRUE
    return test, mask.rests | machine.overflow.since(first)


def rested(result: Num, machine: Machine, first: int, *operands: Num) -> Num:
    """`result`, which rests on what its operands, broadcast to its shape, rest on (S-32bit-1) and on the checks
    made since there were `first`."""
    if machine.carries_no_rests:
        return result
    found = set(machine.overflow.since(first, result.shape))
    for operand in operands:
        found.update(spread(operand.rests, operand.shape, result.shape))
    return replace(result, rests=result.rests | found) if found else result


def rested_test(result: Num, machine: Machine, first: int, *operands: Num) -> Num:
    """The same of a truth: its checks count in every lane that computes it."""
    if machine.carries_no_rests:
        return result
    found = machine.overflow.since(first).union(*(coarse(operand.rests) for operand in operands))
    return replace(result, rests=result.rests | found) if found else result


def broadcast(value: Num, shape: tuple[Expr, ...]) -> Num:
    if len(value.shape) > len(shape):
        raise UnsupportedConstruct("broadcast to fewer axes")
    own = frozenset(spread(value.rests, value.shape, shape))
    return Num(broadcast_shapes(value.shape, shape), stretch(value, shape), value.kind, value.bits, rests=own)


def broadcast_to(value: Num, shape: tuple[Expr, ...]) -> Num:
    """`value` in the shape that is asked for: a size of its own is 1 or that one, or nothing compiles."""
    wide = broadcast(value, shape)
    sizes = tuple(asked if found.op == "max" else found for found, asked in zip(wide.shape, shape, strict=True))
    return replace(wide, shape=sizes)


def as_int(value: Num, machine: Machine) -> Expr:
    """The element as an integer expression; data that is not modelled becomes a fresh unknown."""
    if value.elem is None:
        return machine.fresh("data", per_lane=bool(value.shape))
    if value.kind == "bool":
        return E.ite(value.elem, 1, 0)
    return value.elem


def as_bool(value: Num, machine: Machine) -> Expr:
    """The truth of an element. That of a compile-time parameter is one for the launch, whatever its type."""
    if value.elem is not None and value.elem.op == "sym" and not _comparable(value, machine):
        symbol = value.elem.args[0]
        if symbol.kind is E.Kind.CONSTANT:
            return E.bool_sym(E.Symbol(symbol.name, E.Kind.CONSTANT))
    if value.elem is None or not _comparable(value, machine):
        return machine.fresh(origin(value.elem), per_lane=bool(value.shape), boolean=True)
    if value.kind == "bool":
        return value.elem
    truths = _truths(value.elem)
    if truths is not None:
        return E.all_of(*truths)
    (elem,) = _leave_ring(machine, value.bits, value.shape, value.elem)  # a multiple of 2**32 would wrap to 0
    return E.ne(elem, 0)


def _truths(e: Expr) -> list[Expr] | None:
    """Of a product of truth values, taken for 0 and 1: what makes it 1. Of what `_nonzero_where` gives, too."""
    if e.op == "ite" and e.args[2] is E.ZERO and (e.args[1] is E.ONE or _is_never_zero(e.args[1])):
        return [e.args[0]]
    if e.op != "mul":
        return None
    parts = [_truths(factor) for factor in e.args]
    return None if None in parts else [t for part in parts if part is not None for t in part]


def _nonzero_where(truth: Expr, machine: Machine, *, per_lane: bool) -> Expr:
    """Some integer that is 0 exactly where `truth` does not hold."""
    some = machine.fresh("data", per_lane=per_lane)
    return E.ite(truth, E.ite(E.lt(some, 0), some, E.add(some, 1)), 0)


def _is_never_zero(e: Expr) -> bool:
    return e.op == "ite" and e.args[0] is E.lt(e.args[1], 0) and e.args[2] is E.add(e.args[1], 1)


def is_compile_time(value: Num) -> bool:
    """Whether a value is one number of the text or of a parameter of compile time, such as 1.0."""
    own = () if value.elem is None else E.symbols(value.elem)
    return not value.shape and value.bits is None and all(s.kind is Kind.CONSTANT for s in own)


def is_argument(value: Num) -> bool:
    """Whether a value is what is passed for a parameter of which the text gives no type."""
    own = () if value.elem is None else E.symbols(value.elem)
    return value.kind == "any" and len(own) == 1 and own[0].origin == "untyped" and value.elem is E.sym(own[0])


def is_literal(value: Num) -> bool:
    """Whether a value is an integer of the text."""
    return value.kind == "int" and value.elem is not None and value.elem.value is not None


# What machine numbers have for integers alone; between two compile-time values Python computes it.
_INTEGRAL = frozenset({"//", "&", "|", "^", "<<", ">>"})
_OF_BITS = {"*": "and", "min": "and", "max": "or"}  # what it is of two single bits


def _result_bits(a: Num, b: Num) -> int | None:
    # A compile-time integer takes the type of the other side.
    if a.bits is None:
        return b.bits
    return a.bits if b.bits is None else max(a.bits, b.bits)


def _leave_ring(machine: Machine, bits: int | None, shape: tuple[Expr, ...], *values: Expr) -> tuple[Expr, ...]:
    if bits != 32:
        return values
    return tuple(machine.fits(value, shape) if may_have_wrapped(value) else value for value in values)


def _widened(value: Num, bits: int | None, machine: Machine) -> Num:
    """`value` beside a number of 64 bits: it has left the ring of 32 bits when it is made as wide."""
    if bits != 64 or value.bits != 32 or value.elem is None or not may_have_wrapped(value.elem):
        return value
    elem = machine.fits(value.elem, value.shape)
    return value if elem is value.elem else replace(value, elem=elem)


def _divisor(value: Num, bits: int | None, machine: Machine) -> Num:
    """The same of a divisor: that it is positive is a check, which rests on its checks."""
    before = len(machine.overflow.checks)
    found = _widened(value, bits, machine)
    machine.overflow.test(value.rests | machine.overflow.since(before))
    return found


def may_have_wrapped(value: Expr) -> bool:
    """Whether a value is made by operations of the ring since it last was known to fit."""
    return value.op in ("add", "mul") or (value.op == "ite" and any(map(may_have_wrapped, value.args[1:])))


def compare(op: str, a: Num, b: Num, machine: Machine) -> Num:
    """`a op b`, a truth of each lane."""
    first = len(machine.overflow.checks)
    return rested_test(_compare(op, a, b, machine), machine, first, a, b)


def _compare(op: str, a: Num, b: Num, machine: Machine) -> Num:
    shape = broadcast_shapes(a.shape, b.shape)
    x, y = stretch(a, shape), stretch(b, shape)
    machine.compared(op, a, b)
    machine.asked(op, a, b)
    if op not in ("==", "!="):
        machine.numeric(a, b)
    machine.widened(shape, a, b)
    compiled = None if is_compile_time(a) and is_compile_time(b) else 32
    sides = unsigned.ordered(op, a, b, machine)
    if sides is not None:
        x, y = (stretch(side, shape) for side in sides)
        return Num(shape, unsigned.below(op, a, b, x, y), "bool", compiled)
    made = by_comparison(op, a, b)
    answers = (is_literal(a) and is_argument(b)) or (is_argument(a) and is_literal(b))
    known = answers or (_comparable(a, machine) and _comparable(b, machine))
    if x is None or y is None or not known:
        some = machine.fresh(origin(x, y), per_lane=bool(shape), boolean=True)
        return Num(shape, some, "bool", compiled, made)
    if _result_bits(a, b) == 64:
        x, y = (stretch(_widened(side, 64, machine), shape) for side in (a, b))
        assert x is not None
        assert y is not None
    if a.kind == "bool" or b.kind == "bool":
        x = as_int(Num(shape, x, a.kind), machine)
        y = as_int(Num(shape, y, b.kind), machine)
    x, y = _leave_ring(machine, _result_bits(a, b), shape, x, y)
    return Num(shape, compared(op, x, y), "bool", compiled, made)


def origin(*values: Expr | None) -> str:
    """Where an unknown made from `values` comes from: "atomic" if any of them does, else "data", or "data of
    memory" if one was loaded."""
    known = [v for v in values if v is not None]
    found = E.symbols(*known)
    if any(s.origin.startswith("atomic") for s in found):
        return "atomic"
    names = frozenset[str]().union(*map(E.memory_names, known))
    return "data of memory" if names - {s.name for s in found if s.origin == "untyped"} else "data"


def _comparable(a: Num, machine: Machine) -> bool:
    # Between two floats there may be no integer: comparing floats as integers would be unsound.
    return a.elem is not None and (a.kind != "any" or machine.is_integer_memory(a.elem))


def logical(op: str, a: Num, b: Num, machine: Machine) -> Num:
    """`and`, `or` and their bitwise forms on booleans; unmodelled operands become fresh unknowns."""
    first = len(machine.overflow.checks)
    return rested_test(_logical(op, a, b, machine), machine, first, a, b)


def _logical(op: str, a: Num, b: Num, machine: Machine) -> Num:
    shape = broadcast_shapes(a.shape, b.shape)
    machine.widened(shape, a, b)
    x = stretch(Num(a.shape, as_bool(a, machine), "bool"), shape)
    y = stretch(Num(b.shape, as_bool(b, machine), "bool"), shape)
    assert x is not None
    assert y is not None
    bits = None if is_compile_time(a) and is_compile_time(b) else 32
    both = E.all_of(x, y) if op == "and" else E.any_of(x, y)
    return Num(shape, both, "bool", bits, by_logic(a, b))


def invert(a: Num, machine: Machine) -> Num:
    first = len(machine.overflow.checks)
    return rested_test(Num(a.shape, E.negate(as_bool(a, machine)), "bool"), machine, first, a)


def binary(op: str, a: Num, b: Num, machine: Machine) -> Num:
    """`a op b` for + - * // % & | ^ << >> ** / and min, max."""
    first = len(machine.overflow.checks)
    return rested(_binary(op, a, b, machine), machine, first, a, b)


def _binary(op: str, a: Num, b: Num, machine: Machine) -> Num:
    if op in ("&", "|", "^") and (a.kind == "bool" or b.kind == "bool"):
        return _boolean_bits(op, a, b, machine)
    shape = broadcast_shapes(a.shape, b.shape)
    truths = a.kind == b.kind == "bool" and not (is_compile_time(a) and is_compile_time(b))
    if truths and op in ("+", "-"):
        # Triton adds single bits without a carry, cuTile numbers.
        return Num(shape, machine.fresh("data", per_lane=bool(shape)), "int", 32)
    if truths and machine.dialect.has_pointers and op in _OF_BITS:  # which gives a single bit again
        return logical(_OF_BITS[op], a, b, machine)
    exchanged = machine.widened(shape, a, b)
    machine.shifted(op, a, b) if op in ("+", "-") else machine.numeric(a, b)
    if op in _INTEGRAL and (a.bits is not None or b.bits is not None):
        machine.integral(a, b)
    sides = unsigned.combined(op, a, b, machine)
    if sides is not None:
        return Num(shape, None, "data", 64, unsigned=binary(op, *sides, machine).elem)
    base = unsigned.base_of(op, a, b)
    if base is not None:  # what is added to a pointer, before it is known that it is one
        return Num(shape, E.add(base, machine.fresh("data", per_lane=bool(shape))), "any", 64)
    if (op in ("-", "*") and counts_down(b)) or (op == "*" and counts_down(a)):
        machine.turns_back()
    kind = "any" if "any" in (a.kind, b.kind) else "int"
    bits = _result_bits(a, b)
    made = by_binary(op, a, b, "data" if a.elem is None or b.elem is None or op == "/" else kind)
    if made != NOTHING:
        made = replace(made, exchanges=made.exchanges | exchanged)
    if a.elem is None or b.elem is None or op == "/":
        # `//` and `%` of unmodelled data are float operations or give an unknown; division by zero of
        # floats is defined, and of integers it needs a divisor that we know.
        if op in ("//", "%") and b.elem is not None and b.kind in ("int", "bool"):
            machine.overflow.test(b.rests)
            _ask_divisor(stretch(b, shape), machine)
        known = is_compile_time(a) and is_compile_time(b)
        natural = signs.by_binary(op, a, b, machine)
        bits = bits if known else bits or 32
        way = combined(op, way_of(a), way_of(b))
        single, wholes = signs.single(a, b, machine), signs.wholes(a, b)
        span = float_ranges.by_binary(op, a, b, shape, machine)
        return Num(shape, None, "data", bits, made, natural, single, wholes, way=way, span=span)
    power = _power_of_two(op, a, b, machine)
    if power is not None:
        return replace(power, made=made, way=combined(op, way_of(a), way_of(b)))
    a, b = _widened(a, bits, machine), (_divisor if op in ("//", "%") else _widened)(b, bits, machine)
    x, y = stretch(_to_int(a, machine), shape), stretch(_to_int(b, machine), shape)
    assert x is not None
    assert y is not None
    value = _integer(op, x, y, bits, shape, machine)
    folded = E.FALSE if bits is None else E.all_of(folded_where(a), folded_where(b))
    if op in ("//", "%") and folded is not E.FALSE:
        value = E.ite(folded, E.floordiv(x, y) if op == "//" else E.mod(x, y), value)
    if kind == "any":
        value = machine.unfolded(value, x, y, per_lane=bool(shape))
    value = wrapped(value, bits)
    if E.size_of(value) > LARGEST:
        raise UnsupportedConstruct("integer expression of this size")
    if bits == 32 and value.op in ("add", "mul"):
        machine.made(value)
    return Num(shape, value, kind, bits, made, way=combined(op, way_of(a), way_of(b)), folded=folded)


def _power_of_two(op: str, a: Num, b: Num, machine: Machine) -> Num | None:
    """`1 << n` or `2 ** n`, and multiples of the first, of a number of compile time that is no literal."""
    if op not in ("<<", "**") or a.kind == "bool" or b.kind == "bool" or a.elem is None or b.elem is None:
        return None
    if not (is_compile_time(a) and is_compile_time(b)) or b.elem.value is not None:
        return None
    scale = a.elem.value
    if scale is None or (scale <= 0 if op == "<<" else scale != 2):
        return None
    power = machine.power_of_two(b, shifts=op == "<<")
    if power is None or power.elem is None:
        return None
    return replace(power, elem=E.mul(scale, power.elem)) if op == "<<" else power


def folded_where(value: Num) -> Expr:
    """Where a number is one of compile time."""
    return E.TRUE if value.bits is None else value.folded


def counts_down(value: Num) -> bool:
    """Whether it falls along a tile: `n - lane`. What is made of it may rise again."""
    elem = value.elem
    if elem is None or not value.shape:
        return False
    own = {lane(axis).args[0] for axis in range(len(value.shape))}
    return any(
        term.op == "mul" and (term.args[0].value or 0) < 0 and not own.isdisjoint(E.symbols(term))
        for term in (elem.args if elem.op == "add" else (elem,))
    )


def _to_int(a: Num, machine: Machine) -> Num:
    return Num(a.shape, as_int(a, machine), "int", a.bits, rests=a.rests) if a.kind == "bool" else a


def _ask_divisor(divisor: Expr | None, machine: Machine) -> None:
    if divisor is not None and not (divisor.value is not None and divisor.value > 0):
        machine.divides(divisor)


def _integer(op: str, x: Expr, y: Expr, bits: int | None, shape: tuple[Expr, ...], machine: Machine) -> Expr:
    match op:
        case "+":
            return E.add(x, y)
        case "-":
            return _remainder(x, y) or E.sub(x, y)
        case "*":
            return E.mul(x, y)
        case "<<" if y.value is not None and 0 <= y.value < 63:
            return E.mul(x, 1 << y.value)
        case "**" if x.value is not None and y.value is not None and 0 <= y.value < 64:
            return E.const(x.value**y.value)
        case "**" if y.value is not None and 0 <= y.value <= 4:
            return E.mul(*[x] * y.value) if y.value else E.ONE
        case "<<" if bits is None and x.value is not None and x.value > 0:
            return E.maximum(1, machine.fresh("data", per_lane=False))  # as Python shifts: nothing wraps
        case "&" if any(_is_low_bits(side) for side in (x, y)):
            return E.bit("and", x, y)  # the low bits of what has wrapped are those of what has not
    (x,) = _leave_ring(machine, bits, shape, x)
    before = len(machine.overflow.checks)
    (y,) = _leave_ring(machine, bits, shape, y)
    match op:
        case "//" | "%":
            machine.overflow.test(machine.overflow.since(before))
            _ask_divisor(y, machine)
            if bits is None:  # at compile time, as Python divides
                return E.floordiv(x, y) if op == "//" else E.mod(x, y)
            return machine.quotient(op, x, y)
        case "min":
            return E.minimum(x, y)
        case "max":
            return E.maximum(x, y)
        case ">>" if y.value is not None and 0 <= y.value < 63:
            return E.floordiv(x, 1 << y.value)  # arithmetic shift right is floor division
        case "&" | "|" | "^":
            return E.bit({"&": "and", "|": "or", "^": "xor"}[op], x, y)
        case _:  # shifts and powers by unknown amounts: some integer
            return machine.fresh("data", per_lane=bool(shape))


def _is_low_bits(mask: Expr) -> bool:
    """Whether it is one less than a power of two that has 32 bits."""
    value = mask.value
    return value is not None and 0 <= value < 2**31 and not value & (value + 1)


def _remainder(x: Expr, y: Expr) -> Expr | None:
    """`x % d`, where y is `x // d * d`: the same number, and one that `d` is seen to bound."""
    if y.op != "mul":
        return None
    for k, factor in enumerate(y.args):
        if factor.op == "floordiv" and factor.args[0] is x:
            divisor = factor.args[1]
            rest = (*y.args[:k], *y.args[k + 1 :])
            if sorted(map(id, rest)) == sorted(map(id, divisor.args if divisor.op == "mul" else (divisor,))):
                return E.mod(x, divisor)
    return None


def _boolean_bits(op: str, a: Num, b: Num, machine: Machine) -> Num:
    """`&`, `|` and `^` of which one side at least is a truth: that counts as 0 or 1 beside a number."""
    if a.kind != b.kind:
        return _bits_beside_truth(op, a, b, machine)
    if op in ("&", "|"):
        return logical("and" if op == "&" else "or", a, b, machine)
    both, either = logical("and", a, b, machine), logical("or", a, b, machine)
    assert both.elem is not None
    assert either.elem is not None
    return Num(both.shape, E.all_of(either.elem, E.negate(both.elem)), "bool", both.bits)


def _bits_beside_truth(op: str, a: Num, b: Num, machine: Machine) -> Num:
    number = b if a.kind == "bool" else a
    shape = broadcast_shapes(a.shape, b.shape)
    if op == "&":  # 0 or 1: whether the truth holds and the number is odd
        if _comparable(number, machine):
            assert number.elem is not None
            odd = Num(number.shape, E.eq(E.mod(number.elem, 2), 1), "bool", number.bits)
        else:
            some = machine.fresh("data", per_lane=bool(number.shape), boolean=True)
            odd = Num(number.shape, E.all_of(as_bool(number, machine), some), "bool", number.bits)
        truth = logical("and", *((a, odd) if number is b else (odd, b)), machine).elem
        assert truth is not None
        return Num(shape, E.ite(truth, 1, 0), "int", number.bits or 32)
    if op == "|":
        truth = logical("or", a, b, machine).elem
        assert truth is not None
        return Num(shape, _nonzero_where(truth, machine, per_lane=bool(shape)), "int", number.bits or 32)
    return Num(shape, machine.fresh("data", per_lane=bool(shape)), "int", number.bits or 32)


def negative(a: Num) -> Num:
    elem = None if a.elem is None or a.kind == "bool" else wrapped(E.neg(a.elem), a.bits)
    return Num(a.shape, elem, a.kind, a.bits, a.made, span=float_ranges.negative(a.span), rests=a.rests)


def wrapped(value: Expr, bits: int | None) -> Expr:
    """What is known is known to wrap: a literal as the 32-bit number that it is."""
    if bits != 32 or value.value is None:
        return value
    return E.const((value.value + 2**31) % 2**32 - 2**31)


def select(cond: Num, a: Num, b: Num, machine: Machine) -> Num:
    """`where(cond, a, b)` and the value of a conditional expression."""
    first = len(machine.overflow.checks)
    found = rested(_select(cond, a, b, machine), machine, first, a, b)
    return rested_test(found, machine, len(machine.overflow.checks), cond)


def _select(cond: Num, a: Num, b: Num, machine: Machine) -> Num:
    shape = broadcast_shapes(cond.shape, broadcast_shapes(a.shape, b.shape))
    exchanged = machine.widened(shape, cond, a, b)
    bits = _result_bits(a, b)
    kind = "any" if "any" in (a.kind, b.kind) else "int"
    if a.elem is None or b.elem is None:
        kind = "data"
    made = by_choice(cond, a, b, kind)
    if made != NOTHING:
        made = replace(made, exchanges=made.exchanges | exchanged)
    if kind == "data":
        return Num(shape, None, "data", bits or 32, made, span=float_ranges.by_choice(a, b, shape, machine))
    a, b = _widened(a, bits, machine), _widened(b, bits, machine)
    test = stretch(Num(cond.shape, as_bool(cond, machine), "bool"), shape)
    assert test is not None
    if a.kind == "bool" and b.kind == "bool":
        x, y = stretch(a, shape), stretch(b, shape)
        assert x is not None
        assert y is not None
        return Num(shape, E.either(test, x, y), "bool")
    x, y = stretch(_to_int(a, machine), shape), stretch(_to_int(b, machine), shape)
    assert x is not None
    assert y is not None
    settled = {s.kind for s in E.symbols(test)} == {Kind.CONSTANT}  # else it may come from memory
    way = combined("choice", (1, test), way_of(a), way_of(b)) if settled else None
    return Num(shape, _extreme(test, x, y) or E.ite(test, x, y), kind, bits, made, way=way)


def _extreme(test: Expr, x: Expr, y: Expr) -> Expr | None:
    """`b if a < b else a` and its siblings: a maximum or a minimum."""
    if test.op not in ("lt", "le"):
        return None
    if test.args[0] is y and test.args[1] is x:
        return E.maximum(x, y)
    return E.minimum(x, y) if test.args[0] is x and test.args[1] is y else None


# ---- shapes ------------------------------------------------------------------------------------------------


def rearrange(elem: Expr, mapping: Mapping[Expr, Expr], machine: Machine) -> Expr:
    """`elem` read at other positions of its tile: each placeholder becomes where it is read now.

    An unknown that differs between lanes is a function of the position, although its symbol does not show
    that. Read elsewhere it is another unknown: `v[:, None] == v[None, :]` does not hold in every lane.
    """
    return E.substitute(elem, _changes(mapping, machine, elem))


def _changes(mapping: Mapping[Expr, Expr], machine: Machine, *values: Expr) -> dict[Expr, Expr]:
    positions = tuple((a, b) for a, b in mapping.items() if a is not b)
    unknown = [s for s in E.symbols(*values) if s.kind is Kind.OPAQUE and s.per_lane] if positions else []
    changes = dict(mapping)
    for symbol in unknown:
        moved = machine.moved(symbol, positions)
        changes[E.sym(symbol)] = moved
        changes[E.bool_sym(symbol)] = E.bool_sym(moved.args[0])
    return changes


def _rearranged(a: Num, shape: tuple[Expr, ...], mapping: Mapping[Expr, Expr], machine: Machine) -> Num:
    """A tile of this shape, each element one of `a`, and what it rests on."""
    assert a.elem is not None
    values = [value for rest in a.rests if rest.value is not None for value in (rest.value, rest.case)]
    changes = _changes(mapping, machine, *values)
    own = frozenset(rest.moved(changes) for rest in a.rests)
    return Num(shape, rearrange(a.elem, mapping, machine), a.kind, a.bits, rests=own)


def first_element(a: Num, machine: Machine) -> Num:
    """The element of a tile of one, as `.item()` gives it."""
    if not a.shape:
        return a
    if a.elem is None:
        return Num((), None, a.kind, a.bits, rests=a.rests)
    lanes = {lane(i): E.ZERO for i in range(len(a.shape))}
    own = frozenset(rest.moved(lanes) for rest in a.rests)
    return Num((), E.substitute(a.elem, lanes), a.kind, a.bits, rests=own)


def permute(a: Num, axes: list[int], machine: Machine) -> Num:
    """`result.shape[k] = a.shape[axes[k]]`."""
    rank = len(a.shape)
    shape = tuple(a.shape[k] for k in axes)
    if a.elem is None:
        return Num(shape, None, a.kind, a.bits, rests=coarse(a.rests))
    # Old axis axes[k] is read at the position along new axis k.
    mapping = {lane(rank - 1 - old): lane(rank - 1 - new) for new, old in enumerate(axes)}
    return _rearranged(a, shape, mapping, machine)


def reshape(a: Num, shape: tuple[Expr, ...], machine: Machine) -> Num:
    """Row-major reshape. Only sizes of 1 added or dropped is the common case and stays simple."""
    if a.elem is None:
        return Num(shape, None, a.kind, a.bits, rests=coarse(a.rests))
    old = [(i, size) for i, size in enumerate(reversed(a.shape)) if size is not E.ONE]
    new = [(i, size) for i, size in enumerate(reversed(shape)) if size is not E.ONE]
    ones = {lane(i): E.ZERO for i, size in enumerate(reversed(a.shape)) if size is E.ONE}
    # No element moves along an axis that has only one.
    own = frozenset(rest.moved(ones) for rest in a.rests)
    a = replace(a, elem=E.substitute(a.elem, ones), rests=own)
    if [s for _, s in old] == [s for _, s in new]:
        moved = {lane(i): lane(j) for (i, _), (j, _) in zip(old, new, strict=True)}
        return _rearranged(a, shape, moved, machine)
    flat, weight = E.ZERO, E.ONE
    for i, size in new:
        flat = E.add(flat, E.mul(lane(i), weight))
        weight = E.mul(weight, size)
    mapping, rest = {}, flat
    for n, (i, size) in enumerate(old):
        mapping[lane(i)] = rest if n == len(old) - 1 else E.mod(rest, size)
        rest = E.floordiv(rest, size)
    return _rearranged(a, shape, mapping, machine)


def concatenate(a: Num, b: Num, axis: int, machine: Machine) -> Num:
    """`cat((a, b), axis)`."""
    rank = len(a.shape)
    shape = (*a.shape[:axis], E.add(a.shape[axis], b.shape[axis]), *a.shape[axis + 1 :])
    if a.elem is None or b.elem is None or "bool" in (a.kind, b.kind):
        return Num(shape, None, "data", a.bits, rests=coarse(a.rests | b.rests))
    place = lane(rank - 1 - axis)
    second = rearrange(b.elem, {place: E.sub(place, a.shape[axis])}, machine)
    kind = "any" if "any" in (a.kind, b.kind) else "int"
    elem = E.ite(E.lt(place, a.shape[axis]), a.elem, second)
    return Num(shape, elem, kind, _result_bits(a, b), rests=coarse(a.rests | b.rests))


def extract(a: Num, index: list[Expr], shape: tuple[Expr, ...], machine: Machine) -> Num:
    """`extract(x, index, shape)`: the sub-tile at tile index `index`."""
    if a.elem is None:
        return Num(shape, None, a.kind, a.bits)
    rank = len(shape)
    places = [E.ZERO if size is E.ONE else lane(rank - 1 - k) for k, size in enumerate(shape)]
    mapping = {lane(rank - 1 - k): E.add(E.mul(index[k], size), places[k]) for k, size in enumerate(shape)}
    return _rearranged(a, shape, mapping, machine)
