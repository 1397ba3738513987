"""Calls of Python's own functions and containers."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tilecheck.frontend.host_programs.calls.tensors import read_on_host
from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.execute.generators import collected
from tilecheck.frontend.host_programs.execute.names import attribute
from tilecheck.frontend.host_programs.knowledge import PathEnds
from tilecheck.frontend.host_programs.loops.iteration import key_value
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values import views
from tilecheck.frontend.host_programs.values.graph_captures import keep
from tilecheck.frontend.host_programs.values.kinds import as_number, key_of, resolved, truth
from tilecheck.frontend.host_programs.values.numbers import extreme
from tilecheck.frontend.host_programs.values.objects import kept_in, taken
from tilecheck.frontend.host_programs.values.undetermined import learn_number
from tilecheck.ir import expr as E
from tilecheck.ir.expr import Kind, Symbol


def _plain(m: Machine, name: str) -> V.Unknown:
    return V.Unknown(m.unique(f"{name}()"), given=False, plain=True)


def builtin(m: Machine, name: str, a: Arguments) -> V.Value | None:
    """A call of a function of Python; None if it is not known."""
    first = resolved(m, a.get(0)) if a.positional else None
    if name in _TAKING:
        for value in a.positional:
            if isinstance(value, V.Tensor) and not value.perhaps:
                read_on_host(m, a.node, name, value)
        if name == "int" and isinstance(first, (V.Number, V.Unknown)):
            return as_number(m, first)
        if name == "bool" and first is not None and not isinstance(first, V.Tensor):
            return V.Const(truth(m, first, a.node))
        return V.NONE if name == "print" else _plain(m, name)
    match name:
        case "len":
            return _length(m, first)
        case "range":
            return _range(m, a)
        case "enumerate":
            return V.Rounds("enumerate", (first, a.get(1, "start") or V.number(0)))
        case "zip":
            return V.Rounds("zip", a.positional)
        case "min" | "max":
            return _extreme(m, name, a)
        case "list" | "tuple" | "sorted" | "set" | "frozenset" | "reversed":
            return _container(m, name, first, a.node)
        case "dict":
            items = dict(first.items) if isinstance(first, V.Mapping) else {}
            return V.Mapping(items | dict(a.keywords)) if first is None or items else None
        case "isinstance":
            return _isinstance(m, first, a.get(1))
        case "getattr" if isinstance(a.get(1), V.Const):
            return _getattr(m, a)
        case "hasattr" | "callable" | "issubclass":
            return _test(m, (name, *map(key_of, a.positional)))
        case "setattr":
            return _setattr(m, a)
        case "next":
            return _next(m, a)
        case "iter" | "memoryview" if first is not None:
            return first
        case "any" | "all" if isinstance(first, V.Sequence):
            found = (truth(m, item, a.node) for item in first.items)
            return V.Const(any(found) if name == "any" else all(found))
        case (
            "id"
            | "type"
            | "hash"
            | "vars"
            | "dir"
            | "input"
            | "abs"
            | "round"
            | "sum"
            | "divmod"
            | "ord"
            | "chr"
        ):
            return None if _holds_tensor(a) else _plain(m, name)
        case "slice" if a.positional:
            bounds = [None, *a.positional] if len(a.positional) == 1 else list(a.positional)
            step = bounds[2] if len(bounds) > 2 else V.NONE
            return V.Slice(bounds[0], bounds[1], holes=step not in (V.NONE, V.number(1)))
        case "super":
            return m.super_of(m, a.node)
        case "open" | "globals" | "locals" | "object" | "property" | "staticmethod":
            return _plain(m, name)
        case _:
            return _plain(m, name) if name.endswith(("Error", "Exception", "Iteration", "Warning")) else None


_TAKING = frozenset("print str repr float int bool format bytes".split())


def _holds_tensor(a: Arguments) -> bool:
    return any(isinstance(part, V.Tensor) for value in a.every() for part in V.contents(value))


def _length(m: Machine, value: V.Value) -> V.Value:
    match value:
        case V.Sequence(count=count) if count in m.stand_ins:
            return V.Number(count)
        case V.Sequence(items=items) | V.Mapping(items=items):
            return V.number(len(items))
        case V.Tensor():
            return views.shape(m, value, 0) or _plain(m, "len")
        case V.Unknown(name=name):
            more = len(kept_in(m, value))  # what the program has put into it since
            text = f"len({name})" if not more else f"len({name}), {more} more"
            return V.Number(E.sym(Symbol(text, Kind.HOST)))
        case _:
            return _plain(m, "len")


def _range(m: Machine, a: Arguments) -> V.Value:
    for value in a.positional:
        learn_number(m, value)
    bounds = [as_number(m, value) for value in a.positional]
    if None in bounds or not 1 <= len(bounds) <= 3:
        return V.Unknown(m.unique("range()"), given=False, plain=True)
    known = [b for b in bounds if b is not None]
    start, stop = (V.number(0), known[0]) if len(known) == 1 else (known[0], known[1])
    return V.Range(start, stop, known[2] if len(known) > 2 else V.number(1))


def _extreme(m: Machine, name: str, a: Arguments) -> V.Value | None:
    items = a.positional[0].items if isinstance(a.get(0), V.Sequence) else a.positional
    numbers = [as_number(m, item) for item in items]
    known = [n for n in numbers if n is not None]
    if len(known) != len(numbers) or not known or a.keywords:
        return None if _holds_tensor(a) else _plain(m, name)
    return extreme(E.minimum if name == "min" else E.maximum, known)


def _container(m: Machine, name: str, value: V.Value, node: cst.CSTNode) -> V.Value | None:
    match value:
        case None:
            return V.Sequence([], name == "tuple")
        case V.Sequence(items=items):
            order = list(reversed(items)) if name == "reversed" else list(items)
            return V.Sequence(order, name == "tuple", value.count)
        case V.Mapping(items=items):
            return V.Sequence([key_value(key) for key in items], name == "tuple")
        case V.Range() if name != "reversed":
            return value
        case V.Generator() if name != "reversed":
            return V.Sequence(collected(m, value, node), name == "tuple")
        case V.Unknown():
            return value
        case _:
            return None


def _isinstance(m: Machine, value: V.Value, kinds: V.Value) -> V.Value:
    kind = kinds.name if isinstance(kinds, V.Library) else ""
    tests = {"torch.Tensor": V.Tensor, "builtins.list": V.Sequence, "builtins.dict": V.Mapping}
    if isinstance(value, V.Tensor):
        return V.Const(kind in ("torch.Tensor", "") or kind.endswith("Tensor"))
    if kind in tests and not isinstance(value, V.Unknown):
        return V.Const(isinstance(value, tests[kind]))
    if isinstance(value, V.Object) and isinstance(kinds, V.Class):
        return V.Const(value.made_by.node is kinds.node)
    return _test(m, ("isinstance", key_of(value), key_of(kinds)))


def _test(m: Machine, key: tuple[object, ...]) -> V.Value:
    """A truth that the text does not decide, the same wherever the same is asked."""

    def test() -> bool:
        return m.choose(key, 2) == 0

    return m.test(m.unique(str(key[0])), test) if m.knowledge.joins else V.Const(test())


def _getattr(m: Machine, a: Arguments) -> V.Value:
    name = a.positional[1]
    try:
        return attribute(m, resolved(m, a.positional[0]), str(name.value), a.node)
    except PathEnds:
        if len(a.positional) > 2:
            return a.positional[2]
        raise


def _setattr(m: Machine, a: Arguments) -> V.Value:
    owner, name, value = (*(resolved(m, v) for v in a.positional), None, None, None)[:3]
    if not isinstance(name, V.Const) or not isinstance(name.value, str):
        if isinstance(value, (V.Tensor, V.Stream, V.Event, V.Graph)):
            raise m.unread(a.node, "the attribute that is set is not known")
        return V.NONE
    m.set_attribute(m, owner, name.value, value, a.node)
    return V.NONE


def _next(m: Machine, a: Arguments) -> V.Value:
    """The next item of an iterator: of an unknown one, memory that the caller made, other memory each time."""
    first = resolved(m, a.get(0))
    if isinstance(first, V.Sequence) and _is_generator(a.node):
        if not first.items and len(a.positional) < 2:
            raise PathEnds("nothing is left")
        return first.items[0] if first.items else a.positional[1]
    if isinstance(first, V.Sequence):
        raise m.unread(a.node, "how far this iterator has come is not followed")
    if isinstance(first, V.Unknown) and not first.plain:
        ended = len(a.positional) > 1 and m.choose(None, 2) == 1
        return a.positional[1] if ended else taken(m, first, m.fresh(m.target or "next()", given=True))
    return _plain(m, "next")


def _is_generator(node: cst.CSTNode) -> bool:
    """Whether a call is given a generator expression, of which nothing has been taken."""
    return isinstance(node, cst.Call) and bool(node.args) and isinstance(node.args[0].value, cst.GeneratorExp)


# ---- modules of Python -------------------------------------------------------------------------------------


def standard(m: Machine, name: str, a: Arguments) -> V.Value | None:
    """A call of a function of Python's library, or of a helper of Triton; None if it is not known."""
    match name:
        case "triton.cdiv" | "cuda.tile.cdiv" | "math.ceil" if len(a.positional) > 1:
            x, y = as_number(m, a.positional[0]), as_number(m, a.positional[1])
            if x is None or y is None or y.value == 0:
                return _plain(m, name)
            return V.Number(E.cdiv(x.expr, y.expr), (), bool(x.slopes or y.slopes or x.curved or y.curved))
        case "collections.deque" | "collections.OrderedDict" | "collections.defaultdict":
            if name == "collections.deque":
                first = resolved(m, a.get(0)) if a.positional else None
                return V.Sequence(list(first.items)) if isinstance(first, V.Sequence) else V.Sequence([])
            return V.Mapping()
        case "tqdm.tqdm" | "tqdm.auto.tqdm" | "tqdm.trange":
            return a.get(0, "iterable")
        case "copy.copy" | "copy.deepcopy" | "functools.partial" | "functools.lru_cache" | "functools.cache":
            return None
        case "torch.Size":
            return a.get(0)
        case _:
            return None


