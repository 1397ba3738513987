"""The text form of a host program: what `show host` prints and tests compare."""

from __future__ import annotations

from collections.abc import Iterator

from tilecheck.ir import host_program as H
from tilecheck.ir.expr import render


def program_text(program: H.HostProgram) -> str:
    """The whole program: its memories, one line for each action, and what it returns."""
    return "\n".join(_lines(program)) + "\n"


def _lines(program: H.HostProgram) -> Iterator[str]:
    yield f"{program.function}"
    for memory in program.memories:
        yield f"  {memory_text(memory)}"
    for fact in program.facts:
        yield f"  fact {render(fact)}"
    for action in program.actions:
        yield f"  {action_text(action)}"
    for region in program.returned:
        yield f"  return {region_text(region)}"
    for _, why in program.unread:
        yield f"  unread {why}"


def memory_text(memory: H.Memory) -> str:
    """`memory x[n, 4] device on side, handed in`."""
    shape = "" if memory.extents is None else f"[{', '.join(map(render, memory.extents))}]"
    stream = "" if memory.stream is None else f" on {memory.stream}"
    pool = "" if memory.pool is None else f" in the pool of {memory.pool}"
    return (
        f"memory {memory.name}{shape} {memory.place.value}{stream}{pool}"
        f"{', handed in' if memory.handed_in else ''}"
    )


def region_text(region: H.Region) -> str:
    """`x[0:n, 2:4]`; a `~` in front says that some of it may be untouched."""
    box = ", ".join(f"{render(start)}:{render(stop)}" for start, stop in region.box)
    return f"{'' if region.exact else '~'}{region.memory}{f'[{box}]' if region.box else ''}"


def footprint_text(footprint: H.Footprint) -> str:
    """`reads a, b writes c`; empty for no footprint."""
    parts = []
    for word, regions in (("reads", footprint.reads), ("writes", footprint.writes)):
        if regions:
            parts.append(f"{word} {', '.join(map(region_text, regions))}")
    return " ".join(parts)


def action_text(action: H.Action) -> str:
    """One action as one line."""
    match action:
        case H.Work():
            return _work_text(action)
        case H.Record(event=event, stream=stream):
            return f"record {event} on {stream}"
        case H.Await(stream=stream, event=event):
            return f"{stream} awaits {event}"
        case H.Join(stream=stream, event=event):
            return f"join {stream or event or 'device'}"
        case H.Touch(name=name, footprint=footprint):
            return f"host {name}: {footprint_text(footprint)}"
        case H.Allocate(memory=memory):
            return f"allocate {memory}"
        case H.Free(memory=memory, also_after=also):
            return f"free {memory}{f' after {chr(44).join(also)}' if also else ''}"
        case H.Move(memory=memory, into=into):
            return f"move {memory} into {into}"
        case H.Back(memory=memory):
            return f"back {memory}"
        case H.Rebind(name=name):
            return f"rebind {name}"
        case H.Keep(memory=memory, name=name):
            return f"keep {memory} as {name}"
        case H.UseKept(name=name):
            return f"use kept {name}"
        case H.Capture(graph=graph, stream=stream):
            return f"capture {graph} on {stream}"
        case H.EndCapture(graph=graph):
            return f"end capture {graph}"
        case H.Replay(graph=graph, stream=stream):
            return f"replay {graph} on {stream}"
        case H.Destroy(graph=graph):
            return f"destroy {graph}"
        case H.Forbidden(what=what, why=why):
            return f"forbidden {what}: {why}"
        case _:
            raise AssertionError(type(action).__name__)


def _work_text(work: H.Work) -> str:
    kind = "launch" if work.is_launch else "work"
    dependent = (
        "" if not work.dependent else " dependent" if work.waits else " dependent, perhaps without a wait"
    )
    before = footprint_text(work.before)
    parts = [f"before the wait {before}"] if before else []
    parts += [footprint_text(work.after)] if footprint_text(work.after) else []
    parts += [f"freezes {', '.join(work.frozen)}"] if work.frozen else []
    return f"{kind} {work.name} on {work.stream}{dependent}: {'; '.join(parts)}"
