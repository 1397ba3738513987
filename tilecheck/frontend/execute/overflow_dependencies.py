"""What values of every shape rest on: the overflow checks of the numbers in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tilecheck.frontend.values.values import (
    NO_RESTS,
    BlockPointer,
    Choice,
    Const,
    DenseSlice,
    Function,
    Method,
    Named,
    Num,
    Param,
    Pointer,
    Range,
    Record,
    Rests,
    Seq,
    Token,
    parts,
)
from tilecheck.ir.expr import Kind, Symbol, symbols


def rests_of(value: Any) -> Rests:
    """The overflow checks that a value, or a part of it, rests on."""
    match value:
        case Num():
            return value.rests
        case Pointer():
            return value.offset.rests
        case BlockPointer():
            return _united((value.base, *value.shape, *value.strides, *value.offsets))
        case Seq():
            return _united(value.items)
        case Range():
            return _united((value.start, value.stop, value.step))
        case Choice():
            return rests_of(value.first) | rests_of(value.second)
        case Record():
            return _united(value.fields.values())
        case Method():
            return rests_of(value.value)
        case DenseSlice():
            return value.start.rests
        case _:
            return NO_RESTS


def _united(values: Iterable[Any]) -> Rests:
    found = [rests for rests in map(rests_of, values) if rests]
    return NO_RESTS.union(*found) if found else NO_RESTS


def resting(value: Any, rests: Rests) -> Any:
    """Have each number in a value rest on these checks, if it does not yet."""
    if not rests:
        return value
    match value:
        case Num():
            more = _unknown(rests, value)
            return replace(value, rests=value.rests | more) if more else value
        case Pointer():
            return replace(value, offset=resting(value.offset, rests))
        case BlockPointer():  # an access rests on what all parts rest on
            more = _unknown(rests, value)
            return replace(value, base=resting(value.base, more)) if more else value
        case Seq():
            return replace(value, items=tuple(resting(item, rests) for item in value.items))
        case Range():
            return replace(value, start=resting(value.start, rests))
        case Choice():
            return replace(value, first=resting(value.first, rests), second=resting(value.second, rests))
        case Record():
            return Record({name: resting(field_, rests) for name, field_ in value.fields.items()})
        case Method():
            return replace(value, value=resting(value.value, rests))
        case DenseSlice():
            return replace(value, start=resting(value.start, rests))
        case _:
            return value


def _unknown(rests: Rests, value: Any) -> Rests:
    """Those that `value` is not known to rest on."""
    own = {rest.check for rest in rests_of(value)}
    return frozenset(rest for rest in rests if rest.check not in own)


def is_new_unknown(value: Num, *operands: Any) -> bool:
    """Whether a number is an unknown that none of its operands has. It may be any number, so it rests on
    nothing. A sum may fold to an unknown too: that is not new."""
    if value.elem is None or value.elem.op not in ("sym", "bsym") or value.elem.args[0].kind is not Kind.OPAQUE:
        return False
    symbol = value.elem.args[0]
    return all(_lacks(operand, symbol) for operand in operands)


def _lacks(value: Any, symbol: Symbol) -> bool:
    """Whether an unknown is certainly not in a value."""
    match value:
        case Num():
            return value.elem is None or symbol not in symbols(value.elem)
        case Seq() | Pointer():
            return all(_lacks(part, symbol) for part in parts(value) or ())
        case Const() | Named() | Param() | Token() | Function():
            return True
        case _:
            return False
