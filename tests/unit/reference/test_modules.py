"""Finding kernels and folding the names that they use."""

from __future__ import annotations

import numpy as np
import pytest

from tilecheck.reference import Launch, NotInterpretable, run

STORE = "    ct.store(out, (0,), {})\n"


def run_file(path, kernel="k", **arguments):
    out = np.zeros(1, np.int64)
    log = run(Launch(path.as_posix(), kernel, (1, 1, 1), {"out": out, **arguments}))
    return out[0], log


@pytest.mark.parametrize(
    "header",
    [
        "import cuda.tile as ct\n",
        "from cuda import tile as ct\n",
        "import cuda.tile\nct = cuda.tile\n",
        "try:\n    import cuda.tile as ct\nexcept ImportError:\n    ct = None\n",
        "if True:\n    import cuda.tile as ct\nelse:\n    ct = None\n",
    ],
)
def test_ways_to_import_the_dsl(tmp_path, header):
    path = tmp_path / "m.py"
    path.write_text(header + "@ct.kernel\ndef k(out):\n" + STORE.format("ct.bid(0) + 5"))
    assert run_file(path)[0] == 5


def test_names_imported_one_by_one(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "import cuda\nfrom cuda.tile import kernel, store, bid as block, Constant, int64\n"
        "from cuda.tile import *\n"
        "@kernel\ndef k(out, T: Constant[int]):\n    store(out, (block(0),), full((), T, int64) + cdiv(7, 2))\n"
    )
    assert run_file(path, T=3)[0] == 7


@pytest.mark.parametrize(
    ("decorator", "definition"),
    [
        ("@ct.kernel(num_ctas=ct.ByTarget(sm_100=2), occupancy=2)\n", "def k(out):"),
        ("@autotune\n@ct.kernel\n", "def k(out):"),
        ("", "def f(out):"),
    ],
)
def test_ways_to_make_a_kernel(tmp_path, decorator, definition):
    path = tmp_path / "m.py"
    tail = "" if "k" in definition else "k = ct.kernel(f)\n"
    path.write_text(f"import cuda.tile as ct\n{decorator}{definition}\n{STORE.format(4)}{tail}")
    assert run_file(path)[0] == 4


def test_kernels_inside_functions_see_the_names_around_them(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "import cuda.tile as ct\n"
        "def make(tile=4, other=None):\n"
        "    doubled = tile * 2\n"
        "    unknown = other()\n"
        "    def helper(x):\n        return x + doubled\n"
        "    @ct.kernel\n    def k(out):\n        ct.store(out, (0,), helper(other))\n"
        "    return k\n"
        "def make2():\n    @ct.kernel\n    def j(out):\n        ct.store(out, (0,), unknown)\n"
    )
    assert run_file(path, other=1)[0] == 9
    assert run_file(path, other=1, tile=8)[0] == 17
    assert run_file(path, kernel="make.<locals>.k", other=1)[0] == 9
    with pytest.raises(NotInterpretable):
        run_file(path, kernel="j")


def test_a_factory_s_own_code_is_folded_as_python_runs_it(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "import cuda.tile as ct\n"
        "def plan(n):\n"
        "    parts = {}\n    size = 8\n    while size >= 1:\n        if n >= size:\n"
        "            parts[size] = n\n"
        "            n -= size\n        size //= 2\n    return parts\n"
        "def make(n, wide=None):\n"
        "    parts = plan(n)\n    has8, at8 = 8 in parts, parts.get(8, 0)\n    limit = wide or 1 << 40\n"
        "    total = 0\n    for i in range(n):\n        total += i\n"
        "    @ct.kernel\n    def k(out):\n        if has8:\n"
        "            ct.store(out, (0,), at8 * 100 + total + (total * limit) // limit)\n"
    )
    value, log = run_file(path, n=11)
    assert value == 1100 + 55 + 55
    assert not log.undefined


