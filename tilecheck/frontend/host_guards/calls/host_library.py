"""Calls of `tilecheck.host`, whose work the library checks as it is enqueued.

What the library cannot check is refused here: memory that its owner goes on touching, and drivers, kernels and
policies of the program's own.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tilecheck.frontend.host_guards import api
from tilecheck.frontend.host_guards.calls.arguments import Given, Node, of_values
from tilecheck.frontend.host_guards.calls.ownership_transfer import is_given_away
from tilecheck.frontend.host_guards.kinds import (
    NONE,
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
    Module,
    Pending,
    Sort,
    checked,
    is_raw,
)
from tilecheck.frontend.host_guards.read import names
from tilecheck.frontend.host_guards.run import Run
from tilecheck.frontend.kernels.shipped import PREFIX as SHIPPED
from tilecheck.frontend.kernels.shipped import shipped_kernel

Invoke = Callable[[Run, Atom, Given], Kind]
_LAUNCHES = {"launch": 0, "enqueue": 1, "reference.ReferenceKernel": 0}  # where the kernel stands
_OWN: dict[str, tuple[tuple[str, int, str], ...]] = {
    "Runtime": (("driver", 0, "Driver"), ("policy", -1, "Policy")),
    "reference.ReferenceKernel": (("driver", 1, "Driver"),),
}


def is_of_library(name: str) -> bool:
    return name.startswith(api.PREFIX)


def function(r: Run, name: str, given: Given, invoke: Invoke) -> Kind:
    """A call of a function or class of the library."""
    short = name.removeprefix(api.PREFIX)
    known = api.FUNCTIONS.get(short)
    if known is None:
        why = api.UNCHECKED.get(short, "what this does is not known")
        return r.refuse(given.node, f"tilecheck.host does not check this: {why}")
    r.frame.facts.uses_library = True
    if short in _LAUNCHES:
        _check_kernel(r, given, given.get(_LAUNCHES[short], "kernel"))
    for argument, at, of in _OWN.get(short, ()):
        if not given.get(at, argument) <= checked(of) | NONE:
            r.refuse(given.node, f"a {argument} of the program's own is not checked")
    _check(r, given, known, is_waited_for=short == "copy_to_device" and _is_waited_for(r, given.node))
    results = _called(r, given, known, invoke, NOTHING)
    return _result(r, given, known.gives, NOTHING, results)


def method(r: Run, owner: Checked | Pending, name: str, given: Given, invoke: Invoke) -> Kind:
    """A call of a method of the library's objects."""
    of = "Operation" if isinstance(owner, Pending) else owner.name
    known = api.METHODS[of].get(name)
    if known is None:
        return r.refuse(given.node, api.UNCHECKED.get(name, "tilecheck.host does not check this use"))
    r.frame.facts.uses_library = True
    _check(r, given, known, is_waited_for=False)
    if isinstance(owner, Pending) and known.gives == "result" and not _is_made_here(r, owner):
        r.frame.facts.early.append((r.table.site(given.node), r.within is not None))
    result = r.p.result(owner) if isinstance(owner, Pending) else NOTHING
    if (of, name) == ("Graph", "launch"):
        r.frame.facts.launches.append(given.node)
    elif known.gives == "Graph":
        r.frame.facts.captured.append(given.node)
    elif known.gives == "itself":
        return frozenset({owner})
    return _result(r, given, known.gives, result, _called(r, given, known, invoke, result))


def _is_made_here(r: Run, operation: Pending) -> bool:
    """Whether an operation was made by this run of the function, and inside the capture that goes on."""
    if operation.frame is not r.frame:
        return False
    above: cst.CSTNode | None = operation.site
    while above is not None and above is not r.within:
        above = r.frame.names.parents.get(above)
    return above is r.within


# ---- what is given -----------------------------------------------------------------------------------------


def _check(r: Run, given: Given, known: api.Call, *, is_waited_for: bool) -> None:
    """Refuse arguments that the library may use, and cannot check."""
    taken = {name for name in given.keywords if name in known.memory} | {k for k in known.memory if k != "**"}
    for at, kind, node in given.every():
        is_named = isinstance(at, str) and at not in ("*", "**")
        by_options = "**" in known.memory and is_named and at not in _PLAIN_OPTIONS
        is_starred = at in ("*", "**") and bool(known.memory)
        is_memory = at in taken or by_options or is_starred
        if at not in known.code:
            _check_one(
                r,
                given,
                kind,
                node,
                is_memory=is_memory,
                takes_arrays=known.takes_arrays,
                is_waited_for=is_waited_for,
            )


_PLAIN_OPTIONS = frozenset("kernel grid stream dependent order runtime args".split())
_PROTOCOLS = frozenset(
    "data_ptr untyped_storage __cuda_array_interface__ __array_interface__ __dlpack__ __dlpack_device__ "
    "__getattr__".split()
)


