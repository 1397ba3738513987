"""`verify --dump-smt`: the queries that decided obligations, as other programs read them."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import z3

from tilecheck.certificate import second_solver
from tilecheck.certificate.index import folder_name
from tilecheck.cli import main

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = [
    "kernels/matmul.py",
    "kernels/permute_heads.py",
    "fixtures/cutile/swizzle/grouped_persistent.py",
    "fixtures/cutile/views/slices.py",
    "fixtures/cutile/races/permute_heads.py",
]
LIMIT = 50_000_000  # resource units of z3; a query of the sample needs some hundred thousand
HEADER = re.compile(
    r"; kernel: (?P<kernel>\w+) of (?P<file>\S+)\n"
    r"; rule: (?P<rule>TC\d{3}) at (?P<place>.+)\n"
    r"; obligation (?P<number>\d+): never that .+\n"
    r"; rung: (?P<rung>smt|launch)\n"
    r"; query \d of \d, expected: unsat\n"
    r"\(set-logic ALL\)\n\(set-info :status unsat\)\n"
)


@dataclass(frozen=True)
class Dumped:
    """What a run wrote: the texts of the queries by their paths, and its JSON."""

    texts: dict[str, str]
    report: dict
    messages: str


def dumped(folder: Path, *arguments: str) -> Dumped:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        main(["verify", *arguments, "--dump-smt", str(folder), "--format", "json"], stdout=out, stderr=err)
    texts = {p.relative_to(folder).as_posix(): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}
    return Dumped(texts, json.loads(out.getvalue()), err.getvalue())


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> Dumped:
    return dumped(tmp_path_factory.mktemp("queries"), *SAMPLE)


def test_z3_refutes_every_query_as_the_file_stands(sample: Dumped) -> None:
    assert len(sample.texts) > 5
    for name, text in sample.texts.items():
        solver = z3.SimpleSolver(ctx=z3.Context())
        solver.set("rlimit", LIMIT)
        solver.from_string(text)
        assert solver.assertions(), name
        assert str(solver.check()) == "unsat", name


def test_cvc5_finds_a_model_of_none(sample: Dumped) -> None:
    if not second_solver.is_installed():
        pytest.skip("cvc5 is not installed: it is an optional dependency, the extra `certify`")
    answers = Counter(second_solver.ask(text) for text in sample.texts.values())
    assert set(answers) <= {"unsat", "unknown"}
    assert answers["unsat"] > 0.9 * answers.total()


def test_the_head_says_what_is_asked(sample: Dumped) -> None:
    """Of which kernel, obligation and rung, as the report has them; and the file is named for it."""
    kernels = {(k["file"], k["name"]): k for k in sample.report["kernels"]}
    for name, text in sample.texts.items():
        head = HEADER.match(text)
        assert head is not None, text[:400]
        assert text.endswith("\n(check-sat)\n")
        obligation = kernels[head["file"], head["kernel"]]["obligations"][int(head["number"]) - 1]
        verdict = "conditional" if head["rung"] == "launch" else "proved"
        assert (obligation["rule"], obligation["rung"]) == (head["rule"], head["rung"])
        assert obligation["verdict"] == verdict
        number = int(head["number"])
        folder = folder_name(head["file"], head["kernel"])
        assert re.fullmatch(rf"{re.escape(folder)}/{number:03}-{head['rule']}-\d\.smt2", name)


def test_every_obligation_that_the_solver_proved_has_a_query(sample: Dumped) -> None:
    """And none that cheaper rungs proved, or that was not proved."""
    by_solver, by_others = set(), set()
    for kernel in sample.report["kernels"]:
        for number, obligation in enumerate(kernel["obligations"], 1):
            place = f"{folder_name(kernel['file'], kernel['name'])}/{number:03}-{obligation['rule']}"
            if obligation["rung"] == "smt":
                by_solver.add(place)
            elif obligation["rung"] != "launch":
                by_others.add(place)
    written = {name.rpartition("-")[0] for name in sample.texts}
    assert by_solver
    assert by_solver <= written
    assert by_others
    assert not by_others & written
    assert f"{len(sample.texts)} queries in" in sample.messages


def test_two_runs_write_the_same(sample: Dumped, tmp_path: Path) -> None:
    again = dumped(tmp_path / "again", *reversed(SAMPLE), "-j1")
    assert again.texts == sample.texts


def test_show_prints_the_same_queries(sample: Dumped) -> None:
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        main(["show", "smt", "kernels/matmul.py::matmul_persistent_kernel"], stdout=out, stderr=io.StringIO())
    shown = out.getvalue().split("(reset)\n")
    own = {n: t for n, t in sample.texts.items() if n.startswith("kernels-matmul-matmul_persistent_kernel/")}
    assert own
    assert [n for n, t in own.items() if not any(part.startswith(t) for part in shown)] == []


def test_no_query_decides_what_is_violated(sample: Dumped) -> None:
    (kernel,) = (k for k in sample.report["kernels"] if k["name"] == "permute_heads_corrected")
    assert kernel["verdict"] == "violated"
    lost = [f"{n:03}-" for n, o in enumerate(kernel["obligations"], 1) if o["verdict"] == "violated"]
    assert lost
    own = [n.partition("/")[2] for n in sample.texts if "permute_heads_corrected/" in n]
    assert not [n for n in own if n.startswith(tuple(lost))]


def test_names_of_the_user_cannot_end_a_comment(tmp_path: Path) -> None:
    source = tmp_path / "é)(assert false).py"
    text = (ROOT / "fixtures/cutile/swizzle/grouped_persistent.py").read_text()
    source.write_text(text.replace("grouped_persistent", "größe"))
    found = dumped(tmp_path / "out", str(source))
    assert found.texts
    for query in found.texts.values():
        assert query.isascii()
        solver = z3.SimpleSolver(ctx=z3.Context())
        solver.from_string(query)
        assert not any(z3.is_false(a) for a in solver.assertions())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "kernels", "--dump-smt", "{full}"], "is not empty"),
        (["verify", "kernels", "--dump-smt", "{file}"], "cannot write to"),
        (["verify", "{twice}", "--dump-smt", "{empty}"], "would share the folder"),
        (["check", "kernels", "--dump-smt", "{empty}"], "unrecognized arguments"),
    ],
)
def test_wrong_invocations_end_with_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    text = (ROOT / "fixtures/cutile/swizzle/grouped_persistent.py").read_text()
    (tmp_path / "k.py").write_text(text + text)  # each kernel twice, under one name
    places = {"empty": tmp_path / "empty", "full": tmp_path / "full", "file": tmp_path / "full/file"}
    out, err = io.StringIO(), io.StringIO()
    given = [a.format(twice=tmp_path / "k.py", **places) for a in arguments]
    assert main(given, stdout=out, stderr=err) == 2
    assert message in err.getvalue()
