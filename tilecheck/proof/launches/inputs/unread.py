"""Whether a requirement rests on values that are not understood.

A number that unread code computes may be the right one, and an unread check may have turned away the inputs
that are wrong. A tensor of unknown origin is no such value: it counts as an input of its own. Its strides are,
unless the kernel is given that tensor, and so are its sizes where the text names none of its axes: they follow
from extents that the text does not show.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from tilecheck.ir.expr import Expr, Kind, Symbol, symbols
from tilecheck.ir.host import ARGUMENT, NATURAL, OPAQUE, STRIDE, owner, owners, whole
from tilecheck.ir.launch import HostTensor, Launch
from tilecheck.proof.launches.inputs.spans import made_of_unread_size
from tilecheck.proof.launches.judge import Judge

_INNER = (Kind.BLOCK, Kind.LANE, Kind.LOOP)  # indices of the kernel's own
_LIBRARIES = frozenset({"math", "numpy", "torch", "triton"})  # names that stand for no value of a launch
# Tests that say nothing about sizes.
_OF_TYPE = re.compile(
    r"\b\w+\.(?:device|dtype|is_cuda|requires_grad|layout)\b|\bisinstance\(\w+, |\b\w+ is (?:not )?None\b"
)


def rests_on_unread(judge: Judge, condition: Expr) -> bool:
    """Whether numbers that unread code computes, or values that it checks, decide a condition."""
    return is_made_of_unread(judge, condition) or may_be_checked(judge, condition)


def is_made_of_unread(judge: Judge, condition: Expr) -> bool:
    """Whether numbers that unread code computes decide a condition.

    A number of blocks that an unread function returns may be the right one, whatever the blocks do.
    """
    launch = judge.launch
    wanted = judge.in_usual(condition)
    inner = {s for s in symbols(condition) if s.kind in _INNER}  # how often a loop of the host runs is none
    if any(not _is_of_host(s) and s not in inner for s in symbols(wanted)):
        return True  # an argument that is not understood
    if not made_of_unread_size(launch).isdisjoint(symbols(wanted)):
        return True
    if not _made_of_unread_shape(launch).isdisjoint(map(whole, owners(wanted))):
        return True
    sizes = (s for s in symbols(wanted) if s.origin in (NATURAL, STRIDE))
    if any(owner(s) in launch.unread for s in sizes):
        return True
    blocks = (size for size in launch.grid or () if size is not None)
    tuned = set(symbols(*judge.tuned))  # judged for the usual tile sizes
    spoken_of = (s for s in symbols(wanted, *blocks) if s not in tuned)
    numbers = [s for s in spoken_of if s.origin in (ARGUMENT, OPAQUE, NATURAL)]
    # A number of another call is the host's own, but not where unread code may have set it since: `N (2)`.
    kept = {s for s in numbers if launch.keeps(s.name) and (s.origin == NATURAL or not s.name.endswith(")"))}
    return any(_is_part_of(s.name, launch.unread) for s in numbers if s not in kept)


def may_be_checked(judge: Judge, condition: Expr) -> bool:
    """Whether unread code may have turned away inputs that break a condition.

    Where execution went on only after an unread test of an argument (`if not fits(x): raise`), that test may
    have been about the condition.
    """
    launch = judge.launch
    spoken = owners(judge.in_usual(condition))
    if any(_is_part_of(name, launch.doubted) for name in spoken):
        return True
    tests = [_OF_TYPE.sub("", s.name) for s in symbols(*launch.facts) if s.origin == OPAQUE]
    words = {word for name in tests for word in re.findall(r"\w+", name)}
    # `not (unread() or n % 256)`: what a fact says of `n` it says only where the unread part lets it.
    mixed = (fact for fact in launch.facts if any(s.origin == OPAQUE for s in symbols(fact)))
    asked = {owner(s) for s in symbols(*mixed) if not _OF_TYPE.search(s.name)}
    words |= {_root(name) for name in asked if name is not None}
    return not (words - _LIBRARIES).isdisjoint(map(_root, spoken))


def _made_of_unread_shape(launch: Launch) -> frozenset[str]:
    """The new tensors of which the text does not give the shape: no caller hands these in."""
    made = (t for _, t in launch.arguments if isinstance(t, HostTensor) and t.fresh and t.shape is None)
    return frozenset(t.shape_of or t.name for t in made if t.shape_of in ("", *launch.unread))


def _is_of_host(symbol: Symbol) -> bool:
    """Whether it is a value of the host, or a truth about types that only the arguments of a call decide."""
    return symbol.kind is Kind.HOST or (symbol.kind is Kind.CONSTANT and ".dtype" in symbol.name)


def _root(name: str) -> str:
    """The variable of which a value is a part, or the whole number: `q` of `q.shape[0]` and of `int(q)`."""
    return re.split(r"\W", re.sub(r"^(?:int\()+", "", name), maxsplit=1)[0]


def is_unread(name: str, launch: Launch) -> bool:
    """Whether unread code computes a value, or may have turned some of its values away."""
    return _is_part_of(name, launch.unread) or _is_part_of(name, launch.doubted)


def _is_part_of(name: str, unread: Collection[str]) -> bool:
    """Whether a tensor or number is one of those, or of an object such as `ctx` that is."""
    return name in unread or name.partition(".")[0] in unread or name.partition("[")[0] in unread
