"""The borrow graph: what it shows, and that ownership and findings are queries over its edges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck.analysis.accesses import both_atomic_enough
from tilecheck.analysis.borrow import BLOCK, BorrowGraph, array_node, build
from tilecheck.analysis.facts import Facts
from tilecheck.frontend.kernels.definitions import find_kernels
from tilecheck.frontend.lower import lower
from tilecheck.frontend.modules.project import Project
from tilecheck.frontend.text.source import load
from tilecheck.ir.expr import const
from tilecheck.ir.kernel import Effect, Kernel, Ownership
from tilecheck.ir.launch import HostTensor, Launch
from tilecheck.model import Diagnostic, Site, Span
from tilecheck.proof.obligation import Obligation, Ordered
from tilecheck.registry import load_rules
from tilecheck.verify.show import show

ROOT = Path(__file__).parents[3]
GOLDEN = Path(__file__).parent / "expected"

COPY = """
import cuda.tile as ct
from tilecheck import Mut, Shared

@ct.kernel
def copy(x: Shared, out: Mut, T: ct.Constant[int]):
    i = ct.bid(0)
    tile = ct.load(x, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=tile)
    again = ct.load(out, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=again + 1)
"""


def kernel_of(tmp_path: Path, text: str) -> Kernel:
    path = tmp_path / "kernel.py"
    path.write_text(text)
    return lower(find_kernels(Project().add(load(str(path))))[0])


def findings(graph: BorrowGraph, code: str) -> list[object]:
    rule = next(entry.rule for entry in load_rules() if entry.rule.code == code)
    assert rule.check is not None
    return list(rule.check(Facts(graph.kernel, graph)))


def edges(graph: BorrowGraph, kind: str) -> list[tuple[str, str, int]]:
    return [(u, v, k) for u, v, k, d in graph.graph.edges(keys=True, data=True) if d["kind"] == kind]


@pytest.fixture
def copy(tmp_path: Path) -> BorrowGraph:
    return build(kernel_of(tmp_path, COPY))


@pytest.mark.parametrize("stage", ["borrow", "dot"])
@pytest.mark.parametrize(
    ("file", "kernel"),
    [
        ("softmax.py", "softmax_online_kernel"),
        ("permute_heads.py", "permute_heads_kernel"),
        ("matmul.py", "matmul_kernel"),
    ],
)
def test_the_graph_is_shown(stage: str, file: str, kernel: str, golden: Callable[[Path, str], None]) -> None:
    suffix = "txt" if stage == "borrow" else "dot"
    golden(GOLDEN / f"{kernel}.{suffix}", show(stage, str(ROOT / "kernels" / file), kernel))


def test_ownership_follows_the_borrows(copy: BorrowGraph) -> None:
    assert copy.ownership("x") is Ownership.SHARED
    assert copy.ownership("out") is Ownership.MUT
    assert [a.effect for a in copy.borrows("out")] == [Effect.WRITE, Effect.READ, Effect.WRITE]


def test_without_the_mutable_borrows_an_array_is_shared(copy: BorrowGraph) -> None:
    for u, v, k in edges(copy, "borrows"):
        if copy.graph[u][v][k]["mode"] == "mutable":
            copy.graph.remove_edge(u, v, k)
    assert copy.ownership("out") is Ownership.SHARED
    missing = findings(copy, "TC102")
    assert [d.message for d in missing if isinstance(d, Diagnostic)] == [
        "`out` is declared mut but `copy` never writes it"
    ]


def test_without_its_owner_a_partition_is_nobodys(copy: BorrowGraph) -> None:
    for _, partition in list(copy.graph.out_edges(array_node("out"))):
        copy.graph.remove_edge(array_node("out"), partition)
    assert copy.ownership("out") is Ownership.UNUSED
    assert not [c for c in copy.conflicts() if c.array == "out"]


def test_a_mutable_borrow_of_a_shared_array_is_found(copy: BorrowGraph) -> None:
    assert findings(copy, "TC101") == []
    store = next(a for a in copy.borrows("out") if a.effect is Effect.WRITE)
    partition = next(v for _, v in copy.graph.out_edges(array_node("x")))
    copy.graph.add_edge(BLOCK, partition, kind="borrows", mode="mutable", access=store)
    obligations = [o for o in findings(copy, "TC101") if isinstance(o, Obligation)]
    assert [o.cause for o in obligations] == ["`x` is declared shared but is written"]


def test_order_within_a_block_is_an_edge(copy: BorrowGraph) -> None:
    def ordered() -> int:
        goals = [o.goal for o in findings(copy, "TC204") if isinstance(o, Obligation)]
        return sum(1 for goal in goals if isinstance(goal, Ordered) and goal.array == "out")

    assert ordered() == 3
    for u, v, k in edges(copy, "happens-before"):
        copy.graph.remove_edge(u, v, k)
    assert ordered() == 0


def launch_of(graph: BorrowGraph, *tensors: tuple[str, HostTensor]) -> Launch:
    site = Site("kernel.py", Span(0, 1))
    return Launch(graph.kernel.name, "kernel.py", "host", site, (const(1),), tensors, ())


def tensor(name: str, storage: str, *, part: tuple[object, ...] | None = ()) -> HostTensor:
    return HostTensor(name, storage, fresh=False, shape=None, strides=None, part=part)


def test_one_buffer_moved_twice_is_found(copy: BorrowGraph) -> None:
    launch = launch_of(copy, ("x", tensor("a", "a")), ("out", tensor("a", "a")))
    graph = build(copy.kernel, [launch])
    assert graph.alias_groups() == (("out", "x"),)
    assert len(findings(graph, "TC401")) == 1
    moves = [(u, v, k) for u, v, k in edges(graph, "moves") if v == array_node("x")]
    graph.graph.remove_edge(*moves[0])
    assert graph.alias_groups() == ()
    assert findings(graph, "TC401") == []


def test_two_pieces_of_one_buffer_are_left_to_the_guard(copy: BorrowGraph) -> None:
    pieces = (("x", tensor("a[:n]", "a", part=(0,))), ("out", tensor("a[n:]", "a", part=(1,))))
    assert findings(build(copy.kernel, [launch_of(copy, *pieces)]), "TC401") == []


def test_two_buffers_do_not_alias(copy: BorrowGraph) -> None:
    launch = launch_of(copy, ("x", tensor("a", "a")), ("out", tensor("b", "b")))
    assert findings(build(copy.kernel, [launch]), "TC401") == []


@pytest.mark.parametrize(
    ("order", "scope", "safe"),
    [("ACQ_REL", "DEVICE", True), ("RELAXED", "SYS", True), ("ACQ_REL", "BLOCK", False)],
)
def test_atomics_are_safe_by_their_scope(tmp_path: Path, order: str, scope: str, safe: bool) -> None:
    text = f"""
import cuda.tile as ct

@ct.kernel
def count(total):
    ct.bid(0)
    ct.atomic_add(total, 0, 1, memory_order=ct.MemoryOrder.{order}, memory_scope=ct.MemoryScope.{scope})
"""
    (access,) = kernel_of(tmp_path, text).accesses
    assert both_atomic_enough(access, access) is safe
