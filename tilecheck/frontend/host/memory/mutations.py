"""What code may change in the objects that host code holds, and what is known of them afterwards.

`cfg.n` of a free object and `sizes["k"]` of a free container are unknowns that are called by their text: one
text is one value, as long as nothing changes it. So every change is an event with a number, and what is read
after an event that may have reached it is called otherwise: it is an unknown that equals nothing read before.

Events only add up. Where one branch changes something, the other branch and what follows read a new unknown,
too; where a loop does, its dry run came before the run that counts. Both only forget. Between two reads of one
name no event lies on any path, so that they are equal.

Code that is not read may change any object: two arguments may be one, an object may hold another, and code
finds what others keep in globals and closures (`unread_code_runs`). A store that is read reaches less: one
through an attribute that attribute of every object, one to an item the items of all containers, one to an
element those of all tensors but the ones that only this function has. The shape of a tensor is not read this
way: what changes it ends the reading of the function.

Operators, comparisons, conversions and reading an attribute or item are taken to change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.host.memory.contents import forget_shared, forget_tensor
from tilecheck.frontend.host.memory.sharing import given_back, unread_of
from tilecheck.frontend.host.values import Config, Dims, Order, Table, Tensor, Unknown
from tilecheck.frontend.text.syntax import walk_kind
from tilecheck.frontend.values.values import Choice, Frame, Function, Method, Named, Record, Seq
from tilecheck.ir.sharing import is_under

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor

_AGAIN = re.compile(r" \(\d+\)")  # tells values of one text apart
_SIZES = re.compile(r"\.(?:shape|size\(\)|strides?)\b[^.]*$")
MUTATORS = frozenset("append extend insert pop remove clear sort reverse update setdefault popitem add".split())
_LIBRARIES = frozenset(
    "torch triton tilelang cuda numpy cupy math operator functools itertools typing logging".split()
)


Changes = tuple[tuple[dict[str, int], ...], tuple[int, int, int]]


@dataclass(slots=True, eq=False)
class Events:
    """The changes that a run has met so far. Mutable.

    `inside` has, for the name of an object, when something in it last changed, `itself` when a tensor of that
    name was given other elements, `attributes` when an attribute of that name of any object was assigned,
    `items` when an item of any container was, `elements` when elements of any tensor were, `anything` when no
    bound is known, `mutated` when a method such as `append` changed the object of a name. `born` has how many
    events were before an unknown was made: nothing of it was read before these. `callers` are the frames of the
    functions that are being executed. `rebound` are names, each with its file, that a function inside another
    one, or of a module, may bind anew.
    """

    now: int = 0
    inside: dict[str, int] = field(default_factory=dict)
    itself: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, int] = field(default_factory=dict)
    born: dict[str, int] = field(default_factory=dict)
    items: int = 0
    elements: int = 0
    anything: int = 0
    mutated: dict[str, int] = field(default_factory=dict)
    rebound: set[tuple[str, str]] = field(default_factory=set)
    callers: list[Frame] = field(default_factory=list)
    names: dict[tuple[str, int], str] = field(default_factory=dict)

    def so_far(self) -> Changes:
        """When what last changed."""
        by_name = tuple(dict(held) for held in (self.inside, self.itself, self.attributes, self.mutated))
        return by_name, (self.items, self.elements, self.anything)

    def set_to(self, changes: Changes) -> None:
        by_name, (self.items, self.elements, self.anything) = changes
        self.inside, self.itself, self.attributes, self.mutated = (dict(held) for held in by_name)

    def add(self, changes: Changes) -> None:
        by_name, (items, elements, anything) = changes
        own = (self.inside, self.itself, self.attributes, self.mutated)
        for held, more in zip(own, by_name, strict=True):
            held.update((name, max(event, held.get(name, 0))) for name, event in more.items())
        self.items, self.elements = max(self.items, items), max(self.elements, elements)
        self.anything = max(self.anything, anything)

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
    events = x.events
    event = max(events.reach(value.name), events.itself.get(value.name, 0), events.elements)
    return _named(x, value.name, value.name, event, opaque=value.opaque)


def container_changed(x: HostExecutor, value: Unknown) -> None:
    """`xs.append(1)`, `del xs[0]`."""
    x.events.mutated[value.name] = x.events.items = x.events.now = x.events.now + 1


def read_truth(x: HostExecutor, value: Unknown) -> Unknown:
    """Whether `value` is true: a list that was changed may be empty since."""
    return _named(x, value.name, value.name, x.events.mutated.get(value.name, 0), opaque=value.opaque)


def read_sequence(x: HostExecutor, value: Unknown) -> Unknown:
    """`value` as a sequence of numbers: its items may have changed since it got its name."""
    events = x.events
    event = max(events.reach(value.name), events.itself.get(value.name, 0), events.items)
    return _named(x, value.name, value.name, event, opaque=value.opaque)


def read_number(x: HostExecutor, value: Unknown) -> Unknown:
    """`value` as a number: a number never changes, only an object that was changed in place, or an element
    of what is handed in."""
    event = x.events.itself.get(value.name, 0)
    text = plain(value.name)
    if text.endswith("]") and x.is_given(text) and not (_holds_numbers(x, text) or _SIZES.search(text)):
        event = max(event, x.events.elements)
    return _named(x, value.name, value.name, event, opaque=value.opaque)


def _holds_numbers(x: HostExecutor, text: str) -> bool:
    """Whether an item lies in what is annotated as a list of integers, or unpacked: `h, w = size`."""
    return text.partition("[")[0] in x.of_numbers


def read_global(x: HostExecutor, value: Unknown) -> Unknown:
    """A name of a module that code may bind anew."""
    return _named(x, value.name, value.name, x.events.anything, opaque=True)


def _named(x: HostExecutor, text: str, owner: str, event: int, *, opaque: bool) -> Unknown:
    if event <= x.events.born.get(owner, 0):
        if text not in x.names_taken:
            x.names_taken[text], x.events.born[text] = 1, x.events.now
        return Unknown(text, opaque=opaque)
    key = (text, event)
    if key not in x.events.names:
        x.names_taken.setdefault(text, 1)
        x.events.names[key] = x.unread(text).name
        # It may be what it was before, and what its object was made of.
        given_back(
            x, x.events.names[key], *(Unknown(n) for n in (text, owner) if n == text or not x.is_given(n))
        )
    return Unknown(x.events.names[key], opaque=True)


# ---- events ------------------------------------------------------------------------------------------------


def attribute_stored(x: HostExecutor, name: str, frame: Frame) -> None:
    """An attribute of an object was assigned, which may be any object."""
    if name.startswith("__"):  # `__class__`, `__dict__`
        anything_changed(x, frame)
    x.events.now += 1
    x.events.attributes[name] = x.events.now
    _drop_paths(x, frame, lambda path, at: name in path.split(".")[1:])


def item_stored(x: HostExecutor, owner: Any, frame: Frame) -> None:
    """An item of an object was assigned, which may be any container or tensor that is not made here, or hold
    the attributes of an object (`vars(c)["n"] = 7`)."""
    lose_objects(x, (owner,), frame)
    if any("__dict__" in name or not x.is_given(name) for name in _roots((owner,))):
        anything_changed(x, frame)
    x.events.items = x.events.now = x.events.now + 1
    elements_changed(x, (owner,), certainly=True)


def elements_changed(x: HostExecutor, values: Iterable[Any], *, certainly: bool = False) -> None:
    """Tensors may have got other elements. `certainly`: none of these is a number, which never changes."""
    values = tuple(values)
    forget_contents(x, values)
    x.events.now += 1
    for value in values:
        for part in _inside((value,)):
            alone = isinstance(part, Tensor) and part.fresh and part.storage not in x.handed_on
            if isinstance(part, Unknown | Named | Tensor) and not alone:
                x.events.elements = x.events.now  # others may be the same, or views of one
        for name in _roots((value,)):
            x.events.inside[plain(name)] = x.events.now
        if certainly and isinstance(value, Unknown):
            x.events.itself[value.name] = x.events.now


def forget_contents(x: HostExecutor, values: Iterable[Any]) -> None:
    """Nothing is known any more of what is in the tensors among values, or in those that may share memory."""
    for part in _inside(values):
        if isinstance(part, Unknown | Named | Tensor):
            forget_tensor(x, part)


def anything_changed(x: HostExecutor, frame: Frame) -> None:
    """Any object that is not made here, or that a function inside another one names, may have changed."""
    x.events.now += 1
    x.events.anything = x.events.elements = x.events.now
    forget_shared(x)
    _drop_paths(x, frame, lambda path, at: not x.is_of_context(path))
    named: list[Any] = []
    for at in live_frames(x, frame):
        inside = x.named_inside(at.table)
        named += (held for name, held in at.names.items() if name in inside)
    lose_objects(x, named, frame)
    lose_rebound(x, frame)


def lose_rebound(x: HostExecutor, frame: Frame, but: Frame | None = None) -> None:
    """The variables that other functions bind too, around or inside, are unknown in all frames `but` one."""
    for at in live_frames(x, frame) if x.events.rebound else ():
        for name in at.names if at is not but else ():
            if (at.table.file, name) in x.events.rebound:
                at.names[name] = unread_of(x, name, at.names[name])


def read_once(x: HostExecutor) -> None:
    """What is read before this point, or after it, says nothing about the other side: a cached function may
    have read it in an earlier call."""
    x.events.now += 1
    x.events.anything = x.events.elements = x.events.now


def unread_code_runs(x: HostExecutor, given: Iterable[Any], frame: Frame) -> None:
    """Code that is not read runs: what it is given may change, and all that it may find by itself."""
    given = tuple(given)
    lose_objects(x, given, frame)
    elements_changed(x, given)
    anything_changed(x, frame)


def used_up(x: HostExecutor, value: Any, frame: Frame) -> None:
    """The items of a value are asked for: of a generator that other code made, that runs code. What is handed
    in, or lies in a container, is taken to be no generator that changes objects."""
    if isinstance(value, Unknown) and not (
        x.is_given(value.name) or plain(value.name).endswith(("]", ".shape"))
    ):
        anything_changed(x, frame)


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
    values = tuple(values)
    lost = {id(v) for v in (_inside(values) if deep else values) if is_mutable(v)}
    if not lost:
        return
    _add_either(x, lost)
    if any(id(held) in lost for held in x.in_descriptors):
        x.stop("a list that a descriptor holds is changed")
    unknowns: dict[int, Unknown] = {}
    reached = set(_roots(values))
    for at in live_frames(x, frame):
        for name, held in at.names.items():
            if any(id(part) in lost for part in _inside((held,), functions=False)):
                x.may_hold.setdefault(name, set()).update(reached, _roots((held,)))
                at.names[name] = unknowns.setdefault(id(held), unread_of(x, name, held))


def _add_either(x: HostExecutor, lost: set[int]) -> None:
    """With an object that may be one of two these, and it with either of them."""
    before = 0
    while len(lost) != before:
        before = len(lost)
        for objects in x.either:
            ids = {id(value) for value in objects}
            lost |= set() if lost.isdisjoint(ids) else ids


def is_mutable(value: Any) -> bool:
    is_list = isinstance(value, Seq | Dims) and value.is_list
    return is_list or isinstance(value, Table | Record | Config | Order)


def holds_mutable(value: Any) -> bool:
    """Whether a value is, or holds, a list, a dictionary or an object that the text shows."""
    return any(map(is_mutable, _inside((value,), functions=False)))


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
                words = {n.value for n in walk_kind(value.node, cst.Name)}
                stack.extend(v for v in map(value.closure.find, sorted(words)) if v is not None)
