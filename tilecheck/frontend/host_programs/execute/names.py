"""What a name of a module stands for, and what attributes of values are."""

from __future__ import annotations

import builtins
from pathlib import Path

import libcst as cst

from tilecheck.frontend.host_programs.execute.arguments import Arguments
from tilecheck.frontend.host_programs.knowledge import PathEnds
from tilecheck.frontend.host_programs.machine import Machine
from tilecheck.frontend.host_programs.values import values as V
from tilecheck.frontend.host_programs.values import views
from tilecheck.frontend.host_programs.values.graph_captures import note_read
from tilecheck.frontend.host_programs.values.kinds import resolved
from tilecheck.frontend.host_programs.values.lifetimes import give_to_caller
from tilecheck.frontend.kernels.definitions import Definition
from tilecheck.frontend.modules.bindings import Binding, Element, Import, dotted
from tilecheck.frontend.modules.project import ModuleTable, candidates
from tilecheck.overlay import is_file

_DISPLAYS = (cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.SetComp)
_MODULES = {"torch.cuda.streams.": "torch.cuda.", "torch.cuda.graphs.": "torch.cuda."}


def library(name: str) -> V.Library:
    """A name of a library under the path by which the tables of this package know it."""
    for inner, outer in _MODULES.items():
        if name.startswith(inner):
            return V.Library(outer + name.removeprefix(inner))
    return V.Library(name)


def value_of(m: Machine, name: str, node: cst.CSTNode) -> V.Value:
    """What a name stands for where it is read."""
    scope = m.scope.find(name)
    if scope is not None:
        value = resolved(m, scope.names[name])
        note_read(m, scope, name, name, value)
        return value
    return module_value(m, m.scope.table, name, node)


def module_value(m: Machine, table: ModuleTable, name: str, node: cst.CSTNode) -> V.Value:
    """What a name of a module stands for. What its statements made is there before any function runs."""
    scope = m.globals.get(table.file)
    if scope is None:
        scope = m.globals[table.file] = V.Scope(table, function="<module>")
    if name not in scope.names:
        scope.names[name] = V.Unknown(name)  # a name that is bound by means of itself is not known
        scope.names[name] = _bound(m, table, scope, name, node)
    value = resolved(m, scope.names[name])
    note_read(m, scope, name, name, value)
    return value


def _bound(m: Machine, table: ModuleTable, scope: V.Scope, name: str, node: cst.CSTNode) -> V.Value:
    binding = table.bindings.get(name)
    imported = [way for way in table.ways.get(name, ()) if isinstance(way, Import)]
    if name in table.ambiguous and imported and not isinstance(binding, Import):
        binding = imported[0]  # `except ImportError: torch = None`: without it nothing here runs
    elif name in table.ambiguous and not isinstance(binding, Import) and not _is_record(table, name, binding):
        return V.Unknown(name)
    if binding is None:
        return V.Library(f"builtins.{name}") if hasattr(builtins, name) else V.Unknown(name)
    if isinstance(binding, Import):
        return _imported(m, table, binding)
    return _made(m, table, scope, name, binding)


def _is_record(table: ModuleTable, name: str, binding: Binding | None) -> bool:
    """Whether a name stands for a class that nothing but its decorators may have changed, data classes."""
    if not isinstance(binding, cst.ClassDef) or name in table.ways:
        return False
    called = (d.decorator for d in binding.decorators)
    named = (table.full_name(dotted(c.func if isinstance(c, cst.Call) else c)) for c in called)
    return all(full == "dataclasses.dataclass" for full in named)


def _imported(m: Machine, table: ModuleTable, binding: Import) -> V.Value:
    """A library, or something of the project, which is only read if it is a kernel that is launched."""
    if not binding.level and not _is_own(m, table, binding):
        return library(binding.name)
    return V.Imported(table, binding)


def _is_own(m: Machine, table: ModuleTable, binding: Import) -> bool:
    """Whether a file of the project is the module of an import."""
    key = (table.file, binding.module)
    if key not in m.kernels.own:
        places = candidates(Import(binding.module, None, 0), Path(table.file))
        m.kernels.own[key] = binding.module != "tilecheck" and any(map(is_file, places))
    return m.kernels.own[key]


def imported(m: Machine, binding: Import) -> V.Value:
    """What an import inside a function binds."""
    return _imported(m, m.scope.table, binding)


