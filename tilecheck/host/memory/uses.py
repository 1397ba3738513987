"""What a piece of work touches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from tilecheck.host.memory.regions import Region

if TYPE_CHECKING:
    from tilecheck.host.memory.handles import View

YOUR_CODE = "your own code"

Order: TypeAlias = Literal["refuse", "events"]
"""What to do about a conflict with another stream: refuse the work, or wait for an event of that stream."""


class Use(NamedTuple):
    """One access of a piece of work: through which handle, which bytes, and what the work calls it."""

    view: View
    region: Region
    write: bool
    label: str


_new_tuple = tuple.__new__


def new_use(view: View, region: Region, write: bool, label: str) -> Use:
    """A `Use`, in half the time."""
    return _new_tuple(Use, (view, region, write, label))


class Dependence(NamedTuple):
    """A launch that may start before the launch before it has ended: what it touches before it waits for that,
    and whether all of its programs wait."""

    early: Sequence[Use]
    waits: bool
