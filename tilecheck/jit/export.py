"""Ahead-of-time compilation of verified kernels, with cuTile's own compiler; a GPU is not needed.

Element types, ranks and constants come from the examples of a module. Each example gives up to three variants,
as cuTile specialises when it compiles just in time: for arrays whose rows begin and end on multiples of 16
bytes and elements, so that accesses are wide without masks; for rows that only begin there; and for any. The
guard lets no array overlap one that is written, so all are compiled for arrays without aliases.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tilecheck.errors import UsageError, refusal
from tilecheck.example import Example
from tilecheck.jit import records
from tilecheck.jit.cubin import ArrayForm, Compiled, ConstantForm, Form, ScalarForm, Variant, dtype_name
from tilecheck.jit.records import Record

ALIGNMENT = 16  # bytes: the widest access of one thread, and what the bulk copy engine asks of strides
EXTENT = 16  # elements: what cuTile looks for in the length of a row
FORMATS = {"cubin": "cubin", "tileir": "tileir_bytecode"}


def export_kernel(
    record: Record, kernel: Any, examples: Sequence[Example], arch: str, formats: Sequence[str], folder: Path
) -> Compiled:
    """Compile a kernel for each of its examples and write the files into `folder`.

    Raises:
        UsageError: the compiler is missing, or refuses the kernel; an argument has no form that it takes.
    """
    variants: dict[tuple[Form, ...], Variant] = {}
    for example in examples:
        for forms in _forms(record, example):
            if forms not in variants:
                stem = f"{Path(record.file).stem}.{record.name}.{len(variants)}.{arch}"
                variants[forms] = _variant(record, kernel, forms, arch, formats, folder / stem)
    return Compiled(record, tuple(variants.values()))


def _variant(
    record: Record, kernel: Any, forms: tuple[Form, ...], arch: str, formats: Sequence[str], stem: Path
) -> Variant:
    digest = ""
    for name in formats:
        data = _compile(record, kernel, forms, arch, name)
        path = stem.with_name(f"{stem.name}.{name}")
        try:
            path.write_bytes(data)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {refusal(error)}") from None
        digest = records.digest(data) if name == "cubin" else digest
    return Variant(f"{stem.name}.cubin", digest, record.name, forms)


def _compile(record: Record, kernel: Any, forms: tuple[Form, ...], arch: str, output: str) -> bytes:
    from cuda.tile import TileError, compilation  # lazy: only where kernels are compiled

    signature = compilation.KernelSignature(
        [_constraint(form) for form in forms],
        compilation.CallingConvention.cutile_python_v1(),
        symbol=record.name,
    )
    target = io.BytesIO()
    try:
        compilation.export_kernel(kernel, [signature], target, gpu_code=arch, output_format=FORMATS[output])
    except FileNotFoundError:
        raise UsageError(
            "cuTile's compiler is not installed",
            "`pip install 'cuda-tile[tileiras]'` brings tileiras and ptxas",
        ) from None
    except (
        TileError,
        TypeError,
        ValueError,
    ) as error:  # annotations that our forms do not know raise the others
        raise UsageError(f"`{record.name}` of {record.file} does not compile for {arch}: {error}") from None
    return target.getvalue()


def _constraint(form: Form) -> Any:
    import cuda.tile as ct  # lazy: as above

    match form:
        case ConstantForm():
            return form.value
        case ScalarForm():
            return ct.compilation.ScalarConstraint(getattr(ct, form.dtype))
    return ct.compilation.ArrayConstraint(
        getattr(ct, form.dtype),
        len(form.strides),
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=form.strides,
        stride_divisible_by=form.stride_divisors,
        shape_divisible_by=form.extent_divisors,
        base_addr_divisible_by=form.address_divisor,
    )


# ---- forms ---------------------------------------------------------------------------------------------------


def _forms(record: Record, example: Example) -> Iterator[tuple[Form, ...]]:
    """The most special first: a launch takes the first that fits."""
    if len(example.args) != len(record.arguments):
        raise UsageError(f"an example of `{record.name}` has {len(example.args)} arguments: {record.file}")
    for alignment, extent in ((ALIGNMENT, EXTENT), (ALIGNMENT, 1), (1, 1)):
        yield tuple(
            _form(argument.name, argument.ownership, value, alignment, extent)
            for argument, value in zip(record.arguments, example.args, strict=True)
        )


def _form(name: str, ownership: str, value: Any, alignment: int, extent: int) -> Form:
    if ownership == "constant":
        return ConstantForm(value)
    if isinstance(value, bool):
        return ScalarForm("bool_")
    if isinstance(value, int):
        return ScalarForm("int32")
    if isinstance(value, float):
        return ScalarForm("float32")
    dtype = dtype_name(value)
    if not dtype:
        raise UsageError(f"`{name}` of an example is neither a number nor an array that cuTile takes")
    itemsize = value.dtype.itemsize
    strides = tuple(step // itemsize for step in value.strides)
    constants = tuple(
        1 if step == 1 and axis == len(strides) - 1 else None for axis, step in enumerate(strides)
    )
    if ownership == "mut" and extent == 1:
        # Rows that begin aligned but end anywhere are not stored by the bulk copy engine: it may store beyond
        # them (see `tilecheck.jit.compiler`).
        alignment = 1
    step = max(1, alignment // itemsize)
    return ArrayForm(
        dtype,
        constants,
        stride_divisors=tuple(1 if fixed is not None else step for fixed in constants),
        extent_divisors=tuple(1 if fixed is None else extent for fixed in constants),
        address_divisor=max(alignment, itemsize),
    )
