"""Calls of the project's own functions and classes, which are read where they are called."""

from __future__ import annotations

import libcst as cst

from tilecheck.frontend.host_programs.calls.dispatch import call, unknown_call
from tilecheck.frontend.host_programs.execute import names
from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.execute.expressions import evaluate
from tilecheck.frontend.host_programs.execute.statements import run_block
from tilecheck.frontend.host_programs.knowledge import Relearn, Returned, Unread
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values.lifetimes import sweep
from tilecheck.frontend.kernels.annotations import read_annotation
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import walk

MAX_DEPTH = 8
# Decorators behind which a function does what its text says.
_PLAIN_DECORATORS = (
    "torch.no_grad",
    "torch.inference_mode",
    "torch.compile",
    "torch.compiler.",
    "torch.enable_grad",
    "torch.jit.",
    "torch.library.",
    "functools.",
    "staticmethod",
    "classmethod",
    "property",
    "abstractmethod",
    "abc.",
    "typing.",
    "override",
    "pytest.",
    "tilecheck.",
)
_MANAGERS = ("contextlib.contextmanager", "contextmanager")


def call_function(m: Machine, function: V.Function, a: Arguments) -> V.Value:
    """A call of a function of the project. One that uses no streams is not read if reading it fails.

    Raises:
        Unread: it uses streams, and is not understood.
    """
    node = function.node
    if isinstance(node, cst.Lambda):
        return run_function(m, function, a)
    relevant = m.is_relevant(node) or function.name == "__init__"  # without it nothing of the object is known
    if _is_manager(function):
        return V.Context("manager", (function, a))
    if relevant and _is_generator(m, function):
        return V.Generator(function, a)
    unread = node in m.knowledge.opaque or _is_odd(m, function) or not m.knowledge.reads_helpers
    if not relevant and unread:
        return unknown_call(m, function.name, a)
    if _is_odd(m, function):
        raise m.unread(a.node, "what its decorators make of this function is not known")
    if node in m.calls or len(m.calls) >= MAX_DEPTH:
        if relevant:
            raise m.unread(a.node, "a function that uses streams calls itself, or is called too deeply")
        return unknown_call(m, function.name, a)
    if relevant:
        return run_function(m, function, a)
    try:
        return run_function(m, function, a)
    except Unread:
        m.knowledge.opaque.add(node)
        raise Relearn from None


def _is_manager(function: V.Function) -> bool:
    return any(name.endswith(_MANAGERS) for name in _decorators(function))


def _is_generator(m: Machine, function: V.Function) -> bool:
    """Whether a call gives a generator, which does nothing yet."""
    node = function.node
    return (
        isinstance(node, cst.FunctionDef)
        and node.asynchronous is None
        and not node.decorators
        and _yields(m, node)
    )


def _yields(m: Machine, node: cst.FunctionDef) -> bool:
    known = m.kernels.yields
    if node not in known:
        known[node] = any(isinstance(n, cst.Yield) for n in walk(node.body, _is_own))
    return known[node]


def _is_own(node: cst.CSTNode) -> bool:
    return not isinstance(node, cst.FunctionDef | cst.Lambda)


def _decorators(function: V.Function) -> list[str]:
    if not isinstance(function.node, cst.FunctionDef):
        return []
    found = []
    for decorator in function.node.decorators:
        called = decorator.decorator
        named = called.func if isinstance(called, cst.Call) else called
        found.append(function.table.full_name(dotted(named)))
    return found


def _is_odd(m: Machine, function: V.Function) -> bool:
    """Whether a call may do anything else than run the text of the function now."""
    if function.node not in m.kernels.odd:
        m.kernels.odd[function.node] = _reads_odd(m, function)
    return m.kernels.odd[function.node]


def _reads_odd(m: Machine, function: V.Function) -> bool:
    node = function.node
    if not isinstance(node, cst.FunctionDef):
        return False
    known = (*_PLAIN_DECORATORS, *_MANAGERS)
    if any(not name.endswith(known) and not name.startswith(known) for name in _decorators(function)):
        return True
    return node.asynchronous is not None or (_yields(m, node) and not _is_manager(function))


