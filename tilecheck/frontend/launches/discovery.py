"""Finds the launches in a module by executing its host functions.

Every function that contains a launch is executed with free parameters, and so is every function of the
module that calls one (then the launch is seen with the caller's values). A launch that is not understood is
reported with a `problem`; nothing here raises on weird code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute.expressions import evaluate
from tilecheck.frontend.execute.statements import run_block
from tilecheck.frontend.host.autograd import (
    HostRun,
    context_of,
    follow_gradients,
    forward_of,
    handed_over,
    take_over,
)
from tilecheck.frontend.host.expressions import HANDLERS
from tilecheck.frontend.host.functions import PLAIN_DECORATORS, is_own
from tilecheck.frontend.host.memory.rejections import doubt_inputs
from tilecheck.frontend.host.memory.uninitialised import with_returned
from tilecheck.frontend.host.memory.unread_effects import rebinds
from tilecheck.frontend.host.run import HostDialect, HostExecutor, HostStopped, HostTooLarge, Shared, parameter
from tilecheck.frontend.host.values import LAUNCHERS, LaunchCall, Tensor, Unknown
from tilecheck.frontend.kernels.annotations import read_annotation
from tilecheck.frontend.kernels.definitions import is_kernel_decorator
from tilecheck.frontend.launches.autograd_calls import prepared_inputs
from tilecheck.frontend.launches.decorators import hands_on
from tilecheck.frontend.launches.fields import class_around, given_fields, shared_fields
from tilecheck.frontend.launches.global_state import kept_names
from tilecheck.frontend.launches.prefilter import may_launch
from tilecheck.frontend.launches.records import record
from tilecheck.frontend.launches.runtime_checked import checked_launches
from tilecheck.frontend.modules.bindings import Import, dotted, imports_of
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import walk, walk_kind
from tilecheck.frontend.values.values import Const, Frame, Function
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Expr, const
from tilecheck.ir.launch import Launch
from tilecheck.model import Site, Span

MAX_RUNS = 4  # until it has settled which unknowns are integers
MODULE = "<module>"


def find_launches(table: ModuleTable, uses: frozenset[Span] = frozenset()) -> tuple[Launch, ...]:
    """The launches of a module, in the order of their sites; one site may be seen from several functions.
    `uses` are places where the value of some kernel is used, though their text alone names none."""
    if not uses and not may_launch(table.parsed.words):
        return ()
    module = _Module(table, uses)
    found: dict[Launch, None] = {}
    shared = Shared()
    for host in module.hosts():
        # A nested function is executed where it is called; alone, it would lack the names around it.
        if host.enclosing and host.sites <= {launch.site for launch in found}:
            continue
        found.update(dict.fromkeys(_execute(table, host, shared, module)))
    kept = _without_helpers(tuple(found), module)
    seen = {launch.site for launch in kept}
    missed = [site for site in module.sites() if site not in seen]
    kept += tuple(_problem(module, site, "the code around this launch is not read") for site in missed)
    kept += tuple(
        Launch(kernel, file, function, site, None, (), (), guarded=True, checked=True)
        for site, (kernel, file), function in checked_launches(table)
    )
    return tuple(sorted(kept, key=lambda la: (la.site.file != table.file, la.site.file, la.site.span.start)))


def _problem(module: _Module, site: Site, why: str) -> Launch:
    """A launch that is not read, of the kernel that its text names."""
    kernel, file = module.kernels.get(site, ("", ""))
    return Launch(kernel, file, "", site, None, (), (), why)


def _without_helpers(found: tuple[Launch, ...], module: _Module) -> tuple[Launch, ...]:
    """A private helper is judged where the module calls it, not with arguments that nobody passes."""
    understood = {(la.site, la.function) for la in found if la.problem is None}

    def is_seen_elsewhere(launch: Launch) -> bool:
        return any(site == launch.site and function != launch.function for site, function in understood)

    private = module.private_functions()
    return tuple(la for la in found if la.function not in private or not is_seen_elsewhere(la))


# ---- which functions to execute ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Host:
    """A function to execute; None for the module's own statements. `sites` are the launches in its text."""

    node: cst.FunctionDef | None
    enclosing: tuple[cst.FunctionDef, ...]
    sites: frozenset[Site]

    @property
    def name(self) -> str:
        return MODULE if self.node is None else self.node.name.value


