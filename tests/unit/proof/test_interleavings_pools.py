"""The oracle and memory in the pools of graphs: who gets it next, and when."""

from __future__ import annotations

from proof_host_text import program

from tilecheck.proof.interleavings import hazards

POOL = "x t:a@pool=g u:{}@pool=g"


def test_a_pool_hands_out_again_in_the_order_of_one_stream() -> None:
    text = """capture g a
        allocate t
        record e a
        await b e
        launch b writes t
        free t{}
        allocate u
        launch a writes u
        record f b
        await a f
        end g
        replay g main"""
    assert keys(text.format(""), POOL.format("a")) == {("TC413", 4, 7, "t")}
    assert keys(text.format(""), POOL.format("b")) == set()  # reuse follows the stream
    assert keys(text.format(" after b"), POOL.format("a")) == set()


def test_memory_of_a_pool_is_not_used_when_it_was_given_back() -> None:
    text = "capture g a\nallocate t\nlaunch a writes t\nend g\nreplay g a\nfree t\nlaunch a reads t"
    assert keys(text, POOL.format("a")) == {("TC413", 5, 6, "t")}


def test_what_the_program_owns_outlives_the_pool() -> None:
    text = "capture g a\nallocate t\nlaunch a writes t\nend g\nreplay g a\ndestroy g\nlaunch a reads t"
    assert keys(text, POOL.format("a")) == set()


def test_the_end_of_a_pool_hands_out_what_was_given_back() -> None:
    text = "capture g a\nallocate t\nlaunch a writes t\nend g\nreplay g a\nfree t\ndestroy g\nlaunch a reads t"
    assert keys(text) == {("TC413", 6, 7, "t")}


def test_the_end_of_another_pool_does_not() -> None:
    text = """capture h a
        end h
        capture g a
        allocate t
        launch a writes t
        free t
        end g
        destroy h
        replay g a"""
    assert keys(text) == set()


def test_memory_that_outlived_its_pool_is_freed_like_any_other() -> None:
    text = "capture g a\nallocate t\nlaunch a writes t\nend g\nreplay g a\ndestroy g\nlaunch b reads x\nfree t"
    assert keys(text) == set()
    assert keys(text.replace("b reads x", "b reads t")) == {("TC411", 4, 6, "t"), ("TC413", 6, 7, "t")}
    assert keys(text + "\ncapture h a\nlaunch a reads t\nend h") == set()


def test_what_is_handed_out_at_the_end_of_a_pool_waits_for_all_that_was_enqueued() -> None:
    text = """capture g a
        allocate t
        launch a writes t
        free t
        end g
        capture h a
        launch a writes x
        allocate u
        launch a writes u
        free u
        end h
        replay h b
        destroy g"""
    assert keys(text) == set()
    assert keys(text + "\nreplay h b") == {("TC421", 12, 13, "u")}


def keys(text: str, memories: str = POOL.format("a")) -> set[tuple[str, int, int, str]]:
    return {hazard.key for hazard in hazards(program(text, memories))}
