"""Which module-level values the code of their module may change, by a method or under another name.

A list, dictionary, set or object that a module binds to a name holds what the text says only if nothing
changes it afterwards. So every use of the name is followed: into other names (`a = SIZES`), parameters of
functions of the module, results, displays and decorators. A use that is not known to leave the value as it is
changes it. Items of a `flat` container are numbers, texts and the like: only the container is followed.
"""

from __future__ import annotations

from dataclasses import field

import libcst as cst

from tilecheck.dataclass import dataclass
from tilecheck.frontend.modules.container_uses import is_in_sight, names_of_one
from tilecheck.frontend.modules.mutability import LIBRARIES, Kinds, head_of, last_of
from tilecheck.frontend.text.syntax import children, walk, walk_kind

Scope = cst.CSTNode | None  # None: the module
Key = tuple[Scope, str]

_CHANGING = frozenset(
    "append extend insert pop remove clear sort reverse update setdefault popitem add discard __setitem__ "
    "__delitem__ __setattr__ __delattr__ __iadd__ __ior__ __dict__ __globals__ __init__".split()
)
_READING = frozenset(
    "get items keys values index count copy run warmup apply replace_hints __getitem__ __len__".split()
)
_ASKING = frozenset(
    "join index count format startswith endswith isdisjoint issubset issuperset "
    "view reshape permute expand repeat".split()  # of a tensor, that are given sizes or axes
)
# Functions of Python's that keep no hold of what they are given, and those that give out its items; all others
# may change it.
_KEEPING = frozenset(
    "len sum any all isinstance issubclass print range str repr id hash bool int float type hasattr".split()
)
_GIVING = frozenset("list tuple set frozenset sorted enumerate zip reversed iter next dict min max".split())
_ALIASING = ("triton", "itertools")  # their functions give out what they are given, or hold it
# What a tuner keeps for itself: how it measures, and what it found out.
_OF_TUNERS = frozenset("cache _do_bench do_bench num_warmups num_reps".split())
_WRAPPING = frozenset("wrap_triton capture_triton verified".split())

_COMPREHENSIONS = cst.ListComp | cst.SetComp | cst.DictComp | cst.GeneratorExp
_USES = (  # that only look at a value
    cst.Index
    | cst.Slice
    | cst.Comparison
    | cst.ComparisonTarget
    | cst.UnaryOperation
    | cst.If
    | cst.While
    | cst.Assert
    | cst.Expr
    | cst.FormattedStringExpression
    | cst.Annotation
    | cst.Del
    | cst.Raise
    | cst.CompIf
    | cst.ImportAlias
    | cst.NameItem
    | cst.MatchClass
    | cst.Match
)


