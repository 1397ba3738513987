"""Ahead-of-time compilation of verified Triton kernels, with Triton's own compiler; a GPU is not needed.

The types of arguments and the constants come from the examples of a module, or from a signature as Triton
writes them: `*fp32, *fp32, i32, 1024`. A cubin takes any alignment and any values of its integers.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilecheck.dataclass import dataclass
from tilecheck.errors import LaunchRefused, UsageError
from tilecheck.example import Example
from tilecheck.jit import records
from tilecheck.jit.guard_triton import compile_threads
from tilecheck.jit.jitted import WARP, layers_of
from tilecheck.jit.launch import captured
from tilecheck.jit.records import Record

MANIFEST = "triton.json"
SCHEMA_VERSION = 1
# Element types of NumPy by Triton's names.
_TYPES = {
    "float16": "fp16", "float32": "fp32", "float64": "fp64", "bool": "i1",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
_TYPE = re.compile(r"\*?(fp16|bf16|fp32|fp64|fp8e4nv|fp8e5|i1|[iu](8|16|32|64))")

Signature = tuple[tuple[str, Any], ...]  # for each parameter its type, or "constexpr" and a value


@dataclass(frozen=True, slots=True)
class Cubin:
    """One cubin: what it was compiled for, and what a launch of it must give the driver."""

    file: str
    sha256: str
    symbol: str
    signature: tuple[str, ...]
    constants: dict[str, Any]
    num_warps: int
    shared: int


def missing() -> str | None:
    """Why Triton kernels cannot be imported here, or None when they can."""
    return None if importlib.util.find_spec("triton") else "Triton is not installed"


def signature_of(record: Record, example: Example) -> Signature:
    """The types and constants of an example.

    Raises:
        UsageError: an argument has none.
    """
    if len(example.args) != len(record.arguments):
        raise UsageError(f"an example of `{record.name}` has {len(example.args)} arguments: {record.file}")
    return tuple(
        ("constexpr", value)
        if argument.ownership == "constant" or value is None
        else (_type(argument.name, value), None)
        for argument, value in zip(record.arguments, example.args, strict=True)
    )


def _type(name: str, value: Any) -> str:
    kind = {bool: "i1", int: "i32", float: "fp32"}.get(type(value))
    if kind is None:
        element = _TYPES.get(str(getattr(value, "dtype", "")))
        kind = None if element is None else f"*{element}"
    if kind is None:
        raise UsageError(f"`{name}` of an example is neither a number nor an array that Triton takes")
    return kind


def read_signature(record: Record, text: str) -> Signature:
    """The types and constants in a text, `*fp32, i32, 1024`: one for each parameter, in order.

    Raises:
        UsageError: they do not fit the parameters.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != len(record.arguments):
        needed = ", ".join(a.name for a in record.arguments)
        raise UsageError(f"`--signature` has {len(parts)} parts, and `{record.name}` takes {needed}")
    found: list[tuple[str, Any]] = []
    for argument, part in zip(record.arguments, parts, strict=True):
        if argument.ownership != "constant" and _TYPE.fullmatch(part):
            found.append((part, None))
            continue
        try:
            value = ast.literal_eval(part)
        except (ValueError, SyntaxError):
            value = ...
        if not (value is None or (argument.ownership == "constant" and type(value) in (int, bool, float, str))):
            wanted = "a constant" if argument.ownership == "constant" else "a type such as `*fp32` or `i32`"
            raise UsageError(f"`{part}` of `--signature` is not {wanted}, which `{argument.name}` needs")
        found.append(("constexpr", value))
    return tuple(found)


def export_kernel(
    record: Record, kernel: Any, signatures: Sequence[Signature], arch: str, folder: Path
) -> tuple[Cubin, ...]:
    """Compile a kernel for each signature and write the cubins into `folder`.

    Raises:
        UsageError: Triton refuses the kernel or the architecture, or a file cannot be written.
    """
    found = []
    for number, signature in enumerate(dict.fromkeys(signatures)):
        _check_sizes(record, signature)
        compiled = _compile(record, layers_of(kernel).jitted, signature, arch)
        _check_threads(record, kernel, compiled.metadata.num_warps, signature)
        data: bytes = compiled.asm["cubin"]
        path = folder / f"{Path(record.file).stem}.{record.name}.triton.{number}.{arch}.cubin"
        try:
            path.write_bytes(data)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None
        names = [a.name for a in record.arguments]
        found.append(
            Cubin(
                path.name,
                records.digest(data),
                compiled.metadata.name,
                tuple(kind for kind, _ in signature),
                {n: value for n, (kind, value) in zip(names, signature, strict=True) if kind == "constexpr"},
                compiled.metadata.num_warps,
                compiled.metadata.shared,
            )
        )
    return tuple(found)


def _check_sizes(record: Record, signature: Signature) -> None:
    """S7: arrays whose tiles have to be laid out alike have elements of one size."""
    kinds = [kind for a, (kind, _) in zip(record.arguments, signature, strict=True) if a.alike]
    if len({_bits(kind) for kind in kinds if kind.startswith("*")}) > 1:
        names = ", ".join(f"`{a.name}`" for a in record.arguments if a.alike)
        raise UsageError(f"`{record.name}` is proved for elements of one size in {names}: here {kinds}")


def _check_threads(record: Record, kernel: Any, warps: int, signature: Signature) -> None:
    """S8: tiles that have to be as large as the program has threads are."""
    try:
        check = compile_threads(record, captured(layers_of(kernel).function))
        if check is not None:
            check(warps, [value for _, value in signature], WARP)
    except LaunchRefused as error:
        raise UsageError(str(error)) from None


def _bits(kind: str) -> int:
    return max(8, int(re.findall(r"\d+", kind)[0]))


def _compile(record: Record, jitted: Any, signature: Signature, arch: str) -> Any:
    import triton  # lazy: only where kernels are compiled
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    capability = re.fullmatch(r"sm_(\d+)[af]?", arch)
    if capability is None:
        raise UsageError(f"{arch} is no architecture that Triton compiles for", "for Hopper, sm_90")
    names = [a.name for a in record.arguments]
    kinds = {name: kind for name, (kind, _) in zip(names, signature, strict=True)}
    constants = {n: value for n, (kind, value) in zip(names, signature, strict=True) if kind == "constexpr"}
    try:
        source = ASTSource(jitted, kinds, constants)
        return triton.compile(source, target=GPUTarget("cuda", int(capability[1]), WARP))
    except Exception as error:  # noqa: BLE001 - Triton raises what its passes raise
        told = str(error).strip() or type(error).__name__
        raise UsageError(f"`{record.name}` of {record.file} does not compile for {arch}: {told}") from None


def write_manifest(folder: Path, arch: str, kernels: Sequence[tuple[Record, Sequence[Cubin]]]) -> None:
    """Write down the verdicts of the kernels and their cubins."""
    from tilecheck import __version__  # lazy: the package's own interface imports this module

    found = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "tilecheck", "version": __version__},
        "arch": arch,
        "kernels": [
            {**records.as_json(record), "cubins": [asdict(cubin) for cubin in cubins]}
            for record, cubins in kernels
        ],
    }
    (folder / MANIFEST).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
