"""Where the value of a kernel goes in the code of one file.

No order of statements counts, nor which branch is taken: a name leads to all that is ever bound to it. What is
not known of a call is whether it launches what it is given, so the place is a use of the kernel.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from tilecheck.dataclass import dataclass
from tilecheck.identifiers import words_in
from tilecheck.model import Span
from tilecheck.patches.places import imported, last_name, text_of
from tilecheck.uses import calls
from tilecheck.uses.scopes import FUNCTIONS, Function, Scope, names_of
from tilecheck.uses.values import (
    KERNELS,
    NOTHING,
    Kind,
    Lead,
    Leads,
    Named,
    Use,
    given,
    held,
    items,
    of_kind,
    shown,
)

if TYPE_CHECKING:
    from tilecheck.text import Source
    from tilecheck.uses.index import Index

_COMPILERS = frozenset({"jit", "kernel"})
_LAUNCHING = "run"  # the method of a kernel that launches it
_GIVING = frozenset("get pop popitem setdefault values items copy popleft".split())  # methods of containers
_COMPILING = "warmup"  # the one that gives what can be launched


@dataclass(slots=True, eq=False)
class Flow:
    """One file. Mutable: filled pass by pass, until nothing is added; what names of the module itself lead to
    is in the index, for other files ask for them."""

    index: Index
    file: str
    source: Source
    module: Scope
    uses: dict[Use, None] = field(default_factory=dict)
    changed: bool = False
    _words: tuple[frozenset[str], re.Pattern[str]] = (frozenset(), re.compile("(?!)"))
    _scopes: dict[ast.AST, Scope] = field(default_factory=dict)

    def run(self) -> None:
        """Follow all values until nothing is added."""
        self.changed = True
        while self.changed:
            self.changed = False
            words = self.index.words(self.file)
            if words != self._words[0]:
                self._words = words, re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b")
            self._block(self.module.node.body, self.module)  # type: ignore[attr-defined]

    # ---- what is known --------------------------------------------------------------------------------------

    def bind(self, scope: Scope, name: str, leads: Leads) -> None:
        home = scope.home(name)
        if home is self.module:
            self.changed |= self.index.add(self.file, name, leads)
        elif not leads <= home.leads.get(name, NOTHING):
            home.leads[name] = home.leads.get(name, NOTHING) | leads
            self.changed = True
        if scope.is_class and home is scope and leads:
            self.set_attribute(name, leads, scope)

    def _name(self, scope: Scope, name: str) -> Leads:
        home = scope.home(name)
        if home is self.module:
            return self.index.named(self.file, name)
        return home.leads.get(name, NOTHING)

    def set_attribute(self, name: str, leads: Leads, scope: Scope) -> None:
        leads = of_kind(leads, *KERNELS, Kind.HELD, Kind.GIVEN)
        self.changed |= self.index.add_attribute(name, leads)
        around = scope.around
        if around is not None and leads:
            made = frozenset(Lead(lead.to, Kind.OBJECT) for lead in leads)
            home = self._scopes[around].parent or self.module
            self.bind(home, around.name, made)

    @property
    def classes(self) -> Iterator[Scope]:
        return (scope for scope in list(self._scopes.values()) if scope.is_class)

    def scopes_of(self, node: ast.AST) -> list[Scope]:
        return [scope for scope in list(self._scopes.values()) if scope.node is node]

    def use(self, node: ast.AST, leads: Leads, why: str) -> None:
        start = self.source.utf8_offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        end = self.source.utf8_offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        for lead in leads:
            self.uses[Use(lead.to, Span(start, end), why)] = None

    def scope(self, node: ast.AST, parent: Scope) -> Scope:
        if node not in self._scopes:
            self._scopes[node] = Scope(node, parent, names_of(node))
        return self._scopes[node]

    # ---- statements -----------------------------------------------------------------------------------------

    def _block(self, body: list[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, scope)
            case ast.ClassDef():
                inner = scope.classes[node.name] = self.scope(node, scope)
                for base in node.bases:
                    self.bind(scope, node.name, of_kind(self.value(base, scope), Kind.OBJECT))
                self._block(node.body, inner)
            case ast.Import() | ast.ImportFrom():
                for name, place in imported(node):
                    leads = self.index.at(self.file, place)
                    if name == "*":
                        continue  # of the module: the index has them
                    self.bind(scope, name, leads)
            case ast.Assign(targets=targets, value=value):
                leads = self.value(value, scope)
                for target in targets:
                    self._assign(target, value, leads, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value, self.value(value, scope), scope)
            case ast.AugAssign(target=target, value=value):
                self._assign(target, value, held(self.value(value, scope)), scope)
            case ast.For(target=target, iter=source) | ast.AsyncFor(target=target, iter=source):
                self._each(target, source, scope)
                self._block([*node.body, *node.orelse], scope)
            case ast.Return(value=ast.expr() as value):
                self._return(scope, self.value(value, scope))
            case _:
                for child in ast.iter_child_nodes(node):
                    self._part(child, scope)

    def _part(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.stmt():
                self._statement(node, scope)
            case ast.expr():
                self.value(node, scope)
            case ast.withitem(context_expr=value, optional_vars=target):
                leads = self.value(value, scope)
                if target is not None:
                    self._assign(target, value, leads, scope)
            case _:
                for child in ast.iter_child_nodes(node):
                    self._part(child, scope)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        known = scope.functions.setdefault(node.name, [])
        if node not in known:
            known.append(node)
            self.changed = True
        compiled = any(
            last_name(d.func if isinstance(d, ast.Call) else d) in _COMPILERS for d in node.decorator_list
        )
        own = self._name(scope, node.name)
        if compiled:
            own |= {Lead(Named(self.file, node.name), Kind.KERNEL)} & self.index.kernels
            self.bind(scope, node.name, own)
        for decorator in node.decorator_list:
            calls.decorate(self, decorator, held(own), scope)
        if compiled:
            return  # what runs on the device launches nothing
        inner = self.scope(node, scope)
        if (scope.parent is None or scope.is_class) and not self._concerns(node, inner):
            return
        self._function(node, scope)
        if inner.returned:
            self.bind(scope, node.name, given(inner.returned))

    def _concerns(self, node: ast.stmt, scope: Scope) -> bool:
        """Whether a function may have to do with kernels: not if its text has none of the words that lead to
        them, and its parameters are given nothing."""
        if scope.leads or self.index.given(self.file, scope.path) or "" in self.index.names(self.file):
            return True
        start, end = (self.source.line_starts[node.lineno - 1], node.end_lineno or node.lineno)
        stop = self.source.line_starts[end] if end < self.source.line_count else len(self.source.data)
        return self._words[1].search(words_in(self.source.data[start:stop])) is not None

    def _function(self, node: Function, scope: Scope) -> Scope:
        inner = self.scope(node, scope)
        a = node.args
        plain = [*a.posonlyargs, *a.args]
        for one, default in zip(plain[len(plain) - len(a.defaults) :], a.defaults, strict=True):
            self.bind(inner, one.arg, self.value(default, scope))
        for one, value in zip(a.kwonlyargs, a.kw_defaults, strict=True):
            if value is not None:
                self.bind(inner, one.arg, self.value(value, scope))
        for name, leads in self.index.given(self.file, inner.path).items():
            self.bind(inner, name, leads)
        if isinstance(node, ast.Lambda):
            self._return(inner, self.value(node.body, inner))
        else:
            self._block(node.body, inner)
        return inner

    def _return(self, scope: Scope, leads: Leads) -> None:
        while not isinstance(scope.node, FUNCTIONS) and scope.parent is not None:
            scope = scope.parent
        leads = of_kind(leads, *KERNELS, Kind.HELD, Kind.GIVEN)
        if not leads <= scope.returned:
            scope.returned |= leads
            self.changed = True

    def _each(self, target: ast.expr, source: ast.expr, scope: Scope) -> None:
        """Bind a target to the items of a source, one by one."""
        leads = self.value(source, scope)
        if isinstance(source, (ast.Tuple, ast.List, ast.Set)):
            for item in source.elts:
                self._assign(target, item, self.value(item, scope), scope)
        else:
            self._assign(target, source, held(leads), scope)

    def _assign(self, target: ast.expr, value: ast.expr, leads: Leads, scope: Scope) -> None:
        match target:
            case ast.Name(id=name):
                self.bind(scope, name, leads)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
                starred = any(isinstance(one, ast.Starred) for one in (*targets, *parts))
                for k, one in enumerate(targets):
                    if len(parts) == len(targets) and not starred:
                        self._assign(one, parts[k], self.value(parts[k], scope), scope)
                    else:
                        self._assign(one, value, held(leads), scope)
            case ast.Starred(value=inner):
                self._assign(inner, value, held(leads), scope)
            case ast.Attribute(attr=name):
                if leads:
                    self.set_attribute(name, leads, scope)
            case ast.Subscript(value=container):
                self.value(target, scope)
                self.hold(container, leads, scope)

    def hold(self, container: ast.expr, leads: Leads, scope: Scope) -> None:
        """Something is put into what an expression gives."""
        inside = held(leads)
        while inside:
            match container:
                case ast.Name(id=name):
                    self.bind(scope, name, inside)
                    return
                case ast.Attribute(attr=name):
                    self.set_attribute(name, inside, scope)
                    return
                case ast.Subscript(value=container) | ast.Call(func=container):
                    continue
                case _:
                    return

    # ---- expressions ----------------------------------------------------------------------------------------

    def value(self, node: ast.expr, scope: Scope) -> Leads:
        """What an expression may lead to."""
        match node:
            case ast.Name(id=name):
                return self._name(scope, name)
            case ast.Constant():
                return NOTHING
            case ast.Attribute(value=inner, attr=name):
                return self.attribute(self.value(inner, scope), name)
            case ast.Subscript(value=inner, slice=key):
                self.value(key, scope)
                return self._item(inner, key, scope)
            case ast.Call():
                return calls.call(self, node, scope)
            case ast.Lambda():
                return given(self._function(node, scope).returned)
            case ast.NamedExpr(target=target, value=inner):
                leads = self.value(inner, scope)
                self._assign(target, inner, leads, scope)
                return leads
            case ast.IfExp(test=test, body=first, orelse=second):
                self.value(test, scope)
                return self.value(first, scope) | self.value(second, scope)
            case ast.BoolOp(values=values):
                return NOTHING.union(*(self.value(one, scope) for one in values))
            case ast.Compare(left=left, comparators=others):
                for one in (left, *others):
                    self.value(one, scope)
                return NOTHING
            case ast.Await(value=inner) | ast.Starred(value=inner):
                return self.value(inner, scope)
            case ast.Yield(value=inner) | ast.YieldFrom(value=inner):
                if inner is not None:
                    self._return(scope, held(self.value(inner, scope)))
                return NOTHING
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node, scope)
            case _:
                parts = (c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
                return shown(NOTHING.union(*(self.value(one, scope) for one in parts)))

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope
    ) -> Leads:
        for loop in node.generators:
            self._each(loop.target, loop.iter, scope)
            for test in loop.ifs:
                self.value(test, scope)
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return shown(NOTHING.union(*(self.value(one, scope) for one in made)))

    def attribute(self, leads: Leads, name: str) -> Leads:
        inside = held(of_kind(leads, Kind.HELD, Kind.SHOWN))
        found = set(given(inside) if name in _GIVING else inside)
        if name == _LAUNCHING:
            found.update(Lead(lead.to, Kind.GRIDDED) for lead in of_kind(leads, Kind.KERNEL))
        elif name == "__getitem__":
            found.update(of_kind(leads, Kind.KERNEL))
        elif name == _COMPILING:
            found.update(given(of_kind(leads, Kind.KERNEL)))
        for lead in of_kind(leads, Kind.MODULE):
            found |= (
                self.index.all_of(lead.to.file) if name == "__dict__" else self.index.member(lead.to.file, name)
            )
        return frozenset(found) | self.index.attribute(self.file, name)

    def _item(self, inner: ast.expr, key: ast.expr, scope: Scope) -> Leads:
        if isinstance(inner, ast.Attribute) and inner.attr == "modules" and text_of(key):
            return self.index.module(self.file, text_of(key))
        leads = self.value(inner, scope)
        found = items(leads)
        if isinstance(inner, ast.Subscript):  # an item, and a grid
            found |= frozenset(Lead(lead.to, Kind.GRIDDED) for lead in of_kind(leads, Kind.HELD))
        return found
