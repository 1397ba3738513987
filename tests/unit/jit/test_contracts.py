"""Contracts on values in memory, held against the arrays of a launch that asks for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilecheck.errors import LaunchRefused, UsageError
from tilecheck.jit import guard, guard_triton, records
from tilecheck.jit.contracts import MOST_ELEMENTS, limit_of
from tilecheck.model import StatedContract
from tilecheck.verify.pipeline import verify_paths

PARTS = {"[0::2]": ((0, 2),), "[1::2]": ((1, 2),), "[1]": ((1, 0),), "[:, 1]": ((0, 1), (1, 0))}
PARTS["[-1]"] = ((-1, 0),)


class Values:
    """A NumPy array behind the part of PyTorch's interface that the guard reads."""

    is_cuda = False

    def __init__(self, values, dtype=np.int32):
        self.array = np.asarray(values, dtype)
        self.shape = self.array.shape
        self.dtype = self.array.dtype.name
        self.copied = 0

    def stride(self):
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def data_ptr(self):
        return self.array.ctypes.data

    def element_size(self):
        return self.array.itemsize

    def tolist(self):
        self.copied += 1
        return self.array.tolist()

    def as_strided(self, shape, strides):
        steps = tuple(s * self.array.itemsize for s in strides)
        made = Values([0])
        made.array = np.lib.stride_tricks.as_strided(self.array, shape, steps)
        return made


def contract(text, *bounds):
    kind, _, rest = text.partition("(")
    kind = "within_or" if kind == "within" and len(bounds) == 3 else kind
    arrays = [a.removeprefix("of=") for a in rest.rstrip(")").split(", ") if a.removeprefix("of=")[0] in "xy"]
    return StatedContract(kind, tuple(a[0] for a in arrays), bounds, text, PARTS.get(arrays[0][1:], ()))


def refused(check, grid, *args):
    with pytest.raises(LaunchRefused) as caught:
        check(grid, args)
    return str(caught.value)


def flat(made):
    """The record as one of a Triton kernel."""
    return replace(made, language="triton", arguments=tuple(replace(a, rank=1) for a in made.arguments))


# ---- each contract -------------------------------------------------------------------------------------------

CASES = [
    (("filled(x, 4)", "4"), [4, 4], None),
    (("filled(x, 4)", "4"), [4, 5], "x[1] = 5, which is not 4"),
    (("filled(x[0::2], n)", "n"), [5, 9, 5], None),
    (("within(x, 0, n)", "0", "n"), [0, 3, 4], None),
    (("within(x, 0, n)", "0", "n"), [0, 5, 9], "x[1] = 5, which is not in [0, 5)"),
    (("within(x, 0, n)", "0", "n"), [3, -1], "x[1] = -1"),
    (("within(x, 0, n, skip=-9)", "0", "n", "-9"), [0, -9, 4], None),
    (("within(x, 0, n, skip=-9)", "0", "n", "-9"), [0, -8, 4], "x[1] = -8, which is not in [0, 5) and not -9"),
    (("increasing(x)",), [0, 2, 2, 7], None),
    (("increasing(x)",), [0, 2, 1, 0], "x[1] = 2 and x[2] = 1"),
    (("increasing(x)",), [], None),
    (("distinct(x)",), [4, 0, 2], None),
    (("distinct(x)",), [4, 0, 2, 0, 4], "x[1] = 0 and x[3] = 0"),
    (("distinct(x, skip=-1)", "-1"), [4, -1, 2, -1], None),
    (("distinct(x, skip=-1)", "-1"), [4, -1, 4], "x[0] = 4 and x[2] = 4"),
    (("within(x[0::2], 0, n)", "0", "n"), [0, 9, 4, -3], None),
    (("within(x[0::2], 0, n)", "0", "n"), [0, 9, 7], "x[2] = 7, which is not in [0, 5)"),
    (("within(x[1], 0, n)", "0", "n"), [8, 4, 8], None),
    (("within(x[1], 0, n)", "0", "n"), [0, 8, 0], "x[1] = 8"),
    (("within(x[-1], n, n + 1)", "n", "n + 1"), [0, 8, 5], None),
    (("within(x[-1], n, n + 1)", "n", "n + 1"), [5, 5, 4], "x[2] = 4"),
    (("within(x[-1], n, n + 1)", "n", "n + 1"), [], None),
    (("increasing(x[1::2])",), [9, 0, 5, 2], None),
    (("increasing(x[1::2])",), [0, 3, 1, 2], "x[1] = 3 and x[3] = 2"),
    (("distinct(x[0::2])",), [1, 1, 2, 1], None),
    (("distinct(x[0::2])",), [1, 0, 1], "x[0] = 1 and x[2] = 1"),
]


