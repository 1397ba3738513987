"""Finds the record of a kernel function: among emitted verdicts, else by verifying its file now.

A verdict is about text, and what is launched is a function in memory. So the record is looked up by the bytes
of the function's file, the files of its helpers are compared too, and the function's code object must be the
one that those bytes compile to.
"""

from __future__ import annotations

import ast
import builtins
import dis
import enum
import io
import os
import sys
import textwrap
import tokenize
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilecheck.errors import LaunchRefused
from tilecheck.jit import jitted, records
from tilecheck.jit.records import Global, Record

VARIABLE = "TILECHECK_VERDICTS"  # verdict files and folders of results, separated as in PATH

_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")

_known: dict[tuple[str, int], list[Record]] = {}  # by the bytes of the kernel's file and the line of its `def`
_state = {"environment": False}


def use_verdicts(path: str | os.PathLike[str]) -> None:
    """Accept the verdicts that `tilecheck verify --emit-verdicts` wrote to `path`, or those of the folder in
    which it kept its results (`--cache-dir`).

    The file decides what may be launched: take it only from where you would take the code.

    Raises:
        UsageError: it cannot be read, or is no verdict file of this version.
    """
    _add(records.load(path))


def _add(found: tuple[Record, ...]) -> None:
    for record in found:
        _known.setdefault((record.source, record.line), []).append(record)


def record_for(function: types.FunctionType) -> Record:
    """The record of the kernel that `function` is.

    Raises:
        LaunchRefused: its text cannot be found or is not the text it was made from, or nothing can verify it.
    """
    if not _state["environment"]:
        for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
            use_verdicts(path)
        _state["environment"] = True
    name, file = function.__name__, function.__code__.co_filename
    try:
        data = Path(file).read_bytes()
    except OSError:
        raise LaunchRefused(f"`{name}` is not launched: its source, {file}, cannot be read") from None
    line = line_of(function, data)
    key = records.digest(data)
    record = _fitting(key, line, Path(file).parent)
    if record is None:
        _verify(file, name)
        record = _fitting(key, line, Path(file).parent)
    if record is None:
        raise LaunchRefused(f"`{name}` is not launched: {file}:{line} is not a kernel that tilecheck knows")
    check_helpers(function, record, Path(file).parent)
    return record


def _fitting(key: str, line: int, folder: Path) -> Record | None:
    """A record whose helper files are those that lie beside the kernel now."""
    for record in _known.get((key, line), ()):
        if all(_is_file(folder / path, wanted) for path, wanted in record.sources.items()):
            return record
    return None


def _is_file(path: Path, wanted: str) -> bool:
    try:
        return records.digest(path.read_bytes()) == wanted
    except OSError:
        return False


def _verify(file: str, name: str) -> None:
    try:
        from tilecheck.verify.pipeline import verify_paths  # lazy: only where nothing was emitted

        found = records.records_of(verify_paths([file]))
    except ImportError as error:
        raise LaunchRefused(
            f"`{name}` is not launched: no emitted verdict speaks of {file}, and it cannot be verified here "
            f"({error})",
            "   = help: `tilecheck verify --emit-verdicts FILE` where tilecheck is installed whole, then "
            f"`tilecheck.use_verdicts(FILE)` or {VARIABLE}=FILE here",
        ) from None
    _add(found)


# ---- the function in memory is the text ----------------------------------------------------------------------


def line_of(function: types.FunctionType, data: bytes) -> int:
    """The line of the function's `def` in `data`, the bytes of its file.

    Raises:
        LaunchRefused: the file does not hold the function.
    """
    return definition_of(function, data).lineno


