"""A counterexample as a SARIF code flow: a thread flow for each block, and what meets has one execution order.

Equal orders in different thread flows mean that the steps may happen at the same time: a race.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilecheck.model import Diagnostic, KernelReport, Site, Witness
from tilecheck.report.witness import block_text, element_text, event, tuple_text

_Locate = Callable[[Site], dict[str, Any]]


def code_flow(diagnostic: Diagnostic, kernel: KernelReport | None, locate: _Locate) -> dict[str, Any]:
    """The flow of a finding with a counterexample. For one block there is one thread flow, and why is said."""
    witness = diagnostic.witness
    assert witness is not None
    text = event(witness)
    if witness.kind == "order":
        return {"message": {"text": text}, "threadFlows": list(_steps_of_host(diagnostic, locate))}
    if len(witness.blocks) < 2:
        text += "; one block is enough for this, so there is one thread flow"
    count = max(len(witness.blocks), 1)
    return {
        "message": {"text": text},
        "threadFlows": [_thread(diagnostic, witness, kernel, locate, block) for block in range(count)],
    }


def _steps_of_host(diagnostic: Diagnostic, locate: _Locate) -> Iterator[dict[str, Any]]:
    """A thread flow for each of two steps of a host function that nothing orders."""
    meets = {"executionOrder": 1, "importance": "essential"}
    steps = [(diagnostic.site, diagnostic.label or ""), *((r.site, r.message) for r in diagnostic.related)]
    for number, (site, text) in enumerate(steps):
        yield {"id": f"step {number}", "locations": [_step(locate(site), text, meets)]}


def _thread(
    diagnostic: Diagnostic, witness: Witness, kernel: KernelReport | None, locate: _Locate, position: int
) -> dict[str, Any]:
    name = block_text(witness, position) if witness.blocks else "a block"
    steps: list[dict[str, Any]] = []
    meets = {"executionOrder": 1, "importance": "essential"}
    if _is_at_launch(diagnostic):
        # The places in the kernel are those of every block; what is wrong is how it is launched.
        steps.append(_step(locate(diagnostic.site), "the launch", {"importance": "essential"}))
        if kernel is not None:
            steps.append(_step(locate(kernel.site), f"{name} touches {element_text(witness)}", meets))
    else:
        if kernel is not None:
            steps.append(_step(locate(kernel.site), f"{name} starts", {"importance": "unimportant"}))
        steps += [_step(locate(site), text, meets) for site, text in _accesses(diagnostic, witness, position)]
    return {
        "id": f"block {tuple_text(witness.blocks[position])}" if witness.blocks else "block",
        "immutableState": _state(witness, position),
        "locations": steps,
    }


def _is_at_launch(diagnostic: Diagnostic) -> bool:
    return diagnostic.code.startswith("TC4")


def _accesses(diagnostic: Diagnostic, witness: Witness, position: int) -> list[tuple[Site, str]]:
    """Where one block does its part, and what it does there."""
    label = diagnostic.label or event(witness)
    others = [(related.site, related.message or "and here") for related in diagnostic.related]
    if len(witness.blocks) < 2:
        # Two accesses of one block that nothing orders; any other second place only explains.
        both = witness.kind == "overlap" and others
        return [(diagnostic.site, label), *(others[:1] if both else [])]
    # The second access has a place of its own if that place speaks of the second block.
    second = next((other for other in others if _names(other[1], witness, 1)), None)
    if second is None:
        return [(diagnostic.site, f"{block_text(witness, position)} touches {element_text(witness)}")]
    return [(diagnostic.site, label) if position == 0 else second]


def _names(text: str, witness: Witness, position: int) -> bool:
    return f"block {tuple_text(witness.blocks[position])}" in text


def _step(location: dict[str, Any], text: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"location": {**location, "message": {"text": text}}, **more}


def _state(witness: Witness, position: int) -> dict[str, Any]:
    """The launch values of the counterexample and the block's own, which do not change while it runs."""
    values: dict[str, object] = {"grid": tuple_text(witness.grid), **witness.values}
    for name, of_blocks in (
        ("block", witness.blocks),
        ("iteration", witness.iterations or ()),
        ("tile position", witness.lanes if len(witness.blocks) > 1 and witness.lanes else ()),
    ):
        if position < len(of_blocks) and of_blocks[position]:
            values[name] = tuple_text(of_blocks[position])
    return {name: {"text": str(value)} for name, value in values.items()}
