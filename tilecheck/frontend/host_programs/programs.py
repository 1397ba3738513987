"""From a function and a list of calls to the host programs of all its paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.host_programs.calls.streams import note_given_events, wait_stream
from tilecheck.frontend.host_programs.choices import Choices, TooManyPaths
from tilecheck.frontend.host_programs.execute import binding, functions
from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.execute.expressions import evaluate
from tilecheck.frontend.host_programs.execute.statements import run_block
from tilecheck.frontend.host_programs.kernels import Kernels
from tilecheck.frontend.host_programs.knowledge import (
    Knowledge,
    LoopsOn,
    PathEnds,
    Raises,
    Relearn,
    Returned,
    TooLong,
    Unread,
)
from tilecheck.frontend.host_programs.loops import moving_regions
from tilecheck.frontend.host_programs.loops.repeated_calls import Repeats, repeated
from tilecheck.frontend.host_programs.machine import CURRENT, MAX_RANK, Machine, distinct
from tilecheck.frontend.host_programs.relevance import Relevance
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.graph_captures import is_frozen
from tilecheck.frontend.host_programs.values.kinds import SEVERAL_DEVICES, resolved
from tilecheck.frontend.host_programs.values.lifetimes import hand_back_host, hand_out, sweep_at_end
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.ir import expr as E
from tilecheck.ir import host_program as H
from tilecheck.ir.expr import Expr
from tilecheck.model import Site

MAX_PROGRAMS = 64
MAX_PATHS = 128  # those that end in an exception count too
_ENOUGH = 32  # paths that show how many there are, about
MOST_UNREAD = 16  # paths that are read if none of them is understood
_MAX_READINGS = 60


@dataclass(frozen=True, slots=True)
class Entry:
    """What the caller does: calls of functions, one after the other, on one object or none.

    `made_by` is the class of the object, and `unsettled` its attributes that other methods may change in
    between. `inner` is a function that the first one defines. `others` are the first calls, of functions that
    have records of their own.
    """

    name: str
    site: Site
    calls: tuple[cst.FunctionDef | cst.Module, ...]
    made_by: cst.ClassDef | None = None
    inner: cst.FunctionDef | None = None
    unsettled: frozenset[str] = frozenset()
    others: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """The programs of an entry, one for each path, and why they are not all. `ended` says why a path ends in an
    exception that the text does not raise: something was followed wrongly, or the calls do not fit."""

    programs: tuple[H.HostProgram, ...]
    why: str = ""
    ended: str = ""


def read(
    table: ModuleTable, relevance: Relevance, kernels: Kernels, entry: Entry, learned: Knowledge
) -> Reading:
    """All paths of an entry, as far as they are understood. `learned` is shared by entries of a function."""
    knowledge = learned.for_other_calls()
    try:
        for _ in range(_MAX_READINGS):
            found = _reading(table, relevance, kernels, entry, knowledge)
            if found is not None:
                missing = [why for item, why in knowledge.missing.items() if item not in knowledge.items]
                return Reading(found, missing[0] if missing else "", knowledge.ended)
    except TooManyPaths:
        return Reading((), "it has too many paths")
    except TooLong as error:
        return Reading((), error.why)
    except RecursionError:
        return Reading((), "it is nested too deeply to follow")
    return Reading((), "what its values are does not settle")


def _reading(
    table: ModuleTable, relevance: Relevance, kernels: Kernels, entry: Entry, knowledge: Knowledge
) -> tuple[H.HostProgram, ...] | None:
    """The programs, or None if they must be read again with what was learned."""
    try:
        return _paths(table, relevance, kernels, entry, knowledge)
    except Relearn:
        return None
    except TooManyPaths:
        if knowledge.joins:
            raise
        knowledge.joins, knowledge.steps = True, 0
        return None
    except TooLong:
        if not knowledge.reads_helpers:
            raise
        knowledge.joins, knowledge.reads_helpers, knowledge.steps = True, False, 0
        return None


def _paths(
    table: ModuleTable, relevance: Relevance, kernels: Kernels, entry: Entry, knowledge: Knowledge
) -> tuple[H.HostProgram, ...]:
    found: dict[H.HostProgram, None] = {}
    knowledge.items, knowledge.missing = set(), {}
    choices: Choices | None = Choices()
    runs = 0
    while choices is not None:
        runs += 1
        if runs > MAX_PATHS or len(found) > MAX_PROGRAMS:
            raise TooManyPaths
        if runs > MOST_UNREAD and all(program.unread for program in found):
            break  # what the others are says nothing more
        m = machine(table, relevance, kernels, knowledge, choices)
        program = _run(m, entry)
        if program is not None:
            found[program] = None
        if not knowledge.joins and runs == _ENOUGH and choices.share_before() * 16 * MAX_PATHS < runs:
            raise TooManyPaths
        choices = choices.next()
    return tuple(found)


def machine(
    table: ModuleTable, relevance: Relevance, kernels: Kernels, knowledge: Knowledge, choices: Choices
) -> Machine:
    """A machine for one path, with what the modules above it do."""
    m = Machine(table, choices, knowledge, kernels)
    m.evaluate, m.bind, m.set_attribute = evaluate, binding.bind, binding.set_attribute
    m.call_function, m.run_function = functions.call_function, functions.run_function
    m.call_object, m.super_of = functions.call_object, functions.super_of
    m.is_relevant, m.orders = relevance.is_relevant, relevance.orders
    m.is_set_by_methods = relevance.is_set_by_methods
    if "set_default_device" in table.parsed.words or "set_default_tensor_type" in table.parsed.words:
        m.default_place = H.Place.DEVICE
    return m


def _run(m: Machine, entry: Entry) -> H.HostProgram | None:
    """One path; None if it ends in an exception."""
    m.scopes.append(V.Scope(m.table))
    returned: V.Value = V.NONE
    try:
        returned = _calls(m, entry)
    except Raises:
        return None
    except PathEnds as end:
        m.knowledge.ended = str(end)
        return None
    except LoopsOn as end:  # it never returns: the caller comes after nothing of it
        m.act(H.Join(m.site(end.node)))
        return _finished(m, entry, (), ())
    except Unread as error:
        return _finished(m, entry, (), ((error.site, error.why),))
    except UnsupportedConstruct as error:
        return _finished(m, entry, (), ((entry.site, error.construct),))
    if m.captures:
        return _finished(m, entry, (), ((entry.site, "a capture is still open at its end"),))
    if m.stream != CURRENT:
        return _finished(m, entry, (), ((entry.site, "it leaves another stream current"),))
    if len(m.devices) > 1:
        return _finished(m, entry, (), ((entry.site, SEVERAL_DEVICES),))
    _caller_replays(m, entry, returned)
    return _finished(m, entry, _returned(m, returned), tuple(m.doubts))


def _calls(m: Machine, entry: Entry) -> V.Value:
    """Run what the entry calls; what the last call gives."""
    scope = m.scopes[0]
    owner: V.Value = None
    if entry.made_by is not None:
        owner = scope.names["the object"] = _object(m, entry.made_by)
        for name in sorted(entry.unsettled & owner.fields.keys()):
            if is_frozen(m, owner, name):
                raise m.unread_at(entry.site, f"a graph keeps `{name}`, which other methods bind anew")
            owner.fields[name] = V.Unknown(f"{owner.name}.{name}")
    value: V.Value = V.NONE
    closure: V.Scope | None = None
    calls, first = repeated(m, entry.calls)
    repeats = Repeats(m, owner) if isinstance(owner, V.Object) and first is not None else None
    for position, node in enumerate(calls):
        if repeats is not None and first is not None and position >= first:
            repeats.begin()
        if position:
            hand_out(m, node, _handed_back(value, owner))
        if position == entry.others > 0:
            m.first = len(m.actions)
        if isinstance(node, cst.Module):
            m.enters_on_default = True
            own = m.globals[m.table.file] = V.Scope(m.table, function="<module>")
        else:
            around = closure if node is entry.inner else None
            own = functions.entry_scope(m, V.Function(node, m.table, around, owner))
            m.parameters |= {v.name for v in own.names.values() if isinstance(v, V.Unknown)}
        closure = closure or own
        value = _body(m, node, own, keeps=entry.inner is not None)
    if repeats is not None:
        repeats.end()
    if m.handed_out:  # the caller drops what it got before for what it gets now
        m.handed_out = []
        m.pending.append(value)
        sweep_at_end(m, entry.calls[-1])
        m.pending.pop()
    return value


def _body(m: Machine, node: cst.FunctionDef | cst.Module, own: V.Scope, *, keeps: bool) -> V.Value:
    m.scopes.append(own)
    m.calls.append(node)
    last: cst.CSTNode = node
    begin = len(m.actions)
    value: V.Value = V.NONE
    try:
        run_block(m, node.body if isinstance(node, cst.Module) else node.body.body)
    except Returned as returned:
        value, last = returned.value, returned.node
    finally:
        m.calls.pop()
        m.scopes.pop()
    m.end = m.site(last)
    m.pending.append(value)
    if keeps:  # a function inside this one is called next: its names stay
        m.pending.append(own)
    else:
        sweep_at_end(m, last)
    m.pending.remove(value)
    note_given_events(m, begin)
    _caller_joins(m, last, value)
    return value


def _caller_joins(m: Machine, node: cst.CSTNode, value: V.Value) -> None:
    """The caller orders what is on streams and events that it handed in, or gets back: it knows of them."""
    streams = {v.name for name, v in m.given.items() if isinstance(v, V.Stream) and name in m.parameters}
    events = {v.name for name, v in m.given.items() if isinstance(v, V.Event) and name in m.parameters}
    for part in (resolved(m, item) for item in _parts(value)):
        streams |= {part.name} if isinstance(part, V.Stream) else set()
        events |= {part.name} if isinstance(part, V.Event) else set()
    for stream in sorted(streams - {m.caller}):
        wait_stream(m, node, m.caller, stream)
    m.actions += [H.Await(m.site(node), m.caller, event) for event in sorted(events)]


def _object(m: Machine, made_by: cst.ClassDef) -> V.Value:
    """The object on which methods are called, made with arguments of the caller."""
    of = V.Class(made_by, m.table)
    m.target = "self"
    init = functions.initializer(m, of)
    if init is None:
        m.target = ""
        return V.Object(of, m.unique("self"))
    scope = functions.entry_scope(m, V.Function(init.node, init.table, None, V.NONE))
    m.parameters |= {v.name for v in scope.names.values() if isinstance(v, V.Unknown)}
    _, *passed = scope.names.values()
    named = dict(zip(list(scope.names)[1:], passed, strict=True))
    found = functions.make_with(m, of, init, Arguments(init.node, (), named))
    m.target = ""
    return found


def _caller_replays(m: Machine, entry: Entry, value: V.Value) -> None:
    """The caller gets a graph in order to replay it."""
    for part in (resolved(m, item) for item in _parts(value)):
        if isinstance(part, V.Graph) and part.name in m.graph_writes and m.end is not None:
            m.act(H.Replay(m.end, part.name, m.caller))


def _handed_back(value: V.Value, owner: V.Value) -> V.Value:
    return V.NONE if value is owner else value


def _returned(m: Machine, value: V.Value) -> tuple[H.Region, ...]:
    """What the caller gets: the tensors in the returned value."""
    value = resolved(m, value)
    found: dict[H.Region, None] = {}
    for part in (resolved(m, item) for item in _parts(value)):
        if isinstance(part, V.Tensor):
            if part.kept and m.end is not None:
                m.act(H.UseKept(m.end, part.kept))
            found.update(dict.fromkeys(m.regions(part)))
    hand_back_host(m, [resolved(m, part) for part in _parts(value)], found)
    return tuple(found)


def _parts(value: V.Value) -> list[V.Value]:
    if isinstance(value, V.Sequence):
        return [part for item in value.items for part in _parts(item)]
    if isinstance(value, V.Mapping):
        return [part for item in value.items.values() for part in _parts(item)]
    return [value]


# ---- the program -------------------------------------------------------------------------------------------


def _finished(
    m: Machine, entry: Entry, returned: Sequence[H.Region], unread: tuple[tuple[Site, str], ...]
) -> H.HostProgram:
    """The program of a path.

    Raises:
        Relearn: the rounds of loops that were read do not stand for the others.
    """
    _check_elements(m)
    moving_regions.check(m)
    ranks = _ranks(m, returned)

    def region(of: H.Region) -> H.Region:
        box = tuple((m.settle(low), m.settle(high)) for low, high in of.box)
        rank = ranks.get(of.memory, 1)
        if not box or len(box) == rank:
            return replace(of, box=box)
        if len(box) > rank:
            return replace(of, box=box[:rank])
        missing = [(E.ZERO, m.settle(m.extent(of.memory, axis))) for axis in range(len(box), rank)]
        return replace(of, box=(*box, *missing))

    actions = tuple(_with_regions(action, region) for action in m.actions)
    used = dict.fromkeys(_memories(actions, last := tuple(map(region, returned))))
    memories = tuple(
        # Where the shape is not known, the axes behind those that are cut count as part of the last one.
        replace(m.memories[name], extents=tuple(m.settle(m.extent(name, k)) for k in range(ranks.get(name, 1))))
        for name in used
    )
    bounds = [b for region in (*_regions(actions), *last) for pair in region.box for b in pair]
    bounds += [extent for memory in memories for extent in memory.extents or ()]
    facts = _facts(m, bounds)
    parts = (memories, actions, CURRENT, last, unread, facts, m.end, m.first)
    return H.HostProgram(entry.name, entry.site, *parts)


def _check_elements(m: Machine) -> None:
    """Raises: Relearn, if a value of the caller was taken for a container, and is a tensor itself."""
    for path, whole in m.elements.items():
        known = m.knowledge.tensor_names | m.knowledge.objects
        if whole in m.memories and path in m.memories and whole not in known:
            m.knowledge.tensor_names.add(whole)
            raise Relearn


def _ranks(m: Machine, returned: Sequence[H.Region]) -> dict[str, int]:
    """How many axes the boxes of each memory have: those of its longest cut, or of its shape."""
    found: dict[str, int] = {}
    for region in (*_regions(m.actions), *returned):
        shape = m.memories[region.memory].extents
        own = len(region.box) if len(region.box) < MAX_RANK else 1
        found[region.memory] = max(found.get(region.memory, 1), own, len(shape or ()))
    return found


def _regions(actions: Sequence[H.Action]) -> list[H.Region]:
    found: list[H.Region] = []
    for action in actions:
        prints: list[H.Footprint] = []
        if isinstance(action, H.Work):
            prints = [action.before, action.after]
        elif isinstance(action, H.Touch):
            prints = [action.footprint]
        found += [region for footprint in prints for region, _ in footprint.regions()]
    return found


def _with_regions(action: H.Action, of: Callable[[H.Region], H.Region]) -> H.Action:
    def footprint(old: H.Footprint) -> H.Footprint:
        return H.Footprint(distinct(map(of, old.reads)), distinct(map(of, old.writes)))

    if isinstance(action, H.Work):
        return replace(action, before=footprint(action.before), after=footprint(action.after))
    return replace(action, footprint=footprint(action.footprint)) if isinstance(action, H.Touch) else action


def _memories(actions: Sequence[H.Action], returned: Sequence[H.Region]) -> list[str]:
    found = [a.memory for a in actions if isinstance(a, H.Allocate | H.Free | H.Keep | H.Move | H.Back)]
    return [*(r.memory for r in _regions(actions)), *found, *(r.memory for r in returned)]


def _facts(m: Machine, bounds: Sequence[Expr]) -> tuple[Expr, ...]:
    """What is known of the sizes that stand in boxes."""
    wanted = set(E.symbols(*bounds)) if bounds else set()
    facts = [fact for fact in map(m.settle, m.facts) if fact is not E.TRUE]
    while True:
        more = {s for f in facts for s in E.symbols(f) if wanted & set(E.symbols(f))} - wanted
        if not more:
            return tuple(f for f in dict.fromkeys(facts) if wanted & set(E.symbols(f)))
        wanted |= more
