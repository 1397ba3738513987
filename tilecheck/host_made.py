"""Contracts that nobody wrote and that every launch in view shows to hold, as its host makes the values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilecheck.errors import UnsupportedConstruct

if TYPE_CHECKING:
    from tilecheck.frontend.definitions import Definition
    from tilecheck.ir.kernel import Kernel
    from tilecheck.ir.launch import Launch
    from tilecheck.proof.judges import Judges

_REASON = "the host makes these values at every launch in view"


def shown_contracts(
    definition: Definition, judges: Judges, texts: tuple[str, ...], launches: tuple[Launch, ...]
) -> tuple[Definition, Kernel] | None:
    """The kernel with those contracts above it, if each holds by the text of every launch in view."""
    if not texts or not launches or any(launch.problem is not None for launch in launches):
        return None
    from tilecheck.frontend.definitions import Given  # lazy: few kernels come here
    from tilecheck.frontend.lower import lower  # lazy, as above

    given = Given(texts, (), _REASON, definition.table.site(definition.node.name), True)
    definition = replace(definition, given=(*definition.given, given))
    try:
        promised = lower(definition)
    except UnsupportedConstruct:
        return None
    return (definition, promised) if _hold(judges, promised, launches) else None


def _hold(own: Judges, promised: Kernel, launches: tuple[Launch, ...]) -> bool:
    """Whether the contracts that `promised` has besides those of the kernel hold at every launch."""
    from tilecheck.proof.launch_contracts import judge_contract  # lazy: loads z3
    from tilecheck.proof.launch_judge import judge_of  # lazy, as above

    more = [c for c in promised.contracts if c not in own.kernel.contracts]
    judges = [judge_of(promised, launch, own.session) for launch in launches]
    return bool(more) and all(
        judge_contract(judge, contract, lambda broken, values: None)[0] == "holds"
        for judge in judges
        for contract in more
        if not judge.is_of_another_kernel()
    )