@pytest.mark.parametrize(("stated", "values", "told"), CASES)
@pytest.mark.parametrize("language", ["cutile", "triton"])
def test_what_breaks_a_contract_is_told(record, language, stated, values, told):
    made = record("x n", contracts=(contract(*stated),))
    made = replace(made, arguments=(made.arguments[0], replace(made.arguments[1], integer=True)))
    compile_guard = guard.compile_guard if language == "cutile" else guard_triton.compile_guard
    made = made if language == "cutile" else flat(made)
    launch = (1,), Values(values), 5
    compile_guard(made)(launch[0], launch[1:])  # who does not ask gets no answer
    assert launch[1].copied == 0
    check = compile_guard(made, most=MOST_ELEMENTS)
    if told is None:
        check(launch[0], launch[1:])
        assert launch[1].copied == 1
    else:
        message = refused(check, *launch)
        assert "breaks a contract" in message
        assert told in message
        assert f"= {stated[0]}\n" in message


def test_rows_of_a_table(record):
    check = guard.compile_guard(record("x", contracts=(contract("distinct_pairs(x)"),)), most=100)
    check((1,), (Values([[0, 1], [1, 0], [1, 1]]),))
    assert "x[0] = [0, 1] and x[2] = [0, 1]" in refused(check, (1,), Values([[0, 1], [1, 0], [0, 1]]))


def test_pairs_one_after_the_other(record):
    made = flat(record("x", contracts=(contract("distinct_pairs(x)"),)))
    check = guard_triton.compile_guard(made, most=100)
    check((1,), (Values([0, 1, 1, 0, 1, 1, 0]),))
    assert "x[0] = [0, 1] and x[2] = [0, 1]" in refused(check, (1,), Values([0, 1, 1, 0, 0, 1]))


def test_a_column_of_a_table(record):
    stated = StatedContract("within", ("x",), ("0", "2"), "within(x[:, 1], 0, 2)", PARTS["[:, 1]"])
    check = guard.compile_guard(record("x", contracts=(stated,)), most=100)
    check((1,), (Values([[9, 1], [7, 0]]),))
    assert "x[1, 1] = 3" in refused(check, (1,), Values([[0, 1], [0, 3]]))
    assert "1 axes where it needs 2" in refused(check, (1,), Values([0, 1]))


@pytest.mark.parametrize(
    ("sums", "counts", "told"),
    [
        ([0, 2, 2, 5], [2, 0, 3], None),
        ([1, 3, 3, 6], [2, 0, 3], "x[0] = 1, which is not 0"),
        ([0, 2, 1, 4], [2, -1, 3], "y[1] = -1, which is negative"),
        ([0, 2, 2, 4], [2, 0, 3], "x[2] = 2, y[2] = 3 and x[3] = 4"),
        ([0, 2], [2, 0, 3], "x has 2 elements and y has 3"),
    ],
)
def test_prefix_sums(record, sums, counts, told):
    check = guard.compile_guard(record("x y", contracts=(contract("prefix_sum(x, of=y)"),)), most=100)
    if told is None:
        check((1,), (Values(sums), Values(counts)))
    else:
        assert told in refused(check, (1,), Values(sums), Values(counts))


@pytest.mark.parametrize(
    ("table", "starts", "told"),
    [
        ([0, 1, 2, 0, 0, 0], [0, 4, 4, 6], None),
        ([0, 2], [0, 4, 4, 6], "x[1] = 2, but sequence 0 has 4 rows, and a chunk 2"),
        ([1, 0], [0, 4, 4, 6], "x[1] = 0, but sequence 1 has 0 rows, and a chunk 2"),
        ([3, 0], [0, 4, 4, 6], "x[0] = 3, and y has 4 elements"),
        ([0, 0, 0, 0], [0, 4], "x[0] = [0, 0] and x[1] = [0, 0]"),
        ([0, -1], [0, 4], "x[1] = -1"),
    ],
)
def test_chunks_of_sequences(record, table, starts, told):
    stated = StatedContract("chunks", ("x", "y"), ("2",), "chunks(x, of=y, size=2)")
    check = guard_triton.compile_guard(flat(record("x y", contracts=(stated,))), most=100)
    if told is None:
        check((1,), (Values(table), Values(starts)))
    else:
        assert told in refused(check, (1,), Values(table), Values(starts))