def kernel_behind(m: Machine, value: V.Imported) -> V.Kernel | None:
    """The kernel of another module that an import names."""
    binding = value.binding
    found = value.table.project.find(Import(binding.module, None, binding.level), value.table.file)
    origin = None if found is None or binding.member is None else found.origin(binding.member)
    definition = None if origin is None else kernel(m, origin[0], origin[1])
    return None if definition is None else V.Kernel(definition)


def _made(m: Machine, table: ModuleTable, scope: V.Scope, name: str, binding: Binding) -> V.Value:
    match binding:
        case cst.FunctionDef():
            return function(m, table, binding, None)
        case cst.ClassDef():
            return V.Class(binding, table)
        case Element():
            return V.Unknown(name)
        case cst.BaseExpression() if not isinstance(binding, _DISPLAYS):
            return _evaluated(m, scope, name, binding)
        case _:
            return V.Unknown(name)  # what earlier calls put into it is not known


def _evaluated(m: Machine, scope: V.Scope, name: str, binding: cst.BaseExpression) -> V.Value:
    """A value that module code made on the default stream, before the caller's work."""
    actions, stream, captures, loops = m.actions, m.stream, m.captures, m.loops
    target, owned = m.target, set(m.owned)
    m.actions, m.captures, m.loops, m.target = [], [], [], name
    m.scopes.append(scope)
    m.reads.append({})
    try:
        value = m.evaluate(m, binding)
    finally:
        m.scopes.pop()
        m.reads.pop()
        m.actions, m.stream, m.captures, m.loops, m.target = actions, stream, captures, loops, target
    for memory in [made for made in m.owned if made not in owned]:
        give_to_caller(m, memory)
    return value


def function(
    m: Machine, table: ModuleTable, node: cst.FunctionDef, closure: V.Scope | None, owner: V.Value = None
) -> V.Value:
    """A function of the project: a kernel if it is decorated as one."""
    definition = kernel(m, table, node)
    return V.Function(node, table, closure, owner) if definition is None else V.Kernel(definition)


def kernel(m: Machine, table: ModuleTable, node: object) -> Definition | None:
    return m.kernels.in_module(table).get(node)


# ---- attributes --------------------------------------------------------------------------------------------


def attribute(m: Machine, value: V.Value, name: str, node: cst.CSTNode) -> V.Value:
    """`value.name`."""
    match value:
        case V.Library(name=full):
            return library(f"{full}.{name}")
        case V.Imported(table=table, binding=binding) if binding.member is None:
            return V.Imported(table, Import(binding.module, name, binding.level))
        case V.Imported(name=full):
            return V.Unknown(f"{full}.{name}")
        case V.Tensor():
            return _of_tensor(m, value, name, node)
        case V.Stream():
            if name in ("cuda_stream", "_as_parameter_", "ptr"):
                return value
            return V.Unknown(f"{value.name}.{name}", plain=True) if name == "device" else V.Method(value, name)
        case V.Handle() if name == "shape":
            return V.Method(value.tensor, name)
        case V.Event() | V.Graph() | V.Sequence() | V.Mapping() | V.Handle() | V.Operation():
            return V.Method(value, name)
        case V.Object():
            return _of_object(m, value, name, node)
        case V.Super(owner=owner, base=base):
            found_in = member_with_class(m, base, name)
            if found_in is None or not isinstance(found_in[1], cst.FunctionDef):
                return V.Unknown(f"super().{name}", given=False, plain=True)
            return V.Function(found_in[1], found_in[0].table, None, owner)
        case V.Class():
            found = member(value, name)
            return V.Unknown(f"{value.node.name.value}.{name}") if found is None else _of_class(m, value, found)
        case V.Unknown():
            path = f"{value.name}.{name}"
            found = m.stored.get(path, V.Unknown(path, value.given, value.plain, value.site))
            found = resolved(m, found)
            note_read(m, value.name, name, path, found)
            return found
        case V.Const(value=None):
            raise PathEnds(f"None has no attribute {name}")
        case V.Const(value=str()) | V.Method() | V.Kernel() | V.Gridded() | V.Function() | V.Context():
            return V.Method(value, name)
        case _:
            return V.Unknown(m.unique(f"?.{name}"), given=False, plain=True)


PROPERTIES = frozenset("shape device dtype".split())
_PLAIN = frozenset("is_cuda ndim requires_grad is_leaf layout itemsize nbytes names grad_fn".split())


