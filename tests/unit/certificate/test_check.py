"""Certificates of kernels are accepted as they are written, and rejected when anything in them is changed."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tilecheck.certificate import second_solver
from tilecheck.certificate.check import Checked, Checker
from tilecheck.certificate.index import FORMAT, INDEX, OBLIGATIONS, digests, folder_name
from tilecheck.certificate.linear import linear_query
from tilecheck.certificate.reader import END, PRELUDE, parsed
from tilecheck.certificate.terms import CertificateError
from tilecheck.cli import main

ROOT = Path(__file__).parents[3]
KERNELS = ["kernels/vector_add.py", "kernels/matmul.py", "kernels/rope.py"]
BOUND = "(assert (<= |grid[0]| (floor-div (+ (- 1) |x.shape[0]| |TILE|) |TILE|)))\n"


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


def run(*arguments: str) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    return Ran(int(main(arguments, stdout=out, stderr=err)), out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    return certified(tmp_path_factory.mktemp("certificates"), *KERNELS)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    return certified(tmp_path_factory.mktemp("certificates"), "kernels/vector_add.py")


def certified(folder: Path, *paths: str, place: Path = ROOT) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        ran = run("verify", *paths, "--certify", str(folder))
    assert ran.code == 0
    assert f"tilecheck certificate check {folder}" in ran.err
    return folder


@pytest.fixture
def folder(small: Path, tmp_path: Path) -> Path:
    """The certificates of one kernel, to be corrupted."""
    return Path(shutil.copytree(small, tmp_path / "copy"))


@pytest.fixture
def goal(folder: Path) -> Path:
    """The certificate of a bound of `vector_add_kernel`, which needs a launch condition and lemmas."""
    found = folder / folder_name("kernels/vector_add.py", "vector_add_kernel") / "001.goal.smt2"
    assert BOUND in found.read_text()
    assert "(set-info :lemma" in found.read_text()
    return found


def rejected(folder: Path, ask=lambda query: "unsat") -> list[Checked]:
    """What is rejected although all digests fit."""
    seal(folder)
    return [c for c in Checker(ask).check(folder) if c.error]


def seal(folder: Path) -> None:
    """Write the digests of the files anew, as one would who wants a change to be accepted."""
    index = json.loads((folder / INDEX).read_text())
    for kernel in index["kernels"]:
        kernel["files"] = digests(folder / kernel["folder"])
    (folder / INDEX).write_text(json.dumps(index))


def noticed(folder: Path, source: Path | None = None) -> list[str]:
    """What is said of kernels whose files or sources are not those that were certified."""
    ran = run("certificate", "check", str(folder), *(() if source is None else ("--source", str(source))))
    assert ran.code == 1
    return re.findall(r"error: `\w+` of \S+\n  (.*)\n", ran.out)


def rebuild(goal: Path) -> None:
    """Write the linear query anew, as one would who wants the change to be accepted."""
    certificate = parsed(goal.read_text())
    query = linear_query(certificate.terms, [*certificate.assertions, *certificate.lemmas])
    goal.with_name("001.linear.smt2").write_text(query)


def test_what_is_written_is_accepted(written: Path, cvc5) -> None:
    results = list(Checker(cvc5).check(written))
    assert not [r for r in results if r.error]
    assert {r.how for r in results} == {"linear", "language"}
    assert len({r.kernel.name for r in results}) == 5
    ran = run("certificate", "check", str(written))
    assert (ran.code, ran.err) == (0, "")
    said = r"\d+ obligations of 5 kernels: .* in linear arithmetic, [^;]*"
    assert re.fullmatch(said + r"; not compared with their sources \(--source\)\n", ran.out)
    ran = run("certificate", "check", str(written), "--source", str(ROOT))
    assert (ran.code, ran.err) == (0, "")
    assert re.fullmatch(said + "\n", ran.out)


def test_a_certificate_is_smt_lib(written: Path, cvc5) -> None:
    """A solver reads the file as it stands, lemmas and all."""
    for path in sorted(written.rglob("*.goal.smt2")):
        assert cvc5(path.read_text().replace("(check-sat)", "")) == "unknown"  # nothing was asked


# -- one file is changed: it no longer fits the other ------------------------------------------------------


def changes(text: str) -> Iterator[tuple[str, str]]:
    negated = re.search(r"\(assert \(not .*\n", text)
    assert negated is not None
    lemma = next(line for line in text.splitlines() if ":lemma (order" in line)
    yield "changed premise", text.replace(BOUND, BOUND.replace("<=", "<", 1))
    yield "dropped premise", text.replace(BOUND, "")
    yield "added premise", text.replace(BOUND, BOUND + "(assert (< |grid[0]| 0))\n")
    yield "changed goal", text.replace(negated.group(), "(assert (< |x.shape[0]| 0))\n")
    yield "dropped goal", text.replace(negated.group(), "")
    yield "dropped lemma", text.replace(lemma + "\n", "")


@pytest.mark.parametrize(
    "name",
    ["changed premise", "dropped premise", "added premise", "changed goal", "dropped goal", "dropped lemma"],
)
def test_a_changed_certificate_is_rejected(name: str, folder: Path, goal: Path) -> None:
    """Even by a solver that says "unsat" to everything."""
    text = goal.read_text()
    changed = dict(changes(text))[name]
    assert changed != text
    goal.write_text(changed)
    (found,) = rejected(folder)
    assert (found.kernel.name, found.obligation.goal) == ("vector_add_kernel", goal.name)
    assert "is not what its goal, premises and lemmas lead to" in found.error


@pytest.mark.parametrize("change", [("<=", "<"), ("(check-sat)", ""), ("v0", "v1")])
def test_a_changed_linear_query_is_rejected(change: tuple[str, str], folder: Path, goal: Path) -> None:
    query = goal.with_name("001.linear.smt2")
    query.write_text(query.read_text().replace(*change, 1))
    assert "is not what its goal" in rejected(folder)[0].error


# -- both files are changed: the goal no longer follows ----------------------------------------------------


@pytest.mark.parametrize("name", ["dropped premise", "dropped goal", "changed goal"])
def test_what_does_not_follow_is_rejected(name: str, folder: Path, goal: Path, cvc5) -> None:
    changed = dict(changes(goal.read_text()))[name].replace("(< |x.shape[0]| 0)", "(< |x.shape[0]| 9)")
    goal.write_text(changed)
    rebuild(goal)
    (found,) = rejected(folder, cvc5)
    assert "does not follow" in found.error


def test_a_weaker_premise_is_rejected(folder: Path, goal: Path, cvc5) -> None:
    goal.write_text(goal.read_text().replace(BOUND, BOUND.replace("<= |grid[0]|", "<= (- |grid[0]| 1)")))
    rebuild(goal)
    assert "does not follow" in rejected(folder, cvc5)[0].error


def test_a_proof_without_its_lemmas_is_rejected(folder: Path, goal: Path, cvc5) -> None:
    goal.write_text(re.sub(r"\(set-info :lemma .*\n", "", goal.read_text()))
    rebuild(goal)
    assert "does not follow" in rejected(folder, cvc5)[0].error


@pytest.mark.parametrize(
    ("lemma", "message"),
    [
        ("(positive |TILE|)", "no schema"),
        ("(< |TILE| 0)", "no schema"),
        ("(sign |TILE|)", "about 2 integers"),
        ("(sign |TILE| (< 0 1))", "about 2 integers"),
        ("(sign |TILE| nothing)", "never declares"),
        ("((sign) |TILE|)", "do not have"),
    ],
)
def test_an_instance_of_no_schema_is_rejected(lemma: str, message: str, folder: Path, goal: Path) -> None:
    goal.write_text(goal.read_text().replace(END, f"(set-info :lemma {lemma})\n{END}"))
    assert message in rejected(folder)[0].error


# -- files are damaged -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_certificate_is_rejected(kept: float, folder: Path, goal: Path) -> None:
    text = goal.read_text()
    goal.write_text(text[: int(len(text) * kept)])
    (found,) = rejected(folder)
    assert "truncated" in found.error or "does not begin" in found.error


def test_a_missing_certificate_is_rejected(folder: Path, goal: Path) -> None:
    goal.unlink()
    missing, unread = (c for c in Checker(lambda query: "unsat").check(folder) if c.error)
    assert missing.error == "001.goal.smt2 is missing"
    assert "001.goal.smt2 cannot be read: no such file" in unread.error
    assert "not among those of the kernel" in rejected(folder)[0].error


def test_bytes_that_are_no_text_are_rejected(folder: Path, goal: Path) -> None:
    goal.write_bytes(b"\xff\xfe" + goal.read_bytes())
    assert "it is no text" in rejected(folder)[0].error


@pytest.mark.parametrize("file", [INDEX, OBLIGATIONS])
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_truncated_index_is_rejected(file: str, kept: float, folder: Path, goal: Path) -> None:
    path = folder / file if file == INDEX else goal.with_name(file)
    path.write_text(path.read_text()[: int(len(path.read_text()) * kept)])
    if file == INDEX:
        with pytest.raises(CertificateError, match=f"{file} is damaged or truncated"):
            list(Checker(lambda query: "unsat").check(folder))
    else:
        (found,) = rejected(folder)
        assert f"{file} is damaged or truncated" in found.error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": FORMAT + 1}, "another format"),
        ({"obligations": {}}, "no list of obligations"),
        ({"obligations": [7]}, "does not say"),
        ({"obligations": [{"rule": "TC201"}]}, "does not say"),
        ({"obligations": ["../x"]}, "does not say"),
    ],
)
def test_a_wrong_index_is_rejected(change: dict[str, object], message: str, folder: Path, goal: Path) -> None:
    path = goal.with_name(OBLIGATIONS)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    (found,) = rejected(folder)
    assert message in found.error


def _change_first(certificate: Path, **change: str) -> None:
    path = certificate.with_name(OBLIGATIONS)
    index = json.loads(path.read_text())
    index["obligations"][0] |= change
    path.write_text(json.dumps(index))


def test_files_outside_of_the_folder_are_not_read(folder: Path, goal: Path) -> None:
    _change_first(goal, goal="../001.goal.smt2")
    (found,) = rejected(folder)
    assert "outside of its folder" in found.error


def test_only_goals_about_order_have_no_formula(folder: Path, goal: Path) -> None:
    _change_first(goal, goal="", query="", rung="provenance")
    assert "no file says what its goal is" in rejected(folder)[0].error


def test_a_proved_kernel_has_no_open_obligation(folder: Path, goal: Path) -> None:
    _change_first(goal, status="unknown")
    (found,) = rejected(folder)
    assert "its obligations are not" in found.error


# -- digests: every change of a file is noticed, and of a source ----------------------------------------------


def test_an_obligation_that_was_removed_is_noticed(folder: Path, goal: Path, cvc5) -> None:
    path = goal.with_name(OBLIGATIONS)
    index = json.loads(path.read_text())
    del index["obligations"][0]
    path.write_text(json.dumps(index))
    assert noticed(folder) == ["the list of obligations is not what was written: its SHA-256 differs"]


def test_certificates_that_were_swapped_are_noticed(folder: Path, goal: Path, cvc5) -> None:
    """Each of them holds, but not of the obligation that names it."""
    for name in ("goal", "linear"):
        one, other = goal.with_name(f"001.{name}.smt2"), goal.with_name(f"002.{name}.smt2")
        one_text, other_text = one.read_text(), other.read_text()
        assert one_text != other_text
        one.write_text(other_text)
        other.write_text(one_text)
    files = ["001.goal.smt2", "001.linear.smt2", "002.goal.smt2", "002.linear.smt2"]
    assert noticed(folder) == [f"{f} is not what was written: its SHA-256 differs" for f in files]
    assert rejected(folder, cvc5) == []


@pytest.mark.parametrize("change", ["truncated", "extended", "flipped", "removed"])
def test_a_file_that_is_damaged_is_noticed(change: str, folder: Path, goal: Path, cvc5) -> None:
    data = goal.read_bytes()
    changed = {"truncated": data[:-1], "extended": data + b"\n", "flipped": data[:-9] + bytes([data[-9] ^ 1])}
    if change == "removed":
        goal.unlink()
    else:
        goal.write_bytes(changed[change] + (b"" if change != "flipped" else data[-8:]))
    said = "is missing" if change == "removed" else "is not what was written: its SHA-256 differs"
    assert noticed(folder) == [f"001.goal.smt2 {said}"]


def test_a_kernel_whose_folder_was_exchanged_is_noticed(written: Path, tmp_path: Path, cvc5) -> None:
    folder = Path(shutil.copytree(written, tmp_path / "copy"))
    one, other = (folder / folder_name(f"kernels/{n}.py", f"{n}_kernel") for n in ("vector_add", "matmul"))
    one.rename(tmp_path / "aside")
    other.rename(one)
    (tmp_path / "aside").rename(other)
    assert "the list of obligations is not what was written: its SHA-256 differs" in noticed(folder)


@pytest.mark.parametrize("name", ["vector_add.py", "helpers.py"])
def test_a_source_that_changed_is_noticed(name: str, tmp_path: Path, cvc5) -> None:
    """That of the kernel, and those of its helpers."""
    (tmp_path / "kernels").mkdir()
    text = (ROOT / "kernels" / "vector_add.py").read_text()
    helped = text.replace("ct.bid(0)", "own(ct.bid(0))").replace(
        "import cuda", "from helpers import own\nimport cuda"
    )
    (tmp_path / "kernels" / "vector_add.py").write_text(helped)
    (tmp_path / "kernels" / "helpers.py").write_text("def own(block):\n    return block\n")
    folder = certified(tmp_path / "out", "kernels/vector_add.py", place=tmp_path)
    index = json.loads((folder / INDEX).read_text())
    assert list(index["kernels"][0]["sources"]) == ["kernels/vector_add.py", "kernels/helpers.py"]
    ran = run("certificate", "check", str(folder), "--source", str(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    source = tmp_path / "kernels" / name
    source.write_bytes(source.read_bytes() + b"\n")
    assert noticed(folder, tmp_path) == [
        f"its source kernels/{name} is not what was certified: its SHA-256 differs"
    ]
    source.unlink()
    assert noticed(folder, tmp_path) == [f"its source kernels/{name} cannot be read"]


def test_a_proved_kernel_names_its_source(folder: Path, cvc5) -> None:
    path = folder / INDEX
    index = json.loads(path.read_text())
    for sources, message in (({}, "no SHA-256 says what"), ({"other.py": ""}, "no SHA-256 says what")):
        index["kernels"][0]["sources"] = sources
        path.write_text(json.dumps(index))
        (found,) = rejected(folder)
        assert message in found.error


def test_the_list_of_obligations_is_among_the_files(folder: Path, goal: Path, cvc5) -> None:
    path = folder / INDEX
    index = json.loads(path.read_text())
    del index["kernels"][0]["files"][OBLIGATIONS]
    path.write_text(json.dumps(index))
    assert noticed(folder) == [f"the list of its obligations, {OBLIGATIONS}, is not among its files"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"files": ""}, "a text stands for a table"),
        ({"file": {}}, "a text stands for a table"),
        ({"files": {"001.goal.smt2": 7}}, "does not say"),
        ({"files": {"../x": ""}}, "outside of its folder"),
        ({"folder": ".."}, "outside of its folder"),
        ({"more": ""}, "does not say"),
    ],
)
def test_a_wrong_entry_of_a_kernel_is_rejected(change: dict[str, object], message: str, folder: Path) -> None:
    path = folder / INDEX
    index = json.loads(path.read_text())
    index["kernels"][0] |= change
    path.write_text(json.dumps(index))
    with pytest.raises(CertificateError, match=message):
        list(Checker(lambda query: "unsat").check(folder))


# -- what the solver says ----------------------------------------------------------------------------------


def test_the_answers_of_the_solver_count(folder: Path) -> None:
    for answer, message in (("sat", "cvc5 says `sat`"), ("unknown", "a limit was reached")):
        assert all(message in c.error for c in rejected(folder, lambda query, answer=answer: answer))
    assert rejected(folder) == []


def test_a_query_is_asked_once(written: Path) -> None:
    asked: list[str] = []
    results = list(Checker(lambda query: asked.append(query) or "unsat").check(written))
    assert 20 < len(asked) == len(set(asked)) < len(results)


def test_a_goal_without_a_linear_query_is_asked_as_it_stands(folder: Path, goal: Path, cvc5) -> None:
    _change_first(goal, query="")
    square = "(declare-const x Int)\n(assert (< (* x x) 0))\n"
    goal.write_text(PRELUDE + square + END)
    seal(folder)
    results = list(Checker(cvc5).check(folder))
    assert [r.how for r in results if r.obligation.goal == goal.name] == ["nonlinear"]
    goal.write_text(PRELUDE + square.replace("0)", "1)") + END)
    assert "does not follow" in rejected(folder, cvc5)[0].error


# -- the command -------------------------------------------------------------------------------------------


def test_a_rejected_certificate_ends_with_1(folder: Path, goal: Path, cvc5) -> None:
    goal.write_text(goal.read_text().replace(BOUND, ""))
    seal(folder)
    ran = run("certificate", "check", str(folder), "--source", str(ROOT))
    assert ran.code == 1
    assert "error: TC302 at kernels/vector_add.py:" in ran.out
    assert "of `vector_add_kernel` is not proved again: never that a tile of `x`" in ran.out
    assert ran.out.endswith(", 1 rejected\n")


def test_a_damaged_index_ends_with_1(folder: Path, cvc5) -> None:
    (folder / INDEX).write_text("{")
    ran = run("certificate", "check", str(folder))
    assert (ran.code, ran.err) == (1, "")
    assert "damaged or truncated" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["certificate", "check", "/nonexistent"], "is no folder"),
        (["certificate", "check", "{empty}"], "holds no certificates"),
        (["certificate", "check"], "required: DIR"),
        (["certificate", "list", "{empty}"], "invalid choice"),
        (["certificate", "check", "{written}", "--source", "/nonexistent"], "is no folder"),
        (["verify", "kernels", "--certify", "{full}"], "is not empty"),
        (["verify", "kernels", "--certify", "{file}"], "cannot write to"),
        (["check", "kernels", "--certify", "{empty}"], "unrecognized arguments"),
    ],
)
def test_wrong_invocations_end_with_2(
    arguments: list[str], message: str, written: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    places = {"empty": tmp_path / "empty", "full": tmp_path / "full", "file": tmp_path / "full/file"}
    places["written"] = written
    ran = run(*(a.format(**places) for a in arguments))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_a_folder_that_cannot_be_written_is_no_bug(tmp_path: Path, monkeypatch) -> None:
    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(Path, "write_text", full)
    ran = run("verify", "kernels/vector_add.py", "--certify", str(tmp_path / "out"))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(": no space left on device\n")


def test_without_cvc5_it_says_what_to_install(written: Path, monkeypatch) -> None:
    monkeypatch.setattr(second_solver, "is_installed", lambda: False)
    ran = run("certificate", "check", str(written))
    assert ran.code == 2
    assert "pip install 'tilecheck[certify]'" in ran.err


def test_what_is_not_proved_is_counted_and_kernels_that_are_not_read_are_listed(tmp_path: Path, cvc5) -> None:
    source = tmp_path / "k.py"
    source.write_text(
        "import cuda.tile as ct\n\n@ct.kernel\ndef racy(x):\n    ct.store(x, index=(0,), tile=ct.bid(0))\n\n"
        "@ct.kernel\ndef unread(x):\n    import os\n"
    )
    ran = run("verify", str(source), "--certify", str(tmp_path / "out"))
    assert ran.code in (1, 3)
    ran = run("certificate", "check", str(tmp_path / "out"))
    assert ran.code == 0
    assert "without a proof" in ran.out


def test_two_kernels_do_not_share_a_folder(tmp_path: Path) -> None:
    source = tmp_path / "k.py"
    kernel = "@ct.kernel\ndef k(x):\n    ct.load(x, index=(0,), shape=(1,))\n\n"
    source.write_text(f"import cuda.tile as ct\n\n{kernel}{kernel}")
    ran = run("verify", str(source), "--certify", str(tmp_path / "out"))
    assert ran.code == 2
    assert "would share the folder" in ran.err
    assert not (tmp_path / "out" / INDEX).exists()
