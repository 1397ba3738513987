"""What rules state and the ladder decides. Plain data; nothing here knows how to prove anything."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tilecheck.ir.expr import TRUE, Expr
from tilecheck.ir.kernel import Access
from tilecheck.model import Site


class Between(enum.Enum):
    """Who the two instances of a `Disjoint` goal are."""

    BLOCKS = "blocks"  # two different blocks, any iterations, any lanes
    LANES = "lanes"  # two different lanes of one operation in one block and iteration
    PROGRAM = "program"  # one block of many threads: but for equal lanes in one iteration
    THREADS = "threads"  # one block of many threads: any iterations, any lanes
    ITERATIONS = "iterations"  # two iterations, in one block, of the loop that `first.stepped_by` counts


@dataclass(frozen=True, slots=True)
class Disjoint:
    """The two accesses never touch one element (they may be the same access)."""

    first: Access
    second: Access
    between: Between


@dataclass(frozen=True, slots=True)
class Holds:
    """`goal` is true wherever `given` is, for one block, iteration and lane.

    `access` is the access whose bounds this is about, if any.
    """

    goal: Expr
    given: Expr
    access: Access | None = None


@dataclass(frozen=True, slots=True)
class Ordered:
    """Two accesses of one block are ordered by the language: cuTile chains the accesses of `array` by tokens.

    `array` is empty where no happens-before edge leads from one to the other; that is never proved.
    """

    first: Access
    second: Access
    array: str


Goal = Disjoint | Holds | Ordered

# How an advice begins that names contracts: they are premises, which only the author can give.
SETTLES = "this contract would settle it; add it only if it is true of your data"
SETTLE = "these contracts would settle it; add them only if they are true of your data"
MAY_SETTLE = "this contract may settle it (`--propose` verifies that); add it only if it is true of your data"
MAY_SETTLE_ALL = (
    "these contracts may settle it (`--propose` verifies that); add them only if they are true of your data"
)


@dataclass(frozen=True, slots=True)
class Obligation:
    """A predicate that must hold for the kernel to be safe.

    `stage` orders proofs: definedness (0) and bounds (1) are proved before races (2), because race proofs
    may use them. `cause` is the sentence shown when it fails; `label` is what happens at the first site.
    `unsafe` are the unsafe blocks around its sites: one suffices to make it trusted instead of unknown.
    `advice` says what would decide an obligation about values in memory, of which no launch condition speaks.
    """

    rule: str
    goal: Goal
    sites: tuple[Site, ...]
    cause: str
    stage: int
    kind: str  # overlap | bounds | undefined | overflow: the kind of its witness
    unsafe: tuple[int, ...] = ()
    array: str = ""
    assume: Expr = TRUE
    advice: str = ""
