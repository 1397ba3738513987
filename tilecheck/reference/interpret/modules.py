"""Modules of user code: what each top-level name is bound to, found without running anything.

Nothing is imported. A name's statement is found in the module's text and its value is folded when it is
first asked for; modules beside the kernel's are read the same way. A few modules outside (`cuda.tile`,
`math`, ...) are known by name; every other is opaque.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilecheck.overlay import is_file
from tilecheck.reference.interpret.scopes import stored_names
from tilecheck.reference.interpret.source import KEPT, SourceFile, read_source
from tilecheck.reference.machine import Reject
from tilecheck.reference.values.values import Closure, Frame, Namespace, Opaque, UserClass

KNOWN_MODULES = frozenset(
    {
        "builtins", "collections", "contextlib", "cuda", "dataclasses", "enum", "functools", "math", "numpy",
        "operator", "os", "tilecheck", "torch", "triton", "typing", "typing_extensions",
    }
)  # fmt: skip
_SEARCH_DEPTH = 8
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Binding:
    """One statement that binds a top-level name. `tests` are the `if` conditions around it."""

    node: ast.stmt
    tests: tuple[tuple[ast.expr, bool], ...] = ()
    fallback: bool = False  # in an `except` or `else` of a `try`


@dataclass(slots=True, eq=False)
class Module:
    """One user module. Mutable: `values` fills as names are asked for."""

    source: SourceFile
    bindings: Mapping[str, Sequence[Binding]]
    stars: Sequence[ast.ImportFrom]
    values: dict[str, Any] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)

    @property
    def path(self) -> str:
        return self.source.path

    def frame(self) -> Frame:
        """A frame in which the module's own expressions are folded."""
        return Frame(self, None, frozenset())


def known_namespace(name: str) -> Namespace | None:
    """A module that is known by name. Submodules of `cuda.tile` re-export its names."""
    if name == "cuda.tile" or name.startswith("cuda.tile."):
        return Namespace("cuda.tile")
    root = name.partition(".")[0]
    whole = root in ("cuda", "triton")
    return Namespace(name if whole else root) if root in KNOWN_MODULES else None


