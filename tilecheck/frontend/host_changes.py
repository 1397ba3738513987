"""What code may change in the objects that host code holds, and what is known of them afterwards.

`cfg.n` of a free object and `sizes["k"]` of a free container are unknowns that are called by their text: one
text is one value, as long as nothing changes it. So every change is an event with a number, and what is read
after an event that may have reached it is called otherwise: it is an unknown that equals nothing read before.

Events only add up. Where one branch changes something, the other branch and what follows read a new unknown,
too; where a loop does, its dry run came before the run that counts. Both only forget. Between two reads of one
name no event lies on any path, so that they are equal.

What an event reaches goes by the names of unknowns, since an object keeps its name under all variables: an
event in `c` reaches `c.inner.n`, one in `d = c.inner` as well. A store through an attribute reaches that
attribute of every object: two arguments may be one object. The shape of a tensor is not read this way: what
changes it ends the reading of the function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.frontend.host_values import Config, Table, Tensor, Unknown
from tilecheck.frontend.syntax import walk
from tilecheck.frontend.values import Choice, Frame, Function, Method, Named, Record, Seq

if TYPE_CHECKING:
    from tilecheck.frontend.host import HostExecutor

_AGAIN = re.compile(r" \(\d+\)")  # tells values of one text apart
_LIBRARIES = frozenset("torch triton tilelang cuda numpy cupy math typing logging".split())


@dataclass(slots=True, eq=False)
class Events:
    """The changes that a run has met so far. Mutable.

    `inside` has, for the name of an object, when something in it last changed, `itself` when a tensor of that
    name was given other elements, `attributes` when an attribute of that name of any object was assigned,
    `items` when an item of any container was, `anything` when no bound is known. `born` has how many events
    were before an unknown was made: nothing of it was read before these. `holders` are the objects that a
    result may hold on to. `callers` are the frames of the functions that are being executed.
    """

    now: int = 0
    inside: dict[str, int] = field(default_factory=dict)
    itself: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)
    born: dict[str, int] = field(default_factory=dict)
    items: int = 0
    anything: int = 0
    holders: dict[str, frozenset[str]] = field(default_factory=dict)
    callers: list[Frame] = field(default_factory=list)
    names: dict[tuple[str, int], str] = field(default_factory=dict)

    def reach(self, owner: str) -> int:
        """The last event that may have changed what an object of this name holds."""
        own = plain(owner)
        found = self.anything
        for name, event in self.inside.items():
            if event > found and is_under(own, name):
                found = event
        return found


def plain(name: str) -> str:
    """The name of an object, whichever of the values of one text it is."""
    return _AGAIN.sub("", name)


def is_under(path: str, name: str) -> bool:
    """Whether a path is a name, or leads on from it."""
    return path.startswith(name) and path[len(name) : len(name) + 1] in ("", ".", "[", "(")


# ---- reading -----------------------------------------------------------------------------------------------


def read_attribute(x: HostExecutor, owner: Unknown, name: str) -> Unknown:
    """`owner.name`, by the name that it has since the last event that may have changed it."""
    event = max(x.events.reach(owner.name), x.events.attributes.get(name, 0))
    return _named(x, f"{owner.name}.{name}", owner.name, event, opaque=owner.opaque)


def read_item(x: HostExecutor, owner: Unknown, key: str | int) -> Unknown:
    """`owner[key]`, likewise."""
    event = max(x.events.reach(owner.name), x.events.items)
    return _named(x, f"{owner.name}[{key!r}]", owner.name, event, opaque=owner.opaque)


def read_member(x: HostExecutor, value: Named) -> Named | Unknown:
    """A member of a module or object that is imported from elsewhere, likewise."""
    owner, _, name = value.name.rpartition(".")
    if owner.partition(".")[0] in _LIBRARIES:
        return value
    event = max(x.events.reach(owner), x.events.attributes.get(name, 0))
    return _named(x, value.name, owner, event, opaque=True) if event else value


def read_element(x: HostExecutor, value: Unknown) -> Unknown:
    """The number in `value` if that is a tensor: its elements may have changed since it got its name."""
    event = max(x.events.reach(value.name), x.events.itself.get(value.name, 0))
    return _named(x, value.name, value.name, event, opaque=value.opaque)


def read_number(x: HostExecutor, value: Unknown) -> Unknown:
    """`value` as a number: a number never changes, only an object that was changed in place."""
    return _named(x, value.name, value.name, x.events.itself.get(value.name, 0), opaque=value.opaque)


def _named(x: HostExecutor, text: str, owner: str, event: int, *, opaque: bool) -> Unknown:
    if event <= x.events.born.get(owner, 0):
        x.names_taken.setdefault(text, 1)
        return Unknown(text, opaque=opaque)
    key = (text, event)
    if key not in x.events.names:
        x.names_taken.setdefault(text, 1)
        x.events.names[key] = x.unread(text).name
    return Unknown(x.events.names[key], opaque=True)


# ---- events ------------------------------------------------------------------------------------------------


def attribute_stored(x: HostExecutor, name: str, frame: Frame) -> None:
    """An attribute of an object was assigned, which may be any object."""
    x.events.now += 1
    x.events.attributes[name] = x.events.now
    _drop_paths(x, frame, lambda path, at: name in path.split(".")[1:])


def item_stored(x: HostExecutor, owner: Any, frame: Frame) -> None:
    """An item of an object was assigned, which may be any container or tensor that is not made here."""
    handed(x, (owner,), frame)
    x.events.items = x.events.now = x.events.now + 1
    elements_changed(x, (owner,), certainly=True)


def elements_changed(x: HostExecutor, values: Iterable[Any], *, certainly: bool = False) -> None:
    """Tensors may have got other elements. `certainly`: none of these is a number, which never changes."""
    x.events.now += 1
    for value in values:
        for name in _roots((value,)):
            x.events.inside[plain(name)] = x.events.now
        if certainly and isinstance(value, Unknown):
            x.events.itself[value.name] = x.events.now


def anything_changed(x: HostExecutor, frame: Frame) -> None:
    x.events.now += 1
    x.events.anything = x.events.now
    _drop_paths(x, frame, lambda path, at: True)


def handed(x: HostExecutor, values: Iterable[Any], frame: Frame) -> frozenset[str]:
    """Code that is not read may change what it is given, what that holds and what holds on to it.

    Returns the names of the free objects among it: a result of that code may hold on to them.
    """
    values = tuple(values)
    lose_objects(x, values, frame)
    roots = {plain(name) for name in _roots(values)}
    for name in tuple(roots):
        if "__dict__" in name:
            anything_changed(x, frame)
        for holder, held in x.events.holders.items():
            if is_under(name, holder):
                roots |= held
    if roots:
        x.events.now += 1
        x.events.inside.update(dict.fromkeys(roots, x.events.now))
        _drop_paths(x, frame, lambda path, at: _is_of(path, at, roots))
    return frozenset(roots)


def holds(x: HostExecutor, result: Unknown, values: Iterable[Any]) -> None:
    """A result of code that is not read may hold on to what that was given."""
    found = frozenset(plain(name) for name in _roots(tuple(values)))
    name = plain(result.name)
    if found:
        x.events.holders[name] = x.events.holders.get(name, frozenset()) | found


def _is_of(path: str, frame: Frame, roots: set[str]) -> bool:
    """Whether `a.b`, which a frame keeps the value of, is an attribute of one of these objects."""
    head, _, rest = path.partition(".")
    held = frame.find(head)
    if not isinstance(held, Unknown | Named | Tensor):
        return True
    own = plain(f"{held.name}.{rest}")
    return any(is_under(own, root) for root in roots)


def _drop_paths(x: HostExecutor, frame: Frame, is_changed: Any) -> None:
    for at in live_frames(x, frame):
        for path in [n for n in at.names if "." in n and is_changed(n, at)]:
            del at.names[path]


def live_frames(x: HostExecutor, frame: Frame) -> Iterator[Frame]:
    """The frames whose names may be used later on: of the callers, and those around them."""
    seen: set[int] = set()
    for start in (frame, *x.events.callers):
        at: Frame | None = start
        while at is not None and id(at) not in seen:
            seen.add(id(at))
            yield at
            at = at.parent


def lose_objects(x: HostExecutor, values: Iterable[Any], frame: Frame, *, deep: bool = True) -> None:
    """Lists, dictionaries and objects that the text shows, wherever they are held, are unknown from now on."""
    lost = {id(v) for v in (_inside(values) if deep else values) if is_mutable(v)}
    if not lost:
        return
    unknowns: dict[int, Unknown] = {}
    for at in live_frames(x, frame):
        for name, held in at.names.items():
            if any(id(part) in lost for part in _inside((held,), functions=False)):
                at.names[name] = unknowns.setdefault(id(held), x.unread(name))
    together = frozenset(plain(unknown.name) for unknown in unknowns.values())
    for name in together:  # one of these may hold another
        x.events.holders[name] = x.events.holders.get(name, frozenset()) | together


def is_mutable(value: Any) -> bool:
    return isinstance(value, Table | Record | Config) or (isinstance(value, Seq) and value.is_list)


def _roots(values: Iterable[Any]) -> Iterator[str]:
    """The names of the free objects, and the storages of the tensors, among values and in them."""
    for value in _inside(values):
        match value:
            case Unknown():
                yield value.name
            case Named() if value.name.partition(".")[0] not in _LIBRARIES:
                yield value.name
            case Tensor():
                yield value.storage


def _inside(values: Iterable[Any], *, functions: bool = True) -> Iterator[Any]:
    """Values and all that they hold; a function holds what the names around it do."""
    stack, seen = list(values), set()
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        match value:
            case Seq():
                stack.extend(value.items)
            case Table():
                stack.extend(value.items.values())
            case Record():
                stack.extend(value.fields.values())
            case Choice():
                stack += (value.first, value.second)
            case Method():
                stack.append(value.value)
            case Function() if functions and value.closure is not None:
                words = {n.value for n in walk(value.node) if isinstance(n, cst.Name)}
                stack.extend(v for v in map(value.closure.find, sorted(words)) if v is not None)
