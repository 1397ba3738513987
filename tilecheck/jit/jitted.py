"""Triton's kernel objects as a launch finds them: a jitted function, perhaps inside tuners and heuristics.

Triton need not be installed: its objects are told by the names of their classes. A class of another name, such
as one derived from these, may do anything at a launch and is none of them.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

from tilecheck.dataclass import dataclass
from tilecheck.errors import LaunchRefused
from tilecheck.jit.records import Argument, Record

_COMPILED = "triton.runtime.jit.JITFunction"
_INTERPRETED = "triton.runtime.interpreter.InterpretedFunction"
_TUNER = "triton.runtime.autotuner.Autotuner"
_HEURISTICS = "triton.runtime.autotuner.Heuristics"
_CONSTANT = "triton.language.core.constexpr"
_MOST_LAYERS = 16
WARP = 32  # threads, on NVIDIA's GPUs
_LARGEST_WARP = 64


def _class(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def is_jitted(value: Any) -> bool:
    """Whether `value` is what `triton.jit` makes."""
    return _class(value) in (_COMPILED, _INTERPRETED)


def plain(value: Any) -> Any:
    """The value in a `tl.constexpr`; any other value is itself."""
    return value.value if _class(value) == _CONSTANT else value


def function_of(value: Any) -> types.FunctionType | None:
    """The Python function of a Triton kernel, whatever is around it; None if it is none."""
    for _ in range(_MOST_LAYERS):
        if is_jitted(value):
            function = value.fn
            return function if isinstance(function, types.FunctionType) else None
        if _class(value) not in (_TUNER, _HEURISTICS):
            return None
        value = value.fn
    return None


def has_text(jitted: Any, text: str) -> bool:
    """Whether Triton compiles `text`, that of a `def` without decorators, for a jitted function.

    A jitted function has its text from when it was made, and programs may replace it.
    """
    if _class(jitted) == _INTERPRETED:
        return True  # runs the function itself
    try:
        return ast.dump(ast.parse(jitted.src)) == ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError):
        return False


@dataclass(frozen=True, slots=True)
class Layers:
    """A kernel object taken apart: what is around the jitted function, outermost first, and the function."""

    around: tuple[Any, ...]
    jitted: Any
    function: types.FunctionType

    @property
    def is_interpreted(self) -> bool:
        return _class(self.jitted) == _INTERPRETED

    @property
    def tuners(self) -> tuple[Any, ...]:
        return tuple(layer for layer in self.around if _class(layer) == _TUNER)


def layers_of(kernel: Any) -> Layers:
    """Take a kernel object apart.

    Raises:
        LaunchRefused: it is none that `triton.jit` made.
    """
    around: list[Any] = []
    value = kernel
    while _class(value) in (_TUNER, _HEURISTICS) and len(around) < _MOST_LAYERS:
        around.append(value)
        value = value.fn
    function = function_of(value)
    if function is None or not is_jitted(value):
        raise LaunchRefused(
            f"a {_class(value)} is no Triton kernel: a function under `triton.jit` is, or one under "
            "`triton.autotune` and `triton.heuristics` as well; `tilecheck.launch` launches cuTile's"
        )
    return Layers(tuple(around), value, function)


def assignments(
    layers: Layers, grid: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The keywords that the jitted function is called with, for each configuration that may be chosen."""
    for found in _assignments(layers.around, args, {**kwargs, "grid": grid, "warmup": False}):
        yield {name: value for name, value in found.items() if name not in ("grid", "warmup")}


def _assignments(
    around: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    if not around:
        yield kwargs
        return
    layer, inner = around[0], around[1:]
    named = dict(zip(layer.arg_names, args, strict=False))
    if _class(layer) == _HEURISTICS:
        for name, function in layer.values.items():
            kwargs = {**kwargs, name: function({**named, **kwargs})}
        yield from _assignments(inner, args, kwargs)
        return
    configs = list(layer.configs)
    if layer.early_config_prune:
        configs = list(layer.early_config_prune(configs, named, **kwargs))
    for config in configs:
        yield from _assignments(inner, args, {**kwargs, **config.all_kwargs()})


def warp_size() -> int:
    """How many threads a warp has where Triton launches: 32 on NVIDIA's GPUs, 64 on many of AMD's.

    The larger one where the driver does not say. Without a device nothing is launched."""
    module = sys.modules.get("triton.runtime.driver")
    if module is None:
        return WARP
    try:
        size = module.driver.active.get_current_target().warp_size
    except RuntimeError:
        return WARP
    except (AttributeError, TypeError):
        return _LARGEST_WARP
    return size if type(size) is int else _LARGEST_WARP


# ---- what is in memory and in no code object -----------------------------------------------------------------


def check_annotations(layers: Layers, record: Record) -> None:
    """Triton compiles for the annotations in memory, which no code object holds; the proof read the text's.

    Raises:
        LaunchRefused: they are not the same, or force a type on a parameter that the proof knows nothing of.
    """
    given = dict(_annotations(layers))
    for argument in record.arguments:
        constant, kind = given[argument.name]
        if argument.ownership == "unused" or (
            constant == (argument.ownership == "constant") and (constant or _may_have(argument, kind))
        ):
            continue
        raise LaunchRefused(
            f"`{record.name}` is not launched: the annotation of `{argument.name}` gives it a type that the "
            "proof knows nothing of",
            f"   = {record.where}",
        )


def _may_have(argument: Argument, kind: str) -> bool:
    """Whether an annotation may force a type, by Triton's name, on a parameter that the proof read.

    None on a pointer: elements of another type would lie elsewhere. An integer has 32 bits or more and a sign.
    """
    if not kind:
        return True
    if argument.array:
        return False
    if argument.scalar == "bool":
        return kind == "u1"
    return kind in ("i32", "i64") or not (argument.scalar == "int" or argument.integer)


def _annotations(layers: Layers) -> Iterator[tuple[str, tuple[bool, str]]]:
    """Of each parameter whether it is constant, and the type that its annotation forces on it."""
    params = getattr(layers.jitted, "params", None)
    if layers.is_interpreted or params is None:
        for name, parameter in inspect.signature(layers.function).parameters.items():
            yield name, ("constexpr" in str(parameter.annotation), "")
        return
    for parameter in params:
        yield parameter.name, (bool(parameter.is_constexpr), str(parameter.annotation_type))
