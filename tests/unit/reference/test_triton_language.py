"""Control flow, functions, modules and types of Triton kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tilecheck.reference import NotInterpretable, StepLimit


@pytest.mark.parametrize(
    "text",
    [
        "import triton as tr\nfrom triton import language as ll\n@tr.jit\ndef k(x):\n    ll.store(x, 1)\n",
        (
            "from triton import jit, autotune\nimport triton.language as tl\n"
            "@autotune(configs=[], key=[])\n@jit\ndef k(x):\n    tl.store(x, 1)\n"
        ),
        "import triton\nfrom triton.language import store\ndef f(x):\n    store(x, 1)\nk = triton.jit(f)\n",
        (
            "import triton\nimport triton.language as tl\ndef f(x):\n    tl.store(x, 1)\n"
            "k = triton.autotune(configs=[], key=[])(triton.jit(f))\n"
        ),
        (
            "import cuda.tile as ct\nimport triton\nimport triton.language as tl\n"
            "@triton.jit\ndef k(x):\n    tl.store(x, 1)\n"
        ),
        (
            "def make(step):\n    import triton\n    import triton.language as tl\n"
            "    @triton.jit\n    def k(x):\n        tl.store(x, 1)\n    return k\n"
        ),
    ],
)
def test_a_triton_kernel_is_known_by_its_decorator_or_its_imports(execute, text):
    x = np.zeros(1, np.int32)
    assert len(execute(text, header="", x=x).accesses) == 1
    assert x[0] == 1


def test_a_cutile_kernel_beside_a_triton_kernel(execute):
    text = """
        import cuda.tile as ct
        import triton
        import triton.language as tl

        @triton.jit
        def other(x):
            tl.store(x, 1)

        @ct.kernel
        def k(x):
            ct.scatter(x, 0, 7 // -2 + 0 * ct.bid(0))
        """
    x = np.zeros(1, np.int32)
    execute(text, header="", x=x)
    assert x[0] == -4


def test_helpers_of_other_modules(triton, tmp_path):
    (tmp_path / "helpers.py").write_text(
        "import triton\nimport triton.language as tl\n\nSCALE = tl.constexpr(3)\n\n\n"
        "@triton.jit\ndef put(p, value, factor: tl.constexpr = SCALE):\n"
        "    tl.store(p, value * factor)\n    return value + 1, None\n",
        encoding="utf-8",
    )
    text = """
        from helpers import put, SCALE
        import helpers

        @triton.jit
        def k(x):
            y, nothing = put(x, 5)
            if nothing is None:
                helpers.put(x + 1, y, factor=SCALE.value * 2)
        """
    x = np.zeros(2, np.int32)
    log = triton(text, x=x)
    assert x.tolist() == [15, 36]
    assert {access.path for access in log.accesses} == {(tmp_path / "helpers.py").as_posix()}


def test_branches_and_loops(triton):
    text = """
        @triton.jit
        def k(out, n, m, flag, B: tl.constexpr):
            at = out + tl.program_id(0) * 8
            x = 0
            if n > 3 and m < 5:
                x = 1
            elif not n > 3:
                x = 2
            else:
                x = 3
            steps = 0
            while steps < n:
                steps += 2
            total = 0
            for a in tl.range(n, 0, -2, num_stages=3, flatten=True):
                total = total * 3 + a
            for b in tl.static_range(3):
                unrolled: tl.constexpr = b * B
                total += unrolled
            tl.store(at, x)
            tl.store(at + 1, 10 if m > 2 else 20)
            tl.store(at + 2, steps)
            tl.store(at + 3, total)
            tl.store(at + 4, 1 < n <= 4 < m)
            if flag:
                return
            tl.store(at + 5, B ** 2)
        """
    out = np.zeros(8, np.int32)
    triton(text, out=out, n=7, m=3, flag=False, B=4)
    assert out.tolist() == [1, 10, 8, ((7 * 3 + 5) * 3 + 3) * 3 + 1 + 12, 0, 16, 0, 0]
    out = np.zeros(8, np.int32)
    triton(text, out=out, n=2, m=9, flag=True, B=4)
    assert out.tolist() == [2, 10, 2, 2 + 12, 1, 0, 0, 0]
    out = np.zeros(8, np.int32)
    triton(text, out=out, n=4, m=9, flag=0, B=4)
    assert out.tolist() == [3, 10, 4, 4 * 3 + 2 + 12, 1, 16, 0, 0]


def test_runtime_conditions_do_not_stop_early(triton):
    text = """
        @triton.jit
        def k(x, n, ON: tl.constexpr):
            if n > 5 and tl.load(x) == 0:
                tl.store(x, 1)
            if ON and tl.load(x) == 0:
                tl.store(x, 2)
        """
    log = triton(text, x=np.zeros(1, np.int32), n=2, ON=False)
    assert [access.effect for access in log.accesses] == ["read"]


def test_types_are_values(triton):
    text = """
        @triton.jit
        def k(x, out, KIND: tl.constexpr):
            value = tl.load(x).to(KIND)
            tl.static_assert(value.dtype == tl.float16)
            tl.static_assert(x.dtype.element_ty.is_fp32() and x.type.is_ptr())
            tl.static_assert(value.dtype.primitive_bitwidth == 16)
            tile = tl.zeros([4, 8], dtype=x.dtype.element_ty)
            tl.static_assert(tile.shape[1] == 8 and tile.numel == 32 and tile.type.element_ty == tl.float32)
            tl.static_assert(len(tile.shape) == 2 and tile.T.shape[0] == 8)
            tl.store(out, tile.shape[0] + tile[None, :, :].shape[0])
        """
    out = np.zeros(1, np.int32)
    triton(text, x=np.zeros(1, np.float32), out=out, KIND=np.float16)
    assert out[0] == 5


def test_assertions_hints_and_prints_have_no_effect(triton):
    text = """
        @triton.jit
        def k(x, n):
            tl.device_assert(n > 100, "large")
            assert n > 100, "large"
            tl.assume(n > 0)
            tl.static_print("n")
            tl.device_print("n", n)
            print("n", n)
            tl.debug_barrier()
            i = tl.max_contiguous(tl.multiple_of(tl.arange(0, 4), 4), 4)
            tl.store(x + i, tl.where(i > n, i, -i))
        """
    x = np.zeros(4, np.int32)
    log = triton(text, x=x, n=2)
    assert x.tolist() == [0, -1, -2, 3]
    assert len(log.accesses) == 1


def test_functions_as_arguments_and_compile_time_functions(triton):
    text = """
        @triton.constexpr_function
        def halved(n):
            return max(n // 2, 4)

        @triton.jit
        def twice(x):
            return x * 2

        @triton.jit
        def k(x, N: tl.constexpr, ACT: tl.constexpr):
            i = tl.arange(0, halved(N))
            value = i
            if ACT == "twice":
                value = twice(i)
            tl.store(x + i, value)
        """
    x = np.zeros(8, np.int32)
    triton(text, x=x, N=16, ACT="twice")
    assert x.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_an_import_under_an_unknown_condition_that_names_one_thing(triton):
    text = """
        import elsewhere

        if elsewhere.new():
            try:
                from triton.language.extra.libdevice import rsqrt
            except ImportError:
                from triton.language.extra.cuda.libdevice import rsqrt
        else:
            from triton.language.math import rsqrt

        @triton.jit
        def k(x):
            tl.store(x, rsqrt(tl.load(x)))
        """
    x = np.full(1, 4, np.float32)
    triton(text, x=x)
    assert x[0] == 0.5


def test_the_environment_is_empty(triton):
    text = """
        import os

        if os.environ.get("FAST", "0") == "1" or os.getenv("FASTER") is not None:
            @triton.jit
            def value(x):
                return x * 3
        else:
            @triton.jit
            def value(x):
                return x * 2

        @triton.jit
        def k(x):
            tl.store(x, value(tl.load(x)))
        """
    x = np.full(1, 4, np.float32)
    triton(text, x=x)
    assert x[0] == 8


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("tl.arange(0, 12)", "not a power of two"),
        ("tl.arange(0, n)", "used as a compile-time integer"),
        ("tl.zeros((3,), tl.float32)", "not a power of two"),
        ("tl.full((2048, 2048), 0, tl.int32)", "a tensor of"),
        ("tl.static_assert(X == 3)", "a static assertion that fails"),
        ("tl.inline_asm_elementwise('', '', [n], tl.int32, True, 1)", "inline_asm_elementwise"),
        ("tl.no_such_thing(n)", "no_such_thing"),
        ("n.no_such_method()", "attribute `no_such_method`"),
        ("tl.arange(0, 4) + tl.arange(0, 8)", "broadcast"),
        ("tl.arange(0, 4)[0]", "indexing into a tensor"),
        ("tl.full((4,), 1.0, tl.float32) & 1", "`and` on float32"),
        ("tl.full((4,), 1.0, tl.float32) // 2.0", "`floordiv` on float32"),
        ("tl.zeros((4,), tl.int32) // tl.zeros((4,), tl.uint32)", "division of"),
        ("tl.dot(tl.zeros((16, 16), tl.float32), tl.zeros((16,), tl.float32))", "dot of"),
        ("helper = lambda a: a @ a; helper(tl.zeros((4, 4), tl.float32))", "`@` between tensors"),
        ("if tl.arange(0, 4) > 1:\n        pass", "used as a condition"),
        ("import math", "`Import` syntax"),
    ],
)
def test_what_does_not_compile_is_not_interpreted(triton, body, why):
    with pytest.raises(NotInterpretable, match=why):
        triton(f"@triton.jit\ndef k(n, X: tl.constexpr):\n    {body}\n", n=4, X=2)


def test_gluon_is_another_language(execute):
    text = """
        from triton.experimental import gluon
        from triton.experimental.gluon import language as gl

        @gluon.jit
        def k(x):
            gl.store(x, 1)
        """
    with pytest.raises(NotInterpretable, match="gluon"):
        execute(text, header="", x=np.zeros(1, np.int32))


def test_a_loop_that_does_not_end(triton):
    with pytest.raises(StepLimit):
        triton("@triton.jit\ndef k(n):\n    while n > 0:\n        pass\n", n=4)


def test_a_package_that_imports_its_own_modules(triton, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from . import inner\nfrom .inner import put as put_it\n", encoding="utf-8"
    )
    (package / "inner.py").write_text(
        "import triton\nimport triton.language as tl\n\n"
        "@triton.jit\ndef put(p, value):\n    tl.store(p, value)\n",
        encoding="utf-8",
    )
    text = """
        import package
        from package import inner

        @tl.constexpr
        def log(n):
            return tl.core.get_int_dtype(2 ** tl.standard._log2(n), True)

        @triton.jit
        def k(x):
            inner.put(x, 1)
            package.inner.put(x + 1, 2)
            package.put_it(x + 2, tl.full((), 3, log(63)))
        """
    x = np.zeros(3, np.int32)
    triton(text, x=x)
    assert x.tolist() == [1, 2, 3]