@dataclass(slots=True, eq=False)
class _Module:
    """The host functions of a module and who calls whom. Mutable: filled once."""

    table: ModuleTable
    uses: frozenset[Span] = frozenset()
    functions: list[tuple[cst.FunctionDef, tuple[cst.FunctionDef, ...]]] = field(default_factory=list)
    inside: dict[cst.FunctionDef | None, list[cst.Call]] = field(default_factory=dict)
    calls: dict[cst.FunctionDef | None, set[str]] = field(default_factory=dict)
    perhaps: set[cst.FunctionDef | None] = field(default_factory=set)  # `kernels[i][grid](x)`, or a plain call
    kernels: dict[Site, tuple[str, str]] = field(default_factory=dict)  # by its text: the kernel, and its file

    def __post_init__(self) -> None:
        launch_names = _launch_names(self.table)
        for node, enclosing in self.table.parsed.index.functions(cst.Call, skips=self._is_kernel):
            owner = enclosing[-1] if enclosing else None
            if isinstance(node, cst.FunctionDef):
                self.functions.append((node, enclosing))
                continue
            name = dotted(node.func)
            self.calls.setdefault(owner, set()).add(name)
            is_gridded = isinstance(node.func, cst.Subscript)
            kernel = _kernel_named(self.table, node) if is_gridded or name in launch_names else None
            if name in launch_names or kernel is not None:
                self.inside.setdefault(owner, []).append(node)
                if kernel is not None:
                    self.kernels[self.table.site(node)] = kernel
            elif is_gridded or (self.uses and self.table.span(node) in self.uses):
                self.perhaps.add(owner)

    def _is_kernel(self, function: cst.FunctionDef) -> bool:
        return any(is_kernel_decorator(self.table, d.decorator) for d in function.decorators)

    def sites(self) -> list[Site]:
        return [self.table.site(call) for calls in self.inside.values() for call in calls]

    def hosts(self) -> Iterator[_Host]:
        """The functions that launch, or call a function of this module that does; outer ones first."""
        wanted = {n for n in (None, *(f for f, _ in self.functions)) if n in self.inside or n in self.perhaps}
        names = {n.name.value for n in wanted if n is not None}
        while True:
            more = [n for n, _ in self.functions if n not in wanted and self.calls.get(n, set()) & names]
            if not more:
                break
            wanted.update(more)
            names.update(n.name.value for n in more)
        if None in wanted:
            yield _Host(None, (), self._sites_in(None))
        for node, enclosing in sorted(self.functions, key=lambda f: len(f[1])):
            nested = [n for n, around in self.functions if node in around]
            if node in wanted or any(n in wanted for n in nested):
                yield _Host(node, enclosing, self._sites_in(node))

    def _sites_in(self, node: cst.FunctionDef | None) -> frozenset[Site]:
        return frozenset(self.table.site(call) for call in self.inside.get(node, ()))

    def private_functions(self) -> frozenset[str]:
        """Functions that only this module calls, underscored or nested ones: one that is handed on by its name
        as well, as in `partial(_helper, n)`, is called with arguments that the module does not show."""
        called = set().union(*self.calls.values()) if self.calls else set()
        handed_on = _names_handed_on(self.table)
        return frozenset(
            node.name.value
            for node, enclosing in self.functions
            if node.name.value in called - handed_on and (node.name.value.startswith("_") or enclosing)
        )


def _names_handed_on(table: ModuleTable) -> frozenset[str]:
    """The names that stand elsewhere than in a definition or in front of a call's arguments; those in texts,
    as in `__all__` and `globals()["_helper"]`, count in."""
    called: set[cst.CSTNode | None] = {call.func for call in table.nodes(cst.Call)}
    called.update(function.name for function in table.nodes(cst.FunctionDef))
    called.update(attribute.attr for attribute in table.nodes(cst.Attribute))
    called.update(arg.keyword for arg in table.nodes(cst.Arg))
    texts = (str(text.raw_value) for text in table.nodes(cst.SimpleString))
    return frozenset((*texts, *(name.value for name in table.nodes(cst.Name) if name not in called)))


_KERNEL = 2  # its place among the arguments of `ct.launch`


def _launch_names(table: ModuleTable) -> frozenset[str]:
    """How this file spells the functions that launch, whether imported at the top or inside a function."""
    found: set[str] = set()
    bindings = [(n, b) for n, b in table.bindings.items() if isinstance(b, Import)]
    for node in walk_kind(table.parsed.module, cst.Import, cst.ImportFrom):
        bindings.extend(imports_of(node))
    for name, binding in bindings:
        full = binding.name
        for target in (*LAUNCHERS, "cuda.tile._execution.launch"):
            if target == full or target.startswith(f"{full}."):
                found.add(name + target[len(full) :])
    return frozenset(found)


