"""What attributes of values are."""

from __future__ import annotations

import libcst as cst

from tilecheck.frontend.host_guards import api
from tilecheck.frontend.host_guards.kinds import (
    ARRAY,
    NOTHING,
    PLAIN,
    TENSOR,
    UNKNOWN,
    Atom,
    Checked,
    Class,
    Code,
    External,
    Kernel,
    Kind,
    Made,
    Method,
    Module,
    Sort,
    checked,
)
from tilecheck.frontend.host_guards.read import names
from tilecheck.frontend.host_guards.run import Run
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.frontend.text.syntax import walk


def attribute(r: Run, node: cst.CSTNode, owner: Kind, name: str) -> Kind:
    """`owner.name`."""
    found: Kind = NOTHING
    for atom in owner:
        found |= _of_atom(r, node, atom, name)
    if any(isinstance(atom, Made | Module) for atom in owner):
        r.note_read(node, name, found, of=owner)
    for atom in owner:
        if isinstance(atom, Module) and (name in atom.table.lost or name in atom.table.rebound):
            r.note_read(node, (r.p.frame(atom.table.parsed.module, atom.table), name), found)
    return found


_TENSOR_PLAIN = frozenset(
    "shape dtype device ndim is_cuda requires_grad is_leaf layout itemsize nbytes grad_fn is_contiguous".split()
)
_TENSOR_VIEWS = frozenset("T mT H mH data grad real imag".split())
_ARRAY_PLAIN = frozenset("shape dtype ndim size nbytes itemsize strides flags".split())
_ARRAY_VIEWS = frozenset("T real imag flat base".split())


def _of_atom(r: Run, node: cst.CSTNode, atom: Atom, name: str) -> Kind:
    match atom:
        case Sort.NONE:
            return NOTHING  # it raises
        case Sort.PLAIN:
            return PLAIN
        case Sort.UNKNOWN:
            return UNKNOWN
        case Sort.ARRAY:
            views = ARRAY if name in _ARRAY_VIEWS else frozenset({Method(atom, name)})
            return PLAIN if name in _ARRAY_PLAIN else views
        case Sort.TENSOR:
            views = TENSOR if name in _TENSOR_VIEWS else frozenset({Method(atom, name)})
            return PLAIN if name in _TENSOR_PLAIN and name != "is_contiguous" else views
        case Sort.CURRENT:
            return frozenset({atom}) if name == "cuda_stream" else frozenset({Method(atom, name)})
        case Checked(name=of):
            return _of_library(r, node, atom, of, name)
        case External(name=full):
            return frozenset({External(f"{full}.{name}")})
        case Module(table=table):
            return names.of_module(r.p, table, name)
        case Made(of=of):
            return _of_object(r, node, of, name)
        case Class():
            return _of_class(r, node, atom, name)
        case Code():
            return PLAIN if name in ("__name__", "__doc__", "__qualname__", "__module__") else UNKNOWN
        case _:
            return frozenset({Method(atom, name)})


def _of_library(r: Run, node: cst.CSTNode, atom: Checked, of: str, name: str) -> Kind:
    gives = api.ATTRIBUTES.get(of, {}).get(name)
    if gives is not None:
        return PLAIN if gives == "plain" else checked(gives)
    if name in api.METHODS.get(of, {}):
        return frozenset({Method(atom, name)})
    return r.refuse(node, api.UNCHECKED.get(name, "tilecheck.host does not check this use"))


def _of_object(r: Run, node: cst.CSTNode, of: Class, name: str) -> Kind:
    listed, is_whole = names.lineage(r.p, of)
    found: Kind = NOTHING.union(*(r.p.field(one, name) for one in listed))
    has_member = False
    for one in listed:
        member = names.members(r.p, one).get(name)
        if member is not None:
            has_member = True
            if isinstance(member, cst.FunctionDef) and names.is_abstract(r.p, of):
                return r.refuse(node, f"no class in view is a `{of.node.name.value}`")
            found |= _member(r, node, one, member, Made(of))
            break
    if any(hook in names.members(r.p, one) for one in listed for hook in _HOOKS):
        return r.refuse(node, "what the attributes of this object are is not followed")
    if r.p.is_replaced(name):
        found |= UNKNOWN
    if not found and not has_member:
        r.refuse(node, "where this attribute comes from is not in view")
    return found if is_whole else found | UNKNOWN