@pytest.mark.parametrize(
    ("sums", "starts", "told"),
    [
        ([0, 2, 2, 4], [0, 4, 4, 7], None),
        ([0, 2, 2, 3], [0, 4, 4, 7], "x[3] - x[2] = 1, and sequence 2 has 2 chunks"),
        ([1, 3, 3, 5], [0, 4, 4, 7], "x[0] = 1, which is not 0"),
        ([0, 2, 1], [0, 4, 2], "x[1] = 2 and x[2] = 1"),
    ],
)
def test_numbers_of_chunks(record, sums, starts, told):
    stated = StatedContract("chunk_sums", ("x", "y"), ("2",), "chunk_sums(x, of=y, size=2)")
    check = guard_triton.compile_guard(flat(record("x y", contracts=(stated,))), most=100)
    if told is None:
        check((1,), (Values(sums), Values(starts)))
    else:
        assert told in refused(check, (1,), Values(sums), Values(starts))


def test_chunks_have_rows(record):
    stated = StatedContract("chunks", ("x", "y"), ("0",), "chunks(x, of=y, size=0)")
    check = guard_triton.compile_guard(flat(record("x y", contracts=(stated,))), most=100)
    assert "a chunk has 0 rows" in refused(check, (1,), Values([0, 0]), Values([0, 4]))


def test_prefix_sums_of_counts_that_the_kernel_does_not_touch(record):
    made = record("x y", contracts=(contract("prefix_sum(x, of=y)"),))
    x, y = made.arguments
    made = replace(made, arguments=(x, replace(y, ownership="unused")))
    check = guard.compile_guard(made, most=100)
    assert "touches only some" in refused(check, (1,), Values([5, 1]), Values([3]))


def test_arrays_that_are_disjoint(record):
    stated = StatedContract("disjoint", ("x", "parts"), (), "disjoint(x, parts)")
    check = guard.compile_guard(record("x parts*", contracts=(stated,)), most=100)
    both = Values(range(8))
    x, tail = Values([]), Values([])
    x.array, tail.array = both.array[:4], both.array[4:]
    x.shape = tail.shape = (4,)
    check((1,), (x, [tail, Values([1])]))
    assert "x and parts[1] overlap" in refused(check, (1,), x, [tail, both])
    assert x.copied == both.copied == 0


# ---- what can be looked at -----------------------------------------------------------------------------------


def test_every_launch_looks_again(record):
    check = guard.compile_guard(record("x", contracts=(contract("increasing(x)"),)), most=100)
    x = Values([1, 2, 3])
    check((1,), (x,))
    check((1,), (x,))
    x.array[0] = 9
    assert "x[0] = 9 and x[1] = 2" in refused(check, (1,), x)


def test_conditions_come_first(record):
    made = record("x n", "x.shape[0] == n", contracts=(contract("increasing(x)"),))
    x = Values([3, 2])
    assert "x.shape[0] == n" in refused(guard.compile_guard(made, most=100), (1,), x, 1)
    assert x.copied == 0


def test_larger_arrays_are_refused(record):
    made = record("x", contracts=(contract("increasing(x)"),))
    x = Values(range(11))
    message = refused(guard.compile_guard(made, most=10), (1,), x)
    assert "it has 11 elements, more than 10; `check_contracts=11` allows them" in message
    assert x.copied == 0
    guard.compile_guard(made, most=11)((1,), (x,))


def test_limits():
    assert limit_of(check_contracts=False) is None
    assert limit_of(check_contracts=True) == MOST_ELEMENTS == 65536
    assert limit_of(100) == 100
    assert limit_of(0) == 0


@pytest.mark.parametrize(("values", "dtype"), [([0.0, 1.0], np.float32), ([False, True], bool)])
def test_tables_hold_integers(record, values, dtype):
    check = guard.compile_guard(record("x", contracts=(contract("increasing(x)"),)), most=100)
    assert "its elements are no integers" in refused(check, (1,), Values(values, dtype))


def test_an_array_that_cannot_be_copied_is_refused(record, tensor):
    check = guard.compile_guard(record("x", contracts=(contract("increasing(x)"),)), most=100)
    assert "has no `tolist`" in refused(check, (1,), tensor(8))


def test_an_array_of_other_axes_is_refused(record):
    check = guard.compile_guard(record("x", contracts=(contract("increasing(x)"),)), most=100)
    assert "has 2 axes where it needs 1" in refused(check, (1,), Values([[1, 2]]))