def _kernel_named(table: ModuleTable, call: cst.Call) -> tuple[str, str] | None:
    """The kernel, and its file, that a call launches by its text: `kernel[grid](...)` of a name that is a
    kernel in its module, `tilecheck.verified(kernel)[grid](...)`, `ct.launch(stream, grid, kernel, ...)`."""
    kernel: cst.BaseExpression | None = None
    if isinstance(call.func, cst.Subscript):
        kernel = call.func.value
        if isinstance(kernel, cst.Call) and dotted(kernel.func) in ("tilecheck.verified", "verified"):
            kernel = kernel.args[0].value if kernel.args else None
    elif len(call.args) > _KERNEL and call.args[_KERNEL].keyword is None:
        kernel = call.args[_KERNEL].value
    binding = None if kernel is None else table.bindings.get(dotted(kernel))
    if isinstance(binding, Import) and binding.member is not None:
        found = table.project.find(Import(binding.module, None, binding.level), table.file)
        table, binding = (found or table), found.bindings.get(binding.member) if found is not None else None
    if not isinstance(binding, cst.FunctionDef):
        return None
    is_kernel = any(is_kernel_decorator(table, d.decorator) for d in binding.decorators)
    return (binding.name.value, table.file) if is_kernel else None


# ---- executing them ----------------------------------------------------------------------------------------


def _execute(table: ModuleTable, host: _Host, shared: Shared, module: _Module) -> list[Launch]:
    """The launches that a run of `host` meets."""
    run = _settled(table, host, shared)
    launches = list(run.launches)
    if run.why is not None:
        met = {launch.site for launch in launches}
        left = sorted(host.sites - met, key=lambda s: s.span.start)
        launches += [_problem(module, site, run.why) for site in left]
    if host.node is None or not launches:
        return launches
    forward = forward_of(table, host.node)
    computed = prepared_inputs(table, host.node)
    computed += () if forward is None else prepared_inputs(table, forward)
    defaults = tuple(_defaults(table, host.node).items())
    kept = kept_names(table, host.node)
    return [replace(la, doubted=(*la.doubted, *computed), defaults=defaults, kept=kept) for la in launches]


def _defaults(table: ModuleTable, function: cst.FunctionDef) -> dict[str, Expr]:
    """The integers that a function gives to parameters which its caller leaves out."""
    params = (*function.params.posonly_params, *function.params.params, *function.params.kwonly_params)
    found: dict[str, Expr] = {}
    for param in params:
        value: object = param.default
        if isinstance(value, cst.Name) and value.value not in table.ambiguous:
            value = table.bindings.get(value.value)
        if isinstance(value, cst.Integer):
            found[param.name.value] = const(value.evaluated_value)
    return found


def _settled(table: ModuleTable, host: _Host, shared: Shared) -> HostRun:
    """A run of `host` that knows which unknowns are integers, and which are sequences of them."""
    if host.node is not None and host.node in shared.runs:
        return shared.runs[host.node]
    integers: frozenset[str] = frozenset()
    sequences: frozenset[str] = frozenset()
    forms: dict[tuple[str, str], Any] = {}
    for _ in range(MAX_RUNS):
        met: list[tuple[Launch, int]] = []
        x = _executor(table, host, met, integers)
        x.forms, x.known, x.sequence_names = forms, shared, sequences
        why = _run(x, table, host)
        launches = [with_returned(x, launch, event, x.returned) for launch, event in met]
        learned = _forms(x, table, shared)
        if x.integers_seen <= integers and x.sequences_seen <= sequences and learned == forms:
            break
        integers, sequences, forms = integers | x.integers_seen, sequences | x.sequences_seen, learned
    handed = None
    if host.node is not None and host.name == "forward" and why is None and x.outermost is not None:
        handed = handed_over(x, host.node, x.outermost)
    found = HostRun(tuple(launches), why, handed)
    if host.node is not None:
        shared.runs[host.node] = found
    return found


