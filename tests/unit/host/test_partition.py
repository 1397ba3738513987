"""Exclusive pieces of an array, by tiles and by maps."""

from __future__ import annotations

import pytest

from tilecheck import host
from tilecheck.host import HostRefused


def refused(code, run):
    with pytest.raises(HostRefused) as caught:
        run()
    assert caught.value.code == code
    return str(caught.value)


def test_a_partition_says_the_grid(kit):
    x = host.full(20, 1.0).sync()
    parts = host.partition(x, 8)
    assert (parts.grid, len(parts)) == ((3,), 3)
    (back,) = host.launch(kit.double, None, (parts,)).sync()
    assert back is parts
    assert host.unpartition(parts) is x
    assert kit.values(x) == [2.0] * 20


def test_pieces_are_tiles_that_are_clipped_at_the_end(fake):
    x = host.own(fake.array([[10 * i + j for j in range(5)] for i in range(3)]))
    parts = host.partition(x, (2, 2))
    assert parts.counts == (2, 3)
    assert [piece.shape for piece in parts.pieces()] == [(2, 2), (2, 2), (2, 1), (1, 2), (1, 2), (1, 1)]
    assert parts[1, 1].tolist() == [[22, 23]]
    assert parts[0, 0] is parts[0, 0]
    with pytest.raises(IndexError, match="no block"):
        parts[2, 0]
    with pytest.raises(IndexError, match="no block"):
        parts[0]


def test_a_partitioned_array_is_not_used_itself(fake):
    x = host.zeros(16).sync()
    parts = host.partition(x, 8)
    assert "moved into a partition" in refused("TC412", lambda: host.fill(x, 1))
    host.unpartition(parts)
    host.fill(x, 1).sync()
    refused("TC412", lambda: parts[0])
    refused("TC412", lambda: host.unpartition(parts))


def test_a_partition_is_undone_only_when_all_pieces_are_back(fake):
    x = host.zeros(16).sync()
    parts = host.partition(x, 8)
    piece = parts[1]
    fill = host.fill(piece, 1)
    assert "a piece of it is in use" in refused("TC412", lambda: host.unpartition(parts))
    refused("TC412", lambda: host.launch(fake.double, None, (parts,)))
    host.fill(parts[0], 1).sync()  # another piece is free
    fill.sync()
    inner = host.partition(piece, 4)
    refused("TC412", lambda: host.unpartition(parts))
    host.unpartition(inner)
    assert host.unpartition(parts) is x
    assert "moved into `unpartition`" in refused("TC412", lambda: host.fill(piece, 2))


def test_pieces_are_not_used_while_the_whole_is(fake):
    parts = host.partition(host.zeros(16).sync(), 8)
    double = host.launch(fake.double, None, (parts,))
    refused("TC412", lambda: parts[0])
    double.sync()
    host.fill(parts[0], 1).sync()


def test_a_piece_that_is_to_be_read_keeps_the_whole_from_being_written(fake):
    parts = host.partition(host.zeros(16).sync(), 8)
    read = host.copy_to_host(parts[0])
    refused("TC412", lambda: host.launch(fake.double, None, (parts,)))
    host.copy_to_host(parts.whole).sync()  # two readers
    read.sync()
    host.launch(fake.double, None, (parts,)).sync()


def test_a_prefix_is_the_first_rows(kit):
    x = host.full(32, 1.0).sync()
    parts = host.partition_prefix(x, 16, 8)
    assert parts.grid == (2,)
    host.launch(kit.double, None, (parts,)).sync()
    assert kit.values(host.unpartition(parts)) == [2.0] * 16 + [1.0] * 16
    with pytest.raises(ValueError, match="first 33 rows"):
        host.partition_prefix(x, 33, 8)
    assert host.partition_prefix(x, 0, 8).grid == (0,)


def test_partitions_agree_on_the_grid(fake):
    x, y = host.zeros(16).sync(), host.zeros(24).sync()
    with pytest.raises(ValueError, match=r"\(2,\), \(3,\)"):
        host.launch(fake.add_one, None, (host.partition(x, 8), host.partition(y, 8)))
    with pytest.raises(ValueError, match="none"):
        host.launch(fake.add_one, None, (host.zeros(8).sync(), host.zeros(8).sync()))


def test_a_map_gives_each_block_a_tile_of_its_own(fake):
    x = host.own(fake.array(list(range(64))))
    parts = host.partition_map(x, 8, 8, lambda i: (i * 3 + 1) % 8)
    assert parts[0].tolist() == list(range(8, 16))
    assert parts[5].tolist() == list(range(8))  # 16 % 8 is 0
    assert len({tuple(piece.tolist()) for piece in parts.pieces()}) == 8


def test_a_map_of_two_axes(fake):
    x = host.own(fake.array([[0.0] * 8] * 8))
    parts = host.partition_map(x, (2, 2), (4, 4), lambda i, j: (j, 3 - i))
    s = host.stream()
    s.wait(host.current())
    for number, piece in enumerate(parts.pieces()):
        host.fill(piece, number).submit(s)
    rows = host.unpartition(parts)
    s.sync()
    assert [row[6] for row in rows.tolist()] == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("tile_map", "why"),
    [
        (lambda i: i // 2, "blocks (0,) and (1,) get one tile"),
        (lambda i: (i * i) % 8, "get one tile"),
        (lambda i: i + 1, "block (7,) gets another"),
        (lambda i: (i, 0), "2 coordinates for an array of 1 axes"),
    ],
)
def test_a_map_that_is_not_injective_is_refused(fake, tile_map, why):
    x = host.zeros(64).sync()
    assert why in refused("", lambda: host.partition_map(x, 8, 8, tile_map))
    host.fill(x, 1).sync()


def test_a_map_leaves_no_axis(fake):
    x = host.zeros((8, 8)).sync()
    text = refused("", lambda: host.partition_map(x, (2, 2), (4, 4), lambda i, j: (i, j + 1)))
    assert "leaves the array" in text


@pytest.mark.parametrize("tile_map", [lambda i: i if i < 4 else 11 - i, lambda i: 8 // i, lambda i: i // 0])
def test_a_map_that_is_not_arithmetic_is_refused(fake, tile_map):
    x = host.zeros(64).sync()
    with pytest.raises(TypeError):
        host.partition_map(x, 8, 8, tile_map)


def test_tiles_that_do_not_fit_the_array_are_refused(fake):
    x = host.zeros((8, 8)).sync()
    for tile in (8, (8, 0), (2, 2, 2)):
        with pytest.raises(ValueError, match="tiles of"):
            host.partition(x, tile)
    host.fill(x, 1).sync()
