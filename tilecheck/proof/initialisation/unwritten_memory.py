"""Memory that nothing wrote, at a visible launch: used by the kernel (TC503), or returned by the host (TC504).

A use is shown by runs of one launch that differ in what the array holds at the start: the element was written
by no block before, and what the launch leaves elsewhere differs. An element that another block writes is the
business of TC202. What a launch leaves unwritten is read off the log of a run of all its blocks; it counts
where the size of the array and what is written depend on the same inputs. Either must show in half of the
trials: what only rare sizes do, as odd ones where a kernel works on pairs, is not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr, Kind, Symbol, substitute, sym, symbols, walk
from tilecheck.ir.host import ARGUMENT, DEFINED, DEVICE, OPAQUE, RAISED, owner
from tilecheck.ir.kernel import Access, Effect, Kernel, extent_symbol, made_of
from tilecheck.ir.launch import HostTensor, Launch
from tilecheck.model import Diagnostic, Related, Severity
from tilecheck.proof.launches.judge import Judge
from tilecheck.proof.launches.replays.trials import Memory, Seen, Trial, Trials, input_text
from tilecheck.proof.refute.replay import at_site
from tilecheck.reference import AccessRecord

USED, USED_NAME = "TC503", "unwritten-memory-used"
LEFT, LEFT_NAME = "TC504", "output-partly-written"
_CONTENTS = (1000, -1000)  # what the array holds at the start, besides zeros

_Element = tuple[int, ...]


def blank_arrays(kernel: Kernel, launch: Launch) -> tuple[str, ...]:
    """The parameters that get memory which nothing wrote; none of it is passed under another name as well.

    A tuner may put arrays back before each run, by hooks that are not read.
    """
    tuned = any(s.name.startswith(f"{kernel.name}.") for s in _passed(launch))
    if tuned and kernel.tuning is None:
        return ()
    given = {n: v for n, v in launch.arguments if isinstance(v, HostTensor)}
    used = [name for value in given.values() for name in value.among or (value.storage,)]
    arrays = {p.name for p in kernel.params if p.is_array and not p.is_list}
    kept = kernel.tuning.kept if kernel.tuning is not None else frozenset()
    return tuple(
        name
        for name, value in given.items()
        if value.blank and used.count(value.storage) == 1 and name in arrays - kept
    )


def _passed(launch: Launch) -> Iterator[Symbol]:
    for _, value in launch.arguments:
        yield from symbols(value) if isinstance(value, Expr) else ()


# ---- used by the kernel --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Use:
    """A read or an update of an element that nothing wrote before."""

    record: AccessRecord
    element: _Element


def used(judge: Judge, blank: tuple[str, ...], trials: Trials) -> Iterator[Diagnostic]:
    """A finding for each array whose unwritten elements decide what the launch leaves."""
    for name in blank:
        accesses = [a for a in judge.kernel.accesses if a.array == name and a.effect is not Effect.WRITE]
        seen = Seen()
        for trial, first in trials.until(seen.is_settled) if accesses else ():
            use = _unwritten_use(first, name)
            if use is None:
                continue
            seen.possible += 1
            others = (trial.run({name: value}) for value in _CONTENTS)
            if any(other is not None and first.differs(other, but=name) for other in others):
                seen.shown.append((trial, use))
        if seen.is_usual:
            yield _used(judge, name, accesses, *seen.shown[0])


def _unwritten_use(memory: Memory, name: str) -> _Use | None:
    """The first use of an element that no block wrote before, and that no other block writes."""
    shape = memory.arrays[name].shape
    records = [r for r in memory.log.accesses if r.array == name and len(r.elements)]
    if any(r.raw or r.elements.shape[1] != len(shape) for r in records):
        return None
    blocks = {block: number for number, block in enumerate(dict.fromkeys(r.block for r in records))}
    writer = np.full(shape, -1)
    since = np.full(shape, np.iinfo(np.int64).max)
    for record in records:
        if record.effect == "write":
            at, own = tuple(record.elements.T), blocks[record.block]
            writer[at] = np.where((writer[at] == -1) | (writer[at] == own), own, len(blocks))
            since[at] = np.minimum(since[at], record.sequence)
    for record in records:
        if record.effect != "write":
            at, own = tuple(record.elements.T), blocks[record.block]
            unwritten = (writer[at] == -1) | ((writer[at] == own) & (since[at] > record.sequence))
            if unwritten.any():
                return _Use(record, tuple(int(c) for c in record.elements[int(np.argmax(unwritten))]))
    return None


def _used(judge: Judge, name: str, accesses: Sequence[Access], trial: Trial, use: _Use) -> Diagnostic:
    sites = [a.site for a in accesses if at_site(a.site, [use.record])] or [accesses[0].site]
    updated = use.record.effect == "atomic"
    verb = "updates" if updated else "loads"
    return Diagnostic(
        code=USED,
        name=USED_NAME,
        severity=Severity.WARNING,
        message=f"`{judge.kernel.name}` {verb} memory of `{name}` that nothing wrote",
        site=judge.launch.site,
        kernel=judge.kernel.name,
        label=f"`{_host_name(judge, name)}` holds what its allocation left",
        related=(Related(sites[0], "updated here" if updated else "loaded here"),),
        witness=trial.witness(name, use.element, use.record.block),
        notes=(input_text(trial.values),),
        help=f"allocate `{_host_name(judge, name)}` with `torch.zeros`, or write it before this launch",
    )


def _host_name(judge: Judge, name: str) -> str:
    value = dict(judge.launch.arguments)[name]
    return value.name if isinstance(value, HostTensor) else name


# ---- left by the launch --------------------------------------------------------------------------------------


def partly_written(
    judge: Judge, blank: tuple[str, ...], trials: Trials, is_whole: Callable[[str, Trials], bool]
) -> Iterator[Diagnostic]:
    """A finding for each array that the host returns and of which the launch leaves elements unwritten, but for
    those that are known to be written as a whole in all trials."""
    returned = set(judge.launch.returned)
    for name in blank:
        stores = [a for a in judge.kernel.accesses if a.array == name and a.effect is not Effect.READ]
        if name not in returned or not stores or not _depends_on_its_size(judge, name, stores):
            continue
        if is_whole(name, trials):
            continue
        seen = Seen()
        for trial, first in trials.until(seen.is_settled):
            stored = first.written(name)
            if stored is None or not stored.any():
                continue
            seen.possible += 1
            if not stored.all():
                seen.shown.append((trial, tuple(int(c) for c in np.argwhere(~stored)[0])))
        if seen.is_usual:
            yield _left(judge, name, stores, *seen.shown[0])


def _depends_on_its_size(judge: Judge, name: str, stores: Sequence[Access]) -> bool:
    """Whether the inputs that decide what is written are those that decide the array's size, or belong to the
    same tensor: a relation of two inputs is the caller's. What memory or unread code decides is not known."""
    rank = len(stores[0].axes)
    sizes = [judge.rewritten(sym(extent_symbol(name, k))) for k in range(rank)]
    terms = [substitute(part, judge.known) for store in stores for part in _parts(store)]
    terms += [g for g in judge.launch.grid or () if g is not None]
    if any(n.op == "read" for n in walk(*terms)):
        return False
    of_size, of_stores = set(symbols(*sizes)), set[Symbol]()
    for symbol in symbols(*terms):
        if symbol.kind is Kind.HOST:
            of_stores.add(symbol)
        elif symbol.kind not in (Kind.BLOCK, Kind.LOOP, Kind.LANE) and made_of(symbol) is None:
            return False
    free = {s for s in of_stores | of_size if s.origin not in (DEFINED, DEVICE)}
    doubted = {*judge.launch.doubted, *judge.launch.unread}
    if any(s.origin in (OPAQUE, RAISED) or (owner(s) or s.name) in doubted for s in free):
        return False
    givers = {"" if s.origin == ARGUMENT else owner(s) for s in free}
    return len(givers) <= 1 or free <= of_size


def _parts(store: Access) -> Iterator[Expr]:
    yield from (store.guard, store.mask)
    for axis in store.axes:
        yield from (axis.index, axis.step, axis.size, axis.base)


def _left(judge: Judge, name: str, stores: Sequence[Access], trial: Trial, element: _Element) -> Diagnostic:
    given = _host_name(judge, name)
    return Diagnostic(
        code=LEFT,
        name=LEFT_NAME,
        severity=Severity.WARNING,
        message=f"this launch of `{judge.kernel.name}` writes only a part of `{name}`, and "
        f"`{judge.launch.function}` returns it",
        site=judge.launch.site,
        kernel=judge.kernel.name,
        label=f"element {list(element)} of `{given}` holds what its allocation left",
        related=tuple(Related(site, "written here") for site in dict.fromkeys(s.site for s in stores)),
        witness=trial.witness(name, element, (0, 0, 0)),
        notes=(input_text(trial.values),),
        help=f"launch a block for each tile of `{given}` and store all of it, or allocate it by `torch.zeros`",
    )
