"""`tilecheck show`: one stage of the pipeline for one kernel, as text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from tilecheck.errors import SourceError, UnsupportedConstruct, UsageError
from tilecheck.model import Site

if TYPE_CHECKING:
    from tilecheck.analysis.borrow import BorrowGraph
    from tilecheck.frontend.definitions import Definition
    from tilecheck.ir.kernel import Kernel
    from tilecheck.ir.launch import Launch
    from tilecheck.proof.obligation import Obligation

STAGES = ("ast", "ir", "borrow", "dot", "obligations", "smt")


def show(stage: str, path: str, name: str) -> str:
    """The text of a stage for the kernel `name` of the file `path`.

    Raises:
        UsageError: there is no such file, kernel or stage, or the kernel is not readable that far.
    """
    definition, launches = _find(path, name)
    if stage == "ast":
        return _ast(definition)
    try:
        return _later(stage, definition, launches)
    except UnsupportedConstruct as problem:
        raise UsageError(
            f"`{name}` is not read: {problem.construct} is not supported", f"tilecheck show ast {path}::{name}"
        ) from problem


def _find(path: str, name: str) -> tuple[Definition, tuple[Launch, ...]]:
    from tilecheck.config.contracts import KernelContracts  # lazy: loads libcst
    from tilecheck.config.files import Configs  # lazy
    from tilecheck.frontend.definitions import find_kernels  # lazy
    from tilecheck.frontend.launches import find_launches  # lazy: loads libcst
    from tilecheck.frontend.modules import Project  # lazy
    from tilecheck.frontend.source import load  # lazy

    try:
        table = Project().add(load(path))
    except SourceError as problem:
        raise UsageError(f"{path}: {problem.message}") from problem
    contracts = KernelContracts(Configs()).of(path)
    definitions = {d.name: contracts.given_to(d) for d in find_kernels(table)}
    if name not in definitions:
        raise UsageError(f"{path} has no kernel `{name}`", f"its kernels: {', '.join(definitions) or 'none'}")
    launches = tuple(la for la in find_launches(table) if la.kernel == name)
    return definitions[name], launches


def _ast(definition: Definition) -> str:
    from tilecheck.frontend.source import dump  # lazy: loads libcst

    return dump(definition.node) + "\n"


def _later(stage: str, definition: Definition, launches: tuple[Launch, ...]) -> str:
    from tilecheck.frontend.lower import lower  # lazy
    from tilecheck.ir.printer import kernel_text  # lazy

    kernel = lower(definition)
    if stage == "ir":
        return kernel_text(kernel)
    from tilecheck.analysis.borrow import build  # lazy: loads networkx

    graph = build(kernel, launches)
    if stage in ("borrow", "dot"):
        return _borrow(stage, definition, graph)
    obligations = _obligations(kernel, graph)
    lines = (_smt if stage == "smt" else _decisions)(definition, kernel, obligations)
    return "\n".join(lines) + "\n"


def _borrow(stage: str, definition: Definition, graph: BorrowGraph) -> str:
    from tilecheck.analysis.borrow_text import dot, tree  # lazy

    return dot(graph) if stage == "dot" else tree(graph, lambda site: _place(definition, site))


def _place(definition: Definition, site: Site) -> str:
    table = next((t for t in definition.table.project.tables.values() if t and t.file == site.file), None)
    if table is None:
        return site.file
    line, column = table.parsed.source.position(site.span.start)
    return f"{line}:{column}" if table is definition.table else f"{site.file}:{line}:{column}"


def _obligations(kernel: Kernel, graph: BorrowGraph) -> tuple[Obligation, ...]:
    from tilecheck.analysis.facts import Facts  # lazy
    from tilecheck.registry import load_rules  # lazy
    from tilecheck.stages import state_obligations  # lazy

    obligations, _ = state_obligations(Facts(kernel, graph), [entry.rule for entry in load_rules()])
    return obligations


def _decisions(definition: Definition, kernel: Kernel, obligations: tuple[Obligation, ...]) -> Iterator[str]:
    from tilecheck.proof.context import Context  # lazy
    from tilecheck.proof.ladder import prove  # lazy
    from tilecheck.proof.session import Session  # lazy

    context = Context(kernel)
    with closing(Session()) as session:
        for obligation in obligations:
            outcome = prove(obligation, context, session)
            where = ", ".join(_place(definition, s) for s in obligation.sites)
            answer = f"proved by {outcome.rung}" if outcome.proved else "open"
            yield f"{obligation.rule} at {where}: never that {obligation.cause} — {answer}"


def _smt(definition: Definition, kernel: Kernel, obligations: tuple[Obligation, ...]) -> Iterator[str]:
    """The queries that decided each obligation, as `verify --dump-smt` writes them; where none did, what the
    solver would be asked first."""
    from tilecheck.options import DEFAULT_BUDGET  # lazy
    from tilecheck.proof.context import Context  # lazy
    from tilecheck.proof.decide import decide  # lazy
    from tilecheck.proof.smt_text import query_text, refuted_texts  # lazy
    from tilecheck.stages import line_of  # lazy

    file = definition.table.file
    decision = decide(kernel, obligations, file, without=frozenset(), budget=DEFAULT_BUDGET, keep=True)
    for number, settled in enumerate(decision.settled, 1):
        obligation = settled.obligation
        where = ", ".join(line_of(definition, s) for s in obligation.sites)
        texts = refuted_texts(settled, f"{kernel.name} of {file}", where, number)
        if not texts:
            head = f"; obligation {number}, {obligation.rule}: never that {obligation.cause}"
            what = f"; {settled.status}, rung {settled.rung}: without a query; the first would be"
            texts = (f"{head}\n{what}\n{query_text(obligation, Context(kernel))}\n",)
        yield "".join(f"(reset)\n{text}" for text in texts)