def run_function(m: Machine, function: V.Function, a: Arguments) -> V.Value:
    """What a call of a function gives, by running its body."""
    node = function.node
    scope = V.Scope(function.table, {}, function.closure, function.name)
    m.kernels.ran.add(node)
    _pass(m, scope, function, a)
    mark = len(m.pending)
    m.rebound = True
    m.scopes.append(scope)
    m.calls.append(node)
    try:
        if isinstance(node, cst.Lambda):
            return evaluate(m, node.body)
        run_block(m, node.body.body)
    except Returned as returned:
        m.rebound = True
        m.pending.append(returned.value)
        m.scopes.pop()
        m.scopes.append(V.Scope(function.table))  # its own names are gone
        sweep(m, returned.node)
        return returned.value
    else:
        m.scopes.pop()
        m.scopes.append(V.Scope(function.table))
        m.rebound = True
        sweep(m, node)
        return V.NONE
    finally:
        m.calls.pop()
        m.scopes.pop()
        del m.pending[mark:]


# ---- parameters --------------------------------------------------------------------------------------------


def _pass(m: Machine, scope: V.Scope, function: V.Function, a: Arguments) -> None:
    """Bind the parameters of a function to the arguments of a call.

    Raises:
        Unread: they cannot be matched.
    """
    params = function.node.params
    positional = list(a.positional)
    if function.owner is not None:
        positional.insert(0, function.owner)
    keywords = dict(a.keywords)
    for param in (*params.posonly_params, *params.params):
        name = param.name.value
        if positional:
            scope.names[name] = positional.pop(0)
        else:
            scope.names[name] = _left(m, function, param, keywords, a)
    for param in params.kwonly_params:
        scope.names[param.name.value] = _left(m, function, param, keywords, a)
    if isinstance(params.star_arg, cst.Param):
        scope.names[params.star_arg.name.value] = V.Sequence(
            [*positional, *a.more][: len(positional)], is_tuple=True
        )
    elif positional:
        raise m.unread(a.node, "more arguments than parameters")
    if params.star_kwarg is not None:
        scope.names[params.star_kwarg.name.value] = V.Mapping(dict(keywords))


def _left(
    m: Machine, function: V.Function, param: cst.Param, keywords: dict[str, V.Value], a: Arguments
) -> V.Value:
    """A parameter that is not passed by position."""
    name = param.name.value
    if name in keywords:
        return keywords.pop(name)
    if a.more:
        raise m.unread(a.node, "not all arguments of this call are in view")
    if param.default is None:
        raise m.unread(a.node, f"no argument for `{name}`")
    m.scopes.append(V.Scope(function.table, {}, function.closure))
    try:
        return evaluate(m, param.default)
    finally:
        m.scopes.pop()


def entry_scope(m: Machine, function: V.Function) -> V.Scope:
    """The scope of a function that the caller enters with values of its own."""
    scope = V.Scope(function.table, {}, function.closure, function.name)
    params = function.node.params
    listed = [*params.posonly_params, *params.params, *params.kwonly_params]
    if function.owner is not None and listed:
        scope.names[listed.pop(0).name.value] = function.owner
    for param in listed:
        scope.names[param.name.value] = given(m, function.table, param)
    if isinstance(params.star_arg, cst.Param):
        scope.names[params.star_arg.name.value] = V.Unknown(params.star_arg.name.value)
    if params.star_kwarg is not None:
        scope.names[params.star_kwarg.name.value] = V.Unknown(params.star_kwarg.name.value)
    return scope


_PLAIN = ("int", "str", "float", "bool", "torch.dtype", "torch.device")


def given(m: Machine, table: ModuleTable, param: cst.Param) -> V.Value:
    """What the caller passes for a parameter, as far as its annotation says it."""
    name = m.unique(param.name.value)
    if param not in m.kernels.parameters:
        m.kernels.parameters[param] = _annotated(table, param)
    kind = m.kernels.parameters[param]
    if kind == "module":
        m.modules.add(name)
    return m.handed_in(name, param) if kind == "tensor" else V.Unknown(name, plain=kind == "plain")


def _annotated(table: ModuleTable, param: cst.Param) -> str:
    """`plain` if a parameter holds no memory, `tensor` if it is one, else `module` or `unknown`."""
    if param.annotation is None:
        literal = (cst.SimpleString, cst.Float, cst.Integer)
        return "plain" if isinstance(param.default, literal) else "unknown"
    note = param.annotation.annotation
    full = table.full_name(dotted(note))
    if full in _PLAIN:
        return "plain"
    if full == "torch.nn.Parameter" or (full.endswith("Tensor") and read_annotation(table, note).array):
        return "tensor"
    return "module" if full.endswith(("nn.Module", "Module")) else "unknown"


