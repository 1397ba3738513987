"""Guarded functions that are wrong: what is not decided before they run is refused when they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tilecheck import host
from tilecheck.frontend.host_guards import Guarding
from tilecheck.host import HostRefused
from tilecheck.host.reference import ReferenceDriver

Judged = Callable[..., dict[str, Guarding]]
WRONG = """
from tilecheck import host


def unordered():  # TC411
    a, b = host.stream(), host.stream()
    x = host.zeros(8).submit(a)
    host.fill(x, 1.0).submit(b)


def through_a_helper():  # TC411
    a, b = host.stream(), host.stream()
    x = host.zeros(8).submit(a)
    later(b)(x)


def later(stream):
    return lambda x: host.fill(x, 1.0).submit(stream)


def used_after_move():  # TC412
    x = host.zeros(8).sync()
    op = host.fill(x, 1.0)
    x.tolist()
    op.sync()


def run_twice():  # TC412
    op = host.zeros(8)
    return op.sync(), op.sync()


def shared_and_written():  # TC412
    x = host.zeros(8).sync()
    reader = x.share()
    host.fill(x, 1.0).sync()
    return reader


def read_too_early():  # TC415
    stream = host.stream()
    target = host.pinned(8)
    host.copy_to_host(host.zeros(8).submit(stream), target).submit(stream)
    return target.tolist()


def allocates_in_capture():  # TC422
    with host.capture(host.stream()) as scope:
        host.zeros(8).submit()
    return scope.graph


def waits_in_capture():  # TC422
    stream = host.stream()
    x = host.zeros(8).sync()
    with host.capture(stream) as scope:
        host.fill(x, 1.0).submit()
        stream.sync()
    return scope.graph


def written_beside_the_graph():  # TC423
    stream = host.stream()
    x = host.zeros(8).sync()
    with host.capture(stream) as scope:
        host.fill(x, 1.0).submit()
    scope.graph.launch(stream)
    host.fill(x, 2.0).submit(stream)


def borrowed_too_long():  # TC426
    stream = host.stream()
    x = host.zeros(8).sync()
    with host.capture(stream) as scope:
        host.fill(x, 1.0).submit()
        scope.output("x", x)
    scope.graph.launch(stream)
    found = scope.graph.output("x")
    scope.graph.launch(stream)
    return found.tolist()
"""
NAMES = {line.split("(")[0].removeprefix("def "): line[-5:] for line in WRONG.splitlines() if "  # TC" in line}


@pytest.fixture
def runtime() -> Iterator[host.Runtime]:
    with host.using(host.Runtime(ReferenceDriver(), background=False)) as made:
        yield made


@pytest.mark.parametrize(("name", "code"), NAMES.items())
@pytest.mark.usefixtures("runtime")
def test_what_is_guarded_is_refused_as_it_runs(judged: Judged, name: str, code: str) -> None:
    assert judged(WRONG)[name].is_guarded
    scope: dict[str, Any] = {}
    exec(compile(WRONG, "wrong.py", "exec"), scope)
    with pytest.raises(HostRefused) as refused:
        scope[name]()
    assert refused.value.code == code