def test_a_kernel_that_a_factory_returned(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "import cuda.tile as ct\ndef make(n):\n    @ct.kernel\n    def k(out):\n"
        "        ct.store(out, (0,), n)\n"
        "    return k\ndef plain(out):\n    ct.store(out, (0,), 3)\n"
        "one = make(1)\ntwo = make(n=2)\nthree = ct.kernel(num_ctas=2)(plain)\nfour = one\n"
    )
    assert [run_file(path, kernel=name)[0] for name in ("one", "two", "three", "four")] == [1, 2, 3, 1]


def test_two_nested_kernels_of_one_name_need_their_path(tmp_path):
    path = tmp_path / "m.py"
    one = "def {0}():\n    @ct.kernel\n    def k(out):\n        ct.store(out, (0,), {1})\n"
    path.write_text("import cuda.tile as ct\n" + one.format("a", 1) + one.format("b", 2))
    with pytest.raises(NotInterpretable, match="2 times"):
        run_file(path)
    assert run_file(path, kernel="a.k")[0] == 1
    assert run_file(path, kernel="b.k")[0] == 2


def test_module_constants_fold(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "import math\nimport os\nimport numpy as np\nimport torch\nimport cuda.tile as ct\n"
        "A, B = 2, 3\nC: int = A * B + len((1, 2))\nLOG2E = math.log2(math.e)\nENV = os.environ.get('X', 1)\n"
        "TYPES = {torch.float16: 1, ct.int64: 2}\nif A > 1:\n    D = 10\nelse:\n    D = 20\n"
        "def scale(x, by=C):\n    return x * by\n"
        "@ct.kernel\ndef k(out, n=D):\n"
        + STORE.format("scale(n) + TYPES[out.dtype] + int(LOG2E * 100) + int(-np.inf < 0)")
    )
    assert run_file(path)[0] == 80 + 2 + 144 + 1


@pytest.mark.parametrize("name", ["ENV", "ROW", "SELF", "NOPE", "LIST"])
def test_names_that_cannot_be_folded_are_refused_where_used(tmp_path, name):
    path = tmp_path / "m.py"
    path.write_text(
        "import os\nimport cuda.tile as ct\nENV = os.environ['X']\nfor ROW in range(3):\n    pass\n"
        "SELF = SELF + 1\n"
        "LIST = 1\nLIST += 2\n@ct.kernel\ndef k(out):\n" + STORE.format(name)
    )
    with pytest.raises(NotInterpretable, match=r"m\.py:11: "):
        run_file(path)


def test_helpers_of_sibling_modules_and_packages(tmp_path):
    package = tmp_path / "pkg"
    (package / "sub").mkdir(parents=True)
    (package / "__init__.py").write_text("from .base import base\n")
    (package / "base.py").write_text("import cuda.tile as ct\nTILE = 4\ndef base(x):\n    return x + TILE\n")
    (package / "sub" / "__init__.py").write_text("")
    (package / "sub" / "more.py").write_text(
        "from ..base import *\nfrom .. import base as again\ndef more(x):\n    return base(x) * 2\n"
    )
    (tmp_path / "beside.py").write_text("def aside(x):\n    return x + 1000\n")
    path = package / "sub" / "m.py"
    path.write_text(
        "import cuda.tile as ct\nimport pkg.base as whole\nimport beside\nfrom pkg import base\n"
        "from . import more\n"
        "from .more import more as direct, TILE\nfrom pkg.sub.more import again\n"
        "@ct.kernel\ndef k(out):\n"
        + STORE.format("base(1) + more.more(1) + direct(1) + TILE + whole.TILE + beside.aside(0) + again(0)")
    )
    assert run_file(path)[0] == 5 + 10 + 10 + 4 + 4 + 1000 + 4


def test_accesses_of_a_helper_lie_in_its_own_file(tmp_path):
    (tmp_path / "helpers.py").write_text(
        "import cuda.tile as ct\n\ndef put(out, value):\n    ct.store(out, (0,), value)\n"
    )
    path = tmp_path / "m.py"
    path.write_text(
        "import cuda.tile as ct\nfrom helpers import put\n@ct.kernel\ndef k(out):\n    put(out, 3)\n"
    )
    value, log = run_file(path)
    assert value == 3
    record = log.accesses[0]
    assert record.path == (tmp_path / "helpers.py").as_posix()
    assert (tmp_path / "helpers.py").read_bytes()[record.start : record.end] == b"ct.store(out, (0,), value)"


