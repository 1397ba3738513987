"""The CI files that are handed out: they are parsed, and what they run is run on a small project."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from tilecheck.exit_codes import ExitCode
from tilecheck.options import FORMATS

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent
GOOD = """import cuda.tile as ct


@ct.kernel
def double(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)) * 2)
"""
RACE = GOOD.replace("double", "halved").replace("ct.bid(0)", "ct.bid(0) // 2")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one kernel that is right, and one whose blocks collide."""
    folder = tmp_path / "project"
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels" / "good.py").write_text(GOOD)
    (folder / "kernels" / "race.py").write_text(RACE)
    return folder


# ---- the action --------------------------------------------------------------------------------------------


def _steps() -> dict[str, dict[str, Any]]:
    return {step.get("id", step["name"]): step for step in ACTION["runs"]["steps"]}


class Runner:
    """What a runner gives to the step that verifies: its inputs, a folder, and files to tell things in."""

    def __init__(self, project: Path, binaries: Path = BIN, **inputs: str) -> None:
        self.project = project
        self.temp = project.parent / "temp"
        self.temp.mkdir(exist_ok=True)
        self.values = {f"inputs.{name}": entry["default"] for name, entry in ACTION["inputs"].items()}
        self.values |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        self.values |= {"runner.temp": str(self.temp), "steps.install.outputs.bin": str(binaries)}

    def run(self, step: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        given = {
            name: re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: self.values[found[1]], text)
            for name, text in step["env"].items()
        }
        files = {name: str(self.temp / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        own = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(self.project), "CI": "true"}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(
            command,
            cwd=self.project,
            env={**os.environ, **own, **files, **given},
            capture_output=True,
            text=True,
            timeout=120,
        )

    def outputs(self) -> dict[str, str]:
        file = self.temp / "GITHUB_OUTPUT"
        return dict(line.split("=", 1) for line in file.read_text().splitlines()) if file.exists() else {}


def test_the_action_is_composite_and_puts_no_input_into_a_script() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert set(ACTION["inputs"]) == {"args", "version", "sarif", "fail-on", "require"}
    for step in ACTION["runs"]["steps"]:
        assert ("run" in step) == (step.get("shell") == "bash")
        assert "${{" not in step.get("run", "")  # text of users would be run as code
        if "run" in step:
            checked = subprocess.run(["bash", "-n", "-c", step["run"]], capture_output=True, text=True)
            assert checked.returncode == 0, checked.stderr


def test_findings_are_kept_and_uploaded_also_from_a_job_that_fails() -> None:
    steps = [step for step in ACTION["runs"]["steps"] if "uses" in step]
    assert [step["uses"].partition("@")[0] for step in steps] == [
        "actions/cache/restore", "actions/cache/save", "github/codeql-action/upload-sarif",
    ]  # fmt: skip
    restore, save, upload = steps
    assert save["with"] == {key: restore["with"][key] for key in ("path", "key")}
    assert restore["with"]["key"].startswith(restore["with"]["restore-keys"].strip())
    for step in (save, upload):
        assert step["if"].startswith("always() && ")
    assert "inputs.sarif == 'true'" in upload["if"]


def test_the_action_on_a_project_with_a_race(project: Path) -> None:
    runner = Runner(project, args="kernels/ --without 'digits'")
    ran = runner.run(_steps()["verify"])
    assert ran.returncode == ExitCode.FINDINGS, ran.stderr
    assert "::error file=kernels/race.py,line=7," in ran.stdout
    assert json.loads(Path(runner.outputs()["json"]).read_text())["complete"] is True
    sarif = json.loads(Path(runner.outputs()["sarif"]).read_text())["runs"][0]
    (race,) = sarif["results"]
    assert race["ruleId"] == "TC201"
    assert len(race["codeFlows"][0]["threadFlows"]) == 2
    summary = (runner.temp / "GITHUB_STEP_SUMMARY").read_text()
    assert "| violated | `halved` | `kernels/race.py:5` |" in summary
    assert "| conditional | `double` | `kernels/good.py:5` |" in summary
    assert (project / ".tilecheck_cache").is_dir()


def test_the_action_on_a_project_that_is_right(project: Path) -> None:
    (project / "kernels" / "race.py").unlink()
    runner = Runner(project)
    ran = runner.run(_steps()["verify"])
    assert ran.returncode == ExitCode.OK, ran.stderr
    assert "::error" not in ran.stdout
    assert set(runner.outputs()) == {"json", "sarif"}


def test_the_action_requires_what_it_is_asked_to(project: Path) -> None:
    (project / "kernels" / "race.py").unlink()
    ran = Runner(project, require="launches").run(_steps()["verify"])
    assert ran.returncode == ExitCode.UNDECIDED, ran.stderr
    assert "does not meet `--require launches`" in ran.stdout
    assert Runner(project, require="launch").run(_steps()["verify"]).returncode == ExitCode.USAGE


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"args": "missing/"}, ExitCode.USAGE),
        ({"args": ".", "fail_on": "never"}, ExitCode.USAGE),
        ({"args": "'kernels"}, 1),  # a quote that never ends
        ({"args": "$(touch made) `touch made` ; touch made"}, ExitCode.USAGE),
    ],
)
def test_the_action_fails_on_what_it_does_not_understand(
    project: Path, inputs: dict[str, str], code: int
) -> None:
    runner = Runner(project, **inputs)
    ran = runner.run(_steps()["verify"])
    assert ran.returncode == code, ran.stderr
    assert not (project / "made").exists()
    assert not runner.outputs()


