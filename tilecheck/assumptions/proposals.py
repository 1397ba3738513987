"""The contracts that a kernel waits for: guessed from what is not decided, and verified on demand.

A verified proposal decided the kernel: it was read and decided once more as if the contracts stood above it.
Whether they are true only the author can say. So a proposal is a part of the report, and changes no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilecheck.errors import UnsupportedConstruct
from tilecheck.findings.wording import in_words_of
from tilecheck.ir.expr import Kind, symbols
from tilecheck.model import Reason
from tilecheck.proof.obligation import MAY_SETTLE, MAY_SETTLE_ALL, SETTLE, SETTLES, Holds

if TYPE_CHECKING:
    from tilecheck.frontend.kernels.definitions import Definition
    from tilecheck.ir.kernel import Kernel
    from tilecheck.ir.launch import Launch
    from tilecheck.options import Options
    from tilecheck.proof.decide import Decision, Settled

_WORD = re.compile(r"\w+")
_SHARE = 2  # it may take one part in so many of what a kernel may
_ROUNDS = 2  # what the first contracts leave open may ask for others


def with_proposals(
    definition: Definition,
    kernel: Kernel,
    decision: Decision,
    launches: tuple[Launch, ...],
    options: Options,
) -> Decision:
    """The decision with advice for what waits for contracts; its verdicts are as they were.

    `options.propose` says whether the contracts are verified."""
    from tilecheck.proof.conditions.contract_needs import needed  # lazy: most kernels need none

    waiting = _open(decision)
    if decision.vacuous or all(s.reason != Reason.NEEDS_CONTRACT.value for s in waiting):
        return decision
    texts = in_words_of(kernel, needed(kernel, [s.obligation for s in waiting]))
    if not texts or any(s.status == "violated" for s in decision.settled):
        return decision
    if options.propose:
        return _verified(definition, kernel, decision, texts, launches, options)
    guessed = tuple(
        s if s.obligation.advice else _with_advice(s, texts, MAY_SETTLE, MAY_SETTLE_ALL)
        for s in decision.settled  # what a rule advises, or was verified, stays
    )
    return replace(decision, settled=guessed, asked=tuple(dict.fromkeys((*decision.asked, *texts))))


def _verified(
    definition: Definition,
    kernel: Kernel,
    decision: Decision,
    texts: tuple[str, ...],
    launches: tuple[Launch, ...],
    options: Options,
) -> Decision:
    """The decision with advice that names the contracts that decide its open obligations, if some do."""
    from tilecheck.proof.conditions.contract_needs import needed  # lazy, as above

    texts, more = decision.asked, texts
    tried: Decision | None = None
    for _ in range(_ROUNDS):
        try:
            current, found = decided_with(definition, (*texts, *more), launches, options)
        except UnsupportedConstruct:
            break
        if found.vacuous:
            break
        texts, tried, left = (*texts, *more), found, _open(found)
        more = in_words_of(kernel, needed(current, [s.obligation for s in left]))
        if not more:
            break
    if tried is None:
        return decision
    return replace(_advised(decision, tried, texts), asked=texts)


def _open(decision: Decision) -> list[Settled]:
    return [s for s in decision.settled if s.status == "unknown"]


def decided_with(
    definition: Definition, texts: tuple[str, ...], launches: tuple[Launch, ...], options: Options
) -> tuple[Kernel, Decision]:
    """The kernel as it is with contracts above it, and what is proved of it then.

    Raises:
        UnsupportedConstruct: the kernel, or a contract, is not read.
    """
    from tilecheck.assumptions.rerun import proved_again  # lazy, as above
    from tilecheck.frontend.kernels.definitions import Given  # lazy: few kernels come here

    site = definition.table.site(definition.node.name)
    given = Given(texts, (), None, site, True)
    definition = replace(definition, given=(*definition.given, given))
    return proved_again(definition, launches, options, share=_SHARE)


def _advised(decision: Decision, tried: Decision, texts: Sequence[str]) -> Decision:
    """What is decided with the contracts says so, and names those about the arrays that it depends on."""
    still = {(s.obligation.rule, s.obligation.sites) for s in _open(tried)}
    strange = _strange(decision, tried)

    def told(settled: Settled) -> Settled:
        obligation = settled.obligation
        is_open = (obligation.rule, obligation.sites) in still
        if is_open or (isinstance(obligation.goal, Holds) and _array_of(obligation.goal) in strange):
            return settled
        return _with_advice(settled, texts, SETTLES, SETTLE)

    return replace(decision, settled=tuple(map(told, decision.settled)))


def _with_advice(settled: Settled, texts: Sequence[str], one: str, several: str) -> Settled:
    """An open obligation with advice that names those of the contracts that speak of its arrays."""
    from tilecheck.proof.conditions.contract_needs import tables_of  # lazy, as above

    arrays = tables_of(settled.obligation)
    own = [text for text in texts if arrays & set(_WORD.findall(text.partition(",")[0]))]
    if settled.status != "unknown" or not own:
        return settled
    listed = " and ".join(f"`# tilecheck: requires {text} -- why`" for text in own)
    beginning = one if len(own) == 1 else several
    return replace(settled, obligation=replace(settled.obligation, advice=f"{beginning}: {listed}"))


def _array_of(goal: Holds) -> str:
    return "" if goal.access is None else goal.access.array


def _strange(decision: Decision, tried: Decision) -> set[str]:
    """Arrays that new conditions compare in size with others: a bound of values that one array sets was used
    for another, which is hardly what a caller keeps."""
    found: set[str] = set()
    for condition in set(tried.conditions) - set(decision.conditions):
        arrays = {s.name.partition(".")[0] for s in symbols(condition) if s.kind is Kind.EXTENT}
        found |= arrays if len(arrays) > 1 else set()
    return found
