"""What calls and statements that are not read may change: by the text of the code, or by what it is given."""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.frontend.execute.state import Arguments
from tilecheck.frontend.host.memory.contents import after_call, after_filling
from tilecheck.frontend.host.memory.mutations import (
    MUTATORS,
    anything_changed,
    attribute_stored,
    container_changed,
    elements_changed,
    forget_contents,
    item_stored,
    lose_objects,
    lose_rebound,
    unread_code_runs,
    used_up,
)
from tilecheck.frontend.host.tensors.methods import FOLLOWED, RESHAPING
from tilecheck.frontend.host.values import Dims, HostShape, Table, Tensor, Unknown, named_in
from tilecheck.frontend.kernels.definitions import is_kernel_decorator
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.text.syntax import has_kind, walk_kind
from tilecheck.frontend.values.values import Const, Frame, Function, Method, Named, Num, Seq, Token

if TYPE_CHECKING:
    from tilecheck.frontend.host.run import HostExecutor
    from tilecheck.frontend.modules.project import ModuleTable

# Libraries whose functions change no list, dictionary or object that they are given, but elements of tensors.
_LIBRARIES = frozenset(
    "torch triton tilelang cuda numpy cupy math itertools typing logging packaging warnings".split()
)
_FUNCTIONS = frozenset(
    "isinstance issubclass hasattr getattr callable len print type repr id str int float bool complex bytes "
    "max min sum abs round divmod pow range enumerate zip list tuple dict set frozenset sorted reversed all "
    "any hash format slice object super".split()
)
_EXCEPTIONS = frozenset(
    n for n, made in vars(builtins).items() if isinstance(made, type) and issubclass(made, BaseException)
)
_QUIET = _FUNCTIONS | _EXCEPTIONS
# Methods that change nothing: those that are followed, and others of tensors and texts.
_READING = FOLLOWED | frozenset(
    "detach pin_memory item tolist data_ptr element_size get_device is_floating_point max min sum mean "
    "prod amax amin argmax argmin any all abs norm numpy nonzero unique cumsum diff split unbind repeat "
    "masked_fill index_select gather softmax exp log sqrt eq ne lt le gt ge mul sub div matmul mm bmm "
    "storage_offset repeat_interleave argsort topk bincount startswith endswith join lower strip".split()
)
# Methods of autograd's contexts that keep tensors and change no attribute that a program reads.
OF_CONTEXTS = frozenset("save_for_backward mark_dirty mark_non_differentiable set_materialize_grads".split())
_LOGS = re.compile(r"(?:\w*[._])?log(?:ger|ging)?", re.IGNORECASE)
_CALLING = frozenset(  # functions of libraries that call what they are given, or make functions of it
    "vmap compile checkpoint cond while_loop map scan grad vjp jvp jacrev jacfwd hessian functional_call "
    "script trace associative_scan backward tree_map tree_map_only tree_map_ accumulate starmap filterfalse "
    "takewhile dropwhile groupby do_bench do_bench_cudagraph reduce apply linearize".split()
)
# Methods of tensors that call what they are given, or what a program registered.
_RUNNING = frozenset("backward apply_ map_ map2_ register_hook register_post_accumulate_grad_hook".split())
IN_PLACE = frozenset(
    "zero_ fill_ copy_ add_ sub_ mul_ div_ neg_ abs_ exp_ log_ sqrt_ rsqrt_ pow_ clamp_ clamp_min_ clamp_max_ "
    "masked_fill_ masked_scatter_ scatter_ scatter_add_ scatter_reduce_ index_add_ index_copy_ index_fill_ "
    "index_put_ normal_ uniform_ random_ exponential_ bernoulli_ triu_ tril_ requires_grad_ detach_ relu_ "
    "sigmoid_ tanh_ round_ floor_ ceil_ fill_diagonal_ lerp_ addcmul_ addcdiv_ cumsum_ logical_not_".split()
)
_CHANGING_NO_OBJECT = _READING | OF_CONTEXTS | IN_PLACE
_USING_UP = frozenset("list tuple set frozenset dict sum max min any all sorted zip enumerate".split())
# What may give back the objects that it is given, or what is in them.
_GIVING_BACK = _USING_UP | frozenset("getattr reversed type super range slice".split())
_DECORATING = ("torch", "triton", "cuda", "functools", "typing", "contextlib", "dataclasses", "abc", "enum")
_LOGGING = frozenset("debug info warning warn error exception critical log info_once warning_once".split())


