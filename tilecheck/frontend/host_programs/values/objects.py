"""What objects of code that is not in view touch when they are called: what they hold, and what objects share.

A model and its optimizer hold the same parameters. Which objects share memory is not known, so a method may
write what all of them share; a call of an object itself (`model(x)`) may read it, and write what the object
alone holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.knowledge import Relearn
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.ir.host_program import Place, Region

if TYPE_CHECKING:
    from tilecheck.frontend.host_programs.machine import Machine

SHARED = "what objects share"
# Methods of containers and of the bookkeeping around them: none of them works on the device.
_OF_CONTAINERS = frozenset(
    "append appendleft add put put_nowait insert extend pop popleft popitem get get_nowait items keys values "
    "update clear remove discard copy index count setdefault sort reverse empty qsize full task_done join "
    "acquire release split strip startswith endswith format lower upper encode decode".split()
)


GROWING = frozenset("append appendleft extend insert add put put_nowait".split())
LISTING = frozenset("append appendleft extend insert".split())  # those of them that nothing but lists have
TAKING = frozenset("pop popleft get get_nowait".split())
# Modules of torch whose calls write more than their result, or run other modules.
_WRITING = (
    "BatchNorm SyncBatchNorm LazyBatchNorm InstanceNorm LazyInstanceNorm Module Sequential Transformer "
    "DataParallel Parameter Uninitialized Buffer"
).split()


def anywhere(container: V.Unknown) -> str:
    """The path of something that a container keeps, at a place that is not known."""
    return f"{container.name}[...]"


def kept_in(m: Machine, container: V.Unknown) -> list[V.Value]:
    """What the program has put into a container at places that are not known."""
    path = anywhere(container)
    return [value for name, value in m.stored.items() if name.startswith(path)]


def taken(m: Machine, container: V.Unknown, other: V.Unknown) -> V.Value:
    """Something that a container holds: what the program has put into it, each a path, or something else."""
    kept = kept_in(m, container)
    m.sources[other.name] = container.name
    way = m.choices.pick(len(kept) + 1) if kept else 0
    return other if way == len(kept) else kept[way]


def only_reads(name: str, a: Arguments) -> bool:
    """Whether calls of what a class of torch makes with these arguments write nothing but their result."""
    parts = name.split(".")
    is_module = name.startswith("torch.nn.") and len(parts) == 3 and parts[2][:1].isupper()
    in_place = "inplace" in a.keywords or V.Const(value=True) in a.positional
    return is_module and not in_place and not parts[2].startswith(tuple(_WRITING))


def held(m: Machine, owner: V.Unknown, node: cst.CSTNode, method: str) -> tuple[list[V.Tensor], list[V.Tensor]]:
    """What a call of an object, or of a method of it, may read and may write of what objects hold.

    Raises:
        Relearn: something was touched before it was known to belong to the object.
    """
    if owner.plain or method in _OF_CONTAINERS:
        return [], []
    if owner.name not in m.knowledge.objects:
        m.knowledge.objects.add(owner.name)
        if any(owner.name in _owners(m, memory) for memory in m.memories):
            raise Relearn
    own, shared = m.handed_in(owner.name, node), m.handed_in(SHARED, node)
    if method:
        return [own, shared], [own, shared]
    return [own, shared], [] if owner.name in m.readers else [own]


def with_owners(m: Machine, node: cst.CSTNode, regions: Iterable[Region]) -> Iterator[Region]:
    """Regions, and for those of a part of an object what the object and others may hold of it."""
    for region in regions:
        yield region
        if m.knowledge.objects and m.place(region.memory) is Place.DEVICE:
            owners = [name for name in _owners(m, region.memory) if name in m.knowledge.objects]
            for name in (*owners, *([SHARED] if owners else [])):
                yield Region(m.handed_in(name, node).memory, exact=False)


def _owners(m: Machine, memory: str) -> Iterator[str]:
    """The objects that memory may belong to, by the path of values under which it was met."""
    name = memory
    seen: set[str] = set()
    while name and name not in seen:  # what a call of an object gives may have the name of the object
        seen.add(name)
        at = max(name.rfind("."), name.rfind("["))
        name = m.sources.get(name) or (name[:at] if at > 0 else "")
        if name:
            yield name
