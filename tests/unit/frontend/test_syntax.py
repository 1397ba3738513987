"""Walks over syntax trees: an indexed tree answers as one that is read node by node."""

from __future__ import annotations

import gc
from collections.abc import Callable

import libcst as cst
import pytest
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from tilecheck.frontend.text.byte_spans import byte_spans
from tilecheck.frontend.text.syntax import Index, children, has_kind, names_touched, walk, walk_kind

TEXT = """\
@decorated(1)
def outer(a, b=lambda: 1, *rest):
    "text"
    t[a] = x[b]
    def inner():
        return [i for i in a if i] or f"{b!r:>{a}}"
    class Held:
        field: int = a.b(c, d=2)
    return inner

with open(é, "w") as file, other:
    for k, v in pairs: del t.x; await_ = not k
"""


def _same(first: object, second: object) -> bool:
    return first is second


@pytest.mark.parametrize("enter", [None, lambda n: not isinstance(n, cst.FunctionDef | cst.Call)])
def test_a_walk_is_the_same_without_an_index(enter: Callable[[cst.CSTNode], bool] | None) -> None:
    module = cst.parse_module(TEXT)
    plain = [list(walk(node, enter)) for node in walk(module)]
    below = [children(node) for node in walk(module)]
    index = Index(module)
    assert len(index.nodes) == len(plain) > 90
    for node, nodes, own in zip(index.nodes, plain, below, strict=True):
        assert all(map(_same, walk(node, enter), nodes))
        assert len(list(walk(node, enter))) == len(nodes)
        assert list(children(node)) == list(own)


def test_nodes_of_a_kind_come_in_the_order_of_the_walk() -> None:
    module = cst.parse_module(TEXT)
    kinds = (cst.Name, cst.Call, cst.Subscript, cst.FunctionDef)
    plain = [[n for n in walk(node) if type(n) in kinds] for node in walk(module)]
    assert [list(walk_kind(node, *kinds)) for node in walk(module)] == plain
    index = Index(module)
    assert [list(walk_kind(node, *kinds)) for node in index.nodes] == plain
    assert [has_kind(node, *kinds) for node in index.nodes] == [bool(found) for found in plain]
    assert sum(map(len, plain)) > 100


def test_functions_come_with_the_functions_around_them() -> None:
    index = Index(cst.parse_module(TEXT))

    def shown(skips: Callable[[cst.FunctionDef], bool] | None = None) -> list[tuple[str, str]]:
        found = index.functions(cst.Return, cst.Attribute, skips=skips)
        return [(type(n).__name__, "/".join(f.name.value for f in around)) for n, around in found]

    assert shown() == [
        ("FunctionDef", ""),
        ("FunctionDef", "outer"),
        ("Return", "outer/inner"),
        ("Attribute", "outer"),
        ("Return", "outer"),
        ("Attribute", ""),
    ]
    assert shown(lambda function: function.name.value == "inner") == [
        ("FunctionDef", ""),
        ("Attribute", "outer"),
        ("Return", "outer"),
        ("Attribute", ""),
    ]


def test_a_tree_goes_with_its_index() -> None:
    def alive() -> int:
        gc.collect()
        return sum(type(one) is cst.NamedExpr for one in gc.get_objects())

    before = alive()
    trees = [cst.parse_module("(a := b)\n") for _ in range(5)]
    indices = [Index(tree) for tree in trees]
    assert alive() == before + 5
    del indices[1:]
    assert [n.value for tree in trees for n in walk_kind(tree, cst.Name)] == ["a", "b"] * 5
    del trees
    assert alive() == before + 1
    del indices
    assert alive() == before


def test_an_item_that_is_read_does_not_touch_its_container() -> None:
    module = cst.parse_module("t[a] = x[b]\ndel y[c]\nz[0] += f(w)\n")
    plain = names_touched(module)
    index = Index(module)
    assert names_touched(module) == plain == ["t", "a", "b", "y", "c", "z", "f", "w"]
    assert index.nodes


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("é", "e"), "x = 1", "", "if a:\n\tb = (\n\t  c)\n"])
def test_spans_are_those_of_libcst(text: str) -> None:
    module = cst.parse_module(text)
    spans = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider)
    expected = {id(node): (span.start, span.start + span.length) for node, span in spans.items()}
    assert byte_spans(module) == expected
