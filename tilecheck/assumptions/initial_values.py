"""Protocols of flags that are right for some initial value: they wait for a contract, and are not violated.

The kernel is decided once more with `filled(flag, c)` above it. What that decides is no counterexample: it is
`unknown(needs-contract)`, and its advice names the contracts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilecheck.assumptions.proposals import decided_with
from tilecheck.errors import UnsupportedConstruct
from tilecheck.findings.wording import in_words_of
from tilecheck.model import Reason

if TYPE_CHECKING:
    from tilecheck.frontend.kernels.definitions import Definition
    from tilecheck.ir.kernel import Kernel
    from tilecheck.ir.launch import Launch
    from tilecheck.options import Options
    from tilecheck.proof.decide import Decision, Settled


def with_initial_values(
    definition: Definition,
    kernel: Kernel,
    decision: Decision,
    launches: tuple[Launch, ...],
    options: Options,
) -> Decision:
    """The decision, in which what initial values of flags decide waits for contracts on them."""
    from tilecheck.proof.initialisation.initial_values import initial_contracts  # lazy: few kernels have flags

    open_ = {_key(s) for s in decision.settled if _is_open(s)}
    if decision.vacuous or not open_:
        return decision
    best: set[object] = set()
    texts: tuple[str, ...] = ()
    for tried in initial_contracts(kernel, launches):
        said = in_words_of(kernel, tried)
        decided = open_ & _decided(definition, said, launches, options)
        if len(decided) > len(best):
            best, texts = decided, said
        if best == open_:
            break
    if not best:
        return decision
    settled = tuple(_waiting(s, texts) if _key(s) in best and _is_open(s) else s for s in decision.settled)
    return replace(decision, settled=settled, asked=texts)


def _decided(
    definition: Definition, texts: tuple[str, ...], launches: tuple[Launch, ...], options: Options
) -> set[object]:
    """What of the kernel is decided with contracts above it."""
    try:
        _, found = decided_with(definition, texts, launches, options)
    except UnsupportedConstruct:
        return set()
    left = {_key(s) for s in found.settled if _is_open(s)}
    return set() if found.vacuous else {_key(s) for s in found.settled} - left


def _is_open(settled: Settled) -> bool:
    return settled.status in ("violated", "unknown")


def _key(settled: Settled) -> object:
    return settled.obligation.rule, settled.obligation.sites


def _waiting(settled: Settled, texts: tuple[str, ...]) -> Settled:
    listed = " and ".join(f"`# tilecheck: requires {text} -- why`" for text in texts)
    ending = "decides this, if it is so" if len(texts) == 1 else "decide this, if they are so"
    advised = replace(settled.obligation, advice=f"{listed} {ending}")
    reason = Reason.NEEDS_CONTRACT.value
    return replace(settled, obligation=advised, status="unknown", rung="none", reason=reason, witness=None)
