"""Which tensors still hold what their allocation left, and which of those a host function returns.

`torch.empty` and its kin give memory that nothing wrote. It stays so until an operation that may write reaches
the storage: an event of `mutations`, or code that is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilecheck.frontend.host.memory.mutations import plain
from tilecheck.frontend.host.values import Table, Tensor
from tilecheck.frontend.values.values import Choice, Record, Seq
from tilecheck.ir.launch import HostTensor, Launch

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor


def blank(handler: Callable[..., Any]) -> Callable[..., Any]:
    """The handler of an allocation that writes nothing."""

    def allocate(x: HostExecutor, *given: Any) -> Any:
        made = handler(x, *given)
        if isinstance(made, Tensor):
            x.blank[made.storage] = x.events.now
        return made

    return allocate


def is_blank(x: HostExecutor, t: Tensor) -> bool:
    """Whether nothing has written the memory behind a tensor."""
    return t.fresh and all(_is_unwritten(x, storage) for storage in t.among or (t.storage,))


def _is_unwritten(x: HostExecutor, storage: str) -> bool:
    made = x.blank.get(storage)
    return made is not None and storage not in x.exposed and x.events.inside.get(plain(storage), 0) <= made


def with_returned(x: HostExecutor, launch: Launch, event: int, results: Iterable[Any]) -> Launch:
    """The launch with the parameters that get blank tensors which it alone may write, and which are returned.

    Args:
        x: the run that met the launch, at its end.
        launch: what the run recorded.
        event: the last event before the launch.
        results: the values that the host function returns.
    """
    whole = {t.storage for t in _tensors(results) if t.part == ()}
    names = tuple(
        name
        for name, value in launch.arguments
        if isinstance(value, HostTensor)
        and value.blank
        and value.storage in whole - x.exposed
        and x.events.inside.get(plain(value.storage), 0) == event + 1  # the launch's own event is the last
    )
    return replace(launch, returned=names) if names else launch


def _tensors(values: Iterable[Any]) -> Iterable[Tensor]:
    stack = list(values)
    while stack:
        match stack.pop():
            case Tensor() as t:
                yield t
            case Seq() as items:
                stack += items.items
            case Table() as table:
                stack += table.items.values()
            case Record() as record:
                stack += record.fields.values()
            case Choice() as choice:
                stack += [choice.first, choice.second]
