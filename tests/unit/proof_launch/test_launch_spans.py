"""What is said of the tensors that a launch of a Triton kernel passes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from tilecheck.ir.expr import Expr, Symbol, evaluate, le, sym
from tilecheck.ir.host import host_extent, host_scalar, host_stride, row_major
from tilecheck.ir.launch import HostTensor, Launch
from tilecheck.model import Site, Span
from tilecheck.proof.launches.inputs.spans import span, span_facts

EXTENTS = tuple(host_extent("x", k) for k in range(3))
SHAPE = tuple(map(sym, EXTENTS))
FREE = tuple(sym(host_stride("x", k)) for k in range(3))


def tensor(strides: tuple[Expr, ...], *, dense: bool) -> HostTensor:
    return HostTensor("x", "x", fresh=False, shape=SHAPE, strides=strides, dense=dense)


def facts_of(strides: tuple[Expr, ...], shape: tuple[Expr, ...] = SHAPE) -> tuple[Expr, ...]:
    passed = (("p", replace(tensor(strides, dense=True), shape=shape)),)
    return span_facts(
        Launch("kernel", "host.py", "host", Site("host.py", Span(0, 0)), (None,), passed, ()), ("p",)
    )


def test_row_major_strides_say_by_themselves_that_a_tensor_is_dense() -> None:
    """So that is not said of them: whatever the sizes, it spans as many elements as it has."""
    assert facts_of(row_major(SHAPE)) == (le(0, SHAPE[2]),)  # a size that is also a stride
    reach = span(tensor(row_major(SHAPE), dense=False), "p")
    count = span(tensor(row_major(SHAPE), dense=True), "p")
    for sizes in product(range(4), repeat=3):
        values: dict[Symbol, int] = dict(zip(EXTENTS, sizes, strict=True))
        assert evaluate(reach, values.__getitem__) == evaluate(count, values.__getitem__)


def test_a_dense_tensor_spans_its_elements_whatever_its_strides() -> None:
    values = {s.args[0]: n for s, n in zip((*SHAPE, *FREE), (2, 3, 4, 1, 2, 6), strict=True)}
    assert all(evaluate(fact, values.__getitem__) for fact in facts_of(FREE))
    values[FREE[2].args[0]] = 7
    assert not all(evaluate(fact, values.__getitem__) for fact in facts_of(FREE))
    assert len(facts_of((FREE[0], *row_major(SHAPE)[1:]))) == 3  # the last also where one stride is free


def test_a_dense_tensor_has_no_negative_size() -> None:
    """Of numbers that the caller passes nothing else says so: in row-major order, that alone is to be said."""
    numbers = tuple(host_scalar(name) for name in "abc")
    shape = tuple(map(sym, numbers))
    said = facts_of(row_major(shape), shape)
    reach = span(replace(tensor(row_major(shape), dense=False), shape=shape), "p")
    count = span(replace(tensor(row_major(shape), dense=True), shape=shape), "p")
    for sizes in product(range(-2, 4), repeat=3):
        values: dict[Symbol, int] = dict(zip(numbers, sizes, strict=True))
        dense = 0 in sizes or evaluate(reach, values.__getitem__) == evaluate(count, values.__getitem__)
        of_sizes = [evaluate(f, values.__getitem__) for f in said if f.op == "any"]
        assert of_sizes == [dense] == [0 in sizes or min(sizes) > 0]
