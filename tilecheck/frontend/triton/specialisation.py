"""Whether Triton compiles a kernel for what it sees of its pointers at a launch, all of them alike."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from tilecheck.frontend.kernels.definitions import TRITON_MAKERS, Definition, is_kernel_decorator
from tilecheck.frontend.modules.bindings import dotted
from tilecheck.frontend.modules.project import ModuleTable

_TENSORS = ("torch.Tensor", "triton.language.tensor", "triton.language.core.tensor")
_EXCEPT = "do_not_specialize"


def is_specialised(definition: Definition, arrays: Collection[str]) -> bool:
    """Whether the decorator is Triton's own, and leaves out none of the pointers `arrays`.

    A compiler knows of a pointer whether it is a multiple of 16 bytes, unless the decorator says that it is not
    to look; and of what type its elements are, unless an annotation says that.
    """
    table = definition.table
    listed = definition.node.params
    for p in (*listed.posonly_params, *listed.params, *listed.kwonly_params):
        if p.name.value in arrays and p.annotation is not None and not _is_type(table, p.annotation.annotation):
            return False
    makers = [d.decorator for d in definition.node.decorators if is_kernel_decorator(table, d.decorator)]
    if len(makers) != 1:
        return False
    maker = makers[0]
    if not isinstance(maker, cst.Call):
        return table.full_name(dotted(maker)) in TRITON_MAKERS
    if table.full_name(dotted(maker.func)) not in TRITON_MAKERS:
        return False
    return all(_leaves_out_none(argument, arrays) for argument in maker.args)


def _is_type(table: ModuleTable, annotation: cst.BaseExpression) -> bool:
    """Whether an annotation says no more than that something is a tensor: `"*fp16"` says more."""
    return table.full_name(dotted(annotation)) in _TENSORS


def _leaves_out_none(argument: cst.Arg, arrays: Collection[str]) -> bool:
    name = "" if argument.keyword is None else argument.keyword.value
    if not name.startswith(_EXCEPT):
        return name == "debug"
    listed = argument.value.elements if isinstance(argument.value, cst.List | cst.Tuple) else None
    return listed is not None and all(
        isinstance(e.value, cst.SimpleString) and e.value.evaluated_value not in arrays for e in listed
    )