def definition_of(function: types.FunctionType, data: bytes) -> ast.FunctionDef:
    """The `def` of a function in `data`, the bytes of its file.

    Raises:
        LaunchRefused: the file does not hold the function.
    """
    code, file = function.__code__, function.__code__.co_filename
    try:
        tree = ast.parse(data)
        same = any(found == code for found in _codes(compile(data, file, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        same = False
    nodes = [
        node
        for node in (ast.walk(tree) if same else ())
        if isinstance(node, ast.FunctionDef)
        and node.name == code.co_name
        and min([node.lineno, *(d.lineno for d in node.decorator_list)]) == code.co_firstlineno
    ]
    if len(nodes) != 1 or not _has_defaults(function, nodes[0]):
        raise LaunchRefused(
            f"`{function.__name__}` is not launched: it is not what {file} holds now",
            "   = help: the file was edited after it was imported, or the function was made or rewritten by a "
            "program; start again from the file",
        )
    return nodes[0]


def check_text(kernel: Any, function: types.FunctionType) -> None:
    """A function under `triton.jit` compiles to what stands in its file.

    Raises:
        LaunchRefused: it holds another text.
    """
    data = records.read_file(function.__code__.co_filename)
    node = definition_of(function, data)
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    lines = io.StringIO(data.decode(encoding), newline=None).read().split("\n")
    if not jitted.has_text(kernel, textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))):
        raise LaunchRefused(
            f"`{function.__name__}` is not launched: its text was replaced after it was read from "
            f"{function.__code__.co_filename}"
        )


def _has_defaults(function: types.FunctionType, node: ast.FunctionDef) -> bool:
    """Whether the defaults of a function, which are no part of its code, are those of its text.

    Those that are no literals are names, which are compared where they are read.
    """
    kept = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    written = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
    if len(kept) != len(written):
        return False
    for found, text in zip(kept, written, strict=True):
        try:
            wanted = ast.literal_eval(text)
        except ValueError:
            continue
        if not _same(found, wanted):
            return False
    return True


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def check_helpers(function: types.FunctionType, record: Record, folder: Path) -> None:
    """Every Python function that the kernel can reach by a name comes from a file that the verdict speaks of,
    and every name of a module is what the proof took it for.

    Raises:
        LaunchRefused: one does not, or is not.
    """
    known = {(folder / path).resolve() for path in record.sources}
    names = {Path(path).name for path in record.sources}
    scopes: dict[Path, list[dict[str, Any]]] = {file: [] for file in known}
    for module in tuple(sys.modules.values()):
        file = vars(module).get("__file__") if isinstance(module, types.ModuleType) else None
        if isinstance(file, str) and (place := Path(file)).name in names and place.resolve() in known:
            scopes[place.resolve()].append(vars(module))
    todo, seen = [function], {function}
    while todo:
        current = todo.pop()
        scopes[Path(current.__code__.co_filename).resolve()].append(current.__globals__)
        for helper in _reachable(current):
            if helper in seen:
                continue
            seen.add(helper)
            file = Path(helper.__code__.co_filename).resolve()
            if file not in known or not _is_current(helper, file):
                raise LaunchRefused(
                    f"`{function.__name__}` is not launched: it uses `{helper.__name__}` of {file}, which was "
                    "not verified with it",
                    f"   = {record.where}",
                )
            todo.append(helper)
    for name in record.globals:
        ways = [n for n in record.globals if (n.file, n.name) == (name.file, name.name)]
        for scope in scopes.get((folder / name.file).resolve(), ()):
            if not any(_means(scope, way, folder) for way in ways):  # a module may bind it in several ways
                raise LaunchRefused(
                    f"`{function.__name__}` is not launched: `{name.name}` is not what {folder / name.file} "
                    "says, and the verdict rests on that",
                    f"   = {record.where}",
                )


def _means(scope: dict[str, Any], name: Global, folder: Path) -> bool:
    """Whether a module-level name is still what the proof took it for; a program may have assigned to it."""
    head, *fields = name.name.split(".")
    if head not in scope:
        return True  # deleted: the kernel does not compile
    found = scope[head]
    for field in fields:
        found = getattr(found, field, None)
        if isinstance(found, types.MemberDescriptorType):
            return True  # the default of a slot: it is in no place that can be assigned to
    if name.library:
        return found is _of_library(name.library, found)
    if name.path and not name.line:
        file = getattr(found, "__file__", None) if isinstance(found, types.ModuleType) else None
        return file is not None and Path(file).resolve() == (folder / name.path).resolve()
    if name.line:
        helper = _unwrapped(getattr(found, "_pyfunc", found))  # of a `ct.kernel`
        if not isinstance(helper, types.FunctionType):
            return False
        file = Path(helper.__code__.co_filename)
        same_file = file.resolve() == (folder / name.path).resolve()
        return same_file and line_of(helper, file.read_bytes()) == name.line
    found = jitted.plain(found)
    return _same(found.value if isinstance(found, enum.Enum) else found, name.value)


def _of_library(name: str, otherwise: Any) -> Any:
    """What a built-in name, or a dotted name of an imported library, stands for."""
    if hasattr(builtins, name):
        return getattr(builtins, name)
    found, path = None, ""
    for part in name.split("."):
        path = f"{path}.{part}".strip(".")
        found = getattr(found, part, sys.modules.get(path))
        if found is None:
            return otherwise  # not imported under that name: what it is cannot be told
    return found


def _same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, (tuple, list)):
        return isinstance(found, (tuple, list)) and len(found) == len(wanted) and all(map(_same, found, wanted))
    return type(found) is type(wanted) and repr(found) == repr(wanted)  # NaN is itself here


def _reachable(function: types.FunctionType) -> Iterator[types.FunctionType]:
    codes = list(_codes(function.__code__))
    names = {name for code in codes for name in code.co_names}  # attributes too: `ct.transpose`
    loaded = {i.argval for code in codes for i in dis.get_instructions(code) if i.opname in _LOADS}
    values = [function.__globals__[name] for name in loaded if name in function.__globals__]
    values += [vars(m)[n] for m in values if isinstance(m, types.ModuleType) for n in names if n in vars(m)]
    values += [_content(cell, function) for cell in function.__closure__ or ()]
    for value in values:
        helper = _unwrapped(value)
        if isinstance(helper, types.FunctionType) and not _is_library(helper):
            if jitted.is_jitted(value):
                check_text(value, helper)
            yield helper


def _unwrapped(value: Any) -> Any:
    """The function that is compiled for `value`. What other decorators wrap is not looked into by cuTile."""
    if (function := jitted.function_of(value)) is not None:
        return function
    if isinstance(value, types.FunctionType) and not hasattr(value, "_cutile_function_wrapper"):
        return value
    return getattr(value, "__wrapped__", value)


def _content(cell: types.CellType, function: types.FunctionType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        raise LaunchRefused(
            f"`{function.__name__}` is not launched: a variable around it is not bound yet"
        ) from None


def _is_library(function: types.FunctionType) -> bool:
    """Whether the meaning of a function is built into tilecheck: the DSL and tilecheck's own interface."""
    module = function.__module__
    return module.startswith(("cuda.tile", "triton.")) or module in ("triton", "tilecheck")


def _is_current(function: types.FunctionType, file: Path) -> bool:
    try:
        data = file.read_bytes()
        if function.__code__.co_name != "<lambda>":
            return line_of(function, data) > 0
        return any(c == function.__code__ for c in _codes(compile(data, str(file), "exec", dont_inherit=True)))
    except (OSError, SyntaxError, ValueError, LaunchRefused):
        return False
