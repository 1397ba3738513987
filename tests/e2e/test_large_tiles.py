"""That the real Triton loads each element of a tile once, by one thread, where S8 says how large it is."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from types import ModuleType

import pytest

triton = pytest.importorskip("triton", reason="Triton is not installed")
compiler = pytest.importorskip("triton.compiler", reason="this Triton has no compiler to call")
backends = pytest.importorskip("triton.backends.compiler", reason="this Triton has no compiler to call")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:triton")  # of its defaults to come

FOLDER = Path(__file__).resolve().parents[2] / "fixtures/triton/in_place"
KERNELS = {  # with the loads that their text has
    "large_tiles": {
        "added_and_normed": 1,
        "planes_and_sums": 1,
        "transposed_beside": 1,
        "summed_in_an_earlier_loop": 2,
        "sum_over_the_first": 1,
    },
    "layouts": {"beside_sums_of_rows": 2},
    "running_states": {"spread_over_rows": 2, "beside_a_folded_product": 3, "rises_after_all": 1},
}
ALIGNED = [["tt.divisibility", 16]]


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def compiled(kernel: object, element: str, side: int, warps: int, *, aligned: bool) -> str:
    """Triton's own representation of a kernel, with all layouts."""
    signature, constants, known = {}, {}, {}
    for place, name in enumerate(kernel.arg_names):  # type: ignore[attr-defined]
        signature[name] = f"*{element}" if name.endswith("_ptr") else "fp32" if name == "eps" else "i32"
        if kernel.params[place].is_constexpr:  # type: ignore[attr-defined]
            signature[name], constants[(place,)] = "constexpr", side
        elif aligned and signature[name] != "fp32":
            known[(place,)] = ALIGNED
    source = compiler.ASTSource(kernel, signature, constants, known)
    made = compiler.compile(source, target=backends.GPUTarget("cuda", 90, 32), options={"num_warps": warps})
    return str(made.asm["ttgir"])


def copies(text: str) -> list[int]:
    """For each load of a tile, how many threads have each of its elements."""
    layouts = dict(re.findall(r"^(#\w+) = #ttg\.blocked<\{(.*?)\}>", text, re.MULTILINE))
    found = []
    for shape, layout in re.findall(r"tt\.load[^\n]* : tensor<([\dx]+)x!tt\.ptr<[^>]*>, (#\w+)>", text):
        sides = [int(side) for side in shape.split("x")]
        parts = [
            [int(n) for n in re.search(rf"{part} = \[([\d, ]+)\]", layouts[layout])[1].split(",")]  # type: ignore[index]
            for part in ("sizePerThread", "threadsPerWarp", "warpsPerCTA")
        ]
        covered = [math.prod(axis) for axis in zip(*parts, strict=True)]
        found.append(math.prod(max(1, c // side) for c, side in zip(covered, sides, strict=True)))
    return found


@pytest.mark.parametrize(("file", "name"), [(f, k) for f, kernels in KERNELS.items() for k in kernels])
@pytest.mark.parametrize("element", ["i8", "fp16", "fp32"])
@pytest.mark.parametrize("aligned", [True, False])
def test_each_element_is_loaded_once(file: str, name: str, element: str, *, aligned: bool) -> None:
    kernel = getattr(module(file), name)
    for side, warps in ((128, 4), (128, 2), (256, 8), (32, 1)):
        found = copies(compiled(kernel, element, side, warps, aligned=aligned))
        assert found == [1] * KERNELS[file][name]


def test_of_a_smaller_tile_there_are_copies() -> None:
    """Or there would be nothing to ask for."""
    text = compiled(module("large_tiles").added_and_normed, "fp32", 64, 4, aligned=True)
    assert max(copies(text)) > 1
