"""Every fixture kernel goes through cuTile's own compiler up to Tile IR bytecode, on the CPU.

A comment `# args: ...` above a kernel gives the signature to compile for:

    f32[2]            an array: dtype and rank; `f32[2]{int64}` for 64-bit shapes and strides
    i32, f32          a scalar
    128, True, 0.5    a constant
    [f32[1]]          a list of arrays; `(f32[1], i32)` a tuple
    fill = f32[1]     the kernel is bound to another name than its `def`
    rejected f32[1]   the compiler refuses the kernel, and the test holds it to that
"""

from __future__ import annotations

import ast
import importlib.util
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "cutile"
ARCH = "sm_90"
BYTECODE = "13.4"  # the first version with check_bounds=False
_ARGS = re.compile(
    r"#\s*args:\s*(?P<rejected>rejected\s+)?(?:(?P<name>[A-Za-z_]\w*)\s*=\s*)?(?P<types>.*?)\s*$"
)
_DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u32": "uint32",
}


@dataclass(frozen=True)
class Case:
    """One kernel and the signature that its comment gives."""

    path: Path
    line: int
    name: str
    types: str
    rejected: bool

    @property
    def id(self) -> str:
        return f"{self.path.relative_to(FIXTURES).as_posix()}::{self.name}"


def _is_kernel(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(target, ast.Attribute) and target.attr == "kernel"


def _names(text: str) -> dict[int, str]:
    """First line of each statement that binds a kernel -> the name it binds."""
    found: dict[int, str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and any(map(_is_kernel, node.decorator_list)):
            found[min(d.lineno for d in node.decorator_list)] = node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.lineno] = node.targets[0].id
    return found


def cases_of(path: Path) -> Iterator[Case]:
    """The `# args:` comments of one file."""
    text = path.read_text(encoding="utf-8")
    names = _names(text)
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        found = _ARGS.fullmatch(line.strip())
        if found:
            below = next(n for n in range(number + 1, len(lines) + 2) if not lines[n - 1].startswith("#"))
            name = found["name"] or names[below]
            yield Case(path, number, name, found["types"], bool(found["rejected"]))


CASES = [case for path in sorted(FIXTURES.rglob("*.py")) for case in cases_of(path)]


# ---- signatures ----------------------------------------------------------------------------------------


def _array(node: ast.Subscript, index_dtype: str) -> Any:
    import cuda.tile as ct
    from cuda.tile.compilation import ArrayConstraint

    assert isinstance(node.value, ast.Name)
    assert isinstance(node.slice, ast.Constant)
    return ArrayConstraint(
        getattr(ct, _DTYPES[node.value.id]),
        int(node.slice.value),
        index_dtype=getattr(ct, index_dtype),
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
    )


def _constraint(node: ast.expr) -> Any:
    import cuda.tile as ct
    from cuda.tile.compilation import ListConstraint, ScalarConstraint, TupleConstraint

    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return ScalarConstraint(getattr(ct, _DTYPES[node.id]))
        case ast.Subscript(slice=ast.Constant()):
            return _array(node, "int32")
        case ast.BinOp(left=ast.Subscript() as array, right=ast.Name(id=index)):
            return _array(array, index)
        case ast.List(elts=[element]):
            return ListConstraint(_constraint(element), alias_groups=(), elements_may_alias=False)
        case ast.Tuple():
            return TupleConstraint([_constraint(e) for e in node.elts])
    raise AssertionError(f"signature not understood: {ast.unparse(node)}")


def signature(types: str) -> list[Any]:
    """The constraints for a list of types; `f32[1]{int64}` is read as `f32[1] @ int64`."""
    text = re.sub(r"\{(\w+)\}", r"@\1", types)
    return [_constraint(e) for e in ast.parse(f"[{text}]", mode="eval").body.elts]  # type: ignore[attr-defined]  # a list display


# ---- compiling -----------------------------------------------------------------------------------------


def load(path: Path) -> Any:
    """Import one fixture: its host functions import torch only when they are called."""
    name = "fixture_" + re.sub(r"\W", "_", path.relative_to(FIXTURES).with_suffix("").as_posix())
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_kernel(kernel: Any, types: str) -> bytes:
    """Tile IR bytecode of one kernel."""
    from cuda.tile.compilation import CallingConvention, KernelSignature, export_kernel

    output = io.BytesIO()
    export_kernel(
        kernel,
        [KernelSignature(signature(types), CallingConvention.cutile_python_v2())],
        output,
        gpu_code=ARCH,
        output_format="tileir_bytecode",
        bytecode_version=BYTECODE,
    )
    return output.getvalue()


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in CASES])
def test_kernel_compiles(case: Case) -> None:
    """The kernel is legal cuTile code, or is refused where the fixture says so."""
    tile = pytest.importorskip("cuda.tile", reason="cuda-tile is not installed")
    if case.rejected:
        with pytest.raises((tile.TileError, TypeError)):
            compile_kernel(getattr(load(case.path), case.name), case.types)
    else:
        assert compile_kernel(getattr(load(case.path), case.name), case.types)
