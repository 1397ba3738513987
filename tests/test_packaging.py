"""The wheel carries everything: rules, kernels and the command, without the checkout behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SETUPTOOLS = 77  # the first that reads the license field of our pyproject.toml


def _pip(*arguments: str, python: str = sys.executable) -> None:
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _has_setuptools() -> bool:
    try:
        return int(metadata.version("setuptools").split(".")[0]) >= SETUPTOOLS
    except metadata.PackageNotFoundError:
        return False


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources, so that no stale build folder can help."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (copy / name).write_bytes((ROOT / name).read_bytes())
    for folder in ("tilecheck", "rules", "kernels"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix == ".py" or path.name in ("py.typed", "schema.json"):
                target = copy / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
    out = tmp_path_factory.mktemp("wheel")
    # Without a recent setuptools here, pip fetches one for the build.
    isolation = ["--no-build-isolation"] if _has_setuptools() else []
    _pip("wheel", "--quiet", "--no-deps", *isolation, "--wheel-dir", str(out), str(copy))
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that has the wheel; dependencies come from the environment of the tests."""
    home = tmp_path_factory.mktemp("env")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    _pip("install", "--quiet", "--no-deps", "--no-index", str(wheel), python=str(python))
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.check_output([python, "-c", code], text=True).strip())
    # A plain path line: packages are found there, but an editable install of this project is not followed.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home


def _run(home: Path, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(home / "bin" / command[0]), *command[1:]],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_wheel_has_every_file_and_nothing_else(wheel: Path) -> None:
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {"tilecheck/py.typed", "tilecheck/report/schema.json"}
    for folder in ("tilecheck", "rules", "kernels"):
        package = folder if folder == "tilecheck" else f"tilecheck/{folder}"
        for path in (ROOT / folder).rglob("*.py"):
            expected.add(f"{package}/{path.relative_to(ROOT / folder).as_posix()}")
    assert shipped == expected


def test_rules_and_kernels_come_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    names = ("tilecheck", "tilecheck.rules", "tilecheck.kernels")
    code = f"import sys, {', '.join(names)}; print(*(sys.modules[n].__file__ for n in {names}))"
    ran = _run(installed, "python", "-c", code, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert all(Path(file).is_relative_to(installed) for file in ran.stdout.split())


def test_the_command_lists_every_rule(installed: Path, tmp_path: Path) -> None:
    ran = _run(installed, "tilecheck", "rules", "--format", "json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    listed = [f"{rule['code']}_{rule['name']}" for rule in json.loads(ran.stdout)["rules"]]
    files = sorted(path.stem for path in (ROOT / "rules").glob("tc*.py"))
    assert [name.lower().replace("-", "_") for name in listed] == files


def test_the_command_explains_every_rule(installed: Path, tmp_path: Path) -> None:
    ran = _run(installed, "tilecheck", "explain", "TC201", cwd=tmp_path)
    assert ran.stdout.startswith("# TC201: write-write-overlap\n")


def test_the_installed_program_verifies_the_installed_kernels(installed: Path, tmp_path: Path) -> None:
    code = "import tilecheck.kernels as k; print(k.__path__[0])"
    folder = _run(installed, "python", "-c", code, cwd=tmp_path).stdout.strip()
    ran = _run(installed, "tilecheck", "verify", f"{folder}/vector_add.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "vector_add_kernel" in ran.stdout
