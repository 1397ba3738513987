"""`tilecheck.verified` forwards what the verdict covers, whatever stands around the kernel.

Triton's objects are stand-ins here, told by the names of their classes as the guard tells the real ones; what
the real ones do is tried in `tests/kernels/test_triton.py`.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import inspect
import sys
import textwrap
import types
import warnings
import weakref

import pytest

import tilecheck
from tilecheck.errors import LaunchRefused
from tilecheck.host.operations.kernels import prepared
from tilecheck.jit import jitted, records, verdicts
from tilecheck.jit.launch import launch

KERNELS = """
import triton
import triton.language as tl
from helpers import shifted

SCALE = tl.constexpr(2)
WIDTH: tl.constexpr = 4
OTHER = 3


@triton.jit
def doubled(x, by=SCALE):
    return x * SCALE


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr = 256):
    at = shifted(tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr + at, doubled(tl.load(x_ptr + at, mask=at < n)) + OTHER * WIDTH, mask=at < n)


@triton.jit
def fill(out_ptr, value, *, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), value)


@triton.autotune([triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at))


@triton.heuristics({"BLOCK": lambda args: args["WIDE"] * 128})
@triton.autotune([triton.Config({"WIDE2": 1}), triton.Config({"WIDE2": 2})], key=["n"])
@triton.jit
def both(out_ptr, WIDE, BLOCK: tl.constexpr, WIDE2: tl.constexpr):
    at = tl.program_id(0) * (BLOCK * WIDE2) + tl.arange(0, BLOCK * WIDE2)
    tl.store(out_ptr + at, 1.0)


@triton.autotune(
    [triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 512})], key=["n"], RESET
)
@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0), axis=0))


@triton.jit
def forced(x_ptr, out_ptr, n: tl.int8, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 1.0, mask=at < n)


# tilecheck: requires distinct(t_ptr) -- every place has one source
# tilecheck: requires within(t_ptr, 0, places) -- of the output
@triton.jit
def scatter(t_ptr, out_ptr, n, places, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    to = tl.load(t_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + to, 1.0, mask=(at < n) & (to < places))


tuned_scatter = triton.autotune([triton.Config({"BLOCK": 4}), triton.Config({"BLOCK": 8})], key=["n"])(scatter)


@triton.jit
def halved(x_ptr, sum_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(x_ptr + at, x * 0.5)
    tl.store(sum_ptr + tl.program_id(0), tl.sum(x, axis=0))


tuned_halved = triton.autotune(
    [triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 256})], key=[], restore_value=["x_ptr"]
)(halved)