# ---- classes -----------------------------------------------------------------------------------------------


def call_object(m: Machine, function: V.Class | V.Object, a: Arguments) -> V.Value:
    """`C(...)`, or a call of an object."""
    if isinstance(function, V.Class):
        return make(m, function, a)
    found = names.member_with_class(m, function.made_by, "__call__")
    if found is None and names.has_unknown_base(m, function.made_by):
        found = names.member_with_class(m, function.made_by, "forward")
    if found is not None and isinstance(found[1], cst.FunctionDef):
        return call_function(m, V.Function(found[1], found[0].table, None, function), a)
    return unknown_call(m, function.name, Arguments(a.node, a.positional, a.keywords, (*a.more, function)))


def make(m: Machine, made_by: V.Class, a: Arguments) -> V.Value:
    """An instance of a class of the project, after its `__init__`."""
    init = initializer(m, made_by)
    if init is not None:
        return make_with(m, made_by, init, a)
    found = V.Object(made_by, m.unique(m.target or made_by.node.name.value.lower()))
    declared = _declared(made_by)
    found.fields.update(zip([name for name, _ in declared], a.positional, strict=False))
    found.fields.update(a.keywords)
    for name, default in declared:
        if default is not None and name not in found.fields:
            found.fields[name] = _default(m, made_by, name, default)
    return found


def _default(m: Machine, made_by: V.Class, name: str, default: cst.BaseExpression) -> V.Value:
    """What an object gets for a field that is not passed: each object a value of its own from a factory."""
    m.scopes.append(V.Scope(made_by.table))
    target, m.target = m.target, name
    try:
        is_field = isinstance(default, cst.Call) and made_by.table.full_name(dotted(default.func)) == _FIELD
        for arg in default.args if isinstance(default, cst.Call) and is_field else ():
            match arg.keyword:
                case cst.Name(value="default_factory"):
                    return call(m, evaluate(m, arg.value), Arguments(default))
                case cst.Name(value="default"):
                    return evaluate(m, arg.value)
        return evaluate(m, default)
    finally:
        m.scopes.pop()
        m.target = target


_FIELD = "dataclasses.field"


def initializer(m: Machine, made_by: V.Class) -> V.Function | None:
    """The `__init__` of a class of the project, if it has one."""
    found = names.member_with_class(m, made_by, "__init__")
    if found is None or not isinstance(found[1], cst.FunctionDef):
        return None
    return V.Function(found[1], found[0].table)


def make_with(m: Machine, made_by: V.Class, init: V.Function, a: Arguments) -> V.Value:
    """An instance of a class, after a call of its `__init__`."""
    found = V.Object(made_by, m.unique(m.target or made_by.node.name.value.lower()))
    m.pending.append(found)
    try:
        call_function(m, V.Function(init.node, init.table, None, found), a)
    finally:
        m.pending.pop()
    return found


def _declared(made_by: V.Class) -> list[tuple[str, cst.BaseExpression | None]]:
    """The fields of a data class."""
    found = []
    for line in made_by.node.body.body:
        for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            match statement:
                case cst.AnnAssign(target=cst.Name(value=name), value=default):
                    found.append((name, default))
    return found


def super_of(m: Machine, node: cst.CSTNode) -> V.Value:
    """`super()`: the object as its class's bases see it."""
    owner = next((v for v in m.scope.names.values() if isinstance(v, V.Object)), None)
    if owner is None or not m.calls:
        return V.Unknown("super()", given=False, plain=True)
    running = m.calls[-1]
    defining = _defining(m, owner.made_by, running)
    for base in names.bases(m, defining) if defining is not None else ():
        if isinstance(base, V.Class):
            return V.Super(owner, base)
    return V.Unknown("super()", given=False, plain=True)


def _defining(m: Machine, made_by: V.Class, running: cst.CSTNode, depth: int = 0) -> V.Class | None:
    """The class whose body has the function that is running."""
    if any(line is running for line in made_by.node.body.body):
        return made_by
    for base in names.bases(m, made_by) if depth < MAX_DEPTH else ():
        if isinstance(base, V.Class) and (found := _defining(m, base, running, depth + 1)) is not None:
            return found
    return None
