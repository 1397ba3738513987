"""What nobody wrote above a kernel and every launch in view shows: contracts on values that its host makes, and
the values of compile-time parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilecheck.errors import UnsupportedConstruct
from tilecheck.ir.expr import FALSE, TRUE, Expr
from tilecheck.ir.kernel import PASSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilecheck.frontend.kernels.definitions import Definition
    from tilecheck.ir.kernel import Kernel
    from tilecheck.ir.launch import Launch
    from tilecheck.proof.launches.visible import Judges

_REASON = "the host makes these values at every launch in view"


def as_launched(definition: Definition, launches: Sequence[Launch], *, waits: bool) -> Definition | None:
    """The program that every launch in view compiles: the kernel with the literals that all of them pass for
    parameters of compile time. None where they pass none, or some launch is not read.

    Sound because these values become conditions of whatever is proved (`PASSED`): a launch with another value
    breaks one, as it would any other condition. What `waits` for a contract on memory does so in tiles of any
    size: None, unless the program lacks some access.

    Raises:
        UnsupportedConstruct: the kernel is not read.
    """
    if not launches or any(launch.problem is not None for launch in launches):
        return None
    from tilecheck.frontend.kernels.definitions import Given, read_parameters  # lazy: few kernels come here

    passed = [dict(launch.arguments) for launch in launches]
    constants = [n for n, a in read_parameters(definition).items() if a.constant and a.value is None]
    values = ((name, {_literal(arguments.get(name)) for arguments in passed}) for name in constants)
    fixed = tuple((name, value) for name, (value, *others) in values if value is not None and not others)
    given = Given((), fixed, None, definition.table.site(definition.node.name), True, PASSED)
    special = replace(definition, given=(*definition.given, given))
    if not fixed or not waits:
        return special if fixed else None
    from tilecheck.frontend.lower import lower  # lazy, as above

    return special if len(lower(special).accesses) < len(lower(definition).accesses) else None


def _literal(value: object) -> int | bool | None:
    if value is TRUE or value is FALSE:
        return value is TRUE
    return value.value if isinstance(value, Expr) else None


def shown_contracts(
    definition: Definition, judges: Judges, texts: tuple[str, ...], launches: tuple[Launch, ...]
) -> tuple[Definition, Kernel] | None:
    """The kernel with those contracts above it, if each holds by the text of every launch in view."""
    if not texts or not launches or any(launch.problem is not None for launch in launches):
        return None
    from tilecheck.frontend.kernels.definitions import Given  # lazy: few kernels come here
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
    from tilecheck.proof.launches.contracts import judge_contract  # lazy: loads z3
    from tilecheck.proof.launches.judge import judge_of  # lazy, as above

    more = [c for c in promised.contracts if c not in own.kernel.contracts]
    judges = [judge_of(promised, launch, own.session) for launch in launches]
    return bool(more) and all(
        judge_contract(judge, contract, lambda broken, values: None)[0] == "holds"
        for judge in judges
        for contract in more
        if not judge.is_of_another_kernel()
    )
