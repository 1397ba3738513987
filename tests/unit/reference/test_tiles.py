"""Loads and stores of whole tiles, views and slices."""

from __future__ import annotations

import numpy as np
import pytest

from tilecheck.reference import NotInterpretable

COPY = """
    @ct.kernel
    def k(x, y, T: ConstInt):
        i = ct.bid(0)
        ct.store(y, (i,), ct.load(x, (i,), shape=(T,)))
    """


def test_a_tile_covers_its_part_of_the_array(execute):
    x, y = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    log = execute(COPY, grid=(2,), x=x, y=y, T=4)
    np.testing.assert_array_equal(y, x)
    assert [record.effect for record in log.accesses] == ["read", "write", "read", "write"]
    assert [record.block for record in log.accesses] == [(0, 0, 0)] * 2 + [(1, 0, 0)] * 2
    assert [record.sequence for record in log.accesses] == [0, 1, 0, 1]


def test_a_partial_tile_touches_only_what_is_inside(execute):
    x, y = np.arange(6, dtype=np.int32), np.zeros(6, np.int32)
    log = execute(COPY, grid=(2,), x=x, y=y, T=4)
    np.testing.assert_array_equal(y, x)
    last = log.accesses[-1]
    np.testing.assert_array_equal(last.elements, [[4], [5]])
    np.testing.assert_array_equal(last.lanes, [[0], [1]])
    assert not log.undefined


@pytest.mark.parametrize(
    ("mode", "fill"),
    [("ZERO", 0.0), ("NEG_ZERO", -0.0), ("NAN", np.nan), ("POS_INF", np.inf), ("NEG_INF", -np.inf)],
)
def test_padding_fills_what_lies_outside(execute, mode, fill):
    x, y = np.ones(3, np.float32), np.zeros(4, np.float32)
    text = f"""
        @ct.kernel
        def k(x, y):
            ct.store(y, 0, ct.load(x, index=0, shape=4, padding_mode=ct.PaddingMode.{mode}))
        """
    execute(text, x=x, y=y)
    np.testing.assert_array_equal(y, np.array([1, 1, 1, fill], np.float32))
    assert np.signbit(y[3]) == np.signbit(np.float32(fill))


def test_order_maps_tile_axes_to_array_axes(execute):
    x = np.arange(4 * 8, dtype=np.int32).reshape(4, 8)
    y = np.zeros((4, 2), np.int32)
    text = """
        @ct.kernel
        def k(x, y):
            ct.store(y, (0, 0), ct.load(x, (1, 0), shape=(4, 2), order="F"))
        """
    log = execute(text, x=x, y=y)
    np.testing.assert_array_equal(y, x[0:2, 4:8].T)
    read = log.accesses[0]
    for element, lane in zip(read.elements, read.lanes, strict=True):
        assert (element[0], element[1]) == (lane[1], 4 + lane[0])


def test_order_of_a_store_and_of_three_axes(execute):
    x = np.arange(8, dtype=np.int32).reshape(2, 2, 2)
    y = np.zeros((2, 2, 2), np.int32)
    text = """
        @ct.kernel
        def k(x, y):
            t = ct.load(x, (1, 0, 0), shape=(1, 2, 2), order=(0, 2, 1))
            ct.store(y, (1, 0, 0), t, order=(0, 1, 2))
            ct.store(y, (0, 0, 0), t, order=(0, 2, 1))
        """
    execute(text, x=x, y=y)
    np.testing.assert_array_equal(y[1], x[1].T)
    np.testing.assert_array_equal(y[0], x[1])


