"""Loading a verified module to run or compile its kernels. Everything else in tilecheck only reads text."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilecheck.errors import UsageError
from tilecheck.example import Example
from tilecheck.jit.jitted import function_of


def load_module(path: str) -> types.ModuleType:
    """Import a file as Python would: as a member of its package if it lies in one, else from its own folder.

    Raises:
        UsageError: the import fails, with what failed.
    """
    file = Path(path).resolve()
    top, parts = file.parent, [file.stem]
    while (top / "__init__.py").is_file() and top.parent != top:
        parts.insert(0, top.name)
        top = top.parent
    sys.path.insert(0, str(top))
    try:
        module = importlib.import_module(".".join(parts))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the module's own code, which may also exit
        needed = "kernels need `pip install 'tilecheck[gpu]'`, those in Triton 'tilecheck[triton]'"
        hint = needed if isinstance(error, ImportError) else None
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {error}", hint) from None
    finally:
        sys.path.remove(str(top))
    found = getattr(module, "__file__", None)
    if found is None or Path(found).resolve() != file:
        raise UsageError(f"{path} cannot be imported: another module has its name, {found}")
    return module


def examples_of(module: types.ModuleType, path: str) -> Iterator[Example]:
    """What the module's `examples()` yields; nothing if it has none.

    Raises:
        UsageError: it fails, or yields something else.
    """
    function = getattr(module, "examples", None)
    if function is None:
        return
    try:
        found = list(function())
    except Exception as error:  # noqa: BLE001 - the module's own code
        raise UsageError(f"examples() of {path} fails: {type(error).__name__}: {error}") from None
    for example in found:
        if not isinstance(example, Example):
            raise UsageError(
                f"examples() of {path} yields a {type(example).__name__}, not a `tilecheck.Example`"
            )
        yield example


def kernel_function(kernel: Any) -> types.FunctionType:
    """The Python function that a kernel was made from.

    Raises:
        UsageError: it is no kernel.
    """
    function = getattr(kernel, "_pyfunc", None) or function_of(kernel)  # cuTile has no public name for it
    if not isinstance(function, types.FunctionType):
        raise UsageError(
            f"an example's kernel is a {type(kernel).__name__}, not a `ct.kernel` or what `triton.jit` makes"
        )
    return function


def triton_kernels(module: types.ModuleType) -> list[Any]:
    """The Triton kernels among the names of a module."""
    return [value for value in vars(module).values() if function_of(value) is not None]
