"""Records: what a verdict becomes for a launch, and that a file is read whole or not at all."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest

from tilecheck.errors import UsageError
from tilecheck.jit import records
from tilecheck.jit.records import Argument, Global, Waits
from tilecheck.verify.pipeline import verify_paths

KERNELS = """
import cuda.tile as ct
from sizes import WIDTH, place

TILE = 8 * 16
PAIR = (4, [True, -1])


class Config:
    STEP = 2


# tilecheck: requires n % 4 == 0 -- whole vectors
@ct.kernel
def shift(x, parts, out, n: int, dead, T: ct.Constant[int]):
    i = place(ct.bid(0) * PAIR[0])
    tile = ct.load(parts[0], (i // PAIR[0],), shape=(TILE,))
    ct.store(out, (i // (2 * Config.STEP),), tile * n)


@ct.kernel
def race(x, out):
    tile = ct.load(x, (ct.bid(0),), shape=(WIDTH,))
    ct.store(out, (0,), tile)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "sizes.py").write_text("\nWIDTH = 64\n\n\ndef place(i):\n    return i\n")
    (folder / "k.py").write_text(KERNELS)
    return folder


@pytest.fixture(scope="module")
def found(folder):
    return records.records_of(verify_paths([str(folder / "k.py")]))


def test_a_record_says_what_a_launch_must_meet(found, folder):
    shift = found[0]
    assert (shift.name, shift.line, shift.verdict) == ("shift", 15, "conditional")
    assert [(a.name, a.ownership, a.array, a.members) for a in shift.arguments] == [
        ("x", "unused", False, False),
        ("parts", "shared", True, True),
        ("out", "mut", True, False),
        ("n", "value", False, False),
        ("dead", "unused", False, False),
        ("T", "unused", False, False),
    ]
    assert shift.grid_axes == (0,)
    assert "n % 4 == 0" in shift.conditions
    assert "grid[0] <= cdiv(parts[0].shape[0], 128)" in shift.conditions
    assert "(grid[0] - 1)" in " ".join(shift.limits)
    assert shift.sources == {
        name: records.digest((folder / name).read_bytes()) for name in ("k.py", "sizes.py")
    }


WAITING = """
import cuda.tile as ct
import triton
import triton.language as tl


@ct.kernel
def listed(parts, out):
    tile = ct.load(parts[0], (ct.bid(0),), shape=(64,))
    ct.grid_dependency_control_wait()
    ct.store(out, (ct.bid(0),), tile + ct.load(parts[1], (ct.bid(0),), shape=(64,)))


@triton.jit
def sometimes(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if n > 4:
        tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def never(out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 1.0, mask=at < n)
"""


def test_a_record_says_how_a_kernel_waits_for_the_launch_before(tmp_path):
    (tmp_path / "k.py").write_text(WAITING)
    found = {r.name: r for r in records.records_of(verify_paths([str(tmp_path / "k.py")]))}
    assert found["listed"].waits == Waits(always=True, reads=("parts",))
    assert found["sometimes"].waits == Waits(always=False, reads=("x_ptr",), writes=("out_ptr",))
    assert found["never"].waits is None
    for record in found.values():
        assert records.record_from(json.loads(json.dumps(records.as_json(record)))) == record


@pytest.mark.parametrize(
    "waits",
    [
        {"always": 1, "reads": [], "writes": []},
        {"always": True, "reads": ["y"], "writes": []},
        {"always": True, "reads": "x", "writes": []},
        {"always": True, "reads": []},
        {"always": True, "reads": [], "writes": [], "other": 1},
    ],
)
def test_an_order_of_launches_is_read_whole(found, waits):
    item = {**json.loads(json.dumps(records.as_json(found[0]))), "waits": waits}
    with pytest.raises((KeyError, TypeError, ValueError)):
        records.record_from(item)


def test_a_record_says_what_names_were_taken_for(found):
    assert set(found[0].globals) == {
        Global("k.py", "ct", library="cuda.tile"),
        Global("k.py", "TILE", 128),
        Global("k.py", "PAIR", (4, (True, -1))),
        Global("k.py", "Config.STEP", 2),
        Global("k.py", "place", path="sizes.py", line=5),
        Global("sizes.py", "place", path="sizes.py", line=5),
    }


WAYS = """import os
import triton
import triton.language as tl

if os.environ.get("FAST"):
    @triton.jit
    def bell(x):
        return x * 2.0
else:
    @triton.jit
    def bell(x):
        return tl.exp(x)

@triton.jit
def k(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out_ptr + i, bell(tl.load(x_ptr + i, mask=i < n)), mask=i < n)
"""


def test_a_name_that_is_bound_in_several_ways_has_them_all(tmp_path):
    (tmp_path / "k.py").write_text(WAYS)
    (record,) = records.records_of(verify_paths([str(tmp_path / "k.py")]))
    assert {g.line for g in record.globals if g.name == "bell"} == {7, 11}


def test_a_kernel_that_is_not_verified_has_its_findings(found):
    race = found[1]
    assert not race.is_accepted
    assert "TC201" in race.report
    assert "shift" not in race.report


def test_a_file_that_changed_since_it_was_verified_has_no_record(tmp_path):
    path = tmp_path / "k.py"
    path.write_text("x = 1\n" + KERNELS.replace("from sizes", "from missing"))
    report = verify_paths([str(path)])
    path.write_text("x = 2\n" + KERNELS)
    with pytest.raises(UsageError, match="changed"):
        records.records_of(report)


def test_a_helper_that_changed_since_it_was_read_has_no_record(tmp_path):
    path = tmp_path / "k.py"
    path.write_text(KERNELS)
    (tmp_path / "sizes.py").write_text("WIDTH = 64\n\n\ndef place(i):\n    return i\n")
    report = verify_paths([str(path)])
    assert len(records.records_of(report)) == 2
    (tmp_path / "sizes.py").write_text("WIDTH = 64\n\n\ndef place(i):\n    return i // 2\n")
    with pytest.raises(UsageError, match=r"sizes\.py changed"):
        records.records_of(report)


# ---- as a file -----------------------------------------------------------------------------------------------


@pytest.fixture
def emitted(found, tmp_path):
    path = tmp_path / "v.json"
    path.write_text(records.dump(found))
    return path


def test_what_is_written_is_read(found, emitted):
    def listed(value):
        return [listed(v) for v in value] if isinstance(value, tuple) else value

    loaded = records.load(emitted)
    assert loaded == tuple(
        replace(r, globals=tuple(replace(g, value=listed(g.value)) for g in r.globals)) for r in found
    )
    assert loaded[1].report == found[1].report
    assert isinstance(loaded[0].arguments[0], Argument)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe\x00",
        b"null",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"schema_version": 4}',
        b'{"schema_version": 4, "kernels": {}}',
        b'{"schema_version": 4, "kernels": "ab"}',
        b'{"schema_version": 4, "kernels": [null]}',
        b'{"schema_version": 4, "kernels": [{}]}',
        b'{"schema_version": 4' + b"0" * 5000 + b"}",
    ],
)
def test_what_is_no_verdict_file_is_not_read(tmp_path, text):
    path = tmp_path / "v.json"
    path.write_bytes(text)
    with pytest.raises(UsageError, match="is not a verdict file"):
        records.load(path)