def _check_one(
    r: Run, given: Given, kind: Kind, node: Node, *, is_memory: bool, takes_arrays: bool, is_waited_for: bool
) -> None:
    at = node or given.node
    for atom in r.p.inside(kind):
        match atom:
            case Sort.PLAIN | Sort.NONE | Checked() | Pending() | Box() | Kernel() | Class():
                pass
            case External(name=name) if not is_memory or _is_constant(name):
                pass
            case Sort.ARRAY if is_waited_for:
                pass  # the host goes on when the copy has ended
            case _ if is_raw(atom):
                takes = is_memory and (atom is Sort.TENSOR or takes_arrays)
                if not takes or node is None or not is_given_away(r, node, given.node):
                    r.refuse(at, "tilecheck.host does not see what its owner goes on doing with this memory")
                    return
            case Sort.UNKNOWN if not is_memory:
                pass  # the library takes nothing but its own objects here
            case Sort.UNKNOWN | External():
                r.refuse(at, "it is not known which arrays this holds, and who else has them")
                return
            case Made(of=of) if is_memory and not _is_taken_for_another(r, of):
                pass  # the library takes it for no array, and raises
            case _:
                r.refuse(at, "tilecheck.host does not check what this object does")
                return


def _is_constant(name: str) -> bool:
    """Whether a name is that of a number of the library's own kernels."""
    return name.startswith(SHIPPED) and name.rpartition(".")[2].isupper()


def _is_taken_for_another(r: Run, of: Class) -> bool:
    """Whether the library may take an object of the program for an array, a stream or a kernel."""
    listed, is_whole = names.lineage(r.p, of)
    own = {name for one in listed for name in names.members(r.p, one)}
    held = any(r.p.field(one, name) for one in listed for name in _PROTOCOLS)
    return not is_whole or held or bool(own & _PROTOCOLS) or any(map(r.p.is_replaced, _PROTOCOLS))


def _check_kernel(r: Run, given: Given, kind: Kind) -> None:
    """Refuse to launch what is no kernel: the library refuses what has no verdict, as it runs, but what has one
    of its own making launches itself."""
    for atom in kind:
        match atom:
            case Kernel(has_grid=False) as kernel:
                r.frame.facts.kernels += [(kernel, r.table.site(given.node))] if kernel.file else []
            case External(name=name):
                shipped = shipped_kernel(name)
                if shipped is not None:
                    r.frame.facts.kernels.append((Kernel(*shipped), r.table.site(given.node)))
            case Checked(name="Kernel") | Sort.UNKNOWN:
                pass
            case _:
                r.refuse(given.node, "a kernel of the program's own launches itself")


def _is_waited_for(r: Run, node: cst.CSTNode) -> bool:
    """Whether the statement waits for an operation at once: `operation(...).sync()`."""
    parents = r.frame.names.parents
    above = parents.get(node)
    match above:
        case cst.Attribute(value=value, attr=cst.Name(value="sync" | "sync_on")) if value is node:
            called = parents.get(above)
            return isinstance(called, cst.Call) and called.func is above
        case _:
            return False


# ---- what is given back ------------------------------------------------------------------------------------


def _called(r: Run, given: Given, known: api.Call, invoke: Invoke, result: Kind) -> Kind:
    """What functions among the arguments give, which the library calls as it enqueues the work."""
    found: Kind = NOTHING
    for at, kind, node in given.every():
        if at not in known.code:
            continue
        for atom in kind:
            match atom:
                case Code():
                    found |= invoke(r, atom, of_values(r, node or given.node, result or PLAIN))
                    frame = r.p.frame(atom.node, atom.table, atom.outer)
                    r.frame.facts.enqueued[frame] = None
                case Sort.PLAIN | Sort.NONE | Box():
                    pass
                case Sort.UNKNOWN if "grid" in known.code:
                    pass  # if it is a function, it is the caller's
                case _:
                    found |= r.refuse(node or given.node, "what this function does is not in view")
    return found


def _result(r: Run, given: Given, gives: str, result: Kind, called: Kind) -> Kind:
    """The kind of what a call gives."""
    p, node = r.p, given.node
    match gives:
        case "plain":
            return PLAIN
        case "none":
            return NONE
        case "result":
            return result
        case "operation of it":
            return r.pending(node, given.get(0, "result"))
        case "operation of all":
            args = given.get(2, "args")
            raw = any(map(is_raw, p.inside(args)))
            return r.pending(node, r.boxed(node, _with_handles(p.inside(args))) if raw else args)
        case "operation of results":
            return r.pending(node, r.boxed(node, _results(r, given.kind())))
        case "operation of items" | "operations of items":
            inside = NOTHING.union(
                *(p.items(a) for a in _results(r, given.get(0, "operation")) if isinstance(a, Box))
            )
            found = r.pending(node, inside)
            return found if gives == "operation of items" else r.boxed(node, found, "each")
        case "operation of code":
            return r.pending(node, called)
        case "operation of operations of code":
            return r.pending(node, _results(r, called))
        case _ if gives.startswith("operation of "):
            return r.pending(node, checked(gives.removeprefix("operation of ")))
        case _ if gives.startswith("boxed "):
            return r.boxed(node, checked(gives.removeprefix("boxed ")))
        case _:
            return checked(gives)


def _results(r: Run, kind: Kind) -> Kind:
    """What operations give."""
    found: Kind = NOTHING
    for atom in r.p.inside(kind):
        if isinstance(atom, Pending):
            found |= r.p.result(atom)
        elif atom is Sort.UNKNOWN:
            found |= UNKNOWN
    return found


def _with_handles(inside: Kind) -> Kind:
    """The arguments of a launch as they come back: plain arrays have got handles."""
    kept = frozenset(a for a in inside if not is_raw(a) and not isinstance(a, Box | Method | Module))
    return kept | (checked("Array") if any(map(is_raw, inside)) else NOTHING)
