"""Every host function here is read, and also run: both must tell of the same launches.

For each launch that really happens there must be one that was found whose facts hold, and whose grid, shapes,
strides and storage are those that were really passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tilecheck.ir.expr import Expr, Symbol, evaluate, symbols
from tilecheck.ir.host import CONTIGUOUS, DEFINED, DEVICE, EXTENT, NUMEL, RANK, SAME_SHAPE, STRIDE
from tilecheck.ir.launch import HostTensor, Launch
from tilecheck.ir.launch_ranks import launch_expressions

HERE = Path(__file__).parent


def _cases(file: str) -> dict[str, str]:
    """The host functions of a file, by the headings above them."""
    parts = (HERE / file).read_text(encoding="utf-8").split("## ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


VECTORS = _cases("vector_hosts.txt")
MATRICES = _cases("matrix_hosts.txt")


def _values(arguments: dict[str, Any]) -> Callable[[Symbol], int | bool]:
    """The values of host symbols in a run with these arguments. KeyError for what the text does not decide."""

    def value(symbol: Symbol) -> int | bool:
        name, _, rest = symbol.name.rpartition(".")
        match symbol.origin:
            case _ if symbol.origin == EXTENT:
                return int(arguments[name].shape[int(rest[6:-1])])
            case _ if symbol.origin == STRIDE:
                return int(arguments[name].stride(int(rest[7:-1])))
            case _ if symbol.origin == NUMEL:
                return int(arguments[name].numel())
            case _ if symbol.origin == RANK:
                return int(arguments[name].ndim)
            case _ if symbol.origin == DEVICE:
                return 4
            case _ if symbol.origin == CONTIGUOUS:
                return bool(arguments[name].is_contiguous())
            case _ if symbol.origin == SAME_SHAPE:
                a, b = (part.removesuffix(".shape") for part in symbol.name.split(" == "))
                return bool(arguments[a].shape == arguments[b].shape)
        return int(arguments[symbol.name])

    return value


def _solutions(
    launch: Launch, value: Callable[[Symbol], int | bool]
) -> Iterator[Callable[[Symbol], int | bool]]:
    """`value` extended to what the arguments do not decide, in every way that makes the facts true."""
    named = symbols(*launch.facts, *launch_expressions(launch))
    free = [symbol for symbol in named if not _is_decided(symbol, value)]
    most = 30 if len(free) < 3 else 9
    choices = [range(most) if s.origin != DEFINED else [1 << k for k in range(8)] for s in free]
    for chosen in product(*choices):
        known = dict(zip(free, chosen, strict=True))

        def of(symbol: Symbol, known: dict[Symbol, int] = known) -> int | bool:
            return known[symbol] if symbol in known else value(symbol)

        if all(_holds(fact, of) for fact in launch.facts):
            yield of


def _is_decided(symbol: Symbol, value: Callable[[Symbol], int | bool]) -> bool:
    try:
        value(symbol)
    except KeyError:
        return False
    return True


def _holds(fact: Expr, of: Callable[[Symbol], int | bool]) -> bool:
    try:
        return bool(evaluate(fact, of))
    except ZeroDivisionError:
        return False


def _agrees(launch: Launch, seen: Any, of: Callable[[Symbol], int | bool], buffers: dict[str, object]) -> bool:
    if launch.kernel != seen.kernel or launch.grid is None or len(launch.grid) != len(seen.grid):
        return False
    if any(g is not None and evaluate(g, of) != real for g, real in zip(launch.grid, seen.grid, strict=True)):
        return False
    pairs = zip((v for _, v in launch.arguments), seen.arguments, strict=True)
    return all(_is(v, real, of, buffers) for v, real in pairs)


def _is(value: Any, real: Any, of: Callable[[Symbol], int | bool], buffers: dict[str, object]) -> bool:
    match value:
        case Expr():
            return bool(evaluate(value, of) == real)
        case HostTensor():
            if value.shape is not None and tuple(evaluate(s, of) for s in value.shape) != real.shape:
                return False
            selecting = [k for k, n in enumerate(real.shape) if n > 1]  # other strides select nothing
            if value.strides is not None and real.numel():
                found = [evaluate(s, of) for s in value.strides]
                if any(found[k] != real.stride(k) for k in selecting):
                    return False
            if not value.expanded and real.numel() and any(real.stride(k) == 0 for k in selecting):
                return False
            return _same_storage(value, real, buffers)
        case _:
            return True


def _same_storage(value: HostTensor, real: Any, buffers: dict[str, object]) -> bool:
    """One buffer has one name; and a buffer called fresh is no argument's."""
    names = {id(b): n for n, b in buffers.items()}
    owner = names.get(id(real.buffer))
    return not (value.fresh and owner is not None) and (owner is None or owner == value.storage)


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8])
def test_vector(name: str, n: int, launches: Any, run_host: Any, tensor: Any) -> None:
    _compare(VECTORS[name], {"x": tensor(7), "n": n}, launches, run_host)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_matrix(name: str, order: str, launches: Any, run_host: Any, tensor: Any) -> None:
    body = MATRICES[name]
    for shape, other, k in (((4, 6), (4, 6), 2), ((2, 3), (5, 3), 3), ((1, 4), (1, 4), 0)):
        if (order, name) in (("F", "starred shape"), ("F", "flat")):
            continue  # `view` of what is not contiguous raises in torch
        _compare(body, {"x": tensor(*shape, order=order), "y": tensor(*other), "k": k}, launches, run_host)


def _compare(body: str, arguments: dict[str, Any], launches: Any, run_host: Any) -> None:
    found = [launch for launch in launches(body) if launch.function == "host"]
    assert all(launch.problem is None for launch in found), found
    seen = run_host(body, "host", dict(arguments))
    buffers = {name: v.buffer for name, v in arguments.items() if hasattr(v, "buffer")}
    for real in seen or ():
        told = [
            _agrees(launch, real, of, buffers)
            for launch in found
            for of in _solutions(launch, lambda s: _unread(s, _values(arguments)))
        ]
        assert any(told), (real.grid, real.kernel, found)


def _unread(symbol: Symbol, value: Callable[[Symbol], int | bool]) -> int | bool:
    """`unread(a)` really gives `a`."""
    text = symbol.name
    if text.startswith("unread(") and text.endswith(")"):
        return value(Symbol(text[7:-1], symbol.kind))
    return value(symbol)