@dataclass(slots=True, eq=False)
class Changes:
    """The uses of the names of one module. Mutable: indexed when first asked, then read only."""

    module: cst.Module
    kinds: Kinds
    parents: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    uses: dict[str, list[cst.Name]] = field(default_factory=dict)
    functions: dict[Key, list[cst.FunctionDef]] = field(default_factory=dict)
    _order: dict[cst.Name, int] = field(default_factory=dict)  # from the end of the text to its beginning
    _lost: dict[tuple[Key, bool], bool] = field(default_factory=dict)
    _decided: dict[tuple[Key, bool], bool] = field(default_factory=dict)  # whether it is changed, where known
    _keys: dict[cst.Name, Key] = field(default_factory=dict)
    _locals: dict[cst.CSTNode, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        stack: list[cst.CSTNode] = [self.module]
        defined: list[cst.FunctionDef] = []
        while stack:
            node = stack.pop()
            if type(node) is cst.Name:
                self.uses.setdefault(node.value, []).append(node)
                self._order[node] = len(self._order)
            elif type(node) is cst.FunctionDef:
                defined.append(node)
            for child in children(node):
                self.parents[child] = node
                stack.append(child)
        for function in defined:
            self.functions.setdefault(self.key(function.name), []).append(function)

    def is_changed(self, name: str, *, flat: bool) -> bool:
        """Whether the value that the module binds to `name` may be changed."""
        return self._follow([((None, name), flat)], [])

    def path_is_changed(self, path: str, *, fixed: bool) -> bool:
        """Whether the code changes `module.member`, of a module that it imports: what it holds, unless that is
        `fixed`, or what it is bound to."""
        head, *members = path.split(".")
        starts: list[cst.CSTNode] = list(self._uses_of((None, head)))
        for member in members:
            above = [self.parents[node] for node in starts]
            starts = [n for n in above if isinstance(n, cst.Attribute) and n.attr.value == member]
        if any(map(self.is_stored, starts)):
            return True
        return not fixed and self._follow([], [(node, False) for node in starts])

    def is_lost_from_sight(self, use: cst.Name, *, flat: bool) -> bool:
        """Whether code changes what a variable of a function holds other than through that variable: by a
        method or an item of it, or by a call that it is given to. These a run of the function follows."""
        if use not in self.parents:
            return False
        key = self.key(use)
        if not isinstance(key[0], cst.FunctionDef):
            return False
        known = (key, flat)
        if known not in self._lost:
            self._lost[known] = self._follow([known], [], sight=key)
        return self._lost[known] and not self._is_lost_later(use, key, flat=flat)

    def _is_lost_later(self, use: cst.Name, key: Key, *, flat: bool) -> bool:
        """Whether only what stands after a use takes a variable out of sight. Code of a loop, or of a function
        inside the one that has the variable, may run after what stands behind it."""
        above = self.parents[use]
        while above is not key[0]:
            if isinstance(above, cst.For | cst.While | cst.FunctionDef | cst.Lambda | cst.BaseComp):
                return False
            above = self.parents[above]
        so_far = [n for n in self._uses_of(key) if self._order[n] >= self._order[use]]
        return not self._follow([], [(n, flat) for n in so_far], sight=key)

    def tuner_is_changed(self, kernel: cst.FunctionDef, tuner: cst.Call) -> bool:
        """Whether code changes what variables of a function give the tuner of a kernel in it: one
        that is bound more than once, or what it holds.
        """
        names = [n for n in walk_kind(tuner, cst.Name) if not self.is_name_only(n)]
        keys = {key for n in names if isinstance((key := self.key(n))[0], cst.FunctionDef)}
        if any(self._times_bound(key) > 1 for key in keys):
            return True
        return self._follow([(key, False) for key in (*keys, self.key(kernel.name))], [])

    def _times_bound(self, key: Key) -> int:
        names = [n for n in self.uses[key[1]] if self.is_name_only(n) and self.key(n) == key]
        return sum(not isinstance(self.parents[n], cst.Attribute | cst.Arg) for n in names)

    def _follow(
        self,
        keys: list[tuple[Key, bool]],
        nodes: list[tuple[cst.CSTNode, bool]],
        sight: Key | None = None,
    ) -> bool:
        came_from: dict[tuple[Key, bool], tuple[Key, bool] | None] = dict.fromkeys(keys)
        at: tuple[Key, bool] | None = None
        same = set() if sight is None else {sight}
        while keys or nodes:
            if not nodes:
                at = keys.pop()
                known = self._decided.get(at) if sight is None else None
                if known:
                    return self._is_changed_from(at, came_from)
                nodes = [(use, at[1]) for use in self._uses_of(at[0])] if known is None else []
                continue
            node, flat = nodes.pop()
            found = self._step(node, flat)
            if found is None:
                if not is_in_sight(self, node, same):
                    return self._is_changed_from(at if sight is None else None, came_from)
                continue
            if same and isinstance(node, cst.Name) and self.key(node) in same:
                same.update(names_of_one(self, node))
            for to, is_flat in found:
                if isinstance(to, cst.CSTNode):
                    nodes.append((to, is_flat))
                elif (to, is_flat) not in came_from:
                    came_from[to, is_flat] = at
                    keys.append((to, is_flat))
        if sight is None:  # whatever was reached was followed to its end
            self._decided.update(dict.fromkeys(came_from, False))
        return False

    def _is_changed_from(
        self, at: tuple[Key, bool] | None, came_from: dict[tuple[Key, bool], tuple[Key, bool] | None]
    ) -> bool:
        """True, kept for every name whose value reaches the name `at`: without it, a chain of names would be
        followed once for each of them."""
        while at is not None and not self._decided.get(at):
            self._decided[at] = True
            at = came_from[at]
        return True

    # ---- names ---------------------------------------------------------------------------------------------

    def _uses_of(self, key: Key) -> list[cst.Name]:
        return [
            use
            for use in self.uses.get(key[1], ())
            if (not self.is_name_only(use) or isinstance(self.parents[use], cst.AugAssign))
            and self.key(use) == key
        ]

    def is_name_only(self, node: cst.Name) -> bool:
        """Whether this binds the name, or is the name of an attribute or of a keyword argument."""
        match self.parents[node]:
            case cst.Attribute(attr=attr):
                return attr is node
            case cst.Arg(keyword=keyword):
                return keyword is node
            case cst.FunctionDef() | cst.ClassDef() | cst.AsName() | cst.AssignTarget() | cst.ImportAlias():
                return True
            case cst.Param(name=name):
                return name is node
            case cst.For(target=target) | cst.CompFor(target=target):
                return target is node
            case cst.AnnAssign(target=target) | cst.AugAssign(target=target) | cst.NamedExpr(target=target):
                return target is node
            case cst.Element() | cst.StarredElement():
                top: cst.CSTNode = node
                while isinstance(self.parents[top], cst.Element | cst.StarredElement | cst.Tuple | cst.List):
                    top = self.parents[top]
                return self._is_target(top)
        return False

    def _is_target(self, node: cst.CSTNode) -> bool:
        match self.parents[node]:
            case cst.AssignTarget() | cst.AsName():
                return True
            case cst.For(target=target) | cst.CompFor(target=target) | cst.Del(target=target):
                return target is node
            case cst.AugAssign(target=target) | cst.AnnAssign(target=target):
                return target is node
        return False

    def is_stored(self, node: cst.CSTNode) -> bool:
        """Whether something is assigned to this attribute or item, also as a part of a target."""
        while isinstance(self.parents[node], cst.Element | cst.StarredElement | cst.Tuple | cst.List):
            node = self.parents[node]
        return self._is_target(node)

    def key(self, name: cst.Name) -> Key:
        """The scope that a name belongs to where it stands."""
        if name not in self._keys:
            self._keys[name] = self._key(name)
        return self._keys[name]

    def _key(self, name: cst.Name) -> Key:
        child: cst.CSTNode = name
        outside = False  # in a decorator, a default or an annotation of the next function
        in_body = True  # of the next class
        while child in self.parents:
            node = self.parents[child]
            match node:
                case cst.Param(name=own) if own is not child:
                    outside = True
                case cst.FunctionDef(body=body, params=params) | cst.Lambda(body=body, params=params):
                    if (child is body or child is params) and not outside:
                        in_body = False
                        if name.value in self._bound_in(node):
                            return node, name.value
                    outside = False
                case cst.ClassDef(body=body):
                    if child is body and in_body and name.value in self._bound_in(node):
                        return node, name.value
                    in_body = in_body and child is not body
                case cst.ListComp() | cst.SetComp() | cst.DictComp() | cst.GeneratorExp():
                    if name.value in self._bound_in(node):
                        return node, name.value
            child = node
        return None, name.value

    def _bound_in(self, scope: cst.CSTNode) -> frozenset[str]:
        if scope not in self._locals:
            self._locals[scope] = frozenset(self._names_bound(scope))
        return self._locals[scope]

    def _names_bound(self, scope: cst.CSTNode) -> set[str]:
        found: set[str] = set()
        if isinstance(scope, _COMPREHENSIONS):
            loop: cst.CompFor | None = scope.for_in
            while loop is not None:
                found.update(n.value for n in walk_kind(loop.target, cst.Name))
                loop = loop.inner_for_in
            return found
        assert isinstance(scope, cst.FunctionDef | cst.Lambda | cst.ClassDef)
        if not isinstance(scope, cst.ClassDef):
            found.update(p.name.value for p in walk_kind(scope.params, cst.Param))
        elsewhere: set[str] = set()
        inner = (cst.FunctionDef, cst.Lambda, cst.ClassDef, *_COMPREHENSIONS.__args__)
        for node in walk(scope.body, lambda n: type(n) not in inner):
            match node:
                case cst.Name():
                    if self.is_name_only(node) and not isinstance(
                        self.parents[node], cst.Attribute | cst.Arg | cst.Param | cst.ImportAlias
                    ):
                        found.add(node.value)
                case cst.FunctionDef(name=name) | cst.ClassDef(name=name):
                    found.add(name.value)
                case cst.Import(names=names) | cst.ImportFrom(names=[*names]):
                    for alias in names:
                        target = alias.asname.name if alias.asname is not None else alias.name
                        found.add(head_of(target))
                case cst.Global(names=names) | cst.Nonlocal(names=names):
                    elsewhere.update(item.name.value for item in names)
        return found - elsewhere

    # ---- uses ----------------------------------------------------------------------------------------------

    def _step(self, node: cst.CSTNode, flat: bool) -> list[tuple[cst.CSTNode | Key, bool]] | None:
        """Where a value goes from where it stands: expressions and names; None if it may be changed there."""
        parent = self.parents[node]
        if isinstance(parent, _USES):
            return []
        match parent:
            case cst.Attribute():
                return self._attribute(parent, node, flat)
            case cst.Subscript():
                of_module = isinstance(node, cst.Name) and self.key(node)[0] is None
                if self.is_stored(parent):
                    return None
                return self._items(parent, flat or (of_module and self.kinds.item_is_fixed(parent)))
            case cst.Call():
                return self._items(parent, flat)
            case cst.Arg():
                return self._argument(parent, flat)
            case cst.StarredElement() | cst.StarredDictElement() if flat:
                return []
            case cst.Element() | cst.DictElement() | cst.StarredElement() | cst.StarredDictElement():
                return [(self.parents[parent], False)]
            case cst.Assign():
                return self._targets([t.target for t in parent.targets], flat)
            case cst.AnnAssign():
                return self._targets([parent.target], flat)
            case cst.NamedExpr():
                return [(parent, flat), *(self._targets([parent.target], flat) or ())]
            case cst.AugAssign(target=target) if target is node:
                return None  # `s += [1]` changes the list that `s` is another name of
            case cst.AugAssign():
                return [] if flat else self._targets([parent.target], flat)
            case cst.For() | cst.CompFor():
                return [] if flat else self._targets([parent.target], flat)
            case cst.WithItem():
                return [] if parent.asname is None else self._targets([parent.asname.name], flat)
            case cst.IfExp():
                return [] if parent.test is node else [(parent, flat)]
            case cst.BooleanOperation() | cst.Await():
                return [(parent, flat)]
            case cst.BinaryOperation():
                return self._items(parent, flat)
            case cst.ListComp() | cst.SetComp() | cst.DictComp() | cst.GeneratorExp() | cst.Lambda():
                return [(parent, False)]
            case cst.Return() | cst.Yield() | cst.From():
                return self._returned(parent)
            case cst.Decorator():
                defined = self.parents[parent]
                assert isinstance(defined, cst.FunctionDef | cst.ClassDef)
                return [(self.key(defined.name), False)]
            case cst.Param():
                return [(self.key(parent.name), flat)]
        return None

    @staticmethod
    def _items(node: cst.CSTNode, flat: bool) -> list[tuple[cst.CSTNode | Key, bool]]:
        return [] if flat else [(node, False)]

    def _attribute(
        self, node: cst.Attribute, value: cst.CSTNode, flat: bool
    ) -> list[tuple[cst.CSTNode | Key, bool]] | None:
        name, after = node.attr.value, self.parents[node]
        if isinstance(value, cst.Name) and self.key(value) in self.functions:
            if name in _OF_TUNERS:
                return []
            if name == "best_config":  # one of the configurations: what changes it goes through `kwargs`
                found = [self.parents[use] for use in self.uses.get("kwargs", ()) if self.is_name_only(use)]
                passed = [n for n in found if isinstance(n, cst.Attribute)]
                return None if any(map(self.is_stored, passed)) else [(n, True) for n in passed]
        if name in _CHANGING or self.is_stored(node):
            return None
        if isinstance(after, cst.Call) and after.func is node:
            own = isinstance(value, cst.Name) and self.kinds.has_method(value.value, name)
            return self._items(after, flat) if own or name in _READING else None
        return self._items(node, flat)

    def _targets(
        self, targets: list[cst.BaseExpression], flat: bool
    ) -> list[tuple[cst.CSTNode | Key, bool]] | None:
        found: list[tuple[cst.CSTNode | Key, bool]] = []
        for target in targets:
            if isinstance(target, cst.Attribute | cst.Subscript):
                head: cst.CSTNode = target
                while isinstance(head, cst.Attribute | cst.Subscript):
                    head = head.value
                if not isinstance(head, cst.Name) or self.key(head)[0] is not None:
                    return None  # in an object that other names may hold
                found.append((self.key(head), False))
                continue
            for name in walk(target):
                if isinstance(name, cst.Name):
                    key = self.key(name)
                    found.append((key, flat))
                    if isinstance(key[0], cst.ClassDef):
                        found.append((self.key(key[0].name), False))
        return found

    def _returned(self, node: cst.CSTNode) -> list[tuple[cst.CSTNode | Key, bool]] | None:
        while not isinstance(node, cst.FunctionDef | cst.Lambda | cst.Module):
            node = self.parents[node]
        if not isinstance(node, cst.FunctionDef):
            return None
        key = self.key(node.name)
        return None if isinstance(key[0], cst.ClassDef) else [(key, False)]

    def _argument(self, arg: cst.Arg, flat: bool) -> list[tuple[cst.CSTNode | Key, bool]] | None:
        call = self.parents[arg]
        if isinstance(call, cst.ClassDef):  # a base
            return [(self.key(call.name), False)]
        assert isinstance(call, cst.Call)
        if arg.star and flat:
            return []
        match call.func:
            case cst.Subscript():  # a launch
                return []
            case cst.Name(value):
                key = self.key(call.func)
                if key in self.functions:
                    return self._parameters(self.functions[key], call, arg, flat)
                if key[0] is None and self.kinds.is_class(value):
                    return None if self.kinds.has_method(value, "__init__") else [(call, False)]
                if key[0] is None and not self.kinds.is_bound(value):
                    return [] if value in _KEEPING else self._items(call, flat) if value in _GIVING else None
            case cst.Call(func=cst.BaseExpression() as maker):
                return [(call, False)] if self.kinds.library(maker) == "triton" else None
            case cst.Attribute(value=held, attr=cst.Name(method)) if not self.kinds.library(call.func):
                if method in _ASKING:
                    return []
                if method == "get":
                    return [(call, flat)]
                if method in _CHANGING and isinstance(held, cst.Name):  # which then holds it
                    return [] if flat and method == "extend" else [(self.key(held), False)]
        if isinstance(call.func, cst.Name | cst.Attribute) and last_of(call.func) in _WRAPPING:
            return [(call, False)]
        library = self.kinds.library(call.func)
        if library in _ALIASING:
            return [(call, False)]
        return [] if library in LIBRARIES else None

    def _parameters(
        self, functions: list[cst.FunctionDef], call: cst.Call, arg: cst.Arg, flat: bool
    ) -> list[tuple[cst.CSTNode | Key, bool]] | None:
        """The parameter that an argument becomes."""
        found: list[tuple[cst.CSTNode | Key, bool]] = []
        place = call.args.index(arg)
        for function in functions:
            params = (*function.params.posonly_params, *function.params.params)
            if arg.keyword is not None:
                every = (*params, *function.params.kwonly_params)
                own = [p for p in every if p.name.value == arg.keyword.value]
            else:
                own = [] if any(a.star for a in call.args[: place + 1]) else list(params[place : place + 1])
            if not own:
                return None
            found.append((self.key(own[0].name), flat))
        return found