class Modules:
    """All modules of one launch, and how names are looked up in them.

    `evaluate` folds an expression as Python does on the host.
    """

    def __init__(
        self, evaluate: Callable[[ast.expr, Frame], Any], attribute: Callable[[Any, str], Any]
    ) -> None:
        self._evaluate = evaluate
        self._attribute = attribute
        self._modules: dict[str, Module] = {}

    def load(self, path: str) -> Module:
        """The module in the file at `path`."""
        if path not in self._modules:
            source = read_source(path)
            self._modules[path] = Module(source, *_bound(source))
        return self._modules[path]

    def lookup(self, module: Module, name: str, default: Any = _MISSING) -> Any:
        """The value of a top-level name."""
        if name in module.values:
            return module.values[name]
        found = self._fold(module, name)
        if found is _MISSING:
            if default is _MISSING:
                raise Reject(f"name `{name}`")
            return default
        module.values[name] = found
        return found

    def _fold(self, module: Module, name: str) -> Any:
        if name in module.running:
            raise Reject(f"name `{name}`, defined by itself")
        module.running.add(name)
        try:
            bindings = module.bindings.get(name, [])
            try:
                binding = self._choose(module, bindings, name)
            except Reject:
                return self._only_value(module, bindings, name)
            if binding is not None:
                return self._value(module, binding.node, name)
            return self._from_star(module, name)
        finally:
            module.running.discard(name)

    def _choose(self, module: Module, bindings: Sequence[Binding], name: str) -> Binding | None:
        """The binding that holds when the module has run: the last one whose conditions are met."""
        preferred = [binding for binding in bindings if not binding.fallback] or list(bindings)
        for binding in reversed(preferred):
            if len(preferred) == 1 or self._reached(module, binding, name):
                return binding
        return None

    def _only_value(self, module: Module, bindings: Sequence[Binding], name: str) -> Any:
        """The value of a name whose bindings depend on what is unknown: all of them must import one thing."""
        imports = (ast.Import, ast.ImportFrom)
        if not bindings or not all(isinstance(binding.node, imports) for binding in bindings):
            raise Reject(f"name `{name}`, bound under a condition that is not constant")
        values = [self._value(module, binding.node, name) for binding in bindings]
        if any(isinstance(value, Opaque) or value != values[0] for value in values):
            raise Reject(f"name `{name}`, bound under a condition that is not constant")
        return values[0]

    def _reached(self, module: Module, binding: Binding, name: str) -> bool:
        for test, wanted in binding.tests:
            try:
                holds = bool(self._evaluate(test, module.frame()))
            except Reject as error:
                message = f"name `{name}`, bound under a condition that is not constant"
                raise Reject(message) from error
            if holds is not wanted:
                return False
        return True

    def _value(self, module: Module, node: ast.stmt, name: str) -> Any:
        if isinstance(node, ast.FunctionDef):
            return self.closure(module, node, None)
        if isinstance(node, ast.ClassDef):
            return UserClass(node, module)
        if isinstance(node, ast.Assign):
            return self._assigned(module, node, name)
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            return self._evaluate(node.value, module.frame())
        if isinstance(node, ast.Import):
            return self._imported(module, node, name)
        if isinstance(node, ast.ImportFrom):
            return self._imported_from(module, node, name)
        raise Reject(f"name `{name}`, bound by a {type(node).__name__} statement")

    def closure(self, module: Module, node: ast.FunctionDef | ast.Lambda, scope: Frame | None) -> Closure:
        """A function value; its defaults are evaluated where it is defined."""
        frame = module.frame() if scope is None else scope
        arguments = node.args
        positional = (*arguments.posonlyargs, *arguments.args)
        pairs = list(
            zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
        )
        pairs += [
            (argument, default)
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default is not None
        ]
        defaults = {argument.arg: self._evaluate(default, frame) for argument, default in pairs}
        return Closure(node, module, scope, defaults)

    def _assigned(self, module: Module, node: ast.Assign, name: str) -> Any:
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                return self._evaluate(node.value, module.frame())
            if isinstance(target, (ast.Tuple, ast.List)):
                for position, item in enumerate(target.elts):
                    if isinstance(item, ast.Name) and item.id == name:
                        return self._evaluate(node.value, module.frame())[position]
        raise Reject(f"name `{name}`, bound by an assignment that is not read")

    def imported(self, module: Module, node: ast.Import | ast.ImportFrom) -> dict[str, Any]:
        """What an import inside a function binds."""
        if isinstance(node, ast.Import):
            names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
            return {name: self._imported(module, node, name) for name in names}
        names = [alias.asname or alias.name for alias in node.names]
        return {name: self._imported_from(module, node, name) for name in names}

    def _imported(self, module: Module, node: ast.Import, name: str) -> Any:
        for alias in node.names:
            if (alias.asname or alias.name.partition(".")[0]) == name:
                return self._module_named(
                    module, alias.name if alias.asname else alias.name.partition(".")[0], 0
                )
        raise Reject(f"name `{name}`")

    def _imported_from(self, module: Module, node: ast.ImportFrom, name: str) -> Any:
        original = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
        if not node.level and (node.module, original) in _OF_INDUCTOR:
            return Namespace(_OF_INDUCTOR[node.module, original])
        owner = self._module_named(module, node.module or "", node.level)
        if owner is module and _is_package(module):  # `from . import submodule` in a package's own file
            return self._module_named(module, original, 1)
        if isinstance(owner, Module):
            found = self.lookup(owner, original, default=None)
            if found is not None or original in owner.values:
                return found
            return (
                self._module_named(owner, original, 1) if _is_package(owner) else Opaque(f"import `{original}`")
            )
        if isinstance(owner, Opaque) and original in _USUAL:
            return Namespace(_USUAL[original])
        return self._attribute(owner, original)

    def _from_star(self, module: Module, name: str) -> Any:
        for node in reversed(module.stars):
            owner = self._module_named(module, node.module or "", node.level)
            if isinstance(owner, Module):
                found = self.lookup(owner, name, default=_MISSING_NAME)
                if found is not _MISSING_NAME:
                    return found
            elif isinstance(owner, Namespace):
                found = self._attribute(owner, name)
                if not isinstance(found, Opaque):
                    return found
        return _MISSING

    def _module_named(self, module: Module, name: str, level: int) -> Any:
        """A module by its dotted name: a known one, one whose file is found nearby, or an opaque one."""
        parts = [part for part in name.split(".") if part]
        if not level:
            known = known_namespace(name)
            if known is not None:
                return known
            path = _find_absolute(Path(module.path), parts)
        else:
            folder = Path(module.path).parent
            for _ in range(level - 1):
                folder = folder.parent
            path = _module_file(folder, parts)
        return Opaque(f"module `{name}`") if path is None else self.load(path)

    def member(self, module: Module, name: str) -> Any:
        """An attribute of a module value (`helpers.f`)."""
        found = self.lookup(module, name, default=_MISSING_NAME)
        return self._module_named(module, name, 1) if found is _MISSING_NAME else found


