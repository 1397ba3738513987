"""`IS_ROCM = tl.constexpr(is_rocm())`: a constant that a module computes in a way that the text does not tell.

A kernel is compiled with one value of it, the same for the whole launch, as with a name of a function around
the kernel. Of that value nothing is known, also not its type; it is a way (`_without_ways` in `lower`), so a
kernel is refused if its stores, the places that it touches, or what it is asked to prove depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from tilecheck.frontend.execute.state import Executor
from tilecheck.frontend.modules.bindings import Binding, Import, dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.values.values import Num, Token
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol


def unread_constant(x: Executor, binding: Binding, table: ModuleTable, name: str, why: str) -> Num | None:
    """The unknown value of such a name; None for what is no constant of Triton's, or of a host function."""
    if not x.reads_every_way or not isinstance(binding, cst.Call) or not _is_constant(binding, table):
        return None
    symbol = Symbol(f"`{name}` of {table.file}", Kind.CONSTANT, origin="untyped")
    x.ways[symbol] = x.ways[Symbol(symbol.name, Kind.CONSTANT)] = why  # the value, and its truth (`as_bool`)
    return Num((), E.sym(symbol), "any", None)


def _is_constant(call: cst.Call, table: ModuleTable) -> bool:
    head, _, last = dotted(call.func).rpartition(".")
    language = table.bindings.get(head)
    known = isinstance(language, Import) and language.name == "triton.language" and head not in table.ambiguous
    return last == "constexpr" and known


def asked_of_unread(x: Executor, question: Callable[[Executor, Any, Any], Num], a: Any, b: Any) -> Num:
    """`N == "rows"`, `N is None`, `N == ct.float32`, of a constant whose type the text does not tell: one
    answer for the whole launch, of which nothing is known. A name of a function around a kernel is one."""
    found = [_token(value) for value in (a, b)]
    if found == [None, None]:
        return question(x, a, b)
    answer = question(x, found[0] or a, found[1] or b)
    why = [x.ways[s] for value in (a, b) for s in _constants(value) if s in x.ways]
    if why and answer.elem is not None:
        x.ways.update(dict.fromkeys(E.symbols(answer.elem), why[0]))
    return answer


def _token(value: Any) -> Token | None:
    return Token(E.render(value.elem)) if _constants(value) else None


def _constants(value: Any) -> list[Symbol]:
    """The constants of unknown type that a value is one of, or is made of as of texts. A quotient is a number
    (`tl.cdiv(N, 64) is None` is not so), or nothing compiles."""
    if not isinstance(value, Num) or value.shape or value.elem is None or value.kind != "any":
        return []
    if value.elem.op == "floordiv":
        return []
    return [s for s in E.symbols(value.elem) if s.kind is Kind.CONSTANT and s.origin == "untyped"]