def _of_tensor(m: Machine, tensor: V.Tensor, name: str, node: cst.CSTNode) -> V.Value:
    if name in PROPERTIES:
        return V.Method(tensor, name)
    if name in _PLAIN:
        return V.Unknown(f"{tensor.memory}.{name}", given=False, plain=True)
    if name in ("T", "mT", "H", "mH", "data", "real", "imag"):
        return tensor.mixed()
    if name == "grad":
        return m.handed_in(f"{tensor.memory}.grad", node)
    return V.Method(tensor, name)


def _of_object(m: Machine, value: V.Object, name: str, node: cst.CSTNode) -> V.Value:
    if name in value.fields:
        found = resolved(m, value.fields[name])
        note_read(m, value, name, f"{value.name}.{name}", found)
        return found
    if name == "__class__":
        return value.made_by
    found_in = member_with_class(m, value.made_by, name)
    if found_in is not None:
        owner, node_found = found_in
        if isinstance(node_found, cst.FunctionDef):
            method = V.Function(node_found, owner.table, None, value)
            if "property" in _decorators(node_found):
                return m.call_function(m, method, Arguments(node))
            return V.Function(node_found, owner.table) if "staticmethod" in _decorators(node_found) else method
        return _of_class(m, owner, node_found)
    if not m.is_set_by_methods(value.made_by.node, name) or has_unknown_base(m, value.made_by):
        return V.Unknown(f"{value.name}.{name}")  # other code gives it to the object
    raise PathEnds(f"no attribute {name}")


def _of_class(m: Machine, owner: V.Class, node: cst.CSTNode) -> V.Value:
    if isinstance(node, cst.FunctionDef):
        return V.Function(node, owner.table)
    m.scopes.append(V.Scope(owner.table))
    try:
        return m.evaluate(m, node)
    finally:
        m.scopes.pop()


def _decorators(node: cst.FunctionDef) -> set[str]:
    return {d.decorator.value for d in node.decorators if isinstance(d.decorator, cst.Name)}


def member(of: V.Class, name: str) -> cst.CSTNode | None:
    """What the body of a class binds to a name."""
    for line in of.node.body.body:
        match line:
            case cst.FunctionDef(name=cst.Name(value=found)) if found == name:
                return line
            case cst.SimpleStatementLine(body=statements):
                for statement in statements:
                    match statement:
                        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=found))]) if (
                            found == name
                        ):
                            return statement.value
    return None


def bases(m: Machine, of: V.Class) -> list[V.Value]:
    m.scopes.append(V.Scope(of.table))
    try:
        return [m.evaluate(m, base.value) for base in of.node.bases]
    finally:
        m.scopes.pop()


def member_with_class(m: Machine, of: V.Class, name: str, depth: int = 0) -> tuple[V.Class, cst.CSTNode] | None:
    """A member of a class or of its bases in the project, and the class that has it."""
    own = member(of, name)
    if own is not None:
        return of, own
    for base in bases(m, of) if depth < _MOST_BASES else ():
        found = member_with_class(m, base, name, depth + 1) if isinstance(base, V.Class) else None
        if found is not None:
            return found
    return None


_MOST_BASES = 6


def has_unknown_base(m: Machine, of: V.Class, depth: int = 0) -> bool:
    """Whether a class inherits from code that is not in view."""
    for base in bases(m, of):
        known = isinstance(base, V.Library) and base.name in ("builtins.object", "abc.ABC")
        inherits = (
            isinstance(base, V.Class) and depth < _MOST_BASES and not has_unknown_base(m, base, depth + 1)
        )
        if not known and not inherits:
            return True
    return False


def shape_items(m: Machine, value: V.Value, count: int) -> V.Sequence | None:
    """The numbers of a shape that has so many; None if the value is no shape."""
    match value:
        case V.Method(owner=V.Tensor() as tensor, name="shape"):
            if not tensor.axes and tensor.rest == 0:
                m.learn_rank(tensor.memory, count)
            return V.Sequence([shape_number(m, tensor, axis) for axis in range(count)], is_tuple=True)
        case V.Unknown(name=name, given=given) if name.endswith(".shape"):
            m.learn_rank(name.removesuffix(".shape"), count)
            return V.Sequence([V.Unknown(f"{name}[{axis}]", given, plain=True) for axis in range(count)])
        case _:
            return None


def shape_number(m: Machine, tensor: V.Tensor, axis: int) -> V.Value:
    """`t.shape[axis]`."""
    found = views.shape(m, tensor, axis)
    return V.Unknown(f"{tensor.memory}.shape[{axis}]", plain=True, given=False) if found is None else found
