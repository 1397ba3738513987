"""What the windows that a launch passes must meet: parts of one buffer are apart (S1), a descriptor that is
written does not overlap itself (S2), and none reaches outside its tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilecheck.dataclass import dataclass
from tilecheck.ir.expr import Expr, all_of, any_of, eq, le, negate, substitute, walk
from tilecheck.ir.host import STRIDE, row_major
from tilecheck.ir.kernel import Effect, Kernel
from tilecheck.ir.launch import HostTensor, Launch
from tilecheck.ir.overlap import Overlap
from tilecheck.model import Witness
from tilecheck.proof.launches.aliasing import is_decided
from tilecheck.proof.launches.inputs.unread import rests_on_unread
from tilecheck.proof.launches.judge import Broken, Judge
from tilecheck.proof.launches.replays.memory import Harm, are_apart, inside, is_of_layout, itself_apart, shown
from tilecheck.proof.launches.visible import Judges
from tilecheck.proof.solver.fuel import Fuel

if TYPE_CHECKING:
    from tilecheck.analysis.borrow import Alias


_MOST_CHOICES = 3  # in one claim


@dataclass(frozen=True, slots=True)
class Judged:
    """One claim about a launch: its text, its status, and what shows that it is broken."""

    text: str
    status: str
    broken: Broken | None = None
    witness: Witness | None = None


def judged_alias(kernel: Kernel, alias: Alias, judges: Judges, path: str, fuel: Fuel) -> Judged:
    """Whether two parameters of one storage are apart: `holds`, `broken` or `unmet`."""
    text = f"S1: `{alias.mutable}` and `{alias.other}` do not overlap"
    judge = judges.of(alias.launch)
    if judge.is_of_another_kernel() or not judge.is_made:
        return Judged(text, "holds")
    a, b = alias.tensors
    if alias.sharing.overlap is not Overlap.SAME and are_apart(judge, a, b):
        return Judged(text, "holds")
    found = None
    if is_decided(kernel, judge.launch, (alias.mutable, alias.other)) and not _is_unread(judge, a, b):
        harm = Harm(alias.mutable, alias.other, within=kernel.language != "triton")
        found = shown(judge, (), harm, path, fuel, rule="TC401", text=text)
    return Judged(text, "unmet") if found is None else Judged(text, "broken", *found)


def judged_descriptors(
    kernel: Kernel, launch: Launch, judges: Judges, path: str, fuel: Fuel
) -> Iterator[Judged]:
    """What each descriptor that the host makes must meet; what holds is not listed."""
    used = {a.array: a.effect for a in sorted(kernel.accesses, key=lambda a: a.effect)}
    described = [
        (name, value)
        for name, value in launch.arguments
        if isinstance(value, HostTensor) and value.described and name in used
    ]
    if launch.problem is not None:
        return
    checked = {a.array for a in kernel.accesses if a.checked and kernel.language == "triton"}
    for name, value in launch.arguments:
        # One that is handed in is its caller's.
        handed = isinstance(value, HostTensor) and value.given and value.shape_of == value.name
        if name in checked and not handed and not (isinstance(value, HostTensor) and value.described):
            yield Judged(f"the descriptor `{name}` lies inside the memory of its tensor", "unread")
    if not described:
        return
    judge = judges.of(launch)
    if judge.is_of_another_kernel() or not judge.is_made:
        return
    for name, value in described:
        if used[name] is not Effect.READ:
            text = f"S2: no two indices of the descriptor `{name}`, which is written, share an element"
            harm = Harm(name, name)
            yield from _judged(judge, value, itself_apart(value), text, harm, path, fuel)
        text = f"the descriptor `{name}` lies inside the memory of its tensor"
        yield from _judged(judge, value, inside(value), text, Harm(outside=name), path, fuel)


def _judged(
    judge: Judge, value: HostTensor, wanted: Expr | None, text: str, harm: Harm, path: str, fuel: Fuel
) -> Iterator[Judged]:
    if wanted is not None and _follows(judge, wanted):
        return
    if wanted is None or _is_unread(judge, value):
        yield Judged(text, "unmet" if wanted is None and not value.opaque else "unread")
        return
    if is_of_layout(value) and judge.impossible((*judge.usually, *_usual_strides(value), negate(wanted))):
        yield Judged(text, "caller")
        return
    rule = "TC403" if text.startswith("S2") else "TC402"
    found = None
    if is_decided(judge.kernel, judge.launch, (harm.first or harm.outside,)):
        found = shown(judge, (negate(wanted),), harm, path, fuel, rule=rule, text=text)
    yield Judged(text, "unmet") if found is None else Judged(text, "broken", *found)


def _follows(judge: Judge, wanted: Expr, depth: int = _MOST_CHOICES) -> bool:
    """Whether a claim follows, for each way in which the values in it were chosen."""
    choices = [n for n in walk(wanted) if n.op == "ite"]
    if not choices or not depth:
        return judge.follows(wanted)
    cond = choices[0].args[0]
    same = [n for n in choices if n.args[0] is cond]
    ways = [substitute(wanted, {n: n.args[k] for n in same}) for k in (1, 2)]
    return all(
        _follows(judge, any_of(other, way), depth - 1)
        for other, way in zip((negate(cond), cond), ways, strict=True)
    )


def _is_unread(judge: Judge, *tensors: HostTensor) -> bool:
    """Whether code that is not read computes where these tensors lie, or may have turned some of that away."""
    places = [
        e for t in tensors for e in (t.offset, t.room, *(t.shape or ()), *(t.strides or ())) if e is not None
    ]
    return rests_on_unread(judge, all_of(*(le(0, e) for e in places)))


def _usual_strides(value: HostTensor) -> Iterator[Expr]:
    """That a tensor which is handed in is contiguous, where the descriptor has its strides."""
    if value.shape is not None and value.strides is not None:
        for stride, size in zip(value.strides, row_major(value.shape), strict=True):
            if stride.op == "sym" and stride.args[0].origin == STRIDE:
                yield eq(stride, size)
