"""Values that are not modelled: two of them are one only where they are one in every launch."""

from __future__ import annotations

import pytest

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import parse
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, symbols
from tilecheck.ir.kernel import Access, CheckKind, Effect, Kernel
from tilecheck.text import decode


def lowered(body: str, parameters: str = "x, y, tab, out") -> Kernel:
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    text = f"import cuda.tile as ct\n\n\n@ct.kernel\ndef kernel({parameters}):\n{lines}"
    [definition] = find_kernels(Project().add(parse(decode("kernel.py", text.encode()))))
    return lower(definition)


def last_write(kernel: Kernel) -> Access:
    return [a for a in kernel.accesses if a.effect is Effect.WRITE][-1]


# `x` is written, so what is read from it is unknown; as an index of `tab` its values are integers.
WRITTEN = """
v = ct.load(x, index=(ct.bid(0),), shape=(4,))
ct.store(x, index=(ct.bid(0),), tile=v + 1)
t = ct.gather(tab, v)
i = ct.arange(4, dtype=ct.int32)
"""
MOVED = {
    "expanded": "v[:, None] != v[None, :]",
    "expand_dims": "ct.expand_dims(v, 1) != ct.expand_dims(v, 0)",
    "reshaped": "ct.reshape(v, (4, 1)) != v",
    "broadcast": "ct.broadcast_to(v[:, None], (4, 4)) != ct.broadcast_to(v, (4, 4))",
    "transposed": "ct.broadcast_to(v, (4, 4)) < ct.transpose(ct.broadcast_to(v, (4, 4)))",
    "permuted": "ct.broadcast_to(v, (4, 4)) < ct.permute(ct.broadcast_to(v, (4, 4)), (1, 0))",
}


@pytest.mark.parametrize("mask", MOVED.values(), ids=MOVED)
def test_an_unknown_tile_read_at_another_position_is_another_unknown(mask: str) -> None:
    kernel = lowered(f"{WRITTEN}\nct.scatter(out, (i[:, None], i[None, :]), 1.0, mask={mask})")
    assert last_write(kernel).mask is not E.FALSE
    assert len({s for s in symbols(last_write(kernel).mask) if s.kind is Kind.OPAQUE}) == 2


def test_two_parts_of_an_unknown_tile_are_two_unknowns() -> None:
    parts = "a = ct.extract(v, (0,), shape=(1,))\nb = ct.extract(v, (1,), shape=(1,))"
    kernel = lowered(f"{WRITTEN}\n{parts}\nct.scatter(out, ct.bid(0) + a - b, 1.0)")
    assert len([s for s in symbols(last_write(kernel).axes[0].index) if s.kind is Kind.OPAQUE]) == 2


def test_the_second_of_two_tiles_is_moved() -> None:
    kernel = lowered(f"{WRITTEN}\nct.scatter(out, ct.cat((v, v), 0), 1.0)")
    assert len([s for s in symbols(last_write(kernel).axes[0].index) if s.kind is Kind.OPAQUE]) == 2


def test_the_same_move_gives_the_same_unknown() -> None:
    """So that a mask still speaks of the index beside it."""
    kernel = lowered(f"{WRITTEN}\nct.scatter(out, (v[:, None], i[None, :]), 1.0, mask=v[:, None] >= 0)")
    write = last_write(kernel)
    assert [s for s in symbols(write.mask) if s.kind is Kind.OPAQUE] == [
        s for s in symbols(write.axes[0].index) if s.kind is Kind.OPAQUE
    ]


def test_axes_of_one_element_move_nothing() -> None:
    there_and_back = "ct.reshape(v[None, :], (4,))"
    kernel = lowered(f"{WRITTEN}\nct.scatter(out, i, 1.0, mask={there_and_back} == v)")
    assert last_write(kernel).mask is E.TRUE


