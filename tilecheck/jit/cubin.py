"""Launches kernels that `tilecheck compile` made, through cuda-python: no compiler and no prover is needed.

A compiled kernel has one or more variants: cubins for certain element types, compile-time constants and
alignments. A launch takes the first variant that its arguments fit.

The parameters of a cubin follow cuTile's calling convention `cutile_python_v1`: an array is a pointer, its
shape and its strides in elements (32-bit integers), a scalar is itself, a constant is nothing; all at their
natural alignment. The grid counts blocks; the thread count is the compiler's business and is given as 1.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from tilecheck.dataclass import dataclass
from tilecheck.errors import LaunchRefused, UsageError, refusal
from tilecheck.jit import records
from tilecheck.jit.guard import compile_guard
from tilecheck.jit.layouts import Layout, layout_of
from tilecheck.jit.records import Record

MANIFEST = "kernels.json"
SCHEMA_VERSION = 4
_REMEMBERED = 1024  # combinations of layouts and numbers with a plan; beyond them a kernel starts to forget
# Element types by cuTile's names: the `struct` letter of a scalar, and the type string of an array interface.
_SCALARS = {"int32": "i", "int64": "q", "float32": "f", "float64": "d", "bool_": "?"}
_PYTHON: dict[str, tuple[type, ...]] = {
    "int32": (int,), "int64": (int,), "float32": (float, int), "float64": (float, int), "bool_": (bool,),
}  # fmt: skip
_TYPE_STRINGS = {
    "f2": "float16", "f4": "float32", "f8": "float64",
    "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
    "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64", "b1": "bool_",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArrayForm:
    """What a variant assumes of an array: element type, rank, strides that are constants, and divisors of the
    other strides and of the extents (in elements) and of the address (in bytes)."""

    dtype: str
    strides: tuple[int | None, ...]
    stride_divisors: tuple[int, ...]
    extent_divisors: tuple[int, ...]
    address_divisor: int

    def fits(self, dtype: str, layout: Layout) -> bool:
        """Whether an array is of this form, its address apart."""
        return (
            len(layout.strides) == len(self.strides)
            and dtype == self.dtype
            and all(fixed in (None, had) for fixed, had in zip(self.strides, layout.strides, strict=True))
            and all(had % by == 0 for by, had in zip(self.stride_divisors, layout.strides, strict=True))
            and all(had % by == 0 for by, had in zip(self.extent_divisors, layout.shape, strict=True))
            and max((*layout.shape, *layout.strides), default=0) < 2**31
        )


@dataclass(frozen=True, slots=True)
class ScalarForm:
    """A number that is passed at the launch."""

    dtype: str


@dataclass(frozen=True, slots=True)
class ConstantForm:
    """A number that the cubin was compiled for."""

    value: int | float | bool


Form = ArrayForm | ScalarForm | ConstantForm
_FORMS: dict[str, Any] = {"array": ArrayForm, "scalar": ScalarForm, "constant": ConstantForm}


@dataclass(frozen=True, slots=True)
class Variant:
    """One cubin: its file in the folder of the manifest, the SHA-256 of its bytes, the name of its entry, and
    a form for each parameter of the kernel."""

    file: str
    sha256: str
    symbol: str
    forms: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """The manifest's entry for one kernel."""

    record: Record
    variants: tuple[Variant, ...]


