"""Questions that code asks of types when it is compiled."""

from __future__ import annotations

import re
from typing import Any

from tilecheck.frontend.values.values import Named, Num
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol

_NAMES = re.compile(r"triton\.language\.(?:core\.)?((?:u?int|float|bfloat|fp|float8)\w*)$")
WIDTHS = frozenset({"primitive_bitwidth", "int_bitwidth", "fp_mantissa_width", "itemsize"})
_SHORT = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "bool": "int1"}


def is_dtype(value: Any) -> bool:
    """Whether a name is that of a type of numbers."""
    return isinstance(value, Named) and _NAMES.match(value.name) is not None


def answer(of: str, question: str) -> Num:
    """`dtype.is_floating()` of a type of which the text says nothing: the same answer in the whole launch."""
    return Num((), E.bool_sym(Symbol(f"{of}.{question}()", Kind.CONSTANT)), "bool", None)


def asked(dtype: Named, question: str) -> Num:
    """`tl.float32.is_floating()` and its siblings."""
    name = dtype.name.rpartition(".")[2]
    integral = name.startswith(("int", "uint"))
    signed = name.startswith("int") and name != "int1"
    kinds = {
        "is_floating": not integral,
        "is_int": integral,
        "is_int_signed": signed,
        "is_int_unsigned": integral and not signed,
        "is_ptr": False,
        "is_block": False,
        "is_void": False,
    }
    wanted = question.removeprefix("is_")
    if question in kinds:
        found = kinds[question]
    elif wanted in _SHORT or re.fullmatch(r"u?int\d+", wanted):
        found = name == _SHORT.get(wanted, wanted)
    else:
        return answer(name, question)
    return Num((), E.TRUE if found else E.FALSE, "bool", None)
