"""`[tool.tilecheck]` of a `pyproject.toml`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilecheck import verify_paths
from tilecheck.cli import main
from tilecheck.config.files import Configs, load
from tilecheck.errors import UsageError
from tilecheck.model import KernelReport, Verdict
from tilecheck.options import Options

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def put(x_ptr, o_ptr, at_ptr, n, BLOCK: tl.constexpr, SCATTER: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    if SCATTER:
        i = tl.load(at_ptr + i, mask=mask)
    tl.store(o_ptr + i, x, mask=mask)
"""
DENSE = """
[[tool.tilecheck.kernel]]
match = "gen/*.py::put"
constants = { SCATTER = false }
"""


def verified(folder: Path, config: str, kernel: str = KERNEL) -> KernelReport:
    (folder / "gen").mkdir()
    (folder / "gen" / "k.py").write_text(kernel)
    (folder / "pyproject.toml").write_text(config)
    report = verify_paths([str(folder / "gen" / "k.py")], Options())
    return report.kernels[0]


def test_without_an_entry_the_values_in_memory_are_not_known(tmp_path: Path) -> None:
    report = verified(tmp_path, "[tool.tilecheck]\n")
    assert (report.verdict, report.reason) == (Verdict.UNKNOWN, "needs-contract")


def test_a_constant_specialises_a_kernel_and_is_a_premise(tmp_path: Path) -> None:
    report = verified(tmp_path, DENSE)
    assert report.verdict is Verdict.CONDITIONAL
    assert report.requires == ("SCATTER == False",)
    assert report.terms is not None
    assert report.terms.requires == ("SCATTER == 0",)


def test_a_launch_with_another_constant_is_of_another_kernel(tmp_path: Path) -> None:
    host = "\ndef host(x, o, at):\n    n = x.numel()\n    put[(triton.cdiv(n, 64),)](x, o[1:], at, n, 64, {})\n"
    (tmp_path / "other").mkdir()
    report = verified(tmp_path, DENSE, KERNEL + host.format("True"))
    assert (report.verdict, report.launches) == (Verdict.CONDITIONAL, ())
    report = verified(tmp_path / "other", DENSE, KERNEL + host.format("False"))
    assert len(report.launches) == 1


FLIPPED = """
import triton
import triton.language as tl

@triton.jit
def put(x_ptr, BLOCK: tl.constexpr, SCATTER: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    place = x_ptr + tl.program_id(0) * BLOCK
    x = tl.load(place + lane)
    if SCATTER:
        tl.store(place + lane, x)
    else:
        tl.store(place + BLOCK - 1 - lane, x)

def host(x, n):
    assert n >= 10**9
    put[(n,)](x, 64, False)
"""


@pytest.mark.parametrize("other", ["", "    put[(n,)](x, 64, True)\n"])
def test_a_launch_of_another_kernel_does_not_say_that_a_claim_never_comes_true(
    tmp_path: Path, other: str
) -> None:
    """The launch of this one is too large to be run: nothing is known of what it makes of the claim."""
    report = verified(tmp_path, DENSE, FLIPPED + other)
    assert report.verdict is Verdict.VIOLATED


SHARED = """
import torch
import triton
import triton.language as tl

@triton.jit
def put(x_ptr, n, BLOCK: tl.constexpr, SCATTER: tl.constexpr):
    place = x_ptr + tl.program_id(0) // n * BLOCK
    tl.store(place + tl.arange(0, BLOCK), 1.0 if SCATTER else 0.0)

"""
LAUNCHED = """
def host_{0}(x, n):
    put[({1},)]({2}, n, 64, {3})
"""


@pytest.mark.parametrize(
    ("others", "blocks", "verdict"),
    [(1, "1", Verdict.UNKNOWN), (9, "1", Verdict.UNKNOWN), (9, "2 * n", Verdict.VIOLATED)],
)
def test_a_launch_after_many_of_another_kernel_is_looked_at(
    tmp_path: Path, others: int, blocks: str, verdict: Verdict
) -> None:
    """Blocks meet only in a launch of several blocks, and those that are seen may have one."""
    text = "".join(LAUNCHED.format(k, "n", "x", "True") for k in range(others))
    text += LAUNCHED.format("own", blocks, "torch.empty(1024, device='cuda')", "False")
    assert verified(tmp_path, DENSE, SHARED + text).verdict is verdict


@pytest.mark.parametrize(
    ("value", "status", "verdict"),
    [("False", "holds", Verdict.CONDITIONAL), ("at is not None", "unmet", Verdict.UNKNOWN)],
)
def test_a_launch_that_may_pass_another_constant_is_not_decided(
    tmp_path: Path, value: str, status: str, verdict: Verdict
) -> None:
    host = "\ndef host(x, o, at):\n    n = x.numel()\n    put[(triton.cdiv(n, 64),)](x, o, at, n, 64, {})\n"
    report = verified(tmp_path, DENSE, KERNEL + host.format(value))
    assert report.verdict is verdict
    assert [c.status for c in report.launches[0].conditions if c.text == "SCATTER == False"] == [status]