def test_converting_memory_does_not_say_that_it_holds_integers() -> None:
    """Between two floats there may be no integer: `v > 0 and v < 1` is possible."""
    kernel = lowered("""
v = ct.load(x, index=(ct.bid(0),), shape=(4,))
t = ct.gather(tab, ct.astype(v, ct.int32))
ct.scatter(out, ct.arange(4, dtype=ct.int32), t, mask=(v > 0) & (v < 1))
""")
    assert all(s.kind is Kind.OPAQUE or s.kind is Kind.LANE for s in symbols(last_write(kernel).mask))


@pytest.mark.parametrize("converted", ["ct.astype(v + v, ct.int32)", "ct.astype(v // 2, ct.int32)"])
def test_what_is_computed_from_memory_does_not_convert_term_by_term(converted: str) -> None:
    kernel = lowered(f"""
v = ct.load(x, index=(0,), shape=())
ct.store(out, index=(ct.bid(0) + {converted},), tile=1.0)
""")
    [unknown] = [s for s in symbols(last_write(kernel).axes[0].index) if s.kind is Kind.OPAQUE]
    assert not unknown.per_lane


def test_integer_memory_converts_to_itself() -> None:
    kernel = lowered("""
v = ct.load(x, index=(0,), shape=())
t = ct.load(tab, index=(v,), shape=(4,))
ct.store(out, index=(v - ct.astype(v, ct.int64) + ct.bid(0),), tile=t)
""")
    assert E.render(last_write(kernel).axes[0].index).startswith("ct.bid(0)")


NARROW = {
    "int8": "ct.astype(b, ct.int8)",
    "int16": "ct.int16(b)",
    "the type of an array": "ct.astype(ct.astype(b, x.dtype), ct.int32)",
    "full": "ct.full((1,), b, ct.int8)",
}


@pytest.mark.parametrize("index", NARROW.values(), ids=NARROW)
def test_a_narrower_type_may_not_hold_the_value(index: str) -> None:
    kernel = lowered(f"b = ct.bid(0)\nct.scatter(out, {index}, 1.0)")
    assert any(s.kind is Kind.OPAQUE for s in symbols(last_write(kernel).axes[0].index))


@pytest.mark.parametrize("call", ["ct.reduce(v, 0, f, 0)", "ct.scan(v, 0, f, 0)"])
@pytest.mark.parametrize(
    "function", ["f = lambda a, c: a // c", "def f(a, c):\n    return a // c"], ids=["lambda", "def"]
)
def test_the_function_of_a_reduction_is_executed(call: str, function: str) -> None:
    kernel = lowered(f"v = ct.load(x, index=(0,), shape=(4,))\n{function}\nr = {call}")
    assert [check.kind for check in kernel.checks] == [CheckKind.DIVISOR]


@pytest.mark.parametrize("call", ["ct.permute(b, (0,))", "ct.cat((b, b), 0)"])
def test_a_scalar_has_no_axes(call: str) -> None:
    with pytest.raises(UnsupportedConstruct, match="axis of a scalar"):
        lowered(f"b = ct.bid(0)\nr = {call}")


COMPUTED = {
    "sum": "v = ct.sum(v, 0, keepdims=True)",
    "scan": "v = ct.cumsum(v, 0)",
    "loop": "for i in range(3):\n    v = v + v",
    "loop that ends early": "for i in range(3):\n    v = v + v\n    if i > x.shape[0]:\n        break",
    "reduction": "v = ct.reduce(v, 0, lambda a, c: a + c, 0, keepdims=True)",
}


@pytest.mark.parametrize("change", COMPUTED.values(), ids=COMPUTED)
def test_what_is_computed_from_memory_has_its_type(change: str) -> None:
    """Floats between 0 and 1, unless the values are used as indices: then there are none."""
    load = "v = ct.load(x, index=(ct.bid(0),), shape=(4,))"
    store = "ct.scatter(out, ct.full((4,), 0, ct.int32), 1.0, mask=(v > 0) & (v < 1))"
    unknown = last_write(lowered(f"{load}\n{change}\n{store}")).mask
    assert all(node.op in ("all", "bsym") for node in E.conjuncts(unknown))
    known = last_write(lowered(f"{load}\n{change}\nt = ct.gather(tab, v)\n{store}")).mask
    assert all(node.op == "lt" for node in E.conjuncts(known))