@pytest.mark.parametrize("says", ["", 'echo "{\\"complete\\": false}" > "$2"', 'echo "{" > "$2"'])
def test_the_action_fails_without_a_complete_report(project: Path, tmp_path: Path, says: str) -> None:
    """Whatever the command ended with: here one that ends with 0 and leaves no report, or half of one."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "python").symlink_to(sys.executable)
    (binaries / "tilecheck").write_text(f'#!/bin/sh\nset -- x "$REPORTS/tilecheck.json"\n{says}\nexit 0\n')
    (binaries / "tilecheck").chmod(0o755)
    runner = Runner(project, binaries)
    (runner.temp / "tilecheck.json").write_text('{"complete": true}')  # of an earlier step
    ran = runner.run(_steps()["verify"])
    assert ran.returncode == ExitCode.INTERNAL
    assert "::error title=tilecheck::there is no complete report" in ran.stdout
    assert not runner.outputs()


# ---- the page ----------------------------------------------------------------------------------------------


def test_the_workflow_of_the_page_uses_the_inputs_there_are() -> None:
    workflow = next(yaml.safe_load(block) for block in _blocks("yaml") if "runs-on" in block)
    steps = workflow["jobs"]["verify"]["steps"]
    used = next(step for step in steps if "tilecheck" in step["uses"])
    assert set(used["with"]) <= set(ACTION["inputs"])
    left_open = {"version": "that of the action", "require": "as configured"}
    for name, entry in ACTION["inputs"].items():
        default = entry["default"] or left_open[name]
        assert re.search(rf"^\| `{name}` \| `?\"?{re.escape(default)}", PAGE, re.MULTILINE)


def test_the_gitlab_job_of_the_page(project: Path) -> None:
    job = next(yaml.safe_load(block) for block in _blocks("yaml") if "codequality" in block)["tilecheck"]
    install, verify = job["script"]
    assert install == "pip install tilecheck"
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "CI_PROJECT_DIR": str(project), "CI": "true"}
    ran = subprocess.run(
        verify, shell=True, cwd=project, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == ExitCode.FINDINGS, ran.stderr
    reports = job["artifacts"]["reports"]
    (finding,) = json.loads((project / reports["codequality"]).read_text())
    assert finding["location"]["path"] == "kernels/race.py"
    cases = {
        case.attrib["name"]: [c.tag for c in case]
        for case in ET.parse(project / reports["junit"]).iter("testcase")
    }
    assert cases == {"double": ["system-out"], "halved": ["failure", "system-out"]}
    assert all((project / path).exists() for path in job["cache"]["paths"])


@pytest.mark.parametrize("block", _blocks("sh"), ids=lambda block: block.split()[0])
def test_the_commands_of_the_page_run(block: str, project: Path) -> None:
    (project / "kernels" / "race.py").unlink()
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        block, shell=True, cwd=project, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    if "schema.json" in block:
        assert json.loads(ran.stdout)["title"].startswith("The report of tilecheck")


def test_the_tables_of_the_page_are_complete() -> None:
    rows = re.findall(r"^\| `?([\w-]+)`? \|", PAGE, flags=re.MULTILINE)
    assert {str(int(code)) for code in ExitCode} | set(FORMATS) <= set(rows)


def test_the_problem_matcher_reads_a_finding(project: Path) -> None:
    (matcher,) = map(json.loads, _blocks("json"))
    command = [str(BIN / "tilecheck"), "check", "kernels/race.py", "--format", "concise", "-q"]
    printed = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120).stdout.rstrip(
        "\n"
    )
    found = re.match(matcher["pattern"]["regexp"], printed)
    assert found is not None, printed
    groups = {name: found[number] for name, number in matcher["pattern"].items() if isinstance(number, int)}
    assert groups["file"] == "kernels/race.py"
    assert (groups["line"], groups["column"], groups["severity"], groups["code"]) == (
        "7",
        "5",
        "error",
        "TC201",
    )
    assert groups["message"].endswith("(halved)")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are text")
def test_a_name_that_is_no_text_is_reported_in_every_format(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9 [1].py")).write_text(RACE)
    reports = [f"--report={name}=../{name}.out" for name in FORMATS]
    (tmp_path / "here").mkdir()
    command = [str(BIN / "tilecheck"), "verify", "..", *reports]
    environment = {**os.environ, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    environment |= {"GITHUB_WORKSPACE": str(tmp_path)}
    ran = subprocess.run(
        command, cwd=tmp_path / "here", env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == ExitCode.FINDINGS, ran.stderr
    for name in FORMATS:
        assert "TC201" in (tmp_path / f"{name}.out").read_text(encoding="utf-8")
    sarif = json.loads((tmp_path / "sarif.out").read_text())["runs"][0]["results"][0]
    location = sarif["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "caf%E9%20%5B1%5D.py", "uriBaseId": "%SRCROOT%"}
    assert "halved" in (tmp_path / "summary").read_text(encoding="utf-8")


_TIMES = re.compile(r'("(?:time_ms|time_s|parse_time_s|cached)": |time=")[\w.]+|\d+\.\d\d s\b|\d+ cached · ')


def test_every_report_is_the_same_for_any_seed_any_number_of_processes_cold_and_warm(project: Path) -> None:
    for number in range(4):
        (project / "kernels" / f"more{number}.py").write_text(GOOD.replace("double", f"double{number}"))
    runs = []
    for seed, more in (
        ("0", ["-j1", "--no-cache"]),
        ("1", ["-j2", "--cache-dir=kept"]),
        ("2", ["--cache-dir=kept"]),
    ):
        reports = [f"--report={name}={name}.out" for name in FORMATS]
        command = [str(BIN / "tilecheck"), "verify", "kernels", "--sarif-include-pass", *more, *reports]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ran = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=120)
        assert ran.returncode == ExitCode.FINDINGS, ran.stderr
        runs.append({name: _TIMES.sub(r"\1", (project / f"{name}.out").read_text()) for name in FORMATS})
    for name in FORMATS:
        assert runs[0][name] == runs[1][name] == runs[2][name]
