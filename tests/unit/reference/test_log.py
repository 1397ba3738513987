"""What the log says: byte ranges, blocks and their order, and races that are seen in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilecheck.reference import Launch, run

BODY = (
    "import cuda.tile as ct\n# größe ✓ 🎈\n@ct.kernel\ndef k(x, y):\n"
    "    é = ct.bid(0); t = ct.load(x, (é,),\n        shape=(4,))  # ü\n"
    "    ct.store(y, (é,), t * t // (é - é))\n"
    "    é += 2147483647\n    é = é + 1\n"
)


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_byte_ranges_are_those_of_the_file_as_it_stands(tmp_path, bom, newline):
    path = tmp_path / "m.py"
    path.write_bytes(bom + BODY.replace("\n", newline).encode())
    raw = path.read_bytes()
    x = np.arange(4, dtype=np.int32)
    log = run(Launch(path.as_posix(), "k", (1, 1, 1), {"x": x, "y": np.zeros(4, np.int32)}))
    texts = [raw[record.start : record.end].decode().replace(newline, "\n") for record in log.accesses]
    assert texts == ["ct.load(x, (é,),\n        shape=(4,))", "ct.store(y, (é,), t * t // (é - é))"]
    undefined = [(record.kind, raw[record.start : record.end].decode()) for record in log.undefined]
    assert undefined == [("divisor", "t * t // (é - é)"), ("overflow", "é + 1")]


def test_a_file_in_another_encoding_counts_in_utf_8(tmp_path):
    path = tmp_path / "m.py"
    text = (
        "# -*- coding: latin-1 -*-\nimport cuda.tile as ct\n@ct.kernel\ndef k(x):\n    'ü'; ct.store(x, 0, 1)\n"
    )
    path.write_bytes(text.encode("latin-1"))
    log = run(Launch(path.as_posix(), "k", (1, 1, 1), {"x": np.zeros(1, np.int32)}))
    record = log.accesses[0]
    assert text.encode()[record.start : record.end] == b"ct.store(x, 0, 1)"


def test_statements_that_compute_have_their_own_range(execute):
    text = """
        @ct.kernel
        def k(n):
            n += 1
            n = -(n - 1) - 1
        """
    log = execute(text, n=2**31 - 1)
    raw = Path(log.undefined[0].path).read_bytes()
    assert [raw[r.start : r.end] for r in log.undefined] == [b"n += 1", b"n - 1"]


def test_blocks_run_in_the_order_asked_for(execute):
    text = """
        @ct.kernel
        def k(out):
            ct.store(out, (0,), ct.bid(0) * 100 + ct.bid(1) * 10 + ct.num_blocks(1))
        """
    out = np.zeros(1, np.int32)
    log = execute(text, grid=(2, 2), out=out)
    assert [record.block for record in log.accesses] == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]
    assert out[0] == 112
    log = execute(text, grid=(2, 9), blocks=[(1, 1, 0), (0, 0, 0)], out=out)
    assert [record.block for record in log.accesses] == [(1, 1, 0), (0, 0, 0)]
    assert out[0] == 9


def overlap(log, effects=("write", "write")):
    """The elements that the first two blocks of a log both touch with these effects."""
    touched = []
    for block, effect in zip(sorted({record.block for record in log.accesses}), effects, strict=False):
        rows = [r.elements for r in log.accesses if r.block == block and r.effect == effect]
        touched.append({tuple(row) for part in rows for row in part.tolist()})
    return touched[0] & touched[1]


def test_a_race_of_two_blocks_is_seen(execute):
    text = """
        @ct.kernel
        def k(x, T: ConstInt, HALVE: ct.Constant[bool]):
            i = ct.bid(0) // 2 if HALVE else ct.bid(0)
            ct.store(x, (i,), ct.full((T,), ct.bid(0), x.dtype))
        """
    blocks = [(2, 0, 0), (3, 0, 0)]
    x = np.zeros(16, np.int32)
    assert overlap(execute(text, grid=(4,), blocks=blocks, x=x, T=4, HALVE=True)) == {(4,), (5,), (6,), (7,)}
    assert not overlap(execute(text, grid=(4,), blocks=blocks, x=x, T=4, HALVE=False))


def test_a_write_and_a_read_of_two_blocks(execute):
    text = """
        @ct.kernel
        def k(x):
            i = ct.bid(0)
            left = ct.gather(x, i - 1)
            ct.scatter(x, i, left + 1)
        """
    x = np.zeros(4, np.int32)
    forward = execute(text, grid=(2,), x=x)
    assert overlap(forward, ("write", "read")) == {(0,)}
    assert len(forward.accesses[0].elements) == 0


def test_a_run_without_a_record_still_tells_what_is_undefined(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(BODY)
    y = np.zeros(4, np.int32)
    launch = Launch(path.as_posix(), "k", (1, 1, 1), {"x": np.arange(4, dtype=np.int32), "y": y})
    log = run(launch, record=False)
    assert not log.accesses
    assert [record.kind for record in log.undefined] == ["divisor", "overflow"]


def test_runs_are_deterministic(execute):
    text = """
        @ct.kernel
        def k(x):
            lanes = ct.arange(8, dtype=ct.int32)
            ct.scatter(x, lanes % 3, lanes, mask=lanes != 1)
        """

    def run_once():
        log = execute(text, grid=(3,), x=np.zeros(8, np.int32))
        return [
            (r.block, r.sequence, r.start, r.elements.tolist(), r.lanes.tolist()) for r in log.accesses
        ], log.undefined

    assert run_once() == run_once()