# ---- containers --------------------------------------------------------------------------------------------


def container_method(m: Machine, owner: V.Value, name: str, a: Arguments) -> V.Value:
    """A call of a method of a list, a tuple or a dictionary.

    Raises:
        Unread: it is not known what it leaves in a container of tensors or streams.
    """
    m.rebound = True
    if isinstance(owner, V.Mapping):
        return _mapping_method(m, owner, name, a)
    method = _SEQUENCE_METHODS.get(name)
    if method is None:
        raise m.unread(a.node, "what this leaves in the list is not known")
    given = method(m, owner.items, a)
    fills = name in ("append", "add") and m.loops and m.loops[-1].number is not None
    owner.count = m.loops[-1].number if fills and len(owner.items) <= m.loops[-1].round + 1 else None
    return given


def _append(m: Machine, items: list[V.Value], a: Arguments) -> V.Value:
    items.append(_kept(m, items, a.get(0), a.node))
    return V.NONE


def _kept(m: Machine, items: list[V.Value], value: V.Value, node: cst.CSTNode) -> V.Value:
    """A value that a list gets."""
    return keep(m, node, value, f"{m.scope.table.text(_receiver(node))}[{len(items)}]", inside=True)


def _receiver(node: cst.CSTNode) -> cst.CSTNode:
    return node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else node


