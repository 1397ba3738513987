"""How the real Triton lays out the tiles of kernels that are proved because all are laid out alike (S7)."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

triton = pytest.importorskip("triton", reason="Triton is not installed")
compiler = pytest.importorskip("triton.compiler", reason="this Triton has no compiler to call")
backends = pytest.importorskip("triton.backends.compiler", reason="this Triton has no compiler to call")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:triton")  # of its defaults to come

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures/triton/in_place/one_layout.py"
DIFFERENT = ["with_a_hint", "at_two_differences", "at_two_equal_differences", "beside_a_loop_of_one_round"]
ALIGNED = [["tt.divisibility", 16]]


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    spec = importlib.util.spec_from_file_location("one_layout", FIXTURES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def layouts(kernel: object, element: str, block: int, *, aligned: bool, even: bool) -> set[str]:
    """The layouts of all loads and stores, and "converted" if a value goes from one to another."""
    signature, constants, known = {}, {}, {}
    for place, name in enumerate(kernel.arg_names):  # type: ignore[attr-defined]
        signature[name] = f"*{element}" if name.endswith("_ptr") else "i32"
        if name in ("BLOCK", "WIDE"):
            signature[name], constants[(place,)] = "constexpr", block if name == "BLOCK" else 1
        elif aligned if name.endswith("_ptr") else even:
            known[(place,)] = ALIGNED
    source = compiler.ASTSource(kernel, signature, constants, known)
    made = compiler.compile(source, target=backends.GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    text = made.asm["ttgir"]
    found = set(re.findall(r"tt\.(?:load|store)[^\n]*, (#\w+)>", text))
    return found | ({"converted"} if "convert_layout" in text else set())


@pytest.mark.parametrize("name", ["gated_backward", "swapped", "stored_and_loaded_again", "in_rounds"])
@pytest.mark.parametrize("element", ["i8", "fp32"])
@pytest.mark.parametrize("block", [8, 2048])
@pytest.mark.parametrize("aligned", [True, False])
def test_there_is_one_layout(
    kernels: ModuleType, name: str, element: str, block: int, *, aligned: bool
) -> None:
    for even in (True, False):
        assert len(layouts(getattr(kernels, name), element, block, aligned=aligned, even=even)) == 1


@pytest.mark.parametrize("name", [*DIFFERENT, "beside_weights", "spelled_in_two_ways"])
def test_of_kernels_that_are_not_proved_there_are_more(kernels: ModuleType, name: str) -> None:
    assert len(layouts(getattr(kernels, name), "i8", 2048, aligned=True, even=False)) > 1
