"""What a value may be, as far as it matters who enqueues work with it, or touches its memory.

The kind of a value is a set of atoms: the value is one of them, whatever path the program takes. No atom stands
for a value that nothing has made yet, so kinds only grow while a program is read.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.modules.project import ModuleTable

if TYPE_CHECKING:
    from tilecheck.frontend.host_guards.frames import Frame


class Sort(enum.Enum):
    """A value of which no more than this has to be known."""

    PLAIN = "plain"  # numbers, texts, types, files: no memory of arrays, and nothing that enqueues work
    NONE = "None"
    ARRAY = "array"  # of NumPy: memory of the host
    TENSOR = "tensor"  # of PyTorch: memory that its owner may touch at any time
    CURRENT = "current stream"  # of PyTorch
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Checked:
    """An object of `tilecheck.host`, by the name of its class."""

    name: str


@dataclass(frozen=True, slots=True)
class Pending:
    """An operation of `tilecheck.host`, by the place that makes it. Its result lies in the store."""

    site: cst.CSTNode
    frame: Frame | None = None


@dataclass(frozen=True, slots=True)
class Box:
    """A container, by the place that makes it. Its items lie in the store. `part` is one inside another."""

    site: cst.CSTNode
    frame: Frame | None = None
    part: str = ""


@dataclass(frozen=True, slots=True)
class External:
    """A name of a library, by its full path."""

    name: str


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the project."""

    table: ModuleTable


@dataclass(frozen=True, slots=True)
class Code:
    """A function of the project: `outer` is the one around it that runs, `owner` the object of a method."""

    node: cst.FunctionDef | cst.Lambda
    table: ModuleTable
    outer: Frame | None = None
    owner: Any = None


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the project."""

    node: cst.ClassDef
    table: ModuleTable


@dataclass(frozen=True, slots=True)
class Made:
    """An object of a class of the project. All objects of a class count as one."""

    of: Class


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of the project, or with `has_grid` a kernel and its grid, ready to be launched by a call."""

    name: str
    file: str = ""  # empty if it is not known which
    has_grid: bool = False


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value that is no object of the project."""

    owner: Any
    name: str


Atom = Sort | Checked | Pending | Box | External | Module | Code | Class | Made | Kernel | Method
Kind = frozenset[Any]

NOTHING: Kind = frozenset()
PLAIN: Kind = frozenset({Sort.PLAIN})
NONE: Kind = frozenset({Sort.NONE})
ARRAY: Kind = frozenset({Sort.ARRAY})
TENSOR: Kind = frozenset({Sort.TENSOR})
UNKNOWN: Kind = frozenset({Sort.UNKNOWN})

HANDLES = frozenset("View Array Shared Borrowed HostArray Partition".split())


def checked(name: str) -> Kind:
    return frozenset({Checked(name)})


def is_raw(atom: Atom) -> bool:
    """Whether it is memory that code beside the library may touch."""
    return atom in (Sort.ARRAY, Sort.TENSOR)


def is_handle(atom: Atom) -> bool:
    return isinstance(atom, Checked) and atom.name in HANDLES