class CompiledKernel:
    """A verified kernel of a folder that `tilecheck compile` wrote; `tilecheck.launch` takes it.

    Mutable: it remembers the plan for each combination of layouts and numbers that it met.
    """

    def __init__(self, folder: Path, compiled: Compiled) -> None:
        self.record = compiled.record
        self._check = compile_guard(compiled.record).check
        self._variants = [_Loaded(folder, variant) for variant in compiled.variants]
        # As the variants take them: a parameter that is not used is whatever it was in the examples.
        arrays = {i for v in compiled.variants for i, f in enumerate(v.forms) if isinstance(f, ArrayForm)}
        self._arrays = sorted(arrays)
        self._numbers = [i for i in range(len(self.record.arguments)) if i not in arrays]
        self._plans: dict[Any, tuple[_Plan, ...]] = {}

    def __repr__(self) -> str:
        return f"<compiled kernel {self.record.name}, {len(self._variants)} variants>"

    def forward(self, stream: Any, grid: Any, args: Any, *, dependent: bool = False) -> None:
        """Check the launch, choose a variant, launch it.

        Raises:
            LaunchRefused: the launch breaks a condition, no variant fits the arguments, or it is to depend on
                the launch before it.
        """
        if dependent:
            raise LaunchRefused(f"`{self.record.name}` cannot depend on the launch before it: it is a cubin")
        self._check(grid, args)
        try:
            addresses = [args[i].data_ptr() for i in self._arrays]
            key: Any = tuple((args[i].shape, args[i].stride(), args[i].dtype) for i in self._arrays)
        except AttributeError:  # not PyTorch's interface
            found = [layout_of(args[i]) for i in self._arrays]
            addresses = [address for address, _ in found]
            key = tuple(
                (layout, dtype_name(args[i])) for i, (_, layout) in zip(self._arrays, found, strict=True)
            )
        numbers = tuple(args[i] for i in self._numbers)
        # 1, 1.0 and True are equal, as are 0.0 and -0.0.
        told = tuple((type(number), repr(number)) for number in numbers)
        plans = self._plans.get((key, told))
        if plans is None:
            if len(self._plans) >= _REMEMBERED:
                self._plans.clear()
            plans = self._plans[key, told] = tuple(self._planned(args))
        for plan in plans:
            if all(address % by == 0 for address, by in zip(addresses, plan.divisors, strict=True)):
                plan.launch(stream, grid, addresses)
                return
        known = "\n".join(f"   = variant: {_described(v.variant)}" for v in self._variants)
        raise LaunchRefused(f"no compiled variant of `{self.record.name}` fits the arguments", known)

    def _planned(self, args: Sequence[Any]) -> Iterator[_Plan]:
        """A plan for every variant that the arguments fit, their addresses apart."""
        for loaded in self._variants:
            plan = loaded.plan(args)
            if plan is not None:
                yield plan


def load_kernels(folder: str | os.PathLike[str]) -> dict[str, CompiledKernel]:
    """The kernels of a folder that `tilecheck compile` wrote, by name.

    Raises:
        UsageError: the folder holds no manifest of this version.
    """
    where = Path(folder)
    return {c.record.name: CompiledKernel(where, c) for c in read_manifest(where)}


# ---- the manifest --------------------------------------------------------------------------------------------


def write_manifest(folder: Path, arch: str, kernels: Sequence[Compiled]) -> None:
    from tilecheck import __version__  # lazy: the package's own interface imports this module

    found = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "tilecheck", "version": __version__},
        "arch": arch,
        "kernels": [
            {**records.as_json(k.record), "variants": [_variant_json(v) for v in k.variants]} for k in kernels
        ],
    }
    (folder / MANIFEST).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _variant_json(variant: Variant) -> dict[str, Any]:
    forms = [
        {"kind": kind, **{name: getattr(form, name) for name in form.__dataclass_fields__}}
        for form in variant.forms
        for kind, known in _FORMS.items()
        if isinstance(form, known)
    ]
    return {"file": variant.file, "sha256": variant.sha256, "symbol": variant.symbol, "forms": forms}


def read_manifest(folder: Path) -> tuple[Compiled, ...]:
    """The kernels that a folder's manifest lists.

    Raises:
        UsageError: there is none, or it is of another version.
    """
    path = folder / MANIFEST
    try:
        found = records.parse(path.read_bytes())
        if found["schema_version"] != SCHEMA_VERSION:
            raise UsageError(f"{path} is of another version", "compile the kernels again")
        return tuple(_compiled(dict(item)) for item in found["kernels"])
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {refusal(error)}",
            "`tilecheck compile -o DIR` writes it",
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"{path} is not a manifest of compiled kernels") from None


def _compiled(item: dict[str, Any]) -> Compiled:
    variants = item.pop("variants")
    return Compiled(records.record_from(item), tuple(_variant_from(v) for v in variants))


def _variant_from(item: dict[str, Any]) -> Variant:
    forms = []
    for form in item["forms"]:
        fields = {k: tuple(v) if isinstance(v, list) else v for k, v in form.items() if k != "kind"}
        forms.append(_FORMS[form["kind"]](**fields))
    return Variant(item["file"], item["sha256"], item["symbol"], tuple(forms))


def _described(variant: Variant) -> str:
    words = []
    for form in variant.forms:
        match form:
            case ArrayForm():
                axes = ", ".join("?" if s is None else str(s) for s in form.strides)
                extents = ", ".join(map(str, form.extent_divisors))
                divided = f"extents divisible by {extents}; address by {form.address_divisor}"
                words.append(f"{form.dtype}[strides {axes}; {divided}]")
            case ScalarForm():
                words.append(form.dtype)
            case ConstantForm():
                words.append(str(form.value))
    return f"({', '.join(words)})"


# ---- one cubin on the device ---------------------------------------------------------------------------------


