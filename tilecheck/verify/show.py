"""`tilecheck show`: one stage of the pipeline for one kernel, or the order of one host function, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from tilecheck.errors import SourceError, UnsupportedConstruct, UsageError
from tilecheck.model import Site

if TYPE_CHECKING:
    from tilecheck.analysis.borrow import BorrowGraph
    from tilecheck.frontend.kernels.definitions import Definition
    from tilecheck.frontend.modules.project import ModuleTable
    from tilecheck.ir.host_program import HostProgram
    from tilecheck.ir.kernel import Kernel
    from tilecheck.ir.launch import Launch
    from tilecheck.proof.obligation import Obligation

STAGES = ("ast", "ir", "borrow", "dot", "obligations", "smt")
HOST = "host"  # the host borrow graph of a host function
PICTURES = ("dot", "svg")


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


def show_host(path: str, name: str, form: str) -> str:
    """The host borrow graph of the function `name` of the file `path`: a tree with what orders each pair of
    borrows, or a picture.

    Raises:
        UsageError: there is no such file or function, or it is not read.
    """
    from tilecheck.analysis.hosts.build import build  # lazy: loads networkx
    from tilecheck.analysis.hosts.picture import svg  # lazy
    from tilecheck.analysis.hosts.queries import findings  # lazy
    from tilecheck.analysis.hosts.text import dot, tree  # lazy
    from tilecheck.proof.interleavings.region_overlaps import by_solver  # lazy
    from tilecheck.proof.solver.session import Session  # lazy

    programs, where = _host_programs(path, name)
    with closing(Session()) as session:
        found = [(g, findings(g, by_solver(g.program, session))) for g in map(build, programs)]
    if form == "svg":
        return svg(found, where)
    if form == "dot":
        return dot([graph for graph, _ in found], where)
    heads = [f"path {k} of {len(found)}: " if len(found) > 1 else "" for k in range(1, len(found) + 1)]
    return "\n".join(
        head + tree(graph, codes, where) for head, (graph, codes) in zip(heads, found, strict=True)
    )


def _host_programs(path: str, name: str) -> tuple[tuple[HostProgram, ...], Callable[[Site], str]]:
    from tilecheck.frontend.host_programs import read_host_programs  # lazy: loads libcst
    from tilecheck.verify.host_functions import footprint_of  # lazy

    table = _table(path)
    functions = {f.name: f for f in read_host_programs(table, footprint_of)}
    if name not in functions:
        known = ", ".join(functions) or "none"
        raise UsageError(
            f"{path} has no host function `{name}` that uses streams or graphs", f"it has: {known}"
        )
    programs = functions[name].programs
    unread = [functions[name].unread, *(why for program in programs for _, why in program.unread)]
    if any(unread):
        raise UsageError(f"`{name}` is not read: {next(why for why in unread if why)}")
    return programs, lambda site: _place_in(table, site)


def _table(path: str) -> ModuleTable:
    """The module of a file.

    Raises:
        UsageError: the file cannot be read or parsed.
    """
    from tilecheck.frontend.modules.project import Project  # lazy
    from tilecheck.frontend.text.source import load  # lazy

    try:
        return Project().add(load(path))
    except SourceError as problem:
        raise UsageError(f"{path}: {problem.message}") from problem


def _find(path: str, name: str) -> tuple[Definition, tuple[Launch, ...]]:
    from tilecheck.config.contracts import KernelContracts  # lazy: loads libcst
    from tilecheck.config.files import Configs  # lazy
    from tilecheck.frontend.kernels.definitions import find_kernels  # lazy
    from tilecheck.frontend.launches.discovery import find_launches  # lazy: loads libcst

    table = _table(path)
    contracts = KernelContracts(Configs()).of(path)
    definitions = {d.name: contracts.given_to(d) for d in find_kernels(table)}
    if name not in definitions:
        raise UsageError(f"{path} has no kernel `{name}`", f"its kernels: {', '.join(definitions) or 'none'}")
    launches = tuple(la for la in find_launches(table) if la.kernel == name and not la.checked)
    return definitions[name], launches


def _ast(definition: Definition) -> str:
    from tilecheck.frontend.text.source import dump  # lazy: loads libcst

    return dump(definition.node) + "\n"


def _later(stage: str, definition: Definition, launches: tuple[Launch, ...]) -> str:
    from tilecheck.frontend.lower import lower  # lazy
    from tilecheck.ir.printer import kernel_text  # lazy

    kernel = lower(definition)
    if stage == "ir":
        return kernel_text(kernel)
    from tilecheck.analysis.borrow import build  # lazy

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
    return _place_in(table, site) if table is definition.table else f"{site.file}:{_place_in(table, site)}"


def _place_in(table: ModuleTable, site: Site) -> str:
    if site.file != table.file:
        return site.file
    line, column = table.parsed.source.position(site.span.start)
    return f"{line}:{column}"


def _obligations(kernel: Kernel, graph: BorrowGraph) -> tuple[Obligation, ...]:
    from tilecheck.analysis.facts import Facts  # lazy
    from tilecheck.registry import load_rules  # lazy
    from tilecheck.verify.stages import state_obligations  # lazy

    obligations, _ = state_obligations(Facts(kernel, graph), [entry.rule for entry in load_rules()])
    return obligations


def _decisions(definition: Definition, kernel: Kernel, obligations: tuple[Obligation, ...]) -> Iterator[str]:
    from tilecheck.proof.goals.context import Context  # lazy
    from tilecheck.proof.rungs.ladder import prove  # lazy
    from tilecheck.proof.solver.session import Session  # lazy

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
    from tilecheck.proof.certificates.queries import query_text, refuted_texts  # lazy
    from tilecheck.proof.decide import decide  # lazy
    from tilecheck.proof.goals.context import Context  # lazy
    from tilecheck.verify.stages import line_of  # lazy

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