def test_bounds_are_integers(record):
    made = record("x n", contracts=(contract("within(x, 0, n)", "0", "n"),))
    assert "no integer" in refused(guard.compile_guard(made, most=100), (1,), Values([1]), 5.0)


def test_none_has_no_values(record):
    made = flat(record("x", contracts=(contract("increasing(x)"),)))
    guard_triton.compile_guard(made, most=100)((1,), (None,))


def test_pointers_reach_the_gaps_between_rows(record):
    """The proof's array is flat, so the contract speaks of what lies between the tensor's rows as well."""
    check = guard_triton.compile_guard(
        flat(record("x", contracts=(contract("within(x, 0, 5)", "0", "5"),))), most=100
    )
    x = Values([0])
    x.array = np.array([[1, 2, 9], [3, 4, 9]], np.int32)[:, :2]
    x.shape = (2, 2)
    assert "x[2] = 9" in refused(check, (1,), x)
    x.array = np.array([[1, 2], [3, 9]], np.int32).T
    assert "x[3] = 9" in refused(check, (1,), x)
    x.array = np.array([[1, 2, 0], [3, 4, 9]], np.int32)[:, :2]  # what follows the last element is not reached
    check((1,), (x,))


# ---- from the text of a kernel -------------------------------------------------------------------------------

CUTILE = """
import cuda.tile as ct


# tilecheck: requires permutation(t) -- made by the sampler
# tilecheck: requires within(t, 0, cdiv(out.shape[0], T)) -- of the output
@ct.kernel
def scatter(t, out, T: ct.Constant[int]):
    i = ct.load(t, (ct.bid(0),), shape=(1,)).item()
    ct.store(out, (i,), ct.full((T,), 1.0, dtype=ct.float32))
"""
TRITON = """
import triton
import triton.language as tl


# tilecheck: requires distinct(t, skip=-1) -- made by the sampler
# tilecheck: requires within(t, -1, places) -- of the output
@triton.jit
def scatter(t, out, places):
    i = tl.load(t + tl.program_id(0))
    tl.store(out + i, 1.0, mask=(i >= 0) & (i < places))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("contracts")
    for name, text in (("cutile", CUTILE), ("triton", TRITON)):
        (folder / f"{name}.py").write_text(text)
    return {r.language: r for r in records.records_of(verify_paths([str(folder)]))}


def test_a_record_has_the_contracts_of_the_text(found):
    assert found["cutile"].contracts == (
        StatedContract("distinct", ("t",), (), "permutation(t)"),
        StatedContract("within", ("t",), ("0", "t.shape[0]"), "permutation(t)"),
        StatedContract("within", ("t",), ("0", "cdiv(out.shape[0], T)"), "within(t, 0, cdiv(out.shape[0], T))"),
    )
    assert [(c.kind, c.bounds) for c in found["triton"].contracts] == [
        ("distinct", ("-1",)),
        ("within", ("-1", "places")),
    ]


def test_contracts_of_the_text_are_checked(found):
    check = guard.compile_guard(found["cutile"], most=100)
    out = Values(np.zeros(12), np.float32)
    check((3,), (Values([2, 0, 1]), out, 4))
    assert "t[1] = 2 and t[2] = 2" in refused(check, (3,), Values([0, 2, 2]), out, 4)
    assert "t[2] = 3, which is not in [0, 3)" in refused(check, (3,), Values([0, 1, 3]), out, 4)
    check = guard_triton.compile_guard(found["triton"], most=100)
    check((3,), (Values([2, -1, -1]), out, 12))
    assert "t[2] = 12, which is not in [-1, 12)" in refused(check, (3,), Values([2, -1, 12]), out, 12)


def test_contracts_are_read_from_a_file(found, tmp_path):
    path = tmp_path / "v.json"
    path.write_text(records.dump(found.values()))
    assert [r.contracts for r in records.load(path)] == [r.contracts for r in found.values()]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "sorted"},
        {"kind": "within"},
        {"arrays": []},
        {"arrays": "t"},
        {"arrays": ["u"]},
        {"bounds": [1]},
        {"bounds": ["-1", "0"]},
        {"text": None},
        {"more": 1},
    ],
)
def test_what_is_no_contract_is_not_read(found, change):
    item = records.parse(records.dump([found["triton"]]).encode())["kernels"][0]
    records.record_from(item)
    item["contracts"][0] |= change
    with pytest.raises((UsageError, KeyError, TypeError, ValueError)):
        records.record_from(item)
