"""Every public function of the installed `triton.language` is read, or is listed here as not supported."""

from __future__ import annotations

import pytest

from tilecheck import check_source
from tilecheck.frontend.triton.ops import functions
from tilecheck.model import Verdict

HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"

NOT_SUPPORTED = {
    "aggregate_replace": "aggregates have no meaning here",
    "atomic_load": "a read that is ordered with atomics",
    "atomic_poll": "a wait for another program",
    "atomic_store": "a write that is ordered with atomics",
    "condition": "a loop condition with options",
    "expect_zero": "an option of debug builds",
    "map_elementwise": "a function of the lanes, one by one",
    "pair_uniform_to_normal": "an internal of the random numbers",
    "slice": "a class of the compiler",
    "str_to_ty": "a function of the compiler",
    "tensor": "a class of the compiler",
    "tensor_descriptor": "a class of the compiler",
    "tensor_descriptor_type": "a class of the compiler",
    "to_tensor": "a conversion that no kernel needs",
    "tuple": "a class of the compiler",
    "tuple_type": "a class of the compiler",
}
TYPES = {"block_type", "const", "constexpr_type", "pointer_type"}  # in annotations and casts alone


def test_every_function_of_the_installed_triton_is_read_or_listed() -> None:
    language = pytest.importorskip("triton.language", reason="Triton is not installed")
    public = {name for name in dir(language) if not name.startswith("_")}
    called = {name for name in public if callable(getattr(language, name))}
    called -= {name for name in called if isinstance(getattr(language, name), language.dtype)}
    assert sorted(called - functions() - TYPES - {"PropagateNan"} - NOT_SUPPORTED.keys()) == []


def test_nothing_that_is_read_is_listed_as_not_supported() -> None:
    assert NOT_SUPPORTED.keys() & functions() == set()


@pytest.mark.parametrize("name", sorted(NOT_SUPPORTED))
def test_what_is_not_supported_is_unknown_and_named(name: str) -> None:
    text = f"{HEAD}def k(x_ptr, out_ptr):\n    tl.store(out_ptr, tl.{name}(x_ptr))\n"
    (kernel,) = check_source(text).kernels
    assert kernel.verdict is Verdict.UNKNOWN
    assert kernel.reason is not None
    assert kernel.reason.startswith("unsupported")


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_operators_are_read_as_functions_and_as_methods(name: str) -> None:
    places = {
        form: [k.verdict for k in check_source(f"{HEAD}def k(out_ptr, n):\n{body}").kernels]
        for form, body in {
            "function": f"    tl.store(out_ptr + tl.{name}(tl.program_id(0), 1), 1.0)\n",
            "method": f"    tl.store(out_ptr + tl.program_id(0).__{name}__(1), 1.0)\n",
        }.items()
    }
    assert places["function"] == places["method"]
    assert places["function"] != [Verdict.UNKNOWN]
