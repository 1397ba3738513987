"""A kernel that is read and decided once more, otherwise than it stands in its file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilecheck.analysis.borrow import build
from tilecheck.analysis.facts import Facts
from tilecheck.frontend.lower import lower
from tilecheck.proof.decide import Decision, decide
from tilecheck.proof.solver.work import Work
from tilecheck.registry import load_rules

if TYPE_CHECKING:
    from tilecheck.frontend.kernels.definitions import Definition
    from tilecheck.ir.kernel import Kernel
    from tilecheck.ir.launch import Launch
    from tilecheck.options import Options
    from tilecheck.proof.obligation import Obligation


def proved_again(
    definition: Definition,
    launches: tuple[Launch, ...],
    options: Options,
    *,
    share: int,
    asks: Callable[[Obligation], bool] = lambda _: True,
) -> tuple[Kernel, Decision]:
    """The kernel, and what is proved of it by one part in `share` of the work that a kernel may take: of the
    obligations that it `asks` for.

    Raises:
        UnsupportedConstruct: the kernel, or a contract, is not read.
    """
    from tilecheck.verify.stages import state_obligations  # that module needs this one

    kernel = lower(definition)
    facts = Facts(kernel, build(kernel, launches))
    stated, _ = state_obligations(facts, [entry.rule for entry in load_rules()])
    obligations = tuple(filter(asks, stated))
    work = Work.of_kernel(options.budget // share)
    file = definition.table.file
    decision = decide(
        kernel, obligations, file, without=options.without, budget=options.budget, work=work, proves_only=True
    )
    return kernel, decision