@triton.jit
def after(x_ptr, out_ptr, n, WAIT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WAIT:
        tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def too_late(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + at, x, mask=at < n)


@triton.jit
def sometimes(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if n > 4:
        tl.extra.cuda.gdc_wait()
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def typed(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if x_ptr.dtype.element_ty.is_fp8():
        tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def chained(x_ptr, out_ptr, n, WAIT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WAIT and n > 3 and tl.extra.cuda.gdc_wait() is None:
        pass
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def racing(out_ptr):
    tl.store(out_ptr, tl.program_id(0))


def made(width):
    C = tl.constexpr(width)

    @triton.jit
    def narrow(out_ptr):
        tl.store(out_ptr + tl.program_id(0) * C + tl.arange(0, C), 1.0)

    return narrow
"""
HELPERS = """
import triton


@triton.jit
def shifted(i):
    return i
"""


class Kernel:
    def __getitem__(self, grid):
        return functools.partial(self.run, grid=grid, warmup=False)


class constexpr:
    def __init__(self, value):
        self.value = value


class Param:
    def __init__(self, name, annotation):
        text = "" if annotation is inspect.Parameter.empty else getattr(annotation, "__name__", str(annotation))
        self.name = name
        self.is_constexpr = "constexpr" in text
        self.annotation_type = {"int8": "i8", "int32": "i32"}.get(text, "")


class JITFunction(Kernel):
    def __init__(self, fn):
        self.fn = fn
        text = textwrap.dedent(inspect.getsource(fn))
        self.src = text[text.index("def ") :]
        self.params = [Param(p.name, p.annotation) for p in inspect.signature(fn).parameters.values()]
        self.arg_names = [p.name for p in self.params]
        self.pre_run_hooks = []
        self.launched = []

    def __hash__(self):
        raise AssertionError("hashing a kernel compiles it")

    def run(self, *args, grid, warmup, **kwargs):
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        options = {k: kwargs.pop(k) for k in list(kwargs) if k not in self.arg_names}
        bound = inspect.signature(self.fn).bind(*args, **kwargs)
        bound.apply_defaults()
        blocks = grid(dict(bound.arguments)) if callable(grid) else grid
        self.launched.append((blocks, dict(bound.arguments), options))
        return "compiled"


class InterpretedFunction(Kernel):
    def __init__(self, fn):
        self.fn = fn
        self.arg_names = list(inspect.signature(fn).parameters)
        self.pre_run_hooks = []
        self.launched = []

    def run(self, *args, grid, warmup, **kwargs):
        named = {name: value for name, value in kwargs.items() if name in self.arg_names}
        bound = inspect.signature(self.fn).bind(*args, **named)
        bound.apply_defaults()
        self.launched.append((grid({}) if callable(grid) else grid, dict(bound.arguments), {}))


class Config:
    def __init__(self, kwargs, **options):
        self.kwargs = kwargs
        self.options = options

    def all_kwargs(self):
        return {**self.kwargs, "num_warps": 4, **self.options}


class Autotuner(Kernel):
    def __init__(self, fn, configs, key, reset_to_zero=(), restore_value=(), prune_configs_by=None):
        self.fn, self.configs, self.keys = fn, configs, key
        self.arg_names = fn.arg_names
        self.reset_to_zero, self.restore_value = list(reset_to_zero), list(restore_value)
        self.early_config_prune = (prune_configs_by or {}).get("early_config_prune")
        self.cache = set()

    def run(self, *args, **kwargs):
        assert {"grid", "warmup"} <= kwargs.keys()
        key = repr(kwargs.get("n"))
        configs = self.configs[:1] if key in self.cache else self.configs
        if self.early_config_prune:
            configs = self.early_config_prune(
                self.configs, dict(zip(self.arg_names, args, strict=False)), **kwargs
            )
        self.cache.add(key)
        for config in configs:
            self.fn.run(*args, **{**kwargs, **config.all_kwargs()})


class Heuristics(Kernel):
    def __init__(self, fn, values):
        self.fn, self.values, self.arg_names = fn, values, fn.arg_names

    def run(self, *args, **kwargs):
        for name, function in self.values.items():
            kwargs[name] = function({**dict(zip(self.arg_names, args, strict=False)), **kwargs})
        return self.fn.run(*args, **kwargs)


for kind, module in {
    JITFunction: "triton.runtime.jit",
    InterpretedFunction: "triton.runtime.interpreter",
    Autotuner: "triton.runtime.autotuner",
    Heuristics: "triton.runtime.autotuner",
    constexpr: "triton.language.core",
}.items():
    kind.__module__ = module


def of_language(*args, **kwargs):
    raise AssertionError("a kernel runs on the device")


of_language.__module__ = "triton.language.core"


def inner(kernel):
    while not hasattr(kernel, "launched"):
        kernel = kernel.fn
    return kernel


@pytest.fixture
def tensor(tensor):
    """Tensors whose addresses count from one that is not null."""

    class Placed(tensor):
        def data_ptr(self):
            return 4096 + self.at

    return Placed


@pytest.fixture
def triton(monkeypatch):
    """A stand-in for Triton, imported as the real one."""
    language = types.ModuleType("triton.language")
    vars(language).update(
        dict.fromkeys("load store arange program_id atomic_add sum".split(), of_language),
        constexpr=constexpr,
        int8=type("int8", (), {}),
    )
    made = types.ModuleType("triton")
    vars(made).update(
        jit=JITFunction,
        language=language,
        Config=Config,
        autotune=lambda configs, **options: lambda fn: Autotuner(fn, configs, **options),
        heuristics=lambda values: lambda fn: Heuristics(fn, values),
    )
    monkeypatch.setitem(sys.modules, "triton", made)
    monkeypatch.setitem(sys.modules, "triton.language", language)
    return made


@pytest.fixture(scope="module")
def emitted(tmp_path_factory):
    """The verdicts of the kernels, made once."""
    folder = tmp_path_factory.mktemp("verified")
    found = {}
    for reset in ("", 'reset_to_zero=["out_ptr"]'):
        for path, text in (
            ("k.py", KERNELS.replace(", RESET", f", {reset}" if reset else "")),
            ("helpers.py", HELPERS),
        ):
            (folder / path).write_text(text)
        found[reset] = records.dump(records.records_of(tilecheck.verify_paths([str(folder / "k.py")])))
    return found


@pytest.fixture
def load(tmp_path, monkeypatch, triton, emitted):
    """Import the kernels of a folder of their own, with their verdicts; `change` edits a file before."""

    def load(reset="", change=("", ""), file="k.py"):
        for path, text in (
            ("k.py", KERNELS.replace(", RESET", f", {reset}" if reset else "")),
            ("helpers.py", HELPERS),
        ):
            (tmp_path / path).write_text(text.replace(*change) if path == file and change[0] else text)
        monkeypatch.setattr(verdicts, "_known", {})
        monkeypatch.setattr(verdicts, "_state", {"environment": True})
        monkeypatch.setattr(verdicts, "_verify", lambda file, name: None)
        (tmp_path / "verdicts.json").write_text(emitted[reset])
        tilecheck.use_verdicts(tmp_path / "verdicts.json")
        monkeypatch.syspath_prepend(tmp_path)
        for name in ("helpers", "k"):
            spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
            made = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, name, made)
            spec.loader.exec_module(made)
        return made

    return load


def refused(call):
    with pytest.raises(LaunchRefused) as caught:
        call()
    return str(caught.value)


# ---- plain kernels -------------------------------------------------------------------------------------------


def test_a_launch_is_forwarded_as_it_is(load, tensor):
    k = load()
    x, out = tensor(1000, at=0), tensor(1000, at=4096)
    kernel = tilecheck.verified(k.copy)
    assert kernel[(4,)](x, out, 1000) == "compiled"
    assert kernel[lambda m: (-(-m["n"] // m["BLOCK"]),)](x, out, n=1000, BLOCK=512, num_warps=8) == "compiled"
    first, second = k.copy.launched
    assert first == ((4,), {"x_ptr": x, "out_ptr": out, "n": 1000, "BLOCK": 256}, {})
    assert second == ((2,), {"x_ptr": x, "out_ptr": out, "n": 1000, "BLOCK": 512}, {"num_warps": 8})


def test_keyword_only_parameters(load, tensor):
    k = load()
    fill = tilecheck.verified(k.fill)
    fill[(2,)](tensor(8), 1.0, BLOCK=4)
    assert "grid[0] = 3" in refused(lambda: fill[(3,)](tensor(8), 1.0, BLOCK=4))
    assert "fit" in refused(lambda: fill[(2,)](tensor(8), 1.0, 4))
    assert len(k.fill.launched) == 1


def test_the_default_is_part_of_the_launch(load, tensor):
    k = load()
    kernel = tilecheck.verified(k.copy)
    assert "n = 1001" in refused(lambda: kernel[(4,)](tensor(1000), tensor(1000, at=4096), 1001))
    assert k.copy.launched == []


@pytest.mark.parametrize("grid", [5, (2.0,), ("2",), None, {1: 1}, (-1,), (1, 1, 1, 1), (), lambda m: 3])
def test_what_is_no_grid_is_refused(load, tensor, grid):
    k = load()
    call = functools.partial(tilecheck.verified(k.copy)[grid], tensor(8), tensor(8, at=64), 8)
    assert "the grid" in refused(call)
    assert k.copy.launched == []


def test_a_grid_of_another_kind_is_forwarded_as_a_tuple(load, tensor):
    k = load()
    tilecheck.verified(k.copy)[[1]](tensor(8), tensor(8, at=64), 8)
    assert k.copy.launched[0][0] == (1,)


def test_a_grid_without_blocks_launches_nothing(load, tensor):
    k = load()
    assert tilecheck.verified(k.copy)[(0,)](tensor(0), tensor(0), 0) is None
    assert k.copy.launched == []


@pytest.mark.parametrize(
    ("option", "value"),
    [("ir_override", "k.ttgir"), ("num_ctas", 2), ("launch_cooperative_grid", True)],
)
def test_options_that_no_verdict_covers_are_refused(load, tensor, option, value):
    k = load()
    call = functools.partial(tilecheck.verified(k.copy)[(1,)], tensor(8), tensor(8, at=64), 8)
    assert f"`{option}={value}`" in refused(lambda: call(**{option: value}))
    assert call(**{option: 1 if option == "num_ctas" else None}, num_stages=2) == "compiled"
    assert k.copy.launched[0][2].keys() == {option, "num_stages"}


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("copy", {}, "it does not wait"),
        ("after", {"WAIT": False}, "only where `WAIT` is true"),
        ("too_late", {}, "it touches `x_ptr` before it waits"),
        ("sometimes", {}, "not all of its programs wait"),
        ("typed", {}, "it does not wait"),  # the arguments do not show the type of an element
        ("chained", {"WAIT": True}, "not all of its programs wait"),  # Triton stops at the first false constant
    ],
)
def test_a_launch_that_the_launch_before_may_still_race_with_does_not_depend_on_it(
    load, tensor, name, options, why
):
    kernel = getattr(load(), name)
    call = functools.partial(
        tilecheck.verified(kernel)[(1,)], tensor(8), tensor(8, at=64), 8, BLOCK=8, **options
    )
    told = refused(lambda: call(launch_pdl=True))
    assert why in told
    assert "`launch_pdl=True`" in told
    assert kernel.launched == []
    assert call(launch_pdl=False) == "compiled"


def test_a_kernel_that_waits_before_it_touches_memory_may_depend_on_the_launch_before(load, tensor):
    kernel = load().after
    call = functools.partial(tilecheck.verified(kernel)[(1,)], tensor(8), tensor(8, at=64), BLOCK=8, WAIT=True)
    assert call(8, launch_pdl=True) == "compiled"
    assert kernel.launched[0][2]["launch_pdl"] is True
    assert "overlap" in refused(
        lambda: tilecheck.verified(kernel)[(1,)](tensor(8), tensor(8), 8, True, 8, launch_pdl=True)
    )


def test_operations_of_the_host_say_that_they_depend_in_the_word_of_the_library(load):
    kernel = load().after
    with pytest.raises(TypeError, match="give `dependent=True` in place of `launch_pdl`"):
        prepared(kernel).launch(None, None, (1,), (), {"launch_pdl": True}, dependent=False)
    assert kernel.launched == []


def test_a_dependent_launch_is_checked_like_any_other(load, tensor):
    """`tilecheck.host` asks for it, where it has looked at the launches before."""
    k = load()
    kernel = tilecheck.verified(k.copy)
    launch = functools.partial(kernel.guarded.launch_dependent, k.copy)
    launch((1,), (tensor(8), tensor(8, at=64), 8), {"num_stages": 2})
    assert k.copy.launched[0][2] == {"num_stages": 2, "launch_pdl": True}
    assert launch((0,), (tensor(0), tensor(0), 0), {}) is None
    assert kernel.record.name == "copy"
    assert "overlap" in refused(lambda: launch((1,), (tensor(8), tensor(8), 8), {}))
    tuned = tilecheck.verified(k.tuned).guarded
    assert "tuner" in refused(
        lambda: tuned.launch_dependent(k.tuned, (1,), (tensor(512), tensor(512, at=4096), 512), {})
    )
    assert len(k.copy.launched) == 1


def test_a_tile_that_each_thread_has_elements_of_is_as_large_as_the_program(load, tensor):
    """S8: of a smaller one several threads load each element. Without an option there are four warps."""
    k = load()
    call = tilecheck.verified(k.halved)[(1,)]
    x, out = tensor(256), tensor(1, at=4096)
    call(x, out, BLOCK=128)
    call(x, out, 64, num_warps=2)
    for size, options, threads in ((64, {}, 128), (128, {"num_warps": 8}, 256), (64, {"num_warps": 4}, 128)):
        told = refused(lambda size=size, options=options: call(x, out, BLOCK=size, **options))
        assert f"has {size}, and the program {threads} threads" in told
    assert len(k.halved.launched) == 2


def of_driver(size):
    def target():
        if size is None:
            raise RuntimeError("0 active drivers")
        return types.SimpleNamespace(warp_size=size) if size else ("cuda", 90)

    return types.SimpleNamespace(
        driver=types.SimpleNamespace(active=types.SimpleNamespace(get_current_target=target))
    )


@pytest.mark.parametrize(("size", "threads"), [(32, 0), (None, 0), (64, 256), (0, 256)])
def test_the_threads_of_a_warp_are_those_of_the_device(load, tensor, monkeypatch, size, threads):
    k = load()
    call = tilecheck.verified(k.halved)[(1,)]
    monkeypatch.setitem(sys.modules, "triton.runtime.driver", of_driver(size))
    x, out = tensor(256), tensor(1, at=4096)
    call(x, out, BLOCK=256)
    if threads:
        assert f"the program {threads} threads" in refused(lambda: call(x, out, BLOCK=128))
    else:
        call(x, out, BLOCK=128)


def test_the_tiles_of_every_configuration_are_as_large_as_the_program(load, tensor):
    k = load()
    call = tilecheck.verified(k.tuned_halved)[(1,)]
    x, out = tensor(256), tensor(1, at=4096)
    call(x, out)
    k.tuned_halved.configs[1].options["num_warps"] = 16
    k = load()
    k.tuned_halved.configs[1].options["num_warps"] = 16
    told = refused(lambda: tilecheck.verified(k.tuned_halved)[(1,)](x, out))
    assert "has 256, and the program 512 threads" in told
    assert inner(k.tuned_halved).launched == []


@pytest.mark.parametrize(
    ("option", "value", "told"), [("num_warps", 16, "the program 512 threads"), ("num_ctas", 2, "`num_ctas=2`")]
)
def test_options_of_a_configuration_that_other_arguments_left_are_checked(load, tensor, option, value, told):
    """A tuner remembers its choice by its key, which need not have all that configurations are left by."""
    k = load()
    x, out, asked = tensor(256), tensor(1, at=4096), []

    def prune(configs, named, **given):
        asked.append(configs)
        return [configs[0] if len(asked) == 1 else remembered]

    remembered = type(k.tuned_halved.configs[0])({"BLOCK": 256}, **{option: value})
    k.tuned_halved.early_config_prune = prune
    hooks = inner(k.tuned_halved).pre_run_hooks
    assert told in refused(lambda: tilecheck.verified(k.tuned_halved)[(1,)](x, out))
    assert len(asked) == 2
    assert inner(k.tuned_halved).launched == []
    assert inner(k.tuned_halved).pre_run_hooks == hooks == []


def test_a_kernel_that_is_not_verified_is_refused_with_the_report(load, tensor):
    k = load()
    assert "TC201" in refused(lambda: tilecheck.verified(k.racing)[(2,)](tensor(8)))


@pytest.mark.parametrize("value", [None, len, 5, "copy"])
def test_what_is_no_kernel_is_refused(value):
    assert "no Triton kernel" in refused(tilecheck.verified(value)[(1,)])


def test_a_class_derived_from_tritons_is_no_kernel(load, tensor):
    k = load()

    class Other(JITFunction):
        def run(self, *args, **kwargs):
            raise AssertionError

    assert "no Triton kernel" in refused(tilecheck.verified(Other(k.copy.fn))[(1,)])


def test_each_language_names_the_others_launch(load):
    assert "tilecheck.verified" in refused(lambda: launch(0, (1,), load().tuned, ()))
    assert "tilecheck.launch" in refused(tilecheck.verified(types.SimpleNamespace())[(1,)])


def test_kernels_are_not_kept_alive_and_not_hashed(load, tensor):
    k = load()
    kernel = JITFunction(k.copy.fn)
    tilecheck.verified(kernel)[(1,)](tensor(8), tensor(8, at=64), 8)
    known = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert known() is None


def test_a_closure_is_a_launch_value(load, tensor):
    narrow = tilecheck.verified(load().made(4))
    narrow[(2,)](tensor(8))
    assert "C = 4" in refused(lambda: narrow[(3,)](tensor(8)))


# ---- the function in memory is the text ----------------------------------------------------------------------


def test_an_edited_file_is_refused(load, tmp_path, tensor):
    k = load()
    path = tmp_path / "k.py"
    path.write_text(path.read_text().replace("mask=at < n", "mask=at <= n"))
    assert "is not what" in refused(lambda: tilecheck.verified(k.copy)[(1,)](tensor(8), tensor(8), 8))


@pytest.mark.parametrize(
    ("file", "change"), [("k.py", ("* OTHER", "- OTHER")), ("helpers.py", ("return i", "return -i"))]
)
def test_a_file_that_was_not_verified_is_refused(load, tensor, file, change):
    k = (
        load(change=("    return i\n", "    return -i\n"), file="helpers.py")
        if file == "helpers.py"
        else load(change=("OTHER = 3", "OTHER = 5"))
    )
    assert "is not a kernel that tilecheck knows" in refused(tilecheck.verified(k.copy)[(1,)])


def test_replaced_text_is_refused(load):
    k = load()
    k.copy.src = k.copy.src.replace("at < n", "at <= n")
    assert "its text was replaced" in refused(tilecheck.verified(k.copy)[(1,)])


@pytest.mark.parametrize("src", ["", "def copy(", None, 5, "(" * 5000])
def test_a_text_that_is_none_is_refused(load, src):
    k = load()
    k.copy.src = src
    assert "its text was replaced" in refused(tilecheck.verified(k.copy)[(1,)])


@pytest.mark.parametrize("helper", ["doubled", "shifted"])
def test_replaced_text_of_a_helper_is_refused(load, helper):
    k = load()
    getattr(k, helper).src = getattr(k, helper).src.replace("return", "return 1 +")
    assert f"`{helper}` is not launched: its text was replaced" in refused(tilecheck.verified(k.copy)[(1,)])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SCALE", constexpr(3)),
        ("SCALE", 3),
        ("OTHER", 4),
        ("WIDTH", 5),
        ("doubled", "racing"),
        ("tl", types.ModuleType("tl")),
    ],
)
def test_a_replaced_global_is_refused(load, name, value):
    k = load()
    setattr(k, name, getattr(k, value) if isinstance(value, str) else value)
    assert "is not" in refused(tilecheck.verified(k.copy)[(1,)])


def test_a_helper_of_another_file_is_refused(load, tmp_path, monkeypatch):
    k = load()
    (tmp_path / "other.py").write_text(HELPERS)
    spec = importlib.util.spec_from_file_location("other", tmp_path / "other.py")
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    k.shifted = other.shifted
    assert "is not launched" in refused(tilecheck.verified(k.copy)[(1,)])


def test_annotations_in_memory_are_those_of_the_text(load):
    k = load()
    k.copy.params[2].is_constexpr = True
    assert "annotation of `n`" in refused(tilecheck.verified(k.copy)[(1,)])


@pytest.mark.parametrize("kind", ["i8", "u8", "i16", "u16", "u32", "u64", "u1", "fp32"])
def test_an_integer_of_another_type_is_refused(load, kind):
    k = load()
    k.copy.params[2].annotation_type = kind
    assert "annotation of `n`" in refused(tilecheck.verified(k.copy)[(1,)])


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_an_integer_may_be_wider(load, tensor, kind):
    k = load()
    k.copy.params[2].annotation_type = kind
    tilecheck.verified(k.copy)[(1,)](tensor(8), tensor(8, at=64), 8)


def test_a_pointer_of_another_type_is_refused(load):
    k = load()
    k.copy.params[0].annotation_type = "*fp64"
    assert "annotation of `x_ptr`" in refused(tilecheck.verified(k.copy)[(1,)])


def test_a_number_that_the_text_forces_to_eight_bits_is_no_bound(load, tensor):
    """Whatever `at < n` says, the array must hold what the blocks reach."""
    launch = tilecheck.verified(load().forced)[(1,)]
    launch(tensor(8), tensor(8, at=64), 4, BLOCK=8)
    assert "numel(out_ptr)" in refused(lambda: launch(tensor(8), tensor(8, at=64), 4, BLOCK=16))


# ---- tuned kernels -------------------------------------------------------------------------------------------


def grid_of(n):
    return lambda meta: (n // meta["BLOCK"],)


def test_every_configuration_passes_before_one_runs(load, tensor):
    k = load()
    tuned = tilecheck.verified(k.tuned)
    tuned[grid_of(1024)](tensor(1024), tensor(1024, at=4096), 1024)
    assert [(grid, given["BLOCK"]) for grid, given, _ in inner(k.tuned).launched] == [((8,), 128), ((2,), 512)]
    assert "BLOCK = 512" in refused(lambda: tuned[(8,)](tensor(1024), tensor(1024, at=4096), 1024))
    assert "S1" in refused(lambda: tuned[grid_of(1024)](tensor(1024), tensor(1024, at=4092), 1024))
    assert len(inner(k.tuned).launched) == 2


def test_a_tuned_kernel_is_checked_in_every_launch(load, tensor):
    """The tuner has chosen 128; the grid is a function whose answer changes."""
    k = load()
    tuned = tilecheck.verified(k.tuned)
    blocks = [1]

    def grid(meta):
        return (blocks[0],)

    tuned[grid](tensor(1024), tensor(1024, at=4096), 1024)
    blocks[0] = 8
    tuned[grid](tensor(1024), tensor(1024, at=4096), 1024)
    blocks[0] = 9
    assert "grid[0] = 9" in refused(lambda: tuned[grid](tensor(1024), tensor(1024, at=4096), 1024))
    assert [grid for grid, *_ in inner(k.tuned).launched] == [(1,), (1,), (8,)]


def test_what_a_hook_changes_is_seen(load, tensor):
    k = load()
    shrunk = tensor(8, at=64)
    k.copy.pre_run_hooks.append(lambda *args, **kwargs: setattr(shrunk, "shape", (4,)))
    call = tilecheck.verified(k.copy)[(1,)]
    assert "numel(out_ptr) = 4" in refused(lambda: call(tensor(8), shrunk, 8))
    assert k.copy.launched == []


def test_a_configuration_that_is_dropped_does_not_count(load, tensor):
    k = load()
    k.tuned.early_config_prune = lambda configs, named, **given: [c for c in configs if c.kwargs["BLOCK"] < 500]
    tilecheck.verified(k.tuned)[(8,)](tensor(1024), tensor(1024, at=4096), 1024)
    assert len(inner(k.tuned).launched) == 1


def test_a_configuration_that_appears_while_it_runs_is_checked(load, tensor):
    k = load()
    asked = []

    def prune(configs, named, **given):
        asked.append(configs)
        return configs[:1] if len(asked) == 1 else [Config({"BLOCK": 2048})]

    k.tuned.early_config_prune = prune
    call = tilecheck.verified(k.tuned)[(8,)]
    assert "BLOCK = 2048" in refused(lambda: call(tensor(1024), tensor(1024, at=4096), 1024))
    assert inner(k.tuned).launched == []


@pytest.mark.parametrize(("option", "value"), [("ir_override", "k.ttgir"), ("num_ctas", 2)])
def test_an_option_of_a_configuration_that_no_verdict_covers_is_refused(load, tensor, option, value):
    k = load()
    k.tuned.configs[1].options[option] = value
    call = tilecheck.verified(k.tuned)[(1,)]
    assert f"`{option}={value}`" in refused(lambda: call(tensor(1024), tensor(1024, at=4096), 1024))
    assert inner(k.tuned).launched == []


def test_heuristics_around_a_tuner(load, tensor):
    k = load()
    both = tilecheck.verified(k.both)
    both[(2,)](tensor(1024), 2)
    found = [(given["BLOCK"], given["WIDE2"]) for _, given, _ in inner(k.both).launched]
    assert found == [(256, 1), (256, 2)]
    assert "WIDE2 = 2" in refused(lambda: both[(2,)](tensor(1023), 2))
    assert len(inner(k.both).launched) == 2


def test_a_grid_without_blocks_of_a_tuned_kernel(load, tensor):
    k = load()
    tilecheck.verified(k.tuned)[(0,)](tensor(0), tensor(0), 0)
    assert {grid for grid, *_ in inner(k.tuned).launched} == {(0,)}


def test_tuning_what_updates_memory_is_warned_of(load, tensor):
    k = load()
    with pytest.warns(RuntimeWarning, match="`out_ptr`: name it in `restore_value`"):
        tilecheck.verified(k.total)[(1,)](tensor(8), tensor(1, at=64), 8)


@pytest.mark.parametrize("alone", [True, False])
def test_tuning_what_is_put_back_is_not_warned_of(load, tensor, alone):
    k = load("" if alone else 'reset_to_zero=["out_ptr"]')
    if alone:
        del k.total.configs[1:]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tilecheck.verified(k.total)[(1,)](tensor(8), tensor(1, at=64), 8)


# ---- the interpreter -----------------------------------------------------------------------------------------


def test_the_interpreter_is_checked_too(load, tensor, triton):
    triton.jit = InterpretedFunction
    k = load()
    copy = tilecheck.verified(k.copy)
    copy[lambda m: (m["n"] // 8,)](tensor(8), tensor(8, at=64), 8)
    assert k.copy.launched[0][0] == (1,)
    assert "n = 9" in refused(lambda: copy[(1,)](tensor(8), tensor(8, at=64), 9))


def test_the_interpreter_does_not_tune(load, tensor, triton):
    triton.jit = InterpretedFunction
    k = load()
    call = tilecheck.verified(k.tuned)[(1,)]
    assert "does not tune" in refused(lambda: call(tensor(1024), tensor(1024, at=4096), 8))
    del k.tuned.configs[1:]
    call(tensor(1024), tensor(1024, at=4096), 8)
    assert inner(k.tuned).launched[0][0] == (1,)


def test_layers_are_taken_apart():
    assert jitted.function_of(5) is None
    assert jitted.plain(constexpr(5)) == jitted.plain(5) == 5


# ---- what the report says of parameters ----------------------------------------------------------------------

TABLES = """
import triton
import triton.language as tl


# tilecheck: requires within(live_ptr, 0, 1) -- nothing is marked
@triton.jit
def kernel(live_ptr, at_ptr, out_ptr, sum_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(at_ptr + i, mask=i < n, other=0)
    live = tl.load(live_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + at, i * scale, mask=live != 0)
    tl.atomic_add(sum_ptr + i, 1, mask=i < n)
"""


def test_params_tell_integers_and_updates():
    (kernel,) = tilecheck.check_source(TABLES).kernels
    assert {p.name for p in kernel.params if p.integer} == {"live_ptr", "at_ptr", "n", "BLOCK"}
    assert {p.name for p in kernel.params if p.updated} == {"sum_ptr"}


# ---- contracts on values in memory ---------------------------------------------------------------------------


@pytest.fixture
def table(tensor):
    """A tensor of integers that counts how often it is copied."""

    class Table(tensor):
        def __init__(self, values):
            super().__init__(len(values), at=1 << 16, dtype="int32")
            self.values = values
            self.copied = 0

        def tolist(self):
            self.copied += 1
            return list(self.values)

    return Table


def test_contracts_are_checked_for_who_asks(load, tensor, table):
    k = load()
    t, out = table([2, 0, 1, 1]), tensor(8)
    kernel = tilecheck.verified(k.scatter)
    kernel[(1,)](t, out, 4, 8, BLOCK=4)
    assert t.copied == 0
    asking = tilecheck.verified(k.scatter, check_contracts=True)
    message = refused(lambda: asking[(1,)](t, out, 4, 8, BLOCK=4))
    assert "distinct(t_ptr)" in message
    assert "t_ptr[2] = 1 and t_ptr[3] = 1" in message
    t.values[3] = 8
    assert "t_ptr[3] = 8, which is not in [0, 8)" in refused(lambda: asking[(1,)](t, out, 4, 8, BLOCK=4))
    t.values[3] = 7
    assert asking[(1,)](t, out, 4, 8, BLOCK=4) == "compiled"
    small = tilecheck.verified(k.scatter, check_contracts=3)
    assert "it has 4 elements, more than 3" in refused(lambda: small[(1,)](t, out, 4, 8, BLOCK=4))
    kernel[(1,)](table([0, 0]), out, 2, 8, BLOCK=4)  # one who does not ask, again
    assert len(k.scatter.launched) == 3


def test_a_tuner_is_not_disturbed_by_contracts(load, tensor, table):
    k = load()
    kernel = tilecheck.verified(k.tuned_scatter, check_contracts=True)
    t, out = table([2, 0, 1, 3]), tensor(8)
    kernel[lambda meta: (-(-4 // meta["BLOCK"]),)](t, out, 4, 8)
    launched = inner(k.tuned_scatter).launched
    assert len(launched) == 2
    assert t.copied == 2  # once for each configuration, before any of them runs
    t.values[0] = 0
    assert "t_ptr[0] = 0 and t_ptr[1] = 0" in refused(lambda: kernel[(1,)](t, out, 4, 8))
    assert len(launched) == 2


def test_what_a_tuner_hands_on_is_looked_at(load, tensor, table):
    """A configuration that is not in the list has other numbers than those with which contracts held."""
    k = load()
    tuner, t = k.tuned_scatter, table([0, 1, 2, 3])
    run = tuner.fn.run
    worse = table([0, 0, 2, 3])
    tuner.fn.run = lambda t_ptr, *args, **kwargs: run(worse, *args, **kwargs)
    kernel = tilecheck.verified(tuner, check_contracts=True)
    assert "t_ptr[0] = 0 and t_ptr[1] = 0" in refused(lambda: kernel[(1,)](t, tensor(8), 4, 8))
    assert not tuner.fn.launched