_HOOKS = ("__getattr__", "__getattribute__", "__setattr__")
_PLAIN_DECORATORS = ("property", "staticmethod", "classmethod", "abstractmethod", "override", "final")
_CACHING = ("cached_property", "lru_cache", "cache")
_KNOWN_DECORATORS = (
    "torch.no_grad",
    "torch.inference_mode",
    "contextlib.contextmanager",
    "functools.wraps",
    *(f"functools.{name}" for name in _CACHING),
    *(f"builtins.{name}" for name in _PLAIN_DECORATORS),
    "abc.abstractmethod",
    "typing.override",
    "typing.final",
    "typing.overload",
)


def decorators(r: Run, table: ModuleTable, node: cst.FunctionDef) -> list[str]:
    """The decorators of a function by their full names; empty where one is not known."""
    found = []
    for decorator in node.decorators:
        named = decorator.decorator.func if isinstance(decorator.decorator, cst.Call) else decorator.decorator
        kind = names.path(r.p, table, dotted(named)) if dotted(named) else UNKNOWN
        full = next((a.name for a in kind if isinstance(a, External)), "") if len(kind) == 1 else ""
        found.append(full if full in _KNOWN_DECORATORS else "")
    return found


def _member(r: Run, node: cst.CSTNode, of: Class, member: cst.CSTNode, owner: Made | Class) -> Kind:
    """A member of a class, as an object of it or the class itself has it."""
    match member:
        case cst.FunctionDef():
            if member in r.p.kernels.in_module(of.table):
                return frozenset({Kernel(member.name.value, of.table.file)})
            known = decorators(r, of.table, member)
            if "" in known:
                return r.refuse(node, "what its decorators make of this method is not known")
            if "builtins.staticmethod" in known:
                return frozenset({Code(member, of.table)})
            if "builtins.classmethod" in known:
                return frozenset({Code(member, of.table, None, owner.of if isinstance(owner, Made) else owner)})
            bound = Code(member, of.table, None, owner if isinstance(owner, Made) else None)
            if {"builtins.property", "functools.cached_property"} & set(known) and isinstance(owner, Made):
                return r.get(r, node, bound)
            return frozenset({bound})
        case cst.AnnAssign(value=None):
            return NOTHING  # what its objects get lies in the store
        case cst.AnnAssign(value=cst.BaseExpression() as value):
            return _of_body(r, node, of, value)
        case cst.BaseExpression():
            return _of_body(r, node, of, member)
        case _:
            return UNKNOWN


def _of_body(r: Run, node: cst.CSTNode, of: Class, value: cst.BaseExpression) -> Kind:
    """What the body of a class binds to an expression, which may be a descriptor."""
    own = names.members(r.p, of)
    if any(isinstance(part, cst.Name) and part.value in own for part in walk(value)):
        return r.refuse(node, "which member of its class this is is not followed")
    found = r.p.evaluate(r.p.frame(of.table.parsed.module, of.table), value)
    made = [one for atom in found if isinstance(atom, Made) for one in names.lineage(r.p, atom.of)[0]]
    if any({"__get__", "__set__", "__delete__"} & names.members(r.p, one).keys() for one in made):
        return r.refuse(node, "what reading this attribute does is not followed")
    return found


def _of_class(r: Run, node: cst.CSTNode, of: Class, name: str) -> Kind:
    if name in ("__name__", "__doc__", "__qualname__", "__module__"):
        return PLAIN
    found = names.member(r.p, of, name)
    if found is None or r.p.is_replaced(name) or not names.lineage(r.p, of)[1]:
        return UNKNOWN
    return _member(r, node, found[0], found[1], of)