def unread_effects(x: HostExecutor, function: Any, args: Arguments, frame: Frame) -> None:
    """A call of code that is not read: it may change any object, if it is not known to change none."""
    given = [*args.positional, *(value for _, value in args.keywords)]
    builtin = _builtin(args.node, frame)
    if builtin in ("locals", "vars"):  # the dictionary of the variables
        lose_objects(x, tuple(frame.names.values()), frame)
    match Named(builtin) if builtin and isinstance(function, Unknown) else function:
        case Named(name) if name.partition(".")[0] in _LIBRARIES or _is_quiet_builtin(name):
            _library_call(x, name, args, given, frame)
        case Method(value=Seq() | Table() | Dims() as owner, name=name):
            lose_objects(x, (owner, *given), frame)
            if _is_handed_code(args):
                anything_changed(x, frame)
        case Method(value=HostShape(), name=name) if name in MUTATORS:
            x.stop(f"`.{name}` of a list of strides")
        case Method(value=owner, name=name):
            if isinstance(owner, Unknown) and name in MUTATORS:
                container_changed(x, owner)
            if _method_is_quiet(owner, name, args):
                if name.endswith("_") or (isinstance(owner, Tensor) and name not in _READING):
                    elements_changed(x, (owner, *given))
                after_filling(x, function, args)
            else:
                unread_code_runs(x, (owner, *given), frame)
        case _:
            unread_code_runs(x, (function, *given), frame)


def _builtin(node: cst.CSTNode, frame: Frame) -> str:
    """The function of Python that a call names, if nothing else bears its name; else an empty text."""
    text = dotted(node.func) if isinstance(node, cst.Call) else ""
    return text if frame.find(text) is None and frame.table.is_builtin(text) else ""


def stop_at_reshaping(x: HostExecutor, node: cst.CSTNode) -> None:
    """Code that gives a tensor another shape or memory ends the reading, however it is spelled: a method, a
    function of a library, `getattr(x, "resize_")`, `setattr(x, "data", y)`."""
    match node:
        case cst.Attribute(attr=cst.Name(name)) if name in RESHAPING:
            x.stop(f"`.{name}` changes a tensor's shape")
        case cst.Call(args=[_, cst.Arg(value=cst.SimpleString() as text), *_]):
            name, called = text.raw_value, dotted(node.func).rpartition(".")[2]
            if name in RESHAPING or (name in ("data", "shape", "strides") and "setattr" in called):
                x.stop(f"`.{name}` of a tensor is changed")
        case cst.Call(func=cst.Attribute(attr=cst.Name("__setattr__")), args=[cst.Arg(value=first), *_]):
            if isinstance(first, cst.SimpleString) and first.raw_value in ("data", "shape", "strides"):
                x.stop(f"`.{first.raw_value}` of a tensor is changed")


def _is_quiet_builtin(name: str) -> bool:
    return name in _QUIET and hasattr(builtins, name)


def _library_call(x: HostExecutor, name: str, args: Arguments, given: list[Any], frame: Frame) -> None:
    """A function of a library or of Python: it runs code that it is given, or that a program registered."""
    last = name.rpartition(".")[2]
    if last not in _READING and not _is_quiet_builtin(name):
        forget_contents(x, given)
    if last in _CALLING or ".ops." in name or _is_handed_code(args):
        unread_code_runs(x, given, frame)
    elif name.endswith("_") or dict(args.keywords).keys() & {"out", "inplace"}:
        elements_changed(x, given)
    if name in _GIVING_BACK or name.startswith("itertools."):
        lose_objects(x, given, frame)
    if name in _USING_UP and (len(given) == 1 or name not in ("max", "min")):
        for value in given:
            used_up(x, value, frame)


