"""The symbols of a goal as each of its blocks, lanes or iterations sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilecheck.ir.expr import Expr, Symbol, bool_sym, rebuild, sym

Varies = Callable[[Symbol], bool]


def in_instance(e: Expr, instance: int, varies: Varies = lambda s: s.varies) -> Expr:
    """`e` as block (or lane) `instance` sees it: the symbols that vary are renamed, the others shared."""

    def change(node: Expr) -> Expr | None:
        if node.op not in ("sym", "bsym"):
            return None
        symbol = symbol_in_instance(node.args[0], instance, varies)
        return sym(symbol) if node.op == "sym" else bool_sym(symbol)

    return rebuild(e, change)


def symbol_in_instance(symbol: Symbol, instance: int, varies: Varies = lambda s: s.varies) -> Symbol:
    bound = symbol.bound if symbol.bound is None else in_instance(symbol.bound, instance, varies)
    return replace(symbol, bound=bound, instance=instance if varies(symbol) else symbol.instance)
