"""The light graph answers as the networkx graph that is made of it."""

from __future__ import annotations

import random

import networkx as nx
import pytest

from tilecheck.analysis.edges import Edges


@pytest.mark.parametrize("seed", range(20))
def test_edges_come_as_networkx_gives_them(seed: int) -> None:
    choice = random.Random(seed)
    light, graph = Edges(), nx.MultiDiGraph()
    names = [f"n{i}" for i in range(6)]
    for name in names:
        light.add_node(name, kind=name[1:])
        graph.add_node(name, kind=name[1:])
    for number in range(25):
        start, end = choice.choice(names), choice.choice(names)
        light.add_edge(start, end, number=number)
        graph.add_edge(start, end, number=number)
    made = light.as_networkx()
    for other in (graph, made):
        assert list(light.nodes(data=True)) == list(other.nodes(data=True))
        for name in [*names, "n9"]:
            assert light.nodes.get(name) == other.nodes.get(name)
            for data in (True, False):
                assert list(light.out_edges(name, data=data)) == list(other.out_edges(name, data=data))
                assert list(light.in_edges(name, data=data)) == list(other.in_edges(name, data=data))
    assert list(made.edges(keys=True, data=True)) == list(graph.edges(keys=True, data=True))
    assert "n1" in light
    assert "n9" not in light
