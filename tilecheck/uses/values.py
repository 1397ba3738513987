"""What an expression of host code may stand for, as far as kernels go."""

from __future__ import annotations

import enum

from tilecheck.dataclass import dataclass
from tilecheck.model import Span


@dataclass(frozen=True, slots=True)
class Named:
    """A kernel, by the file that defines it and its name there."""

    file: str
    name: str


@dataclass(frozen=True, slots=True)
class Use:
    """A place at which a kernel may be launched, or from where on its launches are not followed.

    `why` is what is to be said of it if no launch is read there; nothing, where the launch is checked when it
    happens. One that is `by_text` was not parsed: it may be a comment, or the name may be another one inside a
    function.
    """

    kernel: Named
    span: Span
    why: str
    by_text: bool = False


NOT_READ = "the code around this launch is not read"


class Kind(enum.Enum):
    """In which way a value may lead to a kernel."""

    KERNEL = "kernel"  # it is the kernel
    GRIDDED = "gridded"  # `kernel[grid]`: a call launches it
    SHOWN = "shown"  # a list, tuple or dictionary whose text names the kernel
    HELD = "held"  # something that may be the kernel or may hold it
    GIVEN = "given"  # a function that may give it
    OBJECT = "object"  # a class whose objects have an attribute that leads to the kernel
    MODULE = "module"  # a module, or a package around one, in which a name leads to the kernel


@dataclass(frozen=True, slots=True)
class Lead:
    """One way to a kernel; for a module the kernel's place is that of the module, without a name."""

    to: Named
    kind: Kind


Leads = frozenset[Lead]
NOTHING: Leads = frozenset()
KERNELS = (Kind.KERNEL, Kind.GRIDDED, Kind.SHOWN)  # as the text shows: others may hold something else
_ITEM = {Kind.KERNEL: Kind.GRIDDED, Kind.SHOWN: Kind.HELD, Kind.HELD: Kind.HELD}
_VALUES = (Kind.KERNEL, Kind.GRIDDED, Kind.SHOWN, Kind.HELD)


def of_kind(leads: Leads, *kinds: Kind) -> Leads:
    return frozenset(lead for lead in leads if lead.kind in kinds)


def held(leads: Leads) -> Leads:
    """What holds one of these values."""
    return _as(Kind.HELD, leads)


def given(leads: Leads) -> Leads:
    """A function that gives one of these values."""
    return _as(Kind.GIVEN, leads)


def _as(kind: Kind, leads: Leads) -> Leads:
    return frozenset(Lead(lead.to, kind) for lead in leads if lead.kind in _VALUES)


def shown(leads: Leads) -> Leads:
    """A display of these values: what is in it can be told from its text."""
    return _as(Kind.SHOWN, of_kind(leads, *KERNELS)) | held(of_kind(leads, Kind.HELD))


def items(leads: Leads) -> Leads:
    """What a subscript of one of these values may be."""
    return frozenset(Lead(lead.to, _ITEM[lead.kind]) for lead in leads if lead.kind in _ITEM)
