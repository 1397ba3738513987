"""Shared by all tests: options, what several tests compute alike, how the whole suite is spread over processes,
and how an interrupt arrives."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest

from tilecheck.garbage import collect_rarely
from tilecheck.model import Report
from tilecheck.parallel import available_cores, one_thread_each
from tilecheck.verify.pipeline import verify_paths

_HERE = Path(__file__).resolve().parent
_MOST_WORKERS = 8
_Result = TypeVar("_Result")
_numbers = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite the golden files; review the diff")
    parser.addoption("--bless-worse", action="store_true", help="pin in fixtures/ratchet what got worse, too")


def pytest_configure() -> None:
    # A shell starts background commands with interrupts ignored, and a child inherits that: the tests of
    # interrupts would wait for something that never comes.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    collect_rarely()  # the processes of the suite are programs of ours
    one_thread_each()


@pytest.fixture(scope="session", autouse=True)
def _caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Commands never keep their results in the checkout, those of fixtures that tests share neither."""
    folder = tmp_path_factory.getbasetemp() / "caches"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILECHECK_CACHE_DIR", str(folder / "shared"))
        yield folder


@pytest.fixture(autouse=True)
def _own_cache(_caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of one test keep their results in a folder of its own."""
    monkeypatch.setenv("TILECHECK_CACHE_DIR", str(_caches / str(next(_numbers))))


@pytest.fixture(scope="module")
def without_triton() -> Iterator[None]:
    """Lets modules of Triton kernels be imported, with or without Triton: their kernels are plain functions."""
    triton, language = ModuleType("triton"), ModuleType("triton.language")
    language.constexpr = int  # type: ignore[attr-defined]
    triton.language = language  # type: ignore[attr-defined]
    triton.jit = lambda function: function  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "triton", triton)
        patch.setitem(sys.modules, "triton.language", language)
        yield
        for name in [n for n in sys.modules if n.startswith("tilecheck.kernels.triton")]:
            del sys.modules[name]


# ---- processes: pytest-xdist, `-n auto --dist loadfile` in pyproject.toml ------------------------------------

# Files go to processes as wholes, in the order of their tests. What takes long comes first: at the end there
# are only short ones, and no process waits for another.
_LONG = (
    "test_fixtures.py",
    "soundness/",
    "e2e/",
    "lsp/",
    "test_",
    "unit/analysis/test_large_tiles.py",
    "unit/cache/",
    "unit/certificate/",
    "unit/frontend/test_spans.py",
    "unit/launches/",
    "unit/proof/",
    "unit/test_",
)


# What `pytest -m smoke` runs: less than a minute for whoever has just changed something, and something of each
# stage. A start of the name of a file, or of tests in it.
_SMOKE = (
    "test_architecture.py",
    "test_fixtures.py::test_kernel_is_as_expected[races/",
    "test_fixtures.py::test_kernel_is_as_expected[triton/bounds/",
    "golden/",
    "e2e/test_exit_codes.py",
    "unit/cli/test_main.py",
    "unit/config/test_settings.py",
    "unit/frontend/test_settled.py",
    "unit/frontend/test_triton.py",
    "unit/jit/test_guard.py",
    "unit/launches/test_find_launches.py",
    "unit/proof/test_patterns.py",
    "unit/reference/",
    "unit/report/",
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m smoke` does not even import the files that have none of its tests."""
    if config.option.markexpr != "smoke" or not collection_path.name.startswith("test_"):
        return None
    name = collection_path.relative_to(_HERE).as_posix()
    return None if any(name.startswith(start.partition("::")[0]) for start in _SMOKE) else True


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        name = item.path.relative_to(_HERE).as_posix()
        return next((k for k, start in enumerate(_LONG) if name.startswith(start)), len(_LONG))

    items.sort(key=rank)
    for item in items:
        name = f"{item.path.relative_to(_HERE).as_posix()}::{item.name}"
        if name.startswith(_SMOKE):
            item.add_marker("smoke")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One for each processor, for the whole suite; a part of it runs faster than processes start."""
    named = [(config.invocation_params.dir / a.partition("::")[0]).resolve() for a in config.args]
    whole = all(path in (_HERE, _HERE.parent) for path in named)
    selects = config.option.keyword or config.option.markexpr not in ("", "smoke")
    return min(available_cores(), _MOST_WORKERS) if whole and not selects else 0


# ---- what several tests compute alike ------------------------------------------------------------------------


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[], _Result]], _Result]:
    """`once(name, make)` is `make()`, which is called once in this run, in whichever process comes first.

    Two processes that ask at the same time may both make it: that costs time, and nothing else.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if base.name.startswith("popen-") else base) / "once"
    folder.mkdir(exist_ok=True)
    known: dict[str, _Result] = {}

    def result(name: str, make: Callable[[], _Result]) -> _Result:
        if name in known:
            return known[name]
        file = folder / hashlib.sha256(name.encode()).hexdigest()
        try:
            known[name] = pickle.loads(file.read_bytes())
        except FileNotFoundError:
            known[name] = make()
            own = file.with_suffix(f".{base.name}")
            own.write_bytes(pickle.dumps(known[name]))
            own.replace(file)
        return known[name]

    return result


@pytest.fixture(scope="session")
def verified(once) -> Callable[[Path], Report]:
    """The report of one file, as `tilecheck verify` has it."""

    def report(path: Path) -> Report:
        data = hashlib.sha256(path.read_bytes()).hexdigest()
        return once(f"verify {path.resolve()} {data}", lambda: verify_paths([str(path)]))

    return report


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a file, or rewrite the file under `--bless`."""
    bless = request.config.getoption("--bless")

    def compare(path: Path, text: str) -> None:
        if bless:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.is_file(), f"{path.name} is missing: run `pytest --bless` and review it"
        assert text == path.read_text(encoding="utf-8")

    return compare