def _extend(m: Machine, items: list[V.Value], a: Arguments) -> V.Value:
    more = resolved(m, a.get(0))
    if not isinstance(more, V.Sequence):
        raise m.unread(a.node, "how long this list becomes is not known")
    for value in more.items:
        items.append(_kept(m, items, value, a.node))
    return V.NONE


def _pop(m: Machine, items: list[V.Value], a: Arguments, default: int = -1) -> V.Value:
    at = as_number(m, a.get(0)) if a.positional else V.number(default)
    exact = None if at is None else m.settle(at.expr).value
    if exact is None:
        raise m.unread(a.node, "which item this takes is not known")
    if not -len(items) <= exact < len(items):
        raise PathEnds("pop from an empty list")
    return items.pop(exact)


def _insert(m: Machine, items: list[V.Value], a: Arguments) -> V.Value:
    at = as_number(m, a.get(0))
    exact = None if at is None else m.settle(at.expr).value
    if exact is None:
        raise m.unread(a.node, "where this inserts is not known")
    items.insert(exact, _kept(m, items, a.get(1), a.node))
    return V.NONE


def _clear(m: Machine, items: list[V.Value], a: Arguments) -> V.Value:
    items.clear()
    return V.NONE


def _asked(m: Machine, items: list[V.Value], a: Arguments) -> V.Value:
    return _plain(m, "index")


def _appendleft(m: Machine, items: list[V.Value], a: Arguments) -> V.Value:
    items.insert(0, _kept(m, items, a.get(0), a.node))
    return V.NONE


def _reverse(m: Machine, items: list[V.Value], a: Arguments) -> V.Value:
    items.reverse()
    return V.NONE


_SEQUENCE_METHODS: dict[str, Callable[[Machine, list[V.Value], Arguments], V.Value]] = {
    "append": _append,
    "add": _append,
    "extend": _extend,
    "pop": _pop,
    "popleft": lambda m, items, a: _pop(m, items, a, 0),
    "insert": _insert,
    "appendleft": _appendleft,
    "clear": _clear,
    "reverse": _reverse,
    "copy": lambda m, items, a: V.Sequence(list(items)),
    "index": _asked,
    "count": _asked,
}


def _mapping_method(m: Machine, owner: V.Mapping, name: str, a: Arguments) -> V.Value:
    key = key_of(a.get(0)) if a.positional else None
    match name:
        case "get" | "pop" | "setdefault":
            default = a.get(1, "default") or V.NONE
            if key in owner.items:
                return owner.items.pop(key) if name == "pop" else owner.items[key]
            if owner.items and not isinstance(key, str):
                raise m.unread(a.node, "whether the dictionary has this key is not known")
            if name == "setdefault":
                owner.items[key] = default
            return default
        case "items":
            return V.Sequence([V.Sequence([key_value(k), v], is_tuple=True) for k, v in owner.items.items()])
        case "keys":
            return V.Sequence([key_value(k) for k in owner.items])
        case "values":
            return V.Sequence(list(owner.items.values()))
        case "update" if isinstance(resolved(m, a.get(0)), V.Mapping) or not a.positional:
            more = resolved(m, a.get(0))
            owner.items.update(more.items if isinstance(more, V.Mapping) else {})
            owner.items.update(a.keywords)
            return V.NONE
        case "clear":
            owner.items.clear()
            return V.NONE
        case "copy":
            return V.Mapping(dict(owner.items))
        case _:
            raise m.unread(a.node, "what this leaves in the dictionary is not known")