def _forms(x: HostExecutor, table: ModuleTable, shared: Shared) -> dict[tuple[str, str], Any]:
    """What module-level containers hold, where this run saw every store of the module into them.

    Whoever stored it ran the same statement, so what does not depend on the run (which kernel it is) is so
    whenever it is read back. Everything else in it is unknown.
    """
    found: dict[tuple[str, str], Any] = {}
    for key, stored in x.stored.items():
        forms = list(stored.values())
        if key[0] != table.file or forms[0] is None or any(form != forms[0] for form in forms):
            continue
        if set(stored) == _stores(table, shared).get(key[1]):
            found[key] = forms[0]
    return found


def _stores(table: ModuleTable, shared: Shared) -> dict[str, set[int]]:
    """Where the module stores into containers. A use that does more than to read or ask for an item counts as
    a store that nobody sees."""
    known = shared.stores.get(table.file)
    if known is not None:
        return known
    found: dict[str, set[int]] = {}
    for node in table.nodes(cst.AssignTarget):
        match node:
            case cst.AssignTarget(target=cst.Subscript(value=cst.Name(held))):
                found.setdefault(held, set()).add(table.span(node.target).start)
    for text in table.nodes(cst.SimpleString) if found else ():
        if text.raw_value in found:  # `globals()["_cache"]`
            found[text.raw_value].add(-1)
    for held, places in found.items():
        if not all(_only_asks(table, use) for use in table.changes.uses.get(held, ())):
            places.add(-1)
    shared.stores[table.file] = found
    return found


def _only_asks(table: ModuleTable, use: cst.Name) -> bool:
    """Whether a use of a container's name binds it, reads an item, asks for one, or is a store that is seen."""
    parents = table.changes.parents
    parent = parents[use]
    above = parents.get(parent)
    match parent:
        case cst.Attribute(attr=attr) if attr is use:
            return True  # of something else
        case cst.AssignTarget() | cst.ComparisonTarget() | cst.Comparison():
            return True
        case cst.AnnAssign(target=target):
            return target is use
        case cst.Subscript(value=value) if value is use:
            return isinstance(above, cst.AssignTarget) or not table.changes.is_stored(parent)
        case cst.Attribute(attr=cst.Name("get" | "keys" | "values" | "items")):
            return isinstance(above, cst.Call) and above.func is parent
        case cst.Arg():
            return (
                isinstance(above, cst.Call) and isinstance(above.func, cst.Name) and above.func.value == "len"
            )
    return False


def _executor(
    table: ModuleTable, host: _Host, met: list[tuple[Launch, int]], integers: frozenset[str]
) -> HostExecutor:
    """`met` gets each launch, and the last event before it."""
    site = table.site(table.parsed.module if host.node is None else host.node.name)
    x = HostExecutor(table.project, HostDialect(), site, handlers=HANDLERS)
    x.integer_names = integers

    def keep(run: HostExecutor, call: LaunchCall) -> None:
        if not run.dry:
            met.extend((launch, run.events.now) for launch in record(run, call, host.name))

    x.record_launch = keep
    return x


def _run(x: HostExecutor, table: ModuleTable, host: _Host) -> str | None:
    """Execute; why it ended early, if it did."""
    try:
        if host.node is None:
            frame = Frame({}, None, table, MODULE, [], 0)
            run_block(x, table.parsed.module.body, frame)
        else:
            frame = x.outermost = _frame(x, table, host)
            x.context = context_of(table, host.node)
            prepared = hands_on(x, table, host.node)
            x.followed, x.made_contiguous = prepared is not None, prepared or {}
            annotated = (n for n in x.made_contiguous if isinstance(frame.names.get(n), Tensor))
            frame.names.update({name: x.made_contiguous[name] for name in annotated})
            _take_over(x, table, host, frame)
            x.running.append(host.node)
            doubt_inputs(x, host.node, frame, PLAIN_DECORATORS, followed=x.followed)
            run_block(x, host.node.body.body, frame)
            if x.guard is not E.FALSE:
                x.ends.append((x.guard, Const(None), dict(frame.names)))
            x.returned = tuple(value for _, value in frame.returns)
    except HostTooLarge:
        return f"`{host.name}` is too large to follow"
    except RecursionError:
        return f"`{host.name}` is nested too deeply to follow"
    except HostStopped as problem:
        return str(problem)
    except UnsupportedConstruct as problem:
        return f"not read: {problem.construct}"
    return None


def _take_over(x: HostExecutor, table: ModuleTable, host: _Host, frame: Frame) -> None:
    """Start the `backward` of an autograd function with what its `forward` left."""
    if host.node is None:
        return
    forward = forward_of(table, host.node)
    run = None if forward is None else _settled(table, _Host(forward, host.enclosing, frozenset()), x.known)
    if run is not None and run.handed is not None:
        take_over(x, host.node, frame, run.handed)
    follow_gradients(x, table, host.node, frame)


