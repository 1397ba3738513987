"""Calls in host code: what is read is executed, anything else gives an unknown value."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import libcst as cst

from tilecheck.errors import UnsupportedConstruct
from tilecheck.frontend.execute import expressions
from tilecheck.frontend.execute.expressions import evaluate
from tilecheck.frontend.execute.state import Arguments
from tilecheck.frontend.execute.statements import call_function
from tilecheck.frontend.host import lists
from tilecheck.frontend.host.arguments import iterable, sizes
from tilecheck.frontend.host.calls import checks_contracts
from tilecheck.frontend.host.memory import returned
from tilecheck.frontend.host.memory.mutations import (
    MUTATORS,
    anything_changed,
    elements_changed,
    read_once,
    used_up,
)
from tilecheck.frontend.host.memory.rejections import doubt
from tilecheck.frontend.host.memory.sharing import CACHED, given_back, hand_on, hand_on_named, kept, storages_in
from tilecheck.frontend.host.memory.unread_effects import (
    OF_CONTEXTS,
    forget_effects,
    read_effects,
    stop_at_reshaping,
    unread_effects,
)
from tilecheck.frontend.host.names import attribute, used
from tilecheck.frontend.host.run import HostExecutor
from tilecheck.frontend.host.sizes import unknown_ranks
from tilecheck.frontend.host.targets import (
    UNKNOWN_KEYWORDS,
    forget_attributes,
    kept_attribute,
)
from tilecheck.frontend.host.tensors import reshaping
from tilecheck.frontend.host.tensors.methods import RESHAPING
from tilecheck.frontend.host.tensors.views import reordered
from tilecheck.frontend.host.values import (
    GUARDED_LAUNCHER,
    LAUNCHERS,
    Device,
    Dims,
    Gridded,
    HostShape,
    LaunchCall,
    StandIn,
    Starred,
    Table,
    Tensor,
    Unknown,
)
from tilecheck.frontend.kernels.definitions import is_kernel_decorator
from tilecheck.frontend.launches import triton_arguments
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.text.syntax import has_kind, walk, walk_kind
from tilecheck.frontend.values.values import (
    Choice,
    Const,
    Frame,
    Function,
    Method,
    ModuleRef,
    Named,
    Record,
    RecordType,
    Seq,
    Token,
)
from tilecheck.ir import expr as E

MAX_HOST_DEPTH = 8
_MOST_WAYS = 64  # of one call of what is not written in the project
_OF_SIZES = frozenset(
    "view reshape expand empty zeros ones rand randn new_empty new_zeros new_ones permute".split()
)
_OF_TYPE = ("dtype", "device", "layout", "requires_grad")  # keywords
_ITERATING = frozenset("sorted list tuple set sum len enumerate reversed".split())
_CONTAINERS = ("dict", "types.SimpleNamespace")
_CHECKS = re.compile(
    r"_*(check|validate|verify|ensure|require|assert)"
)  # functions that raise if not satisfied
# What never returns: it raises what ends the program, or the test.
_EXITS = frozenset(
    "sys.exit exit quit os._exit os.abort pytest.skip pytest.fail pytest.xfail pytest.exit".split()
)
_MAKERS = (  # of a kernel, of a function or of a kernel
    "cuda.tile.kernel",
    "cuda.tile._execution.kernel",
    "triton.jit",
    "torch.library.wrap_triton",
    "torch._library.capture_triton",
)
# Decorators that leave the function's values and its effects as they are.
PLAIN_DECORATORS = frozenset(
    "functools.lru_cache functools.cache functools.wraps staticmethod torch.no_grad torch.inference_mode "
    "torch.compiler.disable typing.no_type_check".split()
)


def call(x: HostExecutor, node: cst.Call, frame: Frame) -> Any:
    match node.func:
        case cst.Attribute(value=owner, attr=cst.Name(name)) if name in RESHAPING:
            if reshaping.can_follow(x, node, owner, frame):
                return _reshaped(x, node, owner, frame)
    stop_at_reshaping(x, node)
    stop_at_reshaping(x, node.func)
    function = _callee(x, node.func, frame)
    allocation, x.allocation = x.allocation, ""
    try:
        args = _arguments(x, node, frame, function)
    finally:
        x.allocation = allocation
    if args is None:
        forget_effects(x, node, frame)
        if isinstance(function, Method) and function.name == "save_for_backward":
            frame.names.pop(f"{dotted(node.func).rpartition('.')[0]}.saved_tensors", None)
        if isinstance(function, Method) and function.name == "permute":
            return reordered(x, x.tensor(function.value), f"{dotted(node.func)}()")
        return unread_call(x, function, node, Arguments((), (), node, frame.table), frame)
    for value in (*args.positional, *(v for _, v in args.keywords)):
        if isinstance(value, Function) and value.closure is not None:  # whoever is given it may call it
            for inner in walk_kind(value.node, cst.Attribute, cst.Call, cst.AssignTarget):
                stop_at_reshaping(x, inner)
                if isinstance(inner, cst.AssignTarget) and dotted(inner.target).endswith(".data"):
                    x.stop("`.data` of a tensor is assigned")
    with x.at(frame.table, node):
        found = invoke(x, function, args, frame)
    forget_attributes(x, node, frame)
    if isinstance(function, Method) and function.name == "save_for_backward" and not args.keywords:
        frame.names[f"{dotted(node.func).rpartition('.')[0]}.saved_tensors"] = Seq(args.positional)
    return found


def _reshaped(x: HostExecutor, node: cst.Call, owner: cst.BaseExpression, frame: Frame) -> Any:
    """`t.resize_(n)`, `t.set_(other)`."""
    value = used(x, owner, frame)
    if not isinstance(value, Tensor | Unknown):
        stop_at_reshaping(x, node.func)
    args = _arguments(x, node, frame, None)
    given = () if args is None else (*args.positional, *(v for _, v in args.keywords))
    if args is None:
        forget_effects(x, node, frame)
    resized = isinstance(node.func, cst.Attribute) and node.func.attr.value == "resize_"  # in its own memory
    others = tuple(v for v in given if isinstance(v, Tensor | Unknown) and not resized)
    hand_on(x, *others)
    return reshaping.changed(x, value, others, frame, _sizes(x, args) if resized else None)


def _sizes(x: HostExecutor, args: Arguments | None) -> unknown_ranks.Parts | None:
    """The sizes that a call names, if they are read."""
    unread = args is None or any(isinstance(v, Unknown) and v.opaque for v in args.positional)
    if args is None or unread or any(k == "memory_format" for k, _ in args.keywords):
        return None
    try:
        return sizes(x, args)
    except UnsupportedConstruct:
        return None


def _callee(x: HostExecutor, node: cst.BaseExpression, frame: Frame) -> Any:
    """What is called; a method stays with its object."""
    if not isinstance(node, cst.Attribute):
        return used(x, node, frame)
    assigned = kept_attribute(dotted(node), frame) if dotted(node) else None
    if assigned is not None:
        return assigned
    value = used(x, node.value, frame)
    if isinstance(value, Named | ModuleRef | RecordType | Record):
        return attribute(x, value, node.attr.value)
    return _method_of(x, value, node.attr.value)


def _method_of(x: HostExecutor, value: Any, name: str) -> Any:
    match value:
        case Choice(first=Const(value=None), second=way) | Choice(first=way, second=Const(value=None)):
            return _method_of(x, way, name)  # None has no methods: who goes on has the other
        case Choice():
            first, second = _method_of(x, value.first, name), _method_of(x, value.second, name)
            return Choice(value.cond, first, second)
    return Method(value, name)


def _arguments(x: HostExecutor, node: cst.Call, frame: Frame, callee: Any) -> Arguments | None:
    """The evaluated arguments; None when a starred one has an unknown length that a launch does not tell."""
    launched, in_view = _is_gridded(callee), _takes_any(callee)
    positional: list[Any] = []
    keywords: list[tuple[str, Any]] = []
    whole, starred = True, False
    for arg in node.args:
        value = evaluate(x, arg.value, frame)
        if arg.keyword is not None:
            keywords.append((arg.keyword.value, value))
        elif arg.star == "**" and isinstance(value, Table) and all(isinstance(k, str) for k in value.items):
            keywords.extend((str(k), v) for k, v in value.items.items())
        elif arg.star == "**":
            keywords.append((UNKNOWN_KEYWORDS, value))
        elif arg.star == "*" and isinstance(value, HostShape) and launched:
            positional.append(Starred(value))
        elif arg.star == "*" and _is_shape(value) and len(node.args) == 1 and in_view is None:
            positional.append(value)  # what takes sizes one by one takes them all at once
        elif arg.star == "*" and _is_shape(value) and len(node.args) == 1 and in_view:
            positional.append(Starred(value))
        elif arg.star == "*" and isinstance(value, HostShape | Dims) and in_view is None and _is_of_sizes(node):
            starred = True
            positional.append(Starred(value))
        elif arg.star == "*" and (items := _items(x, value)) is not None:
            positional.extend(items)
        elif arg.star == "*":
            used_up(x, value, frame)
            whole = False
        else:
            positional.append(value)
    if starred and whole:
        positional = [_one_shape(x, positional)]
    return Arguments(tuple(positional), tuple(keywords), node, frame.table) if whole else None


def _items(x: HostExecutor, value: Any) -> tuple[Any, ...] | None:
    """The items of a sequence, or of either of two of one length."""
    if isinstance(value, Choice):
        first, second = _items(x, value.first), _items(x, value.second)
        if first is None or second is None or len(first) != len(second):
            return None
        return tuple(x.merge(value.cond, a, b) for a, b in zip(first, second, strict=True))
    return value.items if isinstance(value, Seq) else None


def _takes_any(callee: Any) -> bool | None:
    """Whether a function of the project takes any number of arguments, and nothing else; None for any other."""
    match callee:
        case Function(node=cst.FunctionDef() | cst.Lambda() as node):
            params = node.params
            others = (*params.posonly_params, *params.params, *params.kwonly_params)
            return isinstance(params.star_arg, cst.Param) and not others and params.star_kwarg is None
        case RecordType():
            return False
        case Choice():
            ways = (_takes_any(callee.first), _takes_any(callee.second))
            return ways[0] if ways[0] == ways[1] else False
        case _:
            return None


def _is_shape(value: Any) -> bool:
    """Whether it is a shape, or one of several."""
    if isinstance(value, Choice):
        return _is_shape(value.first) and _is_shape(value.second)
    return isinstance(value, HostShape | Dims)


def _is_of_sizes(node: cst.Call) -> bool:
    """Whether all plain arguments of a call are sizes: `x.view(*x.shape[:-1], h, d)`."""
    plain = all(arg.keyword is not None or arg.star != "**" for arg in node.args)
    return plain and _last_name(node.func) in _OF_SIZES


def _one_shape(x: HostExecutor, given: list[Any]) -> Any:
    """Sizes and starred shapes as one shape."""
    parts: list[Any] = []
    for value in given:
        if isinstance(value, Starred):
            parts += unknown_ranks.parts_of(x, value.value) or ()
        else:
            parts.append(x.scalar(value, "size"))
    return unknown_ranks.shape_of_parts(tuple(parts))


def invoke(x: HostExecutor, function: Any, args: Arguments, frame: Frame) -> Any:
    """Call a value: what is read is executed, anything else gives an unknown."""
    match function:
        case Function():
            return _inline(x, function, args, frame)
        case Choice():
            return x.split(
                function.cond,
                lambda: invoke(x, function.first, args, frame),
                lambda: invoke(x, function.second, args, frame),
            )
        case Named() if function.name in _MAKERS:
            return _kernel_of(x, args)
        case Named() if function.name in _EXITS:
            x.guard = E.FALSE  # it raises
            return Const(None)
        case Named() if function.name in LAUNCHERS:
            x.record_launch(x, _launch_of(args, guarded=function.name == GUARDED_LAUNCHER))
            elements_changed(x, (*args.positional, *(v for _, v in args.keywords)))
            return Const(None)
        case StandIn():
            function.calls.append(args.positional)
            return function.result
        case Gridded():
            return _launch_on_grid(x, function, args, frame)
        case Method() if function.name in lists.METHODS and lists.is_list(function.value):
            try:
                return lists.changed(x, function.value, function.name, args, frame)
            except UnsupportedConstruct:
                return unread_call(x, function, args.node, args, frame)
        case Method(value=Function()) if function.name == "replace_hints":
            return function.value  # the same kernel with other compiler hints
        case Named() | Method() | RecordType() if UNKNOWN_KEYWORDS not in dict(args.keywords):
            spelled = returned.method_of(function, args) if isinstance(function, Named) else None
            if spelled is not None:
                function, args = spelled
            args = _of_any_type(function, args)
            if isinstance(function, Named) and function.name in _ITERATING and args.positional:
                args = replace(args, positional=(iterable(x, args.positional[0]), *args.positional[1:]))
            try:
                if isinstance(function, Named) and function.name in _CONTAINERS:
                    return x.dialect.call(x, function.name, args)  # what it holds may be undecided
                if _ways(args) > _MOST_WAYS:
                    return unread_call(x, function, args.node, args, frame)
                return read_effects(x, function, args, expressions.call(x, function, args))
            except UnsupportedConstruct:
                return unread_call(x, function, args.node, args, frame)
        case _:
            return unread_call(x, function, args.node, args, frame)


def _of_any_type(function: Any, args: Arguments) -> Arguments:
    """The arguments without the ways in which a type or a device may come out: of what is made, only the type
    of its elements hangs on them."""
    plain = ((k, Token(k) if k in _OF_TYPE and isinstance(v, Choice) else v) for k, v in args.keywords)
    args = replace(args, keywords=tuple(plain))
    if not isinstance(function, Method) or function.name != "to":
        return args
    where = (Device("device") if isinstance(v, Choice) and _is_place(v) else v for v in args.positional)
    return replace(args, positional=tuple(where))


def _is_place(value: Any) -> bool:
    """Whether a value says where a tensor lies, if it says anything."""
    if isinstance(value, Choice):
        return _is_place(value.first) and _is_place(value.second)
    return isinstance(value, Device) or value == Const(None)


def _ways(args: Arguments) -> int:
    """In how many ways arguments may come out, counted as far as matters: a call is made once for each."""
    ways = 1
    for value in (*args.positional, *(v for _, v in args.keywords)):
        stack, leaves = [value], 0
        while stack and ways * leaves <= _MOST_WAYS:
            last = stack.pop()
            if isinstance(last, Choice):
                stack += [last.second, last.first]
            else:
                leaves += 1
        ways *= max(leaves, 1)
    return ways


def _launch_of(args: Arguments, *, guarded: bool) -> LaunchCall:
    """`ct.launch(stream, grid, kernel, kernel_args)`."""
    given = dict(zip(("stream", "grid", "kernel", "kernel_args"), args.positional, strict=False))
    given.update(("kernel_args" if k == "args" else k, v) for k, v in args.keywords)
    grid, kernel, arguments = (given.get(name) for name in ("grid", "kernel", "kernel_args"))
    checks = guarded and checks_contracts(args)
    return LaunchCall(kernel, grid, arguments, args.node, args.table, guarded=guarded, checks_contracts=checks)


def _is_gridded(value: Any) -> bool:
    if isinstance(value, Choice):
        return _is_gridded(value.first) and _is_gridded(value.second)
    return isinstance(value, Gridded)


def _launch_on_grid(x: HostExecutor, gridded: Gridded, args: Arguments, frame: Frame) -> Any:
    """`kernel[grid](...)`. A grid may be a function of the arguments."""
    arguments = triton_arguments.bound(x, gridded.kernel, args, lambda f, a: invoke(x, f, a, frame))
    grid = gridded.grid
    if isinstance(grid, Function | Method | Choice) and not triton_arguments.is_tuple(grid):
        grid = invoke(x, grid, Arguments((Table(arguments.meta),), (), args.node, args.table), frame)
    elif isinstance(grid, Unknown | Named):  # perhaps a function
        anything_changed(x, frame)
    names = tuple(arguments.values)
    values = Seq(tuple(arguments.values.values()))
    warps = arguments.warps
    call = LaunchCall(gridded.kernel, grid, values, args.node, args.table, names, warps=warps)
    x.record_launch(x, call)
    elements_changed(x, values.items)
    return x.unread("a compiled kernel")


def _kernel_of(x: HostExecutor, args: Arguments) -> Any:
    """`ct.kernel(f)` and `ct.kernel(k._pyfunc, occupancy=2)`: a kernel with the body of its argument."""
    if args.positional and isinstance(args.at(0), Function):
        return args.at(0)
    raise UnsupportedConstruct("kernel made of a value that is not a function of the project")


def _inline(x: HostExecutor, function: Function, args: Arguments, frame: Frame) -> Any:
    """Execute a function of the project; one that is not plain code gives an unknown."""
    node = function.node
    if len(x.running) >= MAX_HOST_DEPTH or node in x.running or not _is_plain(function):
        return unread_call(x, function, args.node, args, frame)
    x.running.append(node)
    x.events.callers.append(frame)
    before, cached = x.guard, _is_cached(function)
    try:
        with x.in_function():
            if not cached:
                return call_function(x, function, args)
            read_once(x)
            return _cached(x, function, args)
    except UnsupportedConstruct:
        x.guard = before
        return unread_call(x, function, args.node, args, frame)
    finally:
        if cached:
            read_once(x)
        x.events.callers.pop()
        x.running.pop()


def _cached(x: HostExecutor, function: Function, args: Arguments) -> Any:
    """A call of a function that keeps its results: equal arguments get one object, others perhaps one."""
    given = (args.positional, args.keywords)
    calls = x.cached.setdefault(function.node, [])
    for before, value in calls:
        if before == given:
            return value
    made = kept(call_function(x, function, args))
    earlier = frozenset(storages_in(value for _, value in calls))
    for storage in storages_in((made,)):
        x.origins[storage] = x.origins.get(storage, frozenset()) | earlier
        x.may_be[storage] = x.may_be.get(storage, frozenset()) | earlier
    calls.append((given, made))
    return made


def _is_plain(function: Function) -> bool:
    node = function.node
    if function.table.replaces_functions:
        return False
    if isinstance(node, cst.Lambda):
        return True
    if node.asynchronous is not None or _is_generator(node):
        return False
    if _is_cached(function) and any(map(_stores, walk_kind(node.body, *_STORING))):
        return False  # not every call does so
    return all(_plain_decorator(function, d.decorator) for d in node.decorators)


_STORING = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Call, cst.Del, cst.Nonlocal)


def _stores(node: cst.CSTNode) -> bool:
    """Whether a node changes something that outlives the call."""
    match node:
        case cst.AssignTarget(target=target) | cst.AugAssign(target=target) | cst.AnnAssign(target=target):
            return not isinstance(target, cst.Name)
        case cst.Call(func=cst.Attribute(attr=cst.Name(method))):
            return method in MUTATORS
    return isinstance(node, cst.Del | cst.Nonlocal)


def _is_cached(function: Function) -> bool:
    if isinstance(function.node, cst.Lambda):
        return False
    nodes = [
        d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in function.node.decorators
    ]
    return any(function.table.full_name(dotted(node)) in CACHED for node in nodes)


def _is_generator(function: cst.FunctionDef) -> bool:
    if not has_kind(function.body, cst.Yield):
        return False
    return any(isinstance(n, cst.Yield) for n in walk(function.body, is_own))


def is_own(node: cst.CSTNode) -> bool:
    """Whether the inside of a node belongs to the function around it."""
    return not isinstance(node, cst.FunctionDef | cst.Lambda | cst.ClassDef)


def _plain_decorator(function: Function, node: cst.BaseExpression) -> bool:
    """Whether a decorator leaves a function what its text says: one of that name, which nothing else bears."""
    table = function.table
    if is_kernel_decorator(table, node):
        return False
    text = dotted(node.func if isinstance(node, cst.Call) else node)
    head = text.partition(".")[0]
    local = function.closure.find(head) if function.closure is not None else None
    known = head not in table.ambiguous and (local is None or isinstance(local, Named))
    return known and table.full_name(text) in PLAIN_DECORATORS


def _given(x: HostExecutor, function: Any, args: Arguments) -> list[Any]:
    """What a call may give back: its arguments, what its function closes over, and the object of a method,
    unless that is handed in, as most methods of `self` make new tensors."""
    owner = function.value if isinstance(function, Method) else function
    own = [] if isinstance(owner, Unknown) and x.is_given(owner.name) else [owner]
    return [*own, *args.positional, *(v for _, v in args.keywords)]


def _is_in_view(function: Any, node: cst.CSTNode, args: Arguments) -> bool:
    """Whether a function or class of the project is called, which two calls need not tell apart."""
    if isinstance(function, Function):
        return True
    called = dotted(node.func) if isinstance(node, cst.Call) else ""
    return any(n.name.value == called for n in args.table.nodes(cst.ClassDef))


def unread_call(x: HostExecutor, function: Any, node: cst.CSTNode, args: Arguments, frame: Frame) -> Any:
    """A call of code that is not read: it may call what it is given, and change it."""
    for value in (*args.positional, *(v for _, v in args.keywords)):
        if isinstance(value, Function) and launches_inside(value):
            _call_back(x, value, args, frame)
    text = args.table.text(node)
    found = returned.result(x, function, args, text)
    exposed = set(x.exposed)
    if found is None:
        hand_on(x, function, *args.positional, *(v for _, v in args.keywords))
        hand_on_named(x, node, frame)
    else:
        x.exposed.update(storages_in((*args.positional, *(v for _, v in args.keywords))))
    if isinstance(function, Method) and function.name in OF_CONTEXTS:
        x.exposed = exposed
    is_new = isinstance(found, Unknown) and found.name in x.allocated
    if (found is None or (is_new and returned.demands(function, args))) and not _turns_none_away(x, function):
        doubt(x, node, frame)
    result = x.unread(text) if found is None else found
    if found is None and not isinstance(function, Method):
        x.computed.add(result.name)
    if found is None:
        given_back(x, result.name, *_given(x, function, args), in_view=_is_in_view(function, node, args))
    unread_effects(x, function, args, frame)
    if isinstance(node, cst.Call) and _CHECKS.match(_last_name(node.func)):
        x.assume(x.unread_test(text))  # it raises, or something holds that we do not know
    return result


def _turns_none_away(x: HostExecutor, function: Any) -> bool:
    """Whether a function calls itself that asserts and raises nothing, and calls no other of the project."""
    if not isinstance(function, Function) or function.node not in x.running:
        return False
    called = (dotted(n.func) for n in walk_kind(function.node.body, cst.Call))
    others = (name for name in called if isinstance(function.table.bindings.get(name), cst.FunctionDef))
    return not has_kind(function.node.body, cst.Raise, cst.Assert) and set(others) <= {function.name}


def _last_name(node: cst.BaseExpression) -> str:
    match node:
        case cst.Name():
            return node.value
        case cst.Attribute():
            return node.attr.value
        case _:
            return ""


def launches_inside(function: Function) -> bool:
    """Whether the text of a function contains a call of something named `launch`, or of a subscript."""
    return any(
        isinstance(n.func, cst.Subscript) or dotted(n.func).rpartition(".")[2] == "launch"
        for n in walk_kind(function.node.body, cst.Call)
    )


def _call_back(x: HostExecutor, function: Function, args: Arguments, frame: Frame) -> None:
    params = function.node.params.params
    unknowns = tuple(x.unread(p.name.value) for p in params if p.default is None)
    _inline(x, function, Arguments(unknowns, (), args.node, args.table), frame)
