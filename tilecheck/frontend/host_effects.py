"""What calls and statements that are not read may change: by the text of the code, or by what it is given."""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING, Any

import libcst as cst

from tilecheck.frontend.bindings import dotted
from tilecheck.frontend.executor import Arguments
from tilecheck.frontend.host_changes import (
    anything_changed,
    attribute_stored,
    elements_changed,
    handed,
    holds,
    item_stored,
    lose_objects,
)
from tilecheck.frontend.host_methods import FOLLOWED
from tilecheck.frontend.host_values import Tensor, Unknown, named_in
from tilecheck.frontend.syntax import walk
from tilecheck.frontend.values import Const, Frame, Function, Method, Named

if TYPE_CHECKING:
    from tilecheck.frontend.host import HostExecutor

# Libraries whose functions change no list, dictionary or object that they are given, but elements of tensors.
_LIBRARIES = frozenset(
    "torch triton tilelang cuda numpy cupy math itertools typing logging packaging warnings".split()
)
_QUIET = frozenset(
    "isinstance issubclass hasattr getattr callable len print type repr id str int float bool complex bytes "
    "max min sum abs round divmod pow range enumerate zip list tuple dict set frozenset sorted reversed all "
    "any hash format slice object super".split()
)
# Methods that change nothing: those that are followed, and others of tensors and texts.
_READING = FOLLOWED | frozenset(
    "detach pin_memory item tolist data_ptr element_size get_device is_floating_point max min sum mean "
    "prod amax amin argmax argmin any all abs norm numpy nonzero unique cumsum diff split unbind repeat "
    "masked_fill index_select gather softmax exp log sqrt eq ne lt le gt ge mul sub div matmul mm bmm "
    "storage_offset repeat_interleave argsort topk bincount startswith endswith join lower strip".split()
)
# Methods of autograd's contexts that keep tensors and change no attribute that a program reads.
_OF_CONTEXTS = frozenset("save_for_backward mark_dirty mark_non_differentiable set_materialize_grads".split())
_CHANGING_NOTHING = _READING | _OF_CONTEXTS
_LOGS = re.compile(r"(?:\w*[._])?log(?:ger|ging)?", re.IGNORECASE)
_CALLING = frozenset(  # functions of libraries that call what they are given, or make functions of it
    "vmap compile checkpoint cond while_loop map scan grad vjp jvp jacrev jacfwd hessian functional_call "
    "script trace associative_scan".split()
)
_LOGGING = frozenset("debug info warning warn error exception critical log info_once warning_once".split())


def unread_effects(x: HostExecutor, function: Any, args: Arguments, result: Unknown, frame: Frame) -> None:
    """A call of code that is not read: it may change what it is given, and the object whose method it is."""
    given = [*args.positional, *(value for _, value in args.keywords)]
    node = args.node
    name = function.name if isinstance(function, Named | Method) else ""
    if isinstance(function, Method):
        owner = function.value
        if name in _OF_CONTEXTS or (isinstance(node, cst.Call) and _is_log(node.func)):
            return
        if isinstance(owner, Tensor | Unknown) and name in _READING:
            holds(x, result, [owner])
            return
        if name.endswith("_") and not name.endswith("__"):
            elements_changed(x, [owner], certainly=True)
        given.append(owner)
    elif isinstance(function, Named):
        library = name.partition(".")[0] in _LIBRARIES
        if library or (name in _QUIET and hasattr(builtins, name)):
            calls = name.rpartition(".")[2] in _CALLING or "key" in dict(args.keywords)
            if calls or any(isinstance(value, Function | Method) for value in given):
                handed(x, [*given, *filter(None, map(_owner, given))], frame)
            elif library and (name.endswith("_") or ".ops." in name or "out" in dict(args.keywords)):
                elements_changed(x, given)
            holds(x, result, given)
            return
        if name in ("setattr", "delattr"):
            _named_attribute(x, args, frame)
        elif name in ("exec", "eval"):
            anything_changed(x, frame)
        elif "." in name:
            given.append(Named(name.rpartition(".")[0]))  # the object whose method it is, or the module
    else:
        given += (function, _owner(function), _owner(dict(args.keywords).get("key")))
    handed(x, given, frame)
    holds(x, result, given)


def _owner(function: Any) -> Unknown | None:
    """The object whose method an unknown may be: `grow = pool.grow`."""
    head = re.match(r"\w+(?=\.)", function.name) if isinstance(function, Unknown) else None
    return None if head is None else Unknown(head.group())


def read_effects(x: HostExecutor, function: Any, args: Arguments, result: Any) -> Any:
    """A call that is read changes no object, but perhaps elements of tensors: `x.zero_()`, `out=y`."""
    name = function.name if isinstance(function, Named | Method) else ""
    if isinstance(function, Method) and name.endswith("_"):
        elements_changed(x, [function.value], certainly=True)
    elif name.endswith("_") or "out" in dict(args.keywords):
        elements_changed(x, (*args.positional, *(value for _, value in args.keywords)))
    return result


def _named_attribute(x: HostExecutor, args: Arguments, frame: Frame) -> None:
    """`setattr(object, "name", value)`."""
    name = args.positional[1] if len(args.positional) > 1 else None
    if isinstance(name, Const) and isinstance(name.value, str):
        attribute_stored(x, name.value, frame)
    else:
        anything_changed(x, frame)


def forget_effects(x: HostExecutor, node: cst.CSTNode, frame: Frame) -> None:
    """What stores and calls may change in code that is not executed here, or is executed many times."""
    calls = 0
    for inner in walk(node):
        match inner:
            case cst.Call() if not _is_quiet(inner, frame):
                calls += 1
                handed(x, named_in(inner, frame), frame)
            case cst.AssignTarget() | cst.AnnAssign() | cst.AugAssign() | cst.For() | cst.Del():
                _forget_target(x, inner.target, frame)
    if calls:
        for at in (frame, *x.events.callers):  # code of the project may know an object under other names
            for path in [name for name in at.names if "." in name]:
                del at.names[path]


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
    if any(isinstance(n, cst.Lambda) for arg in node.args for n in walk(arg)):
        return False
    text = dotted(node.func)
    if isinstance(node.func, cst.Name):
        if text in _QUIET and frame.find(text) is None and frame.table.is_builtin(text):
            return True
    elif isinstance(node.func, cst.Attribute) and (
        node.func.attr.value in _CHANGING_NOTHING or _is_log(node.func)
    ):
        return True
    return _root(text, frame) in _LIBRARIES


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
