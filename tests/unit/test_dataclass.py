"""`tilecheck.dataclass.dataclass` makes what the decorator of the standard library makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
import pickle
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, field, fields, replace
from functools import partial
from typing import Any, ClassVar

import pytest

from tilecheck.dataclass import dataclass

FLAGS = [
    {"slots": True, "frozen": frozen, "eq": eq, "repr": shown}
    for frozen, eq, shown in itertools.product((True, False), repeat=3)
]


def _plain(make: Any) -> type:
    @make
    class Plain:
        """Text."""

        kind: ClassVar[int] = 1
        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list)
        d: int = field(default=4, repr=False)
        e: int = field(default=5, compare=False)
        f: int = field(default=6, hash=False)

    return Plain


def _set_later(make: Any) -> type:
    @make
    class SetLater:
        a: int
        total: int = field(init=False, repr=False, compare=False)
        seen: list[int] = field(init=False, default_factory=list)
        one: int = field(init=False, default=1)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.a + 1)

    return SetLater


def _own_methods(make: Any) -> type:
    @make
    class OwnMethods:  # noqa: PLW1641 - what becomes of its hash is the question
        a: int
        b: int = 0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and self.a == other.a

        def __repr__(self) -> str:
            return "mine"

    return OwnMethods


def _own_hash(make: Any) -> type:
    @make
    class OwnHash:
        a: int
        b: int = 0

        def __hash__(self) -> int:
            return 7

    return OwnHash


def _below(make: Any) -> type:
    @make
    class Above:
        a: int = 1

    @make
    class Below(Above):
        b: int = 2
        a: int = 3

    return Below


def _empty(make: Any) -> type:
    @make
    class Empty:
        pass

    return Empty


SHAPES = (_plain, _set_later, _own_methods, _own_hash, _below, _empty)


def _outcome(call: Callable[[], object]) -> object:
    """What a call gives as text, or the kind of error that it raises."""
    try:
        found = call()
    except Exception as error:  # noqa: BLE001 - both decorators must raise the same error
        return type(error)
    return type(found).__name__ if "object at" in repr(found) else repr(found)


def _behaviour(cls: Any) -> Iterator[object]:
    """What can be seen of a class and its instances."""
    yield cls.__slots__, cls.__match_args__, cls.__hash__ is None
    yield list(inspect.signature(cls).parameters)
    yield [(f.name, f.type, f.init, f.repr, f.compare) for f in fields(cls)]
    calls = [
        (),
        (1,),
        (1, 2),
        (1, "x", [2]),
        (2,),
        (1, "x", [2], 8),
        (1, "x", [2], 4, 8),
        (1, "x", [2], 4, 5, 8),
    ]
    yield [_outcome(partial(cls, *call)) for call in calls]
    made = [cls(*call) for call in calls if not isinstance(_outcome(partial(cls, *call)), type)]
    for one, other in itertools.product(made, repeat=2):
        yield one == other
        if not isinstance(_outcome(partial(hash, one)), type):
            yield hash(one) == hash(other)
    for one in made:
        yield [_outcome(partial(replace, one, **{name: 9})) for name in ("a", "b", "total", "no")]
        for f in fields(cls):
            yield _outcome(partial(setattr, one, f.name, 5)), _outcome(partial(delattr, one, f.name))


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_both_decorators_make_the_same(shape: Any, flags: dict[str, bool]) -> None:
    own, standard = shape(dataclass(**flags)), shape(dataclasses.dataclass(**flags))
    assert list(_behaviour(own)) == list(_behaviour(standard))


@dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: tuple[str, ...] = ()


@dataclass(slots=True)
class Changing:
    a: int
    below: Changing | None = None


def test_a_copy_is_equal() -> None:
    for value in (Kept(1, ("x",)), Changing(1, Changing(2))):
        assert copy.copy(value) == value == copy.deepcopy(value) == pickle.loads(pickle.dumps(value))


def test_a_default_that_is_made_is_made_anew() -> None:
    cls = _plain(dataclass(frozen=True, slots=True))
    assert cls(1).c is not cls(1).c


def test_a_frozen_instance_refuses_to_change() -> None:
    with pytest.raises(FrozenInstanceError, match="'a'"):
        Kept(1).a = 2
    with pytest.raises(FrozenInstanceError, match="'a'"):
        del Kept(1).a


def test_a_value_that_holds_itself_is_shown() -> None:
    value = Changing(1)
    value.below = value
    assert repr(value) == "Changing(a=1, below=...)"


def test_other_options_are_those_of_the_standard_library() -> None:
    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        a: int

    @dataclass
    class WithoutSlots:
        a: int

    assert Ordered(1) < Ordered(2)
    assert vars(WithoutSlots(1)) == {"a": 1}


def test_patterns_match() -> None:
    match Kept(1, ("x",)):
        case Kept(a, (b,)):
            assert (a, b) == (1, "x")
        case _:
            pytest.fail("no match")