def test_a_file_that_was_cut_off_is_not_read(emitted):
    whole = emitted.read_bytes()
    for end in range(1, len(whole) - 2, 97):
        emitted.write_bytes(whole[:end])
        with pytest.raises(UsageError, match="is not a verdict file"):
            records.load(emitted)


def test_a_file_of_another_version_says_so(emitted):
    emitted.write_text(json.dumps({**json.loads(emitted.read_text()), "schema_version": 99}))
    with pytest.raises(UsageError, match="another version"):
        records.load(emitted)


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        records.load(tmp_path / "none.json")


FIELDS = "name file line sources verdict arguments grid_axes conditions limits standing globals".split()
TEXTS = ("conditions", "limits", "standing")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (field, value)
        for field in FIELDS
        for value in (..., None, "", {}, 1.5, True, [None], [[]], ["0"])
        if not (value == ["0"] and field in TEXTS) and not (value == "" and field == "name")  # these are right
    ],
)
def test_a_record_with_a_field_of_another_kind_is_not_read(emitted, field, value):
    whole = json.loads(emitted.read_text())
    changed = copy.deepcopy(whole)
    if value is ...:
        del changed["kernels"][0][field]
    else:
        changed["kernels"][0][field] = value
    emitted.write_text(json.dumps(changed))
    with pytest.raises(UsageError, match="is not a verdict file"):
        records.load(emitted)


@pytest.mark.parametrize(
    ("field", "value"),
    [("ownership", "MUT"), ("array", 1), ("rank", "1"), ("members", None), ("name", 3), ("zz", 1)],
)
def test_an_argument_of_another_kind_is_not_read(emitted, field, value):
    changed = json.loads(emitted.read_text())
    changed["kernels"][0]["arguments"][0][field] = value
    emitted.write_text(json.dumps(changed))
    with pytest.raises(UsageError, match="is not a verdict file"):
        records.load(emitted)


def test_two_arguments_of_one_name_are_not_read(emitted):
    changed = json.loads(emitted.read_text())
    changed["kernels"][0]["arguments"][1]["name"] = changed["kernels"][0]["arguments"][0]["name"]
    emitted.write_text(json.dumps(changed))
    with pytest.raises(UsageError, match="is not a verdict file"):
        records.load(emitted)