def test_scalars_are_loaded_by_an_empty_shape_and_stored_as_one_element(execute):
    x, y = np.arange(6, dtype=np.int32).reshape(2, 3), np.zeros((2, 3), np.int32)
    text = """
        @ct.kernel
        def k(x, y):
            for i in range(2):
                for j in range(3):
                    value = ct.load(x, (i, j), shape=())
                    ct.store(y, (i, j), tile=value + 1)
            ct.store(y, (0, 0), tile=7)
        """
    log = execute(text, x=x, y=y)
    np.testing.assert_array_equal(y, [[7, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(log.accesses[-1].elements, [[0, 0]])
    assert log.accesses[-1].lanes.shape == (1, 0)


@pytest.mark.parametrize("index", [2, 5, -1])
def test_a_tile_wholly_outside_is_undefined_and_touches_nothing(execute, index):
    x, y = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    text = """
        @ct.kernel
        def k(x, y, i: int):
            ct.store(y, (i,), ct.load(x, (i,), shape=(4,)) + 1)
        """
    log = execute(text, x=x, y=y, i=index)
    assert [record.kind for record in log.undefined] == ["tile-outside", "tile-outside"]
    assert [record.array for record in log.undefined] == ["x", "y"]
    assert log.undefined[0].element == (index * 4,)
    assert all(len(record.elements) == 0 for record in log.accesses)
    assert not y.any()


def test_every_tile_of_an_empty_axis_is_outside(execute):
    text = """
        @ct.kernel
        def k(x):
            ct.store(x, (0, 0), ct.zeros((2, 2), ct.int32))
        """
    log = execute(text, x=np.zeros((4, 0), np.int32))
    assert [record.kind for record in log.undefined] == ["tile-outside"]


def test_an_unchecked_partial_tile_is_out_of_bounds(execute):
    text = """
        @ct.kernel
        def k(x, i: int):
            ct.store(x, (0, i), ct.full((2, 4), 1, ct.int32), check_bounds=False)
        """
    x = np.zeros((2, 6), np.int32)
    log = execute(text, x=x, i=1)
    assert [(record.kind, record.element) for record in log.undefined] == [("out-of-bounds", (0, 6))]
    np.testing.assert_array_equal(x[:, 4:], 1)
    assert not execute(text, x=x, i=0).undefined


def test_views_step_over_the_array(execute):
    x, y = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    text = """
        @ct.kernel
        def k(x, y):
            source = x.tiled_view(4, traversal_steps=2)
            target = y.tiled_view((4,), padding_mode=ct.PaddingMode.ZERO)
            target.store(0, source.load(1))
            target.store((1,), source.num_tiles(0))
            ct.store(y, (7,), source.tile_shape[0] + target.num_tiles(0))
        """
    log = execute(text, x=x, y=y)
    np.testing.assert_array_equal(y, [2, 3, 4, 5, 4, 4, 4, 6])
    np.testing.assert_array_equal(log.accesses[0].elements.ravel(), [2, 3, 4, 5])


def test_slices_shift_into_the_root_array(execute):
    x = np.arange(20, dtype=np.int32).reshape(4, 5)
    text = """
        @ct.kernel
        def k(x, start: int, stop: int):
            part = x.slice(axis=-1, start=start, stop=stop).slice(0, 1, 3)
            ct.store(part, (0, 0), ct.full((2, 4), 0, ct.int32))
            ct.store(x, (3, 0), part.shape[1])
        """
    log = execute(text, x=x, start=2, stop=5)
    np.testing.assert_array_equal(x[1:3, 2:], 0)
    assert x[3, 0] == 3
    np.testing.assert_array_equal(log.accesses[0].elements[0], [1, 2])
    assert not log.undefined


@pytest.mark.parametrize(("start", "stop"), [(4, 4), (2, 1), (0, 5), (-1, 2)])
def test_slices_have_preconditions(execute, start, stop):
    text = """
        @ct.kernel
        def k(x, start: int, stop: int):
            x.slice(0, start, stop)
        """
    log = execute(text, x=np.zeros(4, np.int32), start=start, stop=stop)
    assert [record.kind for record in log.undefined] == ["slice"]


def test_num_tiles_rounds_up(execute):
    out = np.zeros(4, np.int32)
    text = """
        @ct.kernel
        def k(x, out):
            ct.store(out, 0, ct.num_tiles(x, 0, shape=(4, 8)))
            ct.store(out, 1, ct.num_tiles(x, axis=1, shape=(4, 8)))
            ct.store(out, 2, ct.num_tiles(x, 1, (4, 8), order="F"))
            ct.store(out, 3, x.strides[0])
        """
    execute(text, x=np.zeros((42, 64), np.float32), out=out)
    np.testing.assert_array_equal(out, [11, 8, 6, 64])


def test_int32_indices_are_truncated_unless_the_array_is_indexed_with_int64(execute):
    text = """
        @ct.kernel
        def k(x{annotation}):
            ct.load(x, (ct.int64(1) << 32,), shape=(4,))
        """
    x = np.zeros(8, np.int32)
    assert [r.kind for r in execute(text.format(annotation=""), x=x).undefined] == ["overflow"]
    wide = execute(text.format(annotation=": ct.IndexedWithInt64"), x=x)
    assert [r.kind for r in wide.undefined] == ["tile-outside"]


def test_memory_orders_are_recorded(execute):
    text = """
        @ct.kernel
        def k(x):
            order, scope = ct.MemoryOrder, ct.MemoryScope
            t = ct.load(x, 0, 1, memory_order=order.ACQUIRE, memory_scope=scope.DEVICE)
            ct.store(x, 0, t, memory_order=order.RELEASE, memory_scope=scope.BLOCK)
        """
    log = execute(text, x=np.zeros(4, np.int32))
    assert [(r.order, r.scope) for r in log.accesses] == [("ACQUIRE", "DEVICE"), ("RELEASE", "BLOCK")]


@pytest.mark.parametrize("shape", ["(3,)", "(0,)", "(4, 4)", "(-2,)"])
def test_shapes_that_the_compiler_refuses_are_not_run(execute, shape):
    text = f"""
        @ct.kernel
        def k(x):
            ct.load(x, (0,), shape={shape})
        """
    with pytest.raises(NotInterpretable):
        execute(text, x=np.zeros(8, np.int32))
