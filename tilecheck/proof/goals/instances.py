"""The symbols of a goal as each of its blocks, lanes or iterations sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from tilecheck.ir.expr import Expr, Symbol, bool_sym, rebuild, sym

Varies = Callable[[Symbol], bool]
_KEPT = 4096  # expressions that are remembered: those of one kernel are asked for again and again


def _varies(symbol: Symbol) -> bool:
    return symbol.varies


def in_instance(e: Expr, instance: int, varies: Varies = _varies) -> Expr:
    """`e` as block (or lane) `instance` sees it: the symbols that vary are renamed, the others shared."""
    if varies is _varies:
        return _in_block(e, instance)
    return _renamed(e, instance, varies)


@lru_cache(maxsize=_KEPT)
def _in_block(e: Expr, instance: int) -> Expr:
    return _renamed(e, instance, _varies)


def _renamed(e: Expr, instance: int, varies: Varies) -> Expr:
    def change(node: Expr) -> Expr | None:
        if node.op not in ("sym", "bsym"):
            return None
        symbol = symbol_in_instance(node.args[0], instance, varies)
        return sym(symbol) if node.op == "sym" else bool_sym(symbol)

    return rebuild(e, change)


def symbol_in_instance(symbol: Symbol, instance: int, varies: Varies = _varies) -> Symbol:
    return _symbol_in_block(symbol, instance) if varies is _varies else _symbol(symbol, instance, varies)


@lru_cache(maxsize=_KEPT)
def _symbol_in_block(symbol: Symbol, instance: int) -> Symbol:
    return _symbol(symbol, instance, _varies)


def _symbol(symbol: Symbol, instance: int, varies: Varies) -> Symbol:
    bound = symbol.bound if symbol.bound is None else in_instance(symbol.bound, instance, varies)
    number = instance if varies(symbol) else symbol.instance
    if bound is symbol.bound and number == symbol.instance:
        return symbol
    return replace(symbol, bound=bound, instance=number)