def test_contracts_are_those_of_comments(tmp_path: Path) -> None:
    entry = """
[[tool.tilecheck.kernel]]
match = "gen.k.put"
requires = ["distinct(at_ptr)", "within(at_ptr, 0, n)", "n >= 1"]
reason = "the sampler draws without replacement"
"""
    scatter = KERNEL.replace("    if SCATTER:\n        i", "    i")
    commented = scatter.replace(
        "@triton",
        "# tilecheck: requires distinct(at_ptr)\n# tilecheck: requires within(at_ptr, 0, n)\n"
        "# tilecheck: requires n >= 1\n@triton",
    )
    (tmp_path / "other").mkdir()
    by_comment = verified(tmp_path / "other", "", commented)
    report = verified(tmp_path, entry, scatter)
    assert report.conditions == by_comment.conditions
    assert report.verdict is Verdict.CONDITIONAL
    assert report.requires == by_comment.requires


def test_constants_that_contradict_each_other_prove_nothing(tmp_path: Path) -> None:
    report = verified(tmp_path, DENSE + DENSE.replace("false", "true"))
    assert (report.verdict, report.reason) == (Verdict.UNKNOWN, "vacuous")


@pytest.mark.parametrize(
    ("match", "speaks"),
    [
        ("gen/k.py::put", True),
        ("gen/*::p*", True),
        ("*::put", True),
        ("gen.k.put", True),
        ("gen.*.put", True),
        ("gen/k.py::puts", False),
        ("k.py::put", False),
        ("k.put", False),
    ],
)
def test_which_kernels_are_meant(tmp_path: Path, match: str, speaks: bool) -> None:
    report = verified(tmp_path, DENSE.replace("gen/*.py::put", match))
    assert (report.verdict is Verdict.CONDITIONAL) is speaks


def test_an_entry_with_a_pattern_says_nothing_of_names_that_a_kernel_lacks(tmp_path: Path) -> None:
    entry = DENSE.replace("SCATTER = false", "SCATTER = false, DENSE = 1, n = 2")
    report = verified(tmp_path, entry + '\nrequires = ["increasing(offsets)"]\n')
    assert report.requires == ("SCATTER == False",)


def test_an_entry_for_one_kernel_must_fit_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = DENSE.replace("gen/*.py::put", "gen/k.py::put").replace("SCATTER", "SCATER")
    verified(tmp_path, entry)
    assert main(["verify", "--format", "json", str(tmp_path)]) == 1
    findings = json.loads(capsys.readouterr().out)["diagnostics"]
    (finding,) = (f for f in findings if f["code"] == "TC103")
    assert (finding["file"], finding["line"]) == ((tmp_path / "pyproject.toml").as_posix(), 2)


def test_a_number_that_is_no_compile_time_parameter_is_refused(tmp_path: Path) -> None:
    entry = DENSE.replace("gen/*.py::put", "gen/k.py::put").replace("SCATTER = false", "n = 4")
    report = verified(tmp_path, entry)
    assert report.reason == "unsupported:constant `n`, which is no compile-time parameter"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[tool.tilecheck]\nkernels = 1", "`[tool.tilecheck]` has no key `kernels`", "did you mean `kernel`?"),
        ("[tool.tilecheck]\nkernel = 1", "`kernel` is no array of tables", "write `[[tool.tilecheck.kernel]]`"),
        ("[tool]\ntilecheck = 1", "`[tool.tilecheck]` is no table", None),
        (
            DENSE.replace("constants", "constant"),
            'number 1 (match = "gen/*.py::put")',
            "did you mean `constants`?",
        ),
        (DENSE + 'when = "x"', "has no key `when`", "known are `match`, `requires`, `constants`, `reason`"),
        (DENSE.replace("match", "requires"), "`match` must be a text", None),
        (DENSE + "requires = 'n > 1'", "`requires` must be a list of texts", None),
        (DENSE + "requires = ['n >']", "contract `n >` is not understood", None),
        (DENSE + "requires = ['increasng(t)']", "contract `increasng` is not understood", None),
        (DENSE.replace("false", "1.5"), "`SCATTER = 1.5` is no integer or truth value", None),
        (DENSE.replace("{ SCATTER = false }", "3"), "`constants` must be a table", None),
        (DENSE.replace("{ SCATTER = false }", "{}"), "neither `requires` nor `constants` is given", None),
        (DENSE + "reason = 3", "`reason` must be a text", None),
        ("[tool.tilecheck", "is no TOML", None),
    ],
)
def test_what_is_not_understood_ends_the_run(tmp_path: Path, text: str, message: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as raised:
        verified(tmp_path, text)
    assert message in raised.value.message
    assert raised.value.message.startswith(str(tmp_path / "pyproject.toml"))
    assert raised.value.hint == hint


def test_a_wrong_config_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "pyproject.toml").write_text("[tool.tilecheck]\nkernels = 1\n")
    assert main(["verify", str(tmp_path)]) == 2
    assert "did you mean `kernel`?" in capsys.readouterr().err


def test_the_closest_file_with_the_table_counts(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(DENSE)
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\ntilecheck = 1\n")
    configs = Configs()
    found = configs.of(str(tmp_path / "a" / "b" / "k.py"))
    assert found.file == tmp_path / "pyproject.toml"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.tilecheck]\n")
    found = Configs().of(str(tmp_path / "a" / "b" / "k.py"))
    assert found.folder == tmp_path / "a"
    assert not found.kernels


def test_a_file_without_the_table_is_no_config(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'tilecheck'\n")
    assert load(tmp_path / "pyproject.toml") is None