class _Loaded:
    """A variant, loaded when it is first needed."""

    def __init__(self, folder: Path, variant: Variant) -> None:
        self.variant = variant
        self._folder = folder
        self._function: Any = None
        self._library: Any = None
        letters = "".join(_letters(form) for form in variant.forms)
        self._packer = struct.Struct(f"@{letters}")
        self._offsets = [struct.calcsize(f"@{letters[:k]}0{letters[k]}") for k in range(len(letters))]

    def plan(self, args: Sequence[Any]) -> _Plan | None:
        """How to launch with arguments like these, or None if they do not fit."""
        values: list[Any] = []
        pointers, spans, divisors = [], [], []
        for form, value in zip(self.variant.forms, args, strict=True):
            match form:
                case ArrayForm():
                    _, layout = layout_of(value)
                    if not form.fits(dtype_name(value), layout):
                        return None
                    pointers.append(self._offsets[len(values)])
                    spans.append(layout.span)
                    divisors.append(form.address_divisor)
                    values += (0, *layout.shape, *layout.strides)
                case ConstantForm():
                    if type(value) is not type(form.value) or value != form.value:
                        return None
                case ScalarForm():
                    if type(value) not in _PYTHON[form.dtype]:
                        return None
                    values.append(value)
        try:
            packed = self._packer.pack(*values)
        except (struct.error, OverflowError):
            return None  # too large for the type that the cubin was compiled for
        if self._function is None:
            self._load()
        return _Plan(
            self._function, packed, tuple(self._offsets), tuple(pointers), tuple(spans), tuple(divisors)
        )

    def _load(self) -> None:
        path = self._folder / self.variant.file
        data = records.read_file(path)
        if records.digest(data) != self.variant.sha256:
            raise LaunchRefused(f"{path} is not the cubin that was verified: its bytes have changed")
        from tilecheck.jit.driver import load_kernel  # lazy: only where there is a GPU

        self._library, self._function = load_kernel(data, self.variant.symbol)


@dataclass(slots=True)
class _Plan:
    """A launch with all but the grid and the addresses decided.

    `packed` are the parameters with null pointers, `offsets` where each parameter begins in it, `pointers`
    where the arrays' addresses go. `spans` and `divisors` are those of the arrays. Mutable: it remembers where
    the arrays of the last launch were allocated.
    """

    function: Any
    packed: bytes
    offsets: tuple[int, ...]
    pointers: tuple[int, ...]
    spans: tuple[int, ...]
    divisors: tuple[int, ...]
    allocations: dict[int, tuple[int, int]] = field(default_factory=dict)

    def launch(self, stream: Any, grid: Sequence[int], addresses: Sequence[int]) -> None:
        from tilecheck.jit.driver import call  # lazy: only where there is a GPU

        buffer = ctypes.create_string_buffer(self.packed, len(self.packed) or 1)
        base = ctypes.addressof(buffer)
        for number, (at, address, span) in enumerate(zip(self.pointers, addresses, self.spans, strict=True)):
            start, end = self.allocations.get(number, (0, 0))
            if not start <= address <= address + span <= end:
                self.allocations[number] = _allocation(address, span)
            _POINTER.pack_into(buffer, at, address)
        parameters = (ctypes.c_void_p * max(1, len(self.offsets)))(*[base + o for o in self.offsets])
        x, y, z = (*grid, 1, 1)[:3]
        handle = int(getattr(stream, "cuda_stream", stream))
        call("cuLaunchKernel", self.function, x, y, z, 1, 1, 1, 0, handle, ctypes.addressof(parameters), 0)


_POINTER = struct.Struct("@P")


def _allocation(address: int, span: int) -> tuple[int, int]:
    """The addresses of the allocation that all elements of an array lie in, as the driver knows it.

    Raises:
        LaunchRefused: there is none, as for an array in the host's memory.
    """
    from tilecheck.jit.driver import allocation  # lazy: only where there is a GPU

    found = allocation(address) if span else (address, 0)
    if found is None or address + span > sum(found):
        raise LaunchRefused(f"an array of {span} bytes at address {address:#x} is not in memory of the device")
    return found[0], sum(found)


def _letters(form: Form) -> str:
    match form:
        case ArrayForm():
            return "P" + "i" * (2 * len(form.strides))
        case ScalarForm():
            return _SCALARS[form.dtype]
        case _:
            return ""


def dtype_name(argument: Any) -> str:
    """The element type of an array by cuTile's name, or "" where it has none."""
    dtype = getattr(argument, "dtype", None)
    interface: dict[str, Any] = getattr(argument, "__cuda_array_interface__", None) or {}
    if type(dtype).__module__ == "torch":
        name = str(dtype).removeprefix("torch.")
        return "bool_" if name == "bool" else name
    text = str(interface.get("typestr") or getattr(dtype, "str", ""))
    return _TYPE_STRINGS.get(text[1:], "") if text[:1] in "<|=" else ""