def _frame(x: HostExecutor, table: ModuleTable, host: _Host) -> Frame:
    outer: Frame | None = None
    for function in host.enclosing:
        outer = Frame({}, outer, table, function.name.value, [], 0)
        _add_parameters(outer, table, function)
        rebinds(x, function, outer)
        _bind_locals(x, function, outer)
    frame = Frame({}, outer, table, host.name, [], 0)
    if host.node is not None:
        _add_parameters(frame, table, host.node)
        if (around := class_around(table, host.node)) is not None:
            x.fields = shared_fields(around, host.node, calls=True)
            x.viewed_fields = shared_fields(around, host.node, calls=False)
            x.given_fields = given_fields(table, around, host.node)
    x.inputs = frozenset(frame.names) | (frozenset(outer.names) if outer is not None else frozenset())
    x.of_numbers = frozenset(filter(None, map(_of_numbers, host.node.params.params if host.node else ())))
    sizes = (p for p in (host.node.params.params if host.node else ()) if _is_shape(table, p))
    x.sequence_names |= {p.name.value for p in sizes}
    # What is made here gets other names than what is handed in.
    x.storages.update(dict.fromkeys(x.inputs, 1))
    x.names_taken.update(dict.fromkeys(x.inputs, 1))
    return frame


def _bind_locals(x: HostExecutor, function: cst.FunctionDef, frame: Frame) -> None:
    """Bind the names that a function gives to those inside it: what is assigned once, by a statement of its own
    body, is evaluated; any other name that is bound again is unknown."""
    bound: dict[str, int] = dict.fromkeys(frame.names, 1)
    for node in walk(function.body):
        match node:
            case cst.AssignTarget(cst.Name(name)) | cst.AnnAssign(cst.Name(name)) | cst.For(cst.Name(name)):
                bound[name] = bound.get(name, 0) + 1
            case cst.AugAssign(cst.Name(name)) | cst.NamedExpr(cst.Name(name)):
                bound[name] = bound.get(name, 0) + 2
            case cst.Nonlocal():
                bound.update((item.name.value, 2) for item in node.names)
    for name, times in bound.items():
        if times > 1 or name not in frame.names:
            frame.names[name] = Unknown(name, opaque=True)
    for node in walk(function.body, is_own):
        if isinstance(node, cst.FunctionDef):
            frame.names[node.name.value] = Function(node, frame.table, frame)
    for line in function.body.body:
        for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            match statement:
                case cst.Assign(targets=[cst.AssignTarget(cst.Name(name))]) if bound[name] == 1:
                    with contextlib.suppress(UnsupportedConstruct):
                        frame.names[name] = evaluate(x, statement.value, frame)


def _is_shape(table: ModuleTable, param: cst.Param) -> bool:
    """Whether a parameter is annotated as the shape of a tensor."""
    return param.annotation is not None and table.full_name(dotted(param.annotation.annotation)) == "torch.Size"


def _of_numbers(param: cst.Param) -> str:
    """The name of a parameter that is annotated as one of integers alone; empty for any other."""
    words = {n.value for n in walk_kind(param.annotation, cst.Name)} if param.annotation else set()
    plain = {"int", "list", "List", "tuple", "Tuple", "Sequence", "Optional", "Union", "None", "typing"}
    return param.name.value if "int" in words and words <= plain else ""


def _add_parameters(frame: Frame, table: ModuleTable, function: cst.FunctionDef) -> None:
    params = function.params
    for p in (*params.posonly_params, *params.params, *params.kwonly_params):
        note = read_annotation(table, None if p.annotation is None else p.annotation.annotation)
        optional = p.default is not None and isinstance(p.default, cst.Name) and p.default.value == "None"
        plain = p.annotation is not None and isinstance(p.annotation.annotation, cst.Name | cst.Attribute)
        tensor = note.array and not note.array_list and plain and not optional
        scalar = note.scalar if plain and not optional else ""
        if p.annotation is None and isinstance(p.default, cst.Float):
            scalar = "float"  # as it is in a call that leaves it out
        frame.names[p.name.value] = parameter(p.name.value, scalar, tensor=tensor)
    for star in (params.star_arg, params.star_kwarg):
        if isinstance(star, cst.Param):
            frame.names[star.name.value] = Unknown(star.name.value)