def _is_handed_code(args: Arguments) -> bool:
    """Whether a call is given a function that may change something, as far as its text shows."""
    keys = (value for name, value in args.keywords if name == "key")
    values = (*args.positional, *(value for _, value in args.keywords))
    given = (*keys, *(value for value in values if isinstance(value, Function | Method)))
    return not all(map(calls_nothing, given))


def calls_nothing(function: Any) -> bool:
    """Whether it is a lambda that only computes: `lambda d: stride[d]`."""
    return (
        isinstance(function, Function)
        and isinstance(function.node, cst.Lambda)
        and not has_kind(function.node.body, cst.Call, cst.NamedExpr)
    )


def _method_is_quiet(owner: Any, name: str, args: Arguments) -> bool:
    """Whether a method changes no object, but perhaps elements of tensors."""
    if name in OF_CONTEXTS or (isinstance(args.node, cst.Call) and _is_log(args.node.func)):
        return True
    if _is_handed_code(args):
        return False
    if isinstance(owner, Tensor):
        return name not in _RUNNING
    if isinstance(owner, Unknown):
        return name in _READING or name in IN_PLACE
    return isinstance(owner, Const | Num | Token | HostShape | Dims)


def read_effects(x: HostExecutor, function: Any, args: Arguments, result: Any) -> Any:
    """A call that is read changes no object, but perhaps elements of tensors: `x.zero_()`, `out=y`."""
    name = function.name if isinstance(function, Named | Method) else ""
    if isinstance(function, Method) and name.endswith("_"):
        elements_changed(x, [function.value], certainly=True)
    elif name.endswith("_") or "out" in dict(args.keywords):
        elements_changed(x, (*args.positional, *(value for _, value in args.keywords)))
    after_call(x, function, args, result)
    return result


_ACTING = (
    *(cst.Attribute, cst.Call, cst.Yield, cst.Await, cst.Asynchronous, cst.AssignTarget, cst.AnnAssign),
    *(cst.AugAssign, cst.For, cst.CompFor, cst.Del, cst.AsName, cst.FunctionDef, cst.ClassDef, cst.Nonlocal),
    cst.Global,
)


