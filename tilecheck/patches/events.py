"""Reading what the code of one file does in other modules.

Every place is followed through other names, parameters, results and defaults of functions of the file. What
cannot be followed further hands the module on. Whether code runs is not asked: it may.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import field

from tilecheck.dataclass import dataclass
from tilecheck.patches.places import (
    ANY,
    DICT,
    MODULES,
    Effect,
    Event,
    Place,
    Root,
    bound_names,
    imported,
    last_name,
    named,
    of_key,
    text_of,
)
from tilecheck.patches.syntax import ACTING, SCOPES, keys, nodes_below, parameter

Places = frozenset[Place]
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | None
_Key = tuple[_Scope, str]

_NONE: Places = frozenset()
_DEEPEST = 12  # names below a root: what lies deeper counts as that, so that `x = x.next` comes to an end
_MOST_ROUNDS = _DEEPEST + 4  # until the names are settled; more are taken for handed on
_NAMESPACES = ("__globals__", "f_globals", "f_locals")
_GIVES_MODULE = ("import_module", "__import__", "getmodule")
_READING = frozenset(
    "getattr hasattr isinstance issubclass callable print repr str id type len dir vars help reload "
    "getmembers getsource getsourcefile getfile getdoc iter_modules walk_packages signature".split()
)
_CHANGING = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem add discard __setitem__ "
    "__delitem__ __setattr__ __delattr__ __iadd__ __ior__".split()
)
_ITEMS = ("setitem", "delitem", "__setitem__", "__delitem__")
_SETTING = ("setattr", "delattr", "__setattr__", "__delattr__", "object", *_ITEMS)  # `object` of `mock.patch`
_PATCHING = ("patch", "setattr", "dict", "multiple")  # of mocks: they take names of places as text
_WHOLE = ("__class__", "__dict__", "__getattr__")  # bound anew, they stand for all names of a module


def events_of(tree: ast.Module) -> frozenset[Event]:
    """What the code of a file does at places in other modules."""
    reader = _Reader(bound_names(tree.body))
    for _ in range(_MOST_ROUNDS):
        reader.late = False
        reader.block(tree.body)
        if not reader.late:
            break
    else:
        reader.hand_on(place for places in reader.held.values() for place in places)
    reader.found |= _spelled_out(reader.found, tree)
    return frozenset(reader.found - {_UNTOLD})


def _below(place: Place, name: str) -> Place:
    """What lies under a name in a place, or the place itself where that is deep enough."""
    return place.below(name) if len(place.path) < _DEEPEST else place


_UNTOLD = Event(ANY.below(""), Effect.BINDS)


def _spelled_out(found: set[Event], tree: ast.Module) -> set[Event]:
    """`setattr(module, name, value)` where the text tells neither: the name is one of the texts of the file."""
    if _UNTOLD not in found:
        return set()
    texts = {text_of(node) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return {Event(ANY.below(text), Effect.BINDS) for text in texts if text.isidentifier()}


@dataclass(slots=True)
class _Reader:
    """One file. Mutable: rounds add to what is known, until nothing is learned after it was asked for."""

    own: frozenset[str]  # the names that the file itself binds at its top level
    found: set[Event] = field(default_factory=set)
    held: dict[_Key, Places] = field(default_factory=dict)
    results: dict[str, Places] = field(default_factory=dict)
    functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = field(default_factory=dict)
    scopes: list[_Scope] = field(default_factory=list)
    asked: set[_Key | str] = field(default_factory=set)
    late: bool = False
    _bound: dict[_Scope, frozenset[str]] = field(default_factory=dict)

    # ---- names ---------------------------------------------------------------------------------------------

    def key(self, name: str) -> _Key:
        for depth, scope in enumerate(reversed(self.scopes)):
            if isinstance(scope, ast.ClassDef) and depth:
                continue
            if name in self.bound(scope):
                return scope, name
        return None, name

    def bound(self, scope: _Scope) -> frozenset[str]:
        if scope not in self._bound:
            assert scope is not None
            names = bound_names([scope.body] if isinstance(scope, ast.Lambda) else scope.body)
            if not isinstance(scope, ast.ClassDef):
                names |= {a.arg for a in ast.walk(scope.args) if isinstance(a, ast.arg)}
            self._bound[scope] = names
        return self._bound[scope]

    def hold(self, key: _Key, places: Places) -> None:
        known = self.held.get(key, _NONE)
        if not places <= known:
            self.held[key] = known | places
            self.learned(key)

    def learned(self, what: _Key | str) -> None:
        self.late = self.late or what in self.asked

    def note(self, place: Place, effect: Effect) -> None:
        self.found.add(Event(place, effect))

    def hand_on(self, places: Iterable[Place]) -> None:
        for place in places:
            self.note(place.above if place.is_dictionary else place, Effect.HANDS_ON)

    def bind(self, place: Place, name: str) -> None:
        self.note(place.below("" if name in _WHOLE else name), Effect.BINDS)

    # ---- expressions ---------------------------------------------------------------------------------------

    def places(self, node: ast.expr | None) -> Places:
        """The places that an expression may give."""
        match node:
            case ast.Name(id=name):
                key = self.key(name)
                self.asked.update((key, (None, "*")))
                starred = key[0] is None and name not in self.own
                stars = self.held.get((None, "*"), _NONE) if starred else _NONE
                return self.held.get(key, _NONE) | {star.above.below(name) for star in stars}
            case ast.Attribute(value=value, attr=name):
                if name in _NAMESPACES:
                    return frozenset({ANY.below(DICT)})
                return frozenset(_below(place, name) for place in self.places(value))
            case ast.Subscript(value=value, slice=key):
                return self.items(self.places(value), key)
            case ast.IfExp(body=body, orelse=orelse):
                return self.places(body) | self.places(orelse)
            case ast.BoolOp(values=values):
                return _NONE.union(*map(self.places, values))
            case ast.NamedExpr(value=value):
                return self.places(value)
            case ast.Call():
                return self.result(node)
        return _NONE

    def items(self, places: Places, key: ast.expr | None) -> Places:
        found: set[Place] = set()
        for place in places:
            if place == MODULES:
                found.add(of_key(key))
            elif place.is_dictionary:
                found |= {place.above.below(text_of(key))} if text_of(key) else set()
            else:
                found.add(_below(place, "[]"))
        return frozenset(found)

    def result(self, call: ast.Call) -> Places:
        """The places that a call may give."""
        name, first = last_name(call.func), call.args[0] if call.args else None
        names = {name, *(place.path[-1] for place in self.places(call.func) if place.path)}
        if "getmodule" in names:
            return frozenset({ANY})
        if not names.isdisjoint(_GIVES_MODULE):
            place = of_key(first)
            return frozenset({place, *([named(place.path[0])] if place.root is Root.ABSOLUTE else [])})
        if isinstance(call.func, ast.Name):
            if name == "getattr" and len(call.args) > 1:
                text = text_of(call.args[1])
                return frozenset(place.below(text) for place in self.places(first)) if text else _NONE
            if name == "vars":
                return frozenset(place.below(DICT) for place in self.places(first))
            self.asked.add(f"{name}()")
            return self.results.get(name, _NONE)
        if name == "reload":
            return self.places(first)
        if isinstance(call.func, ast.Attribute) and name in ("get", "pop", "setdefault"):
            owners = (p for p in self.places(call.func.value) if p == MODULES or p.is_dictionary)
            found = self.items(frozenset(owners), first)
            return frozenset(ANY if place.root is Root.OWN else place for place in found)
        return _NONE

    # ---- effects -------------------------------------------------------------------------------------------

    def store(self, target: ast.expr) -> None:
        """Something is assigned to a target, or it is deleted."""
        match target:
            case ast.Attribute(value=value, attr=name):
                for place in self.places(value):
                    self.bind(place, name)
            case ast.Subscript(value=value, slice=key):
                for place in self.places(value):
                    self.store_item(place, text_of(key))
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self.store(part)
            case ast.Starred(value=value):
                self.store(value)

    def store_item(self, place: Place, key: str) -> None:
        if place == MODULES:
            if key:
                self.note(named(key), Effect.HANDS_ON)
        elif place.is_dictionary:
            self.bind(place.above, key)
        else:
            self.note(place, Effect.CHANGES)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        self.store(target)
        places = self.places(value)
        pairs = isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List))
        if pairs and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
            for part, item in zip(target.elts, value.elts, strict=True):  # type: ignore[attr-defined]
                self.assign(part, item)
        elif isinstance(target, ast.Name) and not (self.scopes and isinstance(self.scopes[-1], ast.ClassDef)):
            self.hold(self.key(target.id), places)
        else:
            self.hand_on(places)

    def call(self, call: ast.Call) -> None:
        """What a call does to the places that it is given."""
        name = last_name(call.func)
        if isinstance(call.func, ast.Attribute) and name in _CHANGING:
            for place in self.places(call.func.value):
                self.change(place, name, call)
        if name in ("exec", "eval") and call.args:
            self.run(text_of(call.args[0]))
        if name in _PATCHING and call.args and text_of(call.args[0]).replace(".", "").isidentifier():
            place = named(text_of(call.args[0]))
            for text in [k.arg for k in call.keywords if k.arg] if name == "multiple" else [""]:
                path = place.below(text) if text else place
                self.note(path, Effect.CHANGES if name == "dict" else Effect.BINDS)
        for number, argument in enumerate(call.args):
            for place in self.places(argument):
                self.give(call, name, place, number)
        for keyword in call.keywords:
            for place in self.places(keyword.value):
                self.give(call, name, place, keyword.arg or "")

    def change(self, place: Place, method: str, call: ast.Call) -> None:
        first = text_of(call.args[0]) if call.args else ""
        if method in ("__setattr__", "__delattr__"):
            self.bind(place, first)
        elif place.is_dictionary:
            for name in keys(call) if method == "update" else [first]:
                self.bind(place.above, name)
        elif place != MODULES:
            self.note(place, Effect.CHANGES)

    def give(self, call: ast.Call, name: str, place: Place, to: int | str) -> None:
        """A place is given to a call, as the argument of that number or name."""
        following = call.args[to + 1 : to + 2] if isinstance(to, int) else []
        self.asked.add(name)
        own = self.functions.get(name, []) if isinstance(call.func, ast.Name) else []
        if name in _READING and not own:
            return
        if own:
            for function in own:
                own_name = parameter(function, to)
                if own_name:
                    self.hold((function, own_name), frozenset({place}))
                else:
                    self.hand_on([place])
        elif any(last_name(function) in _SETTING for function in (call.func, *call.args)):
            text = text_of(following[0]) if following else ""
            if place.is_dictionary:
                self.bind(place.above, text)
            elif name in _ITEMS:
                self.note(place, Effect.CHANGES)
            else:
                self.bind(place, text)
        else:
            self.hand_on([place])

    def run(self, text: str) -> None:
        try:
            body = ast.parse(text).body if text else []
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        self.block(body)

    # ---- statements ----------------------------------------------------------------------------------------

    def block(self, body: Iterable[ast.AST]) -> None:
        for node in body:
            if type(node) not in (ast.Name, ast.Constant):
                self.visit(node)

    def visit(self, node: ast.AST) -> None:
        if type(node) in ACTING:
            self.act(node)
        if type(node) not in SCOPES:
            self.block(nodes_below(node))

    def act(self, node: ast.AST) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                for name, place in imported(node):
                    self.hold(self.key(name), frozenset({place}))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
                self.define(node)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.assign(target, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
            ):
                self.assign(target, value)
            case ast.AugAssign(target=target):
                self.store(target)
                for place in self.places(target) if isinstance(target, ast.Name) else ():
                    self.store_item(place, "")
            case ast.For(target=target, iter=whole) | ast.AsyncFor(target=target, iter=whole):
                self.loop(target, whole)
            case ast.comprehension(target=target, iter=whole):
                self.loop(target, whole)
            case ast.withitem(optional_vars=ast.expr() as target, context_expr=value):
                self.assign(target, value)
            case ast.Match(subject=subject):
                for below in ast.walk(node):
                    if isinstance(below, ast.MatchAs) and below.name is not None:
                        self.hold(self.key(below.name), self.places(subject))
            case ast.Delete(targets=targets):
                for target in targets:
                    self.store(target)
            case ast.Return(value=ast.expr() as value):
                self.give_back(value)
            case ast.Yield(value=ast.expr() as value) | ast.YieldFrom(value=value) | ast.Await(value=value):
                self.hand_on(self.places(value))
            case ast.Call():
                self.call(node)
            case (
                ast.Tuple(elts=parts, ctx=ast.Load())
                | ast.List(elts=parts, ctx=ast.Load())
                | ast.Set(elts=parts)
            ):
                for part in parts:
                    self.hand_on(self.places(part))
            case ast.Dict(values=parts):
                for part in parts:
                    self.hand_on(self.places(part))

    def loop(self, target: ast.expr, whole: ast.expr) -> None:
        self.store(target)
        held: set[Place] = set()
        if isinstance(whole, (ast.Tuple, ast.List, ast.Set)):
            held.update(*map(self.places, whole.elts))
        elif any(MODULES in self.places(n) for n in ast.walk(whole) if isinstance(n, ast.expr)):
            held.add(ANY)
        names = [n for n in ast.walk(target) if isinstance(n, ast.Name)]
        for name in names:
            self.hold(self.key(name.id), frozenset(held))

    def give_back(self, value: ast.expr) -> None:
        places = self.places(value)
        function = self.scopes[-1] if self.scopes else None
        in_class = len(self.scopes) > 1 and isinstance(self.scopes[-2], ast.ClassDef)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and not in_class:
            known = self.results.get(function.name, _NONE)
            if not places <= known:
                self.results[function.name] = known | places
                self.learned(f"{function.name}()")
        else:
            self.hand_on(places)

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef) -> None:
        if isinstance(node, ast.ClassDef):
            self.block([*node.decorator_list, *node.bases, *(k.value for k in node.keywords)])
        else:
            self.defaults(node)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.block(node.decorator_list)
            known = self.functions.setdefault(node.name, [])
            if not any(node is other for other in known):
                known.append(node)
                self.learned(node.name)
        self.scopes.append(node)
        if isinstance(node, ast.Lambda):
            self.hand_on(self.places(node.body))
            self.visit(node.body)
        else:
            self.block(node.body)
        self.scopes.pop()

    def defaults(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        positional = [*node.args.posonlyargs, *node.args.args]
        given = node.args.defaults
        pairs = [*zip(positional[len(positional) - len(given) :], given, strict=True)]
        pairs += [(a, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d]
        for argument, default in pairs:
            self.visit(default)
            self.hold((node, argument.arg), self.places(default))
