"""The text form of a kernel: what `show ir` prints and golden tests compare."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.ir.expr import TRUE, Expr, Kind, Symbol, add, mul, render
from tilecheck.ir.kernel import Access, Axis, Kernel, Space


class Names:
    """Readable, distinct names for the symbols of one kernel: `iteration of `k``, `lane 0`, `value 3`."""

    def __init__(self) -> None:
        self._known: dict[Symbol, str] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, symbol: Symbol) -> str:
        if symbol.kind not in (Kind.LOOP, Kind.LANE, Kind.OPAQUE):
            return symbol.name
        if symbol not in self._known:
            base = {Kind.LOOP: "k", Kind.LANE: "l", Kind.OPAQUE: "?"}[symbol.kind]
            number = self._counts.get(base, 0)
            self._counts[base] = number + 1
            self._known[symbol] = f"{base}{number}"
        return self._known[symbol]


def kernel_text(kernel: Kernel) -> str:
    """The whole kernel, one line for each fact, access and check."""
    names = Names()
    return "\n".join(_lines(kernel, names)) + "\n"


def _lines(kernel: Kernel, names: Names) -> Iterator[str]:
    params = ", ".join(f"{p.name}: {p.ownership.value}{_rank(p.rank)}" for p in kernel.params)
    yield f"kernel {kernel.name}({params})"
    yield f"  grid axes read: {', '.join(map(str, kernel.grid_axes)) or 'none'}"
    for fact in kernel.facts:
        yield f"  fact {render(fact, names)}"
    for requirement in kernel.requires:
        yield f"  requires {render(requirement.condition, names)}"
    for text in dict.fromkeys(contract.text for contract in kernel.contracts):
        yield f"  contract {text}"
    for access in kernel.accesses:
        yield from _access_lines(access, names)
    for check in kernel.checks:
        yield f"  check {check.kind.value}: {render(check.goal, names)}{_under(check.guard, names)}"
    for operation in kernel.arithmetic:
        yield f"  int32 {render(operation.value, names)}"


def _rank(rank: int | None) -> str:
    return "" if rank is None else f"[{rank}]"


def _access_lines(access: Access, names: Names) -> Iterator[str]:
    yield f"  {access_text(access, names)}{_under(access.guard, names)}"
    if access.mask is not TRUE:
        yield f"    mask {render(access.mask, names)}"


def access_text(access: Access, names: Names) -> str:
    """`write out[ct.bid(0)*T + l0]`: the elements that an access touches."""
    member = "" if access.member is None else f"[{render(access.member, names)}]"
    where = ", ".join(axis_text(axis, access.space, names) for axis in access.axes)
    extra = "" if access.order == "WEAK" else f" {access.order} {access.scope}"
    unchecked = "" if access.checked or access.space is Space.RAW else " unchecked"
    if unchecked and access.unchecked is not TRUE:
        unchecked += f" where {render(access.unchecked, names)}"
    raw = ".raw" if access.space is Space.RAW else ""
    return f"{access.effect.name.lower()} {access.array}{member}{raw}[{where}]{extra}{unchecked}"


def axis_text(axis: Axis, space: Space, names: Names) -> str:
    """A tile axis as a half-open range, an element axis as its index."""
    if space is not Space.TILE:
        return render(axis.coordinate, names)
    start = render(_start(axis), names)
    return start if axis.size.value == 1 else f"{start} :+ {render(axis.size, names)}"


def _start(axis: Axis) -> Expr:
    return add(axis.base, mul(axis.index, axis.step))


def _under(guard: Expr, names: Names) -> str:
    return "" if guard is TRUE else f"  where {render(guard, names)}"