def forget_effects(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """What stores and calls may change in code that is not executed here, or is executed many times."""
    runs = False
    for inner in walk_kind(node, *_ACTING):
        stop_at_reshaping(x, inner)
        match inner:
            case cst.Call():
                elements_changed(x, named_in(inner, frame))
                if not _is_quiet(inner, frame):
                    runs = True
                    lose_objects(x, named_in(inner, frame), frame)
            case cst.Yield() | cst.Await() | cst.Asynchronous():
                runs = True
            case cst.AssignTarget() | cst.AnnAssign() | cst.AugAssign() | cst.For() | cst.CompFor() | cst.Del():
                _forget_target(x, inner.target, frame)
            case cst.AsName():
                _forget_target(x, inner.name, frame)
            case cst.FunctionDef() | cst.ClassDef() | cst.Nonlocal() | cst.Global():
                rebinds(x, inner, frame)
    if runs:
        anything_changed(x, frame)


def rebinds(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """Functions in `node` may bind names around them anew whenever they are called, by whomever. What another
    function holds under such a name is unknown once one of them runs."""
    for inner in walk_kind(node, cst.Nonlocal, cst.Global):
        x.events.rebound.update((frame.table.file, item.name.value) for item in inner.names)
    if isinstance(node, cst.Nonlocal | cst.Global):
        lose_rebound(x, frame, but=frame)
    if isinstance(node, cst.Global):
        for item in node.names:  # any call before this one may have assigned it
            if item.name.value not in frame.names:
                frame.names[item.name.value] = x.unread(item.name.value)


def named_inside(table: ModuleTable) -> frozenset[str]:
    """The names that functions inside other functions mention, if these do more than to compute a value."""
    outer = table.nodes(cst.FunctionDef)
    inner = {n for f in outer for n in walk_kind(f.body, cst.FunctionDef, cst.Lambda)}
    doing = [f.body for f in inner if any(_does_more(n, table) for n in walk_kind(f.body, *_DOING))]
    return frozenset(n.value for body in doing for n in walk_kind(body, cst.Name))


_DOING = (cst.Call, cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.Del, cst.Yield, cst.Await)


def _does_more(node: cst.CSTNode, table: ModuleTable) -> bool:
    match node:
        case cst.Call():
            text = dotted(node.func)
            quiet = text in _QUIET and table.is_builtin(text)
            return not quiet and table.full_name(text).partition(".")[0] not in _LIBRARIES
        case cst.AssignTarget(target=cst.Name()) | cst.AnnAssign(target=cst.Name()):
            return False
    return True


def defined(x: HostExecutor, node: cst.FunctionDef | cst.ClassDef, frame: Frame) -> None:
    """A definition is executed: its decorators run, the body of a class too, and its metaclass."""
    rebinds(x, node, frame)
    called = [d.decorator for d in node.decorators]
    if isinstance(node, cst.ClassDef):
        called += [arg.value for arg in (*node.bases, *node.keywords)]
    texts = [dotted(made.func if isinstance(made, cst.Call) else made) for made in called]
    runs = any(_root(t, frame) not in _DECORATING and not frame.table.is_builtin(t) for t in texts)
    if isinstance(node, cst.ClassDef):
        forget_effects(x, node.body, frame)
    if runs:
        anything_changed(x, frame)


def _forget_target(x: HostExecutor, target: cst.CSTNode, frame: Frame) -> None:
    match target:
        case cst.Attribute(attr=cst.Name(name)):
            attribute_stored(x, name, frame)
        case cst.Subscript():
            owners = named_in(target.value, frame)
            lose_objects(x, owners, frame)
            for owner in owners or [None]:
                item_stored(x, owner, frame)
        case cst.Tuple() | cst.List():
            for element in target.elements:
                _forget_target(x, element.value, frame)


def _is_quiet(node: cst.Call, frame: Frame) -> bool:
    """Whether a call by its text changes no object: a launch, a function of a library, a method of tensors."""
    if isinstance(node.func, cst.Subscript):
        kernel = frame.find(dotted(node.func.value)) or frame.table.bindings.get(dotted(node.func.value))
        return isinstance(kernel, Function | cst.FunctionDef)
    if any(_may_be_code(arg, frame) for arg in node.args):
        return False
    text = dotted(node.func)
    if isinstance(node.func, cst.Name):
        if text in _QUIET and _builtin(node, frame):
            return True
    elif isinstance(node.func, cst.Attribute) and (
        node.func.attr.value in _CHANGING_NO_OBJECT or _is_log(node.func)
    ):
        return True
    return _root(text, frame) in _LIBRARIES and text.rpartition(".")[2] not in _CALLING and ".ops." not in text


def _may_be_code(arg: cst.Arg, frame: Frame) -> bool:
    """Whether an argument is a function that is called, or the items of what other code made, as far as its
    text shows."""
    if has_kind(arg, cst.Lambda) or (arg.keyword and arg.keyword.value == "key"):
        return True
    return isinstance(arg.value, cst.Name) and _is_function(arg.value.value, frame)


def _is_function(name: str, frame: Frame) -> bool:
    held = frame.find(name) or frame.table.bindings.get(name)
    node = held.node if isinstance(held, Function) else held
    if isinstance(node, cst.FunctionDef):  # a kernel is launched, not called
        return not any(is_kernel_decorator(frame.table, d.decorator) for d in node.decorators)
    return isinstance(node, Method | cst.Lambda)


def _root(text: str, frame: Frame) -> str:
    """The library that a dotted name leads to, imported at the top or in a function."""
    head = text.partition(".")[0]
    held = frame.find(head)
    if held is not None:
        return held.name.partition(".")[0] if isinstance(held, Named) else ""
    local = frame.table.local_imports.get(head)
    full = frame.table.full_name(text)
    if local is not None and head not in frame.table.bindings:
        full = local.name
    elif head not in frame.table.bindings:
        return ""
    return full.partition(".")[0]


def _is_log(function: cst.BaseExpression) -> bool:
    return (
        isinstance(function, cst.Attribute)
        and function.attr.value in _LOGGING
        and _LOGS.fullmatch(dotted(function.value)) is not None
    )
