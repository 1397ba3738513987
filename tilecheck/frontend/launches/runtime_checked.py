"""Launches through `tilecheck.host`: the library checks each against the proof of its kernel when it happens.

A call of the library that names the kernel is such a launch wherever it stands. A call of the project's own
code that is given a kernel is one if the library checks all that the function does: nothing else launches it.
"""

from __future__ import annotations

import re

import libcst as cst

from tilecheck.frontend.kernels.definitions import is_kernel_decorator
from tilecheck.frontend.kernels.shipped import shipped_kernel
from tilecheck.frontend.modules.bindings import Import, dotted
from tilecheck.frontend.modules.project import ModuleTable
from tilecheck.model import Site

_LIBRARY = re.compile(r"\btilecheck\b")
_RAW = frozenset({"cuda.tile.launch", "tilecheck.launch", "tilecheck.verified"})  # that are launches themselves
_KERNEL_AT = {"tilecheck.host.launch": 0, "tilecheck.host.enqueue": 1}
Named = tuple[str, str]  # a kernel, and its file


def checked_launches(table: ModuleTable) -> tuple[tuple[Site, Named, str], ...]:
    """The kernels of the project that a module launches through the library: where, and in which function."""
    if _LIBRARY.search(table.parsed.words) is None:
        return ()
    calls = list(table.nodes(cst.Call))
    named = ((table.site(call), _launched_by_text(table, call)) for call in calls)
    found = {(site, kernel): "" for site, kernel in named if kernel is not None}
    places = {site for site, _ in found}
    others = (call for call in calls if table.site(call) not in places and _full_name(table, call) not in _RAW)
    if any(_kernel(table, arg.value) is not None for call in others for arg in call.args):
        from tilecheck.frontend.host_guards import Guards  # lazy: few files come here
        from tilecheck.frontend.host_programs.hosts import entries_of  # lazy, as above

        guards = Guards(table, ())
        for entry in entries_of(table):
            for kernel, site in guards.of(entry).launched:
                found.setdefault((site, (kernel.name, kernel.file)), entry.name)
    listed = ((site, kernel, function) for (site, kernel), function in found.items())
    return tuple(sorted(listed, key=lambda one: (one[0].file, one[0].span.start, one[1])))


def _launched_by_text(table: ModuleTable, call: cst.Call) -> Named | None:
    """The kernel of `host.launch(kernel, ...)` or `host.enqueue(stream, kernel, ...)`."""
    at = _KERNEL_AT.get(_full_name(table, call))
    if at is None:
        return None
    named = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "kernel"]
    plain = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    named += plain[at : at + 1]
    return _kernel(table, named[0]) if named else None


def _full_name(table: ModuleTable, call: cst.Call) -> str:
    """The full name of what a call calls."""
    text = dotted(call.func)
    head = table.local_imports.get(text.partition(".")[0])
    return table.full_name(text) if head is None else f"{head.name}.{text.partition('.')[2]}".rstrip(".")


def _kernel(table: ModuleTable, node: cst.BaseExpression) -> Named | None:
    """The kernel of the project that a name stands for."""
    binding = table.bindings.get(dotted(node))
    if isinstance(binding, Import) and binding.member is not None:
        shipped = None if binding.level else shipped_kernel(binding.name)
        if shipped is not None:
            return None if shipped[0].isupper() else shipped
        found = table.project.find(Import(binding.module, None, binding.level), table.file)
        if found is None:
            return None
        table, binding = found, found.bindings.get(binding.member)
    if not isinstance(binding, cst.FunctionDef):
        return None
    is_kernel = any(is_kernel_decorator(table, d.decorator) for d in binding.decorators)
    return (binding.name.value, table.file) if is_kernel else None
