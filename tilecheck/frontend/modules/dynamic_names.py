"""Names that code binds without naming them: through `globals()`, `setattr` on the module, or `exec`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import libcst as cst

from tilecheck.frontend.modules.loop_bound_names import is_inside_function, looped_names
from tilecheck.frontend.modules.mutability import last_of
from tilecheck.frontend.text.syntax import walk

if TYPE_CHECKING:
    from tilecheck.frontend.modules.mutations import Changes

_HINT = re.compile(
    r"\b(?:globals|vars|locals|exec|eval|modules|setattr|import_module|builtins|"
    r"__import__|__globals__|__builtins__|f_globals|f_locals|__main__)\b"
)
_BINDING = ("exec", "eval", "globals", "vars", "locals", "setattr", "delattr", "__import__")
_NAMESPACES = ("__globals__", "f_globals", "f_locals", "f_builtins")
_QUOTED_NAMESPACE = re.compile(rf"""["'](?:{"|".join(_NAMESPACES)})["']""")
_QUOTED = cst.SimpleString | cst.FormattedString
_TEXTS = cst.SimpleString | cst.FormattedStringText
_LOOKING = frozenset("get keys values items copy __contains__".split())
_ASKING = frozenset("getattr hasattr isinstance len print id repr dir".split())


@lru_cache(maxsize=64)
def _has_hint(text: str) -> bool:
    return _HINT.search(text) is not None


def names_assigned(
    text: str, changes: Callable[[], Changes], own: Collection[str] = ()
) -> Iterator[str | None]:
    """The names that may be bound so; None: any name. `own` are names that the module is imported under in
    itself.
    """
    if not own and not _has_hint(text):
        return
    c = changes()
    yield from _handed_on(c)
    if _QUOTED_NAMESPACE.search(text):
        yield None
    for name in (*own, *(name for name, full in c.kinds.imports.items() if full == "__main__")):
        for use in c.uses.get(name, ()):
            if not c.is_name_only(use):
                yield from _through(c, use)
    for word in ("exec", "eval"):
        for use in c.uses.get(word, ()):
            call = c.parents[use]
            if isinstance(call, cst.Call) and call.func is use and _runs_here(word, call):
                yield None
    for word in _NAMESPACES:
        for use in c.uses.get(word, ()):
            yield from _through(c, c.parents[use])
    for node in _namespaces(c):
        yield from _through(c, node)
    for use in c.uses.get("setattr", ()):
        call = c.parents[use]
        if isinstance(call, cst.Call) and call.func is use and call.args:
            target = call.args[0].value
            if isinstance(target, cst.Name):
                yield target.value


def _handed_on(c: Changes) -> Iterator[None]:
    """None for each place where a function that binds names is got in a way that is not followed further:
    `g = globals`, `builtins.exec`.
    """
    for word in _BINDING:
        for use in c.uses.get(word, ()):
            call = c.parents[use]
            if not c.is_name_only(use) and not (isinstance(call, cst.Call) and call.func is use):
                yield None
    modules = [name for name, full in c.kinds.imports.items() if full == "builtins"]
    for use in [use for name in ("__builtins__", *modules) for use in c.uses.get(name, ())]:
        member = c.parents[use]
        harmless = isinstance(member, cst.Attribute) and member.attr.value not in (*_BINDING, "__dict__")
        if not c.is_name_only(use) and not (harmless and not c.is_stored(member)):
            yield None
    if any(full.removeprefix("builtins.") in _BINDING for full in c.kinds.imports.values()):
        yield None


def _runs_here(word: str, call: cst.Call) -> bool:
    """Whether the text that a call runs may bind names of the module; that of `eval` does so by a call."""
    first = call.args[0].value if call.args else None
    if word == "eval":
        texts = [n.value for n in walk(first) if isinstance(n, _TEXTS)] if isinstance(first, _QUOTED) else ["("]
        return any("(" in text or ":=" in text for text in texts)
    where = call.args[1].value if len(call.args) > 1 else None
    return not isinstance(where, cst.Name | cst.Dict)


def _namespaces(c: Changes) -> Iterator[cst.CSTNode]:
    """The expressions that give the module, or the dictionary of its names."""
    for word in ("globals", "vars", "locals"):
        for use in c.uses.get(word, ()):
            call = c.parents[use]
            called = isinstance(call, cst.Call) and call.func is use and not call.args
            if called and (word == "globals" or not is_inside_function(c, call)):
                yield call
    for use in c.uses.get("__name__", ()):
        parent = c.parents[use]
        if isinstance(parent, cst.Index):
            whole = c.parents[c.parents[parent]]
            if isinstance(whole, cst.Subscript) and last_of(whole.value) == "modules":
                yield whole
        elif isinstance(parent, cst.Arg):
            call = c.parents[parent]
            if isinstance(call, cst.Call) and last_of(call.func) in ("import_module", "__import__"):
                yield call


def _through(c: Changes, node: cst.CSTNode) -> Iterator[str | None]:
    """The names that the code around a namespace binds in it."""
    parent = c.parents[node]
    match parent:
        case cst.ComparisonTarget() | cst.Comparison() | cst.For() | cst.CompFor() | cst.Expr():
            return
        case cst.Subscript(value=value) if value is node:
            if c.is_stored(parent):
                yield from looped_names(c, parent) or (_text(parent.slice[0].slice),)
            return
        case cst.Attribute(value=value, attr=cst.Name(name)) if value is node:
            after = c.parents[parent]
            if name == "__dict__":
                yield from _through(c, parent)
            elif c.is_stored(parent):
                yield name
            elif isinstance(after, cst.Call) and after.func is parent and name not in _LOOKING:
                yield None
            return
        case cst.Arg():
            call = c.parents[parent]
            if isinstance(call, cst.Call) and isinstance(call.func, cst.Name):
                if call.func.value in _ASKING:
                    return
                if call.func.value in ("setattr", "delattr") and len(call.args) > 1:
                    yield _text(cst.Index(call.args[1].value))
                    return
                if call.func.value == "exec":  # counted already
                    return
    yield None


def _text(node: cst.CSTNode) -> str | None:
    if isinstance(node, cst.Index) and isinstance(node.value, cst.SimpleString):
        value = node.value.evaluated_value
        return value if isinstance(value, str) else None
    return None
