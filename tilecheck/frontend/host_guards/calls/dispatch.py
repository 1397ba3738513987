"""Calls: each that may happen is one of the library's, of the project's own code, or known to do no more than
Python or work on the current stream."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tilecheck.frontend.host_guards.calls import foreign, host_library
from tilecheck.frontend.host_guards.calls.arguments import Given, arguments, of_values
from tilecheck.frontend.host_guards.frames import Frame
from tilecheck.frontend.host_guards.kinds import (
    NOTHING,
    PLAIN,
    UNKNOWN,
    Atom,
    Box,
    Checked,
    Class,
    Code,
    External,
    Kernel,
    Kind,
    Made,
    Method,
    Pending,
    Sort,
)
from tilecheck.frontend.host_guards.program import Program
from tilecheck.frontend.host_guards.read import annotations as annotated
from tilecheck.frontend.host_guards.read import names
from tilecheck.frontend.host_guards.read.attributes import attribute, decorators
from tilecheck.frontend.host_guards.read.expressions import evaluate, quietly
from tilecheck.frontend.host_guards.run import Run
from tilecheck.frontend.host_guards.scopes import CHANGING, parameters_of
from tilecheck.frontend.kernels.shipped import shipped_kernel
from tilecheck.frontend.modules.bindings import dotted


def call(r: Run, node: cst.Call) -> Kind:
    """The kind of what a call gives."""
    func = node.func
    if isinstance(func, cst.Attribute):
        owner = quietly(r, func.value) if func.attr.value in CHANGING else evaluate(r, func.value)
        callee = attribute(r, func, owner - PLAIN, func.attr.value)
    else:
        owner, callee = NOTHING, evaluate(r, func)
    given = arguments(r, node)
    found = foreign.of_plain(r, given) if owner & PLAIN else NOTHING
    for atom in callee:
        found |= invoke(r, atom, given)
    return found


def invoke(r: Run, atom: Atom, given: Given) -> Kind:
    """What a call of one thing gives."""
    match atom:
        case Sort.NONE:
            return NOTHING  # it raises
        case Code():
            return run_code(r, atom, given)
        case Class():
            return make(r, atom, given)
        case External(name=name) if host_library.is_of_library(name):
            return host_library.function(r, name, given, invoke)
        case External(name=name):
            return foreign.function(r, name, given, invoke)
        case Method(owner=Checked() | Pending() as owner, name=name):
            return host_library.method(r, owner, name, given, invoke)
        case Method(owner=owner, name=name):
            return foreign.method(r, owner, name, given)
        case Kernel(has_grid=True):
            return foreign.launched(r, given)
        case Made(of=of):
            found = names.member(r.p, of, "__call__")
            if found is None or not isinstance(found[1], cst.FunctionDef):
                return r.refuse(given.node, "what a call of this object does is not in view")
            return run_code(r, Code(found[1], found[0].table, None, atom), given)
        case Sort.PLAIN:
            return r.refuse(given.node, "what this calls is not followed")
        case _:
            return r.refuse(given.node, "what this does is not in view")


# ---- the project's own functions ---------------------------------------------------------------------------


def run_code(r: Run, code: Code, given: Given) -> Kind:
    """A call of a function of the project, which is read as well."""
    node = code.node
    if isinstance(node, cst.FunctionDef):
        if node.asynchronous is not None:
            return r.refuse(given.node, "when this function runs is not followed")
        if "" in decorators(r, code.table, node):
            return r.refuse(given.node, "what its decorators make of this function is not known")
    frame = r.p.frame(node, code.table, code.outer)
    pass_all(r, frame, code, given)
    for _, kind, _ in given.every():
        for atom in kind:
            shipped = shipped_kernel(atom.name) if isinstance(atom, External) else None
            kernel = atom if shipped is None else Kernel(*shipped)
            if isinstance(kernel, Kernel) and kernel.file:
                r.frame.facts.passed.append((kernel, r.table.site(given.node)))
    if node in r.p.ordered and not _takes_part(r, given):
        r.raw(given.node)
    else:
        facts = r.frame.facts
        facts.calls[frame] = facts.calls.get(frame, False) or r.within is not None
        facts.call_sites.append((frame, given.node))
    if frame.names.is_generator:
        r.frame.facts.lazy.append(r.table.site(given.node))
        return r.boxed(given.node, frame.yields, "yields")
    return frame.returns


def _takes_part(r: Run, given: Given) -> bool:
    """Whether a function is given something of the library, or nobody knows what."""
    inside = r.p.inside(given.kind())
    return any(isinstance(a, Checked | Pending | Code | Made) or a is Sort.UNKNOWN for a in inside)


def pass_all(r: Run, frame: Frame, code: Code, given: Given) -> None:
    """Bind the parameters of a function to the arguments of a call."""
    p, params = r.p, code.node.params
    listed = [*params.posonly_params, *params.params]
    positional = [kind for kind, _ in given.positional]
    if code.owner is not None:
        positional.insert(0, frozenset({code.owner}))
    named = {param.name.value for param in (*listed, *params.kwonly_params)}
    for at, param in enumerate(listed):
        p.bind(frame, param.name.value, positional[at] if at < len(positional) else given.more | given.others)
    for param in parameters_of(code.node):
        if param.name.value in given.keywords:
            p.bind(frame, param.name.value, given.keywords[param.name.value][0])
        if param.default is not None:
            p.bind(frame, param.name.value, default_of(p, frame, param))
    if isinstance(params.star_arg, cst.Param):
        rest = given.more.union(*positional[len(listed) :])
        p.bind(frame, params.star_arg.name.value, p.fill(Box(params.star_arg, frame), rest))
    for param in params.kwonly_params:
        p.bind(frame, param.name.value, given.others)
    if params.star_kwarg is not None:
        rest = given.others.union(*(kind for name, (kind, _) in given.keywords.items() if name not in named))
        box = Box(params.star_kwarg, frame)
        p.bind(frame, params.star_kwarg.name.value, p.fill(box, rest, PLAIN))


def default_of(p: Program, frame: Frame, param: cst.Param) -> Kind:
    """The default of a parameter, as the code around the function has it."""
    assert param.default is not None
    around = frame.outer or p.frame(frame.table.parsed.module, frame.table)
    return p.evaluate(around, param.default)


def enter(p: Program, code: Code) -> Frame:
    """A function that a caller enters who is not in view: its arguments are what annotations say.

    What decorators make of it is theirs: they call the function that is read here.
    """
    frame = p.frame(code.node, code.table, code.outer, is_entered=True)
    params = code.node.params
    listed = parameters_of(code.node)
    if code.owner is not None and listed:
        p.bind(frame, listed.pop(0).name.value, frozenset({code.owner}))
    for param in listed:
        p.bind(frame, param.name.value, _entered(p, frame, param))
        if param.default is not None:
            p.bind(frame, param.name.value, default_of(p, frame, param))
    for star, keys in ((params.star_arg, NOTHING), (params.star_kwarg, PLAIN)):
        if isinstance(star, cst.Param):
            p.bind(frame, star.name.value, p.fill(Box(star, frame), _entered(p, frame, star), keys))
    return frame


def enter_all(p: Program, of: Class) -> None:
    """All methods of a class, as callers enter them that are not in view, and the fields that it declares."""
    listed, _ = names.lineage(p, of)
    for one in listed:
        around = p.frame(one.table.parsed.module, one.table)
        for name, node in names.members(p, one).items():
            if isinstance(node, cst.FunctionDef) and node not in p.kernels.in_module(one.table):
                enter(p, Code(node, one.table, None, Made(of)))
            elif isinstance(node, cst.AnnAssign):
                p.add_field(of, name, annotated.kind_of(p, one.table, node.annotation.annotation))
                if node.value is not None:
                    p.add_field(of, name, p.evaluate(around, node.value))


def _entered(p: Program, frame: Frame, param: cst.Param) -> Kind:
    if param.annotation is not None:
        return annotated.kind_of(p, frame.table, param.annotation.annotation)
    literal = (cst.Integer, cst.Float, cst.SimpleString)
    is_flag = isinstance(param.default, cst.Name) and param.default.value in ("True", "False")
    return PLAIN if isinstance(param.default, literal) or is_flag else UNKNOWN


# ---- classes -----------------------------------------------------------------------------------------------


def make(r: Run, of: Class, given: Given) -> Kind:
    """`C(...)`: an object of a class of the project."""
    listed, is_whole = names.lineage(r.p, of)
    if not is_whole or any({"__new__", "__del__"} & names.members(r.p, one).keys() for one in listed):
        return r.refuse(given.node, "what makes objects of this class is not followed")
    made = Made(of)
    init = names.member(r.p, of, "__init__")
    if init is not None and isinstance(init[1], cst.FunctionDef):
        run_code(r, Code(init[1], init[0].table, None, made), given)
    else:
        _fill(r, of, listed, given)
        after = names.member(r.p, of, "__post_init__")
        if after is not None and isinstance(after[1], cst.FunctionDef):
            run_code(r, Code(after[1], after[0].table, None, made), of_values(r, given.node))
    return frozenset({made})


def _fill(r: Run, of: Class, listed: Sequence[Class], given: Given) -> None:
    """Give the fields of an object their values, as the `__init__` of a data class does."""
    fields = list(dict.fromkeys(name for one in reversed(listed) for name in names.fields(r.p, one)))
    for at, name in enumerate(fields):
        r.p.add_field(of, name, given.get(at, name))
    for one in listed:
        for name, default in names.fields(r.p, one).items():
            if default is not None:
                r.p.add_field(of, name, _default(r, one, default))


def _default(r: Run, of: Class, default: cst.BaseExpression) -> Kind:
    around = r.p.frame(of.table.parsed.module, of.table)
    if isinstance(default, cst.Call):
        text = dotted(default.func)
        if text and names.path(r.p, of.table, text) == frozenset({External("dataclasses.field")}):
            found: Kind = NOTHING
            for arg in default.args:
                name = arg.keyword.value if arg.keyword is not None else ""
                kind = r.p.evaluate(around, arg.value)
                if name == "default":
                    found |= kind
                elif name == "default_factory":
                    inner = of_values(r, default)
                    found |= NOTHING.union(*(invoke(r, atom, inner) for atom in kind))
            return found
    return r.p.evaluate(around, default)


def get(r: Run, node: cst.CSTNode, code: Code) -> Kind:
    """The value of a property."""
    return run_code(r, code, of_values(r, node))
