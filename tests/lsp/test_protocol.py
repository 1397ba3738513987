"""The real server, driven over stdin and stdout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RACY = """import cuda.tile as ct


@ct.kernel
def shift(x, T: ct.Constant[int]):
    i = ct.bid(0)
    t = ct.load(x, index=(i,), shape=(T,))
    ct.store(x, index=(i + 1,), tile=t)
"""
FINE = RACY.replace("(i + 1,)", "(i,)")
TABLE = """import cuda.tile as ct


@ct.kernel
def put(x, slots, out, N: int, T: ct.Constant[int]):
    i = ct.bid(0)
    s = ct.load(slots, index=(i,), shape=(1,)).item()
    t = ct.load(x, index=(s * T,), shape=(T,))
    ct.store(out, index=(i,), tile=t)
"""
WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 1000, "character": 0}}
PUSH = {"textDocument": {"publishDiagnostics": {"relatedInformation": True}}}
PULL = {
    "general": {"positionEncodings": ["utf-8", "utf-16"]},
    "textDocument": {"diagnostic": {}, "publishDiagnostics": {"relatedInformation": True}},
    "workspace": {"diagnostics": {"refreshSupport": True}},
}


def at(uri: str, line: int, character: int) -> dict:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


def test_a_race_is_pushed_with_both_sites_and_goes_with_the_edit_that_ends_it(pushed, tmp_path: Path) -> None:
    uri = pushed.open(tmp_path / "k.py", RACY)
    [found] = pushed.published(uri, 1)
    assert (found["code"], found["source"], found["severity"]) == ("TC202", "tilecheck", 1)
    assert found["range"] == {"start": {"line": 7, "character": 4}, "end": {"line": 7, "character": 39}}
    [other] = found["relatedInformation"]
    assert other["location"] == {
        "uri": uri,
        "range": {"start": {"line": 6, "character": 8}, "end": {"line": 6, "character": 42}},
    }
    assert "block (1,)" in other["message"]
    assert "counterexample: grid=(2,)" in found["message"]
    assert "codeDescription" not in found  # there is no address that it could open
    pushed.change(uri, 2, FINE)
    assert pushed.published(uri, 2) == []


def test_only_the_newest_of_many_edits_is_published_and_closing_clears(pushed, tmp_path: Path) -> None:
    uri = pushed.open(tmp_path / "k.py", FINE)
    for version in range(2, 40):
        pushed.change(uri, version, RACY + f"# {version}\n")
    assert [d["code"] for d in pushed.published(uri, 39)] == ["TC202"]
    versions = pushed.versions(uri)
    assert versions == sorted(versions)
    assert len(versions) < 10  # nearly all of them were overtaken
    pushed.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert pushed.published(uri, None) == []
    assert pushed.request("textDocument/hover", at(uri, 4, 5)) is None


def test_an_edit_cancels_the_analysis_that_it_overtakes(pushed, tmp_path: Path) -> None:
    """A text with many kernels takes seconds: the answer to the edit comes before that could be done."""
    body = RACY.split("\n\n\n", 1)[1]
    many = "import cuda.tile as ct\n" + "".join(
        "\n\n" + body.replace("shift", f"k{n}").replace("i + 1", f"i + {n + 1}") for n in range(150)
    )
    uri = pushed.open(tmp_path / "k.py", many)
    other = pushed.open(tmp_path / "other.py", FINE.replace("shift", "first"))
    pushed.published(other, 1)
    pushed.change(uri, 2, RACY)
    [found] = pushed.published(uri, 2)
    assert found["code"] == "TC202"
    assert pushed.versions(uri) == []


def test_a_text_that_does_not_parse_says_where_and_recovers(pushed, tmp_path: Path) -> None:
    uri = pushed.open(tmp_path / "k.py", RACY + "def broken(:\n")
    [found] = pushed.published(uri, 1)
    assert (found["code"], found["range"]["start"]["line"]) == ("TC901", 8)
    line = {"textDocument": {"uri": uri}, "range": found["range"], "context": {"diagnostics": []}}
    assert [a["title"] for a in pushed.request("textDocument/codeAction", line)] == ["Explain TC901"]
    assert pushed.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": WHOLE}) == []
    pushed.change(uri, 2, RACY)
    assert [d["code"] for d in pushed.published(uri, 2)] == ["TC202"]


def test_a_sibling_that_is_not_saved_counts(pushed, tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text("BY = 0\n")
    text = RACY.replace("import cuda", "from sizes import BY\nimport cuda").replace("i + 1", "i + BY")
    uri = pushed.open(tmp_path / "k.py", text)
    assert pushed.published(uri, 1) == []
    pushed.open(tmp_path / "sizes.py", "BY = 1\n")
    assert [d["code"] for d in pushed.published(uri, 1)] == ["TC202"]


def test_a_client_that_pulls_is_told_when_another_file_matters(client, tmp_path: Path) -> None:
    client.begin(PULL)
    text = RACY.replace("import cuda", "from sizes import BY\nimport cuda").replace("i + 1", "i + BY")
    uri = client.open(tmp_path / "k.py", text)
    sizes = client.open(tmp_path / "sizes.py", "BY = 0\n")
    ask = {"textDocument": {"uri": uri}}
    assert client.request("textDocument/diagnostic", ask)["items"] == []
    client.change(sizes, 2, "BY = 1\n")
    client.wait("workspace/diagnostic/refresh")
    assert [d["code"] for d in client.request("textDocument/diagnostic", ask)["items"]] == ["TC202"]
    client.change(uri, 2, FINE)
    assert client.request("textDocument/diagnostic", ask)["items"] == []
    assert not [m for m in client.seen if m.get("method") == "workspace/diagnostic/refresh"]


def test_only_the_kernel_that_is_edited_is_proved_again(pushed, tmp_path: Path) -> None:
    text = RACY + RACY.partition("\n")[2].replace("shift", "other")
    uri = pushed.open(tmp_path / "k.py", text)
    assert len(pushed.published(uri, 1)) == 2
    pushed.change(uri, 2, "# a comment\n" + text.replace("i + 1", "i + 2", 1))
    found = pushed.published(uri, 2)
    lines = [d["range"]["start"]["line"] for d in found]
    assert lines == [8, 15]
    lenses = pushed.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    last = [lens["command"]["title"].rpartition(" ")[2] for lens in lenses]
    assert last == ["ms", "cached"]


def test_actions_hover_lens_and_hints(pushed, tmp_path: Path) -> None:
    uri = pushed.open(tmp_path / "k.py", RACY)
    [found] = pushed.published(uri, 1)
    here = {"textDocument": {"uri": uri}, "range": found["range"], "context": {"diagnostics": [found]}}
    actions = {a["title"]: a for a in pushed.request("textDocument/codeAction", here)}
    assert list(actions) == ["Suppress TC202 here, with a reason", "Explain TC202"]
    [change] = actions["Suppress TC202 here, with a reason"]["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 1}
    lines = RACY.splitlines(keepends=True)
    line = change["edits"][0]["range"]["start"]["line"]
    pushed.change(uri, 2, "".join([*lines[:line], change["edits"][0]["newText"], *lines[line:]]))
    assert pushed.published(uri, 2) == []
    said = pushed.request("textDocument/hover", at(uri, 4, 10))["contents"]["value"]
    assert "`mut`: written by the kernel (inferred)" in said
    assert "written by block (ct.bid(0),): x[(ct.bid(0) + 1) * T : (ct.bid(0) + 1) * T + T]" in said
    assert "violated" in pushed.request("textDocument/hover", at(uri, 4, 5))["contents"]["value"]
    rule = pushed.request("textDocument/hover", at(uri, line, 27))["contents"]["value"]
    assert rule.startswith("# TC202: ")
    [lens] = pushed.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert lens["command"]["title"].startswith(
        "violated \N{MIDDLE DOT} 1 condition \N{MIDDLE DOT} 6 obligations"
    )
    hints = pushed.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": WHOLE})
    assert [(h["label"], h["position"]) for h in hints] == [(": Mut", {"line": 4, "character": 11})]


def test_the_contract_that_is_missing_is_added(pushed, tmp_path: Path) -> None:
    uri = pushed.open(tmp_path / "k.py", TABLE)
    found = pushed.published(uri, 1)
    wanted = [d for d in found if "# tilecheck: requires within(slots" in d["message"]]
    assert wanted
    here = {"textDocument": {"uri": uri}, "range": wanted[0]["range"], "context": {"diagnostics": found}}
    action = next(
        a for a in pushed.request("textDocument/codeAction", here) if a["title"].startswith("Require `within(")
    )
    assert "isPreferred" not in action
    [edit] = action["edit"]["documentChanges"][0]["edits"]
    assert edit["range"]["start"] == {"line": 3, "character": 0}
    lines = TABLE.splitlines(keepends=True)
    pushed.change(uri, 2, "".join([*lines[:3], edit["newText"], *lines[3:]]))
    after = [d["message"] for d in pushed.published(uri, 2)]
    assert wanted[0]["message"] not in after


def test_contracts_are_verified_before_they_are_written(pushed, tmp_path: Path) -> None:
    uri = pushed.open(tmp_path / "k.py", TABLE)
    found = pushed.published(uri, 1)
    [waiting] = [d for d in found if "--propose" in d["message"]]
    here = {"textDocument": {"uri": uri}, "range": waiting["range"], "context": {"diagnostics": found}}
    [command, *_] = [
        a["command"]
        for a in pushed.request("textDocument/codeAction", here)
        if a["title"].startswith("Find contr")
    ]
    asked = {"command": command["command"], "arguments": command["arguments"]}
    written = pushed.request("workspace/executeCommand", asked)
    assert any(contract.startswith("within(slots") for contract in written)
    [edit] = pushed.wait("workspace/applyEdit")["edit"]["documentChanges"][0]["edits"]
    lines = TABLE.splitlines(keepends=True)
    line = edit["range"]["start"]["line"]
    pushed.change(uri, 2, "".join([*lines[:line], edit["newText"], *lines[line:]]))
    assert waiting["message"] not in [d["message"] for d in pushed.published(uri, 2)]


def test_where_no_contract_helps_a_message_says_so(pushed, tmp_path: Path) -> None:
    uri = pushed.open(tmp_path / "k.py", RACY)
    pushed.published(uri, 1)
    asked = {"command": "tilecheck.propose", "arguments": [uri, "shift"]}
    assert pushed.request("workspace/executeCommand", asked) == []
    assert "no contracts were found" in pushed.wait("window/showMessage")["message"]


def test_explain_shows_a_document_where_the_client_can_and_else_a_message(client, tmp_path: Path) -> None:
    client.begin({"window": {"showDocument": {"support": True}}})
    client.ask("workspace/executeCommand", {"command": "tilecheck.explain", "arguments": ["TC201"]})
    uri = client.wait("window/showDocument")["uri"]
    page = Path(uri.removeprefix("file://"))
    assert page.read_text().startswith("# TC201: write-write-overlap")
    assert client.end() == 0
    assert not page.exists()


def test_explain_without_documents(pushed) -> None:
    page = pushed.request(
        "workspace/executeCommand", {"command": "tilecheck.explain", "arguments": ["unknown"]}
    )
    assert page.startswith("# unknown")
    assert "tilecheck explain unknown" in pushed.wait("window/showMessage")["message"]
    nothing = pushed.request(
        "workspace/executeCommand", {"command": "tilecheck.explain", "arguments": ["TC999"]}
    )
    assert nothing is None


def test_diagnostics_are_pulled_in_utf8_and_never_pushed(client, tmp_path: Path) -> None:
    told = client.begin(PULL)
    assert told["positionEncoding"] == "utf-8"
    assert told["diagnosticProvider"]["interFileDependencies"]
    text = RACY.replace("    ct.store", "    n = '\N{MATHEMATICAL DOUBLE-STRUCK CAPITAL A}é'; ct.store")
    uri = client.open(tmp_path / "k.py", text)
    report = client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
    assert report["kind"] == "full"
    [found] = report["items"]
    column = text.splitlines()[7].encode().index(b"ct.store")
    assert found["range"]["start"] == {"line": 7, "character": column}
    known = {"textDocument": {"uri": uri}, "previousResultId": report["resultId"]}
    assert client.request("textDocument/diagnostic", known)["kind"] == "unchanged"
    client.change(uri, 2, FINE)
    assert client.request("textDocument/diagnostic", known)["items"] == []
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"] == []
    assert not [m for m in client.seen if m.get("method") == "textDocument/publishDiagnostics"]


@pytest.mark.parametrize(("encoding", "units"), [(None, 4), ("utf-16", 4), ("utf-32", 3)])
def test_columns_are_counted_in_the_units_that_are_agreed_on(client, tmp_path, encoding, units) -> None:
    general = {"general": {"positionEncodings": [encoding]}} if encoding else {}
    client.begin({"textDocument": {"publishDiagnostics": {}}, **general})
    text = RACY.replace("    ct.store", "    '\N{MUSICAL SYMBOL G CLEF}'; ct.store")
    uri = client.open(tmp_path / "k.py", text)
    [found] = client.published(uri, 1)
    assert found["range"]["start"] == {"line": 7, "character": 4 + units + len("; ")}
    assert "line 7: block (1,): x[1] is read here" in found["message"]  # no related places: told in the text


def test_a_configuration_that_is_not_understood_is_shown_and_a_request_can_be_cancelled(
    pushed, tmp_path
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.tilecheck]\nbudgett = 1\n")
    uri = pushed.open(tmp_path / "k.py", RACY)
    [found] = pushed.published(uri, 1)
    assert "budgett" in found["message"]
    (tmp_path / "pyproject.toml").write_text("")
    changed = {"uri": (tmp_path / "pyproject.toml").as_uri(), "type": 2}
    pushed.notify("workspace/didChangeWatchedFiles", {"changes": [changed]})
    assert [d["code"] for d in pushed.published(uri, 1)] == ["TC202"]


def test_other_files_are_left_alone(pushed, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tilecheck]\nextend-exclude = ["old/**"]\n')
    (tmp_path / "old").mkdir()
    for name, text in (("plain.py", "def broken(:\n"), ("old/k.py", RACY), (".venv/k.py", RACY)):
        uri = pushed.open(tmp_path / name, text)
        assert pushed.published(uri, 1) == []


def test_what_the_baseline_accepts_is_not_shown(pushed, tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text(RACY)
    command = [sys.executable, "-m", "tilecheck", "baseline", "write", "--reason", "known", "k.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (tmp_path / ".tilecheck-baseline.json").exists(), done.stderr
    uri = pushed.open(path, RACY)
    assert pushed.published(uri, 1) == []
    pushed.change(uri, 2, RACY.replace("i + 1", "i + 2"))
    assert [d["code"] for d in pushed.published(uri, 2)] == ["TC202"]


def test_a_request_that_waits_can_be_cancelled(pushed, tmp_path: Path) -> None:
    uri = pushed.open(tmp_path / "k.py", RACY)
    number = pushed.ask("textDocument/hover", at(uri, 4, 5))
    pushed.notify("$/cancelRequest", {"id": number})
    assert "cancel" in pushed.answer(number)["error"]["message"].lower()
    assert [d["code"] for d in pushed.published(uri, 1)] == ["TC202"]


def test_user_code_is_not_run(client, tmp_path: Path) -> None:
    client.begin(PUSH)
    mark = tmp_path / "was-run"
    for name in ("sizes.py", "numpy.py", "networkx.py", "sitecustomize.py"):
        (tmp_path / name).write_text(f"BY = 1\nopen({str(mark)!r}, 'w').close()\n")
    text = RACY.replace("import cuda", "from sizes import BY\nimport cuda").replace("i + 1", "i + BY")
    uri = client.open(tmp_path / "k.py", f"open({str(mark)!r}, 'w').close()\n" + text)
    assert [d["code"] for d in client.published(uri, 1)] == ["TC202"]
    assert not mark.exists()


def test_leaving_without_shutdown_is_an_error_and_so_is_a_lost_connection(client, tmp_path: Path) -> None:
    client.begin({})
    client.notify("exit")
    assert client.process.wait(30) == 1


def test_a_lost_connection_ends_the_server(client) -> None:
    client.begin({})
    client.process.stdin.close()
    assert client.process.wait(30) == 1


def test_without_pygls_the_hint_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import importlib.util, sys; find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'pygls' else find(name, *a)\n"
        "from tilecheck.cli import main; sys.exit(main(['server']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'tilecheck[lsp]'" in done.stderr