def test_paths_stay_relative(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "m.py").write_text(
        "import cuda.tile as ct\nfrom top import put\nfrom .side import TWO\n@ct.kernel\n"
        "def k(out):\n    put(out, TWO)\n"
    )
    (tmp_path / "a" / "side.py").write_text("TWO = 2\n")
    (tmp_path / "top.py").write_text("import cuda.tile as ct\ndef put(out, v):\n    ct.store(out, (0,), v)\n")
    monkeypatch.chdir(tmp_path)
    out = np.zeros(1, np.int64)
    log = run(Launch("a/m.py", "k", (1, 1, 1), {"out": out}))
    assert out[0] == 2
    assert log.accesses[0].path == "top.py"


def test_nothing_is_imported_or_run(tmp_path):
    (tmp_path / "evil.py").write_text("raise SystemExit(3)\nVALUE = 5\n")
    path = tmp_path / "m.py"
    path.write_text(
        "import cuda.tile as ct\nfrom evil import VALUE\nraise SystemExit\n@ct.kernel\ndef k(out):\n"
        + STORE.format("VALUE")
    )
    assert run_file(path)[0] == 5


@pytest.mark.parametrize(
    "annotation",
    [
        "ct.Constant[int]",
        "ct.Constant",
        "'ct.Constant[int]'",
        "ConstInt",
        "Annotated[int, ct.ConstantAnnotation()]",
        "Optional[ct.Constant[int]]",
        "ct.Constant[int] | None",
    ],
)
def test_annotations_that_say_constant(tmp_path, annotation):
    path = tmp_path / "m.py"
    path.write_text(
        "from typing import Annotated, Optional\nimport cuda.tile as ct\nConstInt = ct.Constant[int]\n"
        f"@ct.kernel\ndef k(out, T: {annotation}):\n" + STORE.format("T * 2000000000 // 2000000000")
    )
    assert run_file(path, T=3)[0] == 3


def test_other_annotations_leave_a_machine_integer(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "import cuda.tile as ct\nfrom tilecheck import Mut\n@ct.kernel\ndef k(out: Mut, T: int):\n"
        + STORE.format("T * 2000000000")
    )
    _, log = run_file(path, T=3)
    assert [record.kind for record in log.undefined] == ["overflow"]


def test_static_dimensions_are_constants(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "from typing import Annotated\nimport cuda.tile as ct\n"
        "Static = Annotated[ct.Array, ct.ArrayAnnotation(index_dtype=ct.int64, static_shape_dims=(-1,))]\n"
        "@ct.kernel\ndef k(out, x: Static):\n"
        "    ct.static_assert(x.shape[0].dtype == ct.int64)\n" + STORE.format("x.shape[1] * 2**40 // 2**40")
    )
    assert run_file(path, x=np.zeros((2, 3)))[0] == 3


@pytest.mark.parametrize(
    ("text", "word"),
    [(b"def k(:\n", "parsed"), (b"x = 1\n", "no kernel `k`"), (b"\x00", "parsed"), (b"\xff\xfe", "parsed")],
)
def test_files_that_cannot_be_read(tmp_path, text, word):
    path = tmp_path / "m.py"
    path.write_bytes(text)
    with pytest.raises(NotInterpretable, match=word):
        run_file(path)
    with pytest.raises(NotInterpretable, match="cannot be read"):
        run_file(tmp_path / "absent.py")


def test_missing_arguments_are_named(tmp_path):
    path = tmp_path / "m.py"
    path.write_text("import cuda.tile as ct\n@ct.kernel\ndef k(out, missing):\n    pass\n")
    with pytest.raises(NotInterpretable, match="missing"):
        run_file(path)


def test_unknown_decorators_of_helpers_are_refused(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        "import cuda.tile as ct\nfrom elsewhere import wrap\n@wrap\ndef f(x):\n    return x\n"
        "@ct.function\ndef g(x):\n    return x\n@ct.kernel\ndef k(out):\n"
        + STORE.format("g(1)")
        + STORE.format("f(1)")
    )
    with pytest.raises(NotInterpretable, match="wrap"):
        run_file(path)