_MISSING_NAME = object()
# What modules that are not found hand on of Triton under these names: `from package.compat import tl`.
_USUAL = {"triton": "triton", "tl": "triton.language"}
_OF_INDUCTOR: dict[tuple[str | None, str], str] = {  # what PyTorch's own module hands on of Triton's
    ("torch._inductor.runtime.triton_helpers", "libdevice"): "triton.language.extra.libdevice",
    ("torch._inductor.runtime.triton_helpers", "math"): "triton.language.math",
}


def _is_package(module: Module) -> bool:
    return Path(module.path).name == "__init__.py"


def _find_absolute(path: Path, parts: Sequence[str]) -> str | None:
    """The file of an absolute import: looked for where the importing file's outermost package lies, beside the
    file, and above it."""
    around = _folders_above(path)[:_SEARCH_DEPTH]
    top = next((folder for folder in around if not is_file(folder / "__init__.py")), path.parent)
    for folder in dict.fromkeys((top, *around)):
        found = _module_file(folder, parts)
        if found is not None:
            return found
    return None


def _folders_above(path: Path) -> list[Path]:
    """The folder of the file and those above it, relative as long as the path is."""
    folders = list(path.parents)
    return folders if path.is_absolute() else [*folders, *Path.cwd().parents]


def _module_file(folder: Path, parts: Sequence[str]) -> str | None:
    """The file of a module below a folder: a package comes before a module of the same name."""
    target = folder.joinpath(*parts)
    places = [target / "__init__.py", *([target.with_name(target.name + ".py")] if parts else [])]
    return next((place.as_posix() for place in places if is_file(place)), None)


@functools.lru_cache(maxsize=KEPT)
def _bound(source: SourceFile) -> tuple[Mapping[str, Sequence[Binding]], Sequence[ast.ImportFrom]]:
    """What a file binds at its top level, by name; and its `from ... import *`."""
    stars: list[ast.ImportFrom] = []
    bindings: dict[str, list[Binding]] = {}
    for name, binding in _bindings(source.tree.body, (), stars, fallback=False):
        bindings.setdefault(name, []).append(binding)
    return bindings, stars


def _bindings(
    body: Sequence[ast.stmt],
    tests: tuple[tuple[ast.expr, bool], ...],
    stars: list[ast.ImportFrom],
    *,
    fallback: bool,
) -> Iterator[tuple[str, Binding]]:
    """Every top-level binding in order, with the conditions around it."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _bindings(node.body, (*tests, (node.test, True)), stars, fallback=fallback)
            yield from _bindings(node.orelse, (*tests, (node.test, False)), stars, fallback=fallback)
        elif isinstance(node, ast.Try):
            yield from _bindings((*node.body, *node.orelse, *node.finalbody), tests, stars, fallback=fallback)
            for handler in node.handlers:
                yield from _bindings(handler.body, tests, stars, fallback=True)
        elif isinstance(node, ast.With):
            yield from _bindings(node.body, tests, stars, fallback=fallback)
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            stars.append(node)
        else:
            for name in sorted(stored_names([node])):
                yield name, Binding(node, tests, fallback)
