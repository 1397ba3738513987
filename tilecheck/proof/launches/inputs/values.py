"""The values of a kernel's launch, written over the values of the host function that launches it."""

from __future__ import annotations

from collections.abc import Mapping

from tilecheck.ir.expr import ONE, Expr, Kind, Symbol, bool_sym, mul, ne, sym, symbols
from tilecheck.ir.host import host_extent
from tilecheck.ir.kernel import Kernel, extent_symbol, grid_symbol, made_of, of_literals, stride_symbol
from tilecheck.ir.launch import HostTensor, HostValue, Launch
from tilecheck.proof.launches.inputs.spans import flat_values


def ranks_of(kernel: Kernel, launch: Launch) -> dict[str, int]:
    """The ranks of the caller's tensors, as the kernel uses them: a pointer says nothing of its tensor's."""
    if kernel.language == "triton":
        return {}
    ranks = {p.name: p.rank for p in kernel.params if p.rank is not None}
    found = {}
    for name, value in launch.arguments:
        if isinstance(value, HostTensor) and name in ranks:
            found[value.shape_of or value.name] = ranks[name]
    return found


def host_values(kernel: Kernel, launch: Launch) -> dict[Expr, Expr]:
    """Every launch value of the kernel that the launch's text gives."""
    known: dict[Expr, Expr] = {}
    for axis, size in enumerate((*launch.grid, ONE, ONE)[:3] if launch.grid is not None else ()):
        if size is not None:
            known[sym(grid_symbol(axis))] = size
    if kernel.language == "triton":
        known |= flat_values(kernel, launch)
        return known | _powers(kernel, known)
    own = {p.name for p in kernel.params}  # these hide the names of the function around the kernel
    captured = ((name, value) for name, value in launch.captured if name not in own)
    for name, value in (*launch.arguments, *captured):
        _bind(known, kernel, name, value)
    return known


def _powers(kernel: Kernel, known: Mapping[Expr, Expr]) -> dict[Expr, Expr]:
    """The powers of two that are made of numbers that the launch's text says, as far as facts speak of them."""
    found: dict[Expr, Expr] = {}
    for symbol in symbols(*kernel.facts):
        made = made_of(symbol)
        number = None if made is None else known.get(sym(Symbol(made.name, Kind.CONSTANT, origin="untyped")))
        power = None if made is None or number is None else of_literals(made.of, number)
        if power is not None:
            found[sym(symbol)] = power
    return found


def _bind(known: dict[Expr, Expr], kernel: Kernel, name: str, value: HostValue) -> None:
    if isinstance(value, HostTensor):
        _bind_tensor(known, kernel, name, value)
        return
    if not isinstance(value, Expr):
        return
    for kind in (Kind.SCALAR, Kind.CONSTANT):
        for origin in ("", "untyped", "converted"):
            symbol = Symbol(name, kind, origin=origin)
            if value.is_bool:
                known[bool_sym(symbol)] = value
            else:
                known[sym(symbol)] = value
                known[bool_sym(symbol)] = ne(value, 0)


def _bind_tensor(known: dict[Expr, Expr], kernel: Kernel, name: str, tensor: HostTensor) -> None:
    rank = next((p.rank for p in kernel.params if p.name == name), None) or 0
    shape = tensor.shape
    if shape is None:
        shape = tuple(sym(host_extent(tensor.shape_of or tensor.name, k)) for k in range(rank))
    for k, length in enumerate(shape):
        known[sym(extent_symbol(name, k))] = length
    known[sym(Symbol(f"numel({name})", Kind.EXTENT))] = mul(*shape)
    for k, stride in enumerate(tensor.strides or ()):
        known[sym(stride_symbol(name, k))] = stride
