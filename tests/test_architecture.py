"""Imports go one way, and each third-party package lives in its one room.

Every import of every file is read from its syntax, the lazy ones inside functions too; an edge that is not
listed here is an error. The lists are the design: change them only with it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FOLDERS = {"tilecheck": "tilecheck", "rules": "tilecheck.rules", "kernels": "tilecheck.kernels"}
# Rooms, the longest prefix first. A module belongs to the first room that it is in.
ROOMS = (
    "tilecheck.reference",
    "tilecheck.analysis",
    "tilecheck.cache",
    "tilecheck.certificate",
    "tilecheck.cli",
    "tilecheck.config",
    "tilecheck.frontend",
    "tilecheck.gate",
    "tilecheck.host",
    "tilecheck.ir",
    "tilecheck.jit",
    "tilecheck.kernels",
    "tilecheck.lsp",
    "tilecheck.patches",
    "tilecheck.proof",
    "tilecheck.report",
    "tilecheck.rules",
    "tilecheck.testing",
    "tilecheck.uses",
)
# Plain values and texts, which every stage may use.
BASE = {
    "tilecheck",
    "tilecheck.cancellation",
    "tilecheck.errors",
    "tilecheck.identifiers",
    "tilecheck.installed",
    "tilecheck.model",
    "tilecheck.overlay",
    "tilecheck.text",
}
# A part of the language rather than of the program: every room may use it, but for those that judge the others.
LANGUAGE = "tilecheck.dataclass"
ALONE = {"tilecheck.certificate", "tilecheck.reference"}
EVERYTHING = None
EDGES: dict[str, set[str] | None] = {
    "tilecheck": {  # lazy: the public interface
        "tilecheck.errors",
        "tilecheck.example",
        "tilecheck.jit",
        "tilecheck.model",
        "tilecheck.options",
        "tilecheck.verify.pipeline",
    },
    "tilecheck.verify": set(),  # its files have rows of their own
    "tilecheck.assumptions": set(),  # its files have rows of their own
    "tilecheck.findings": set(),  # its files have rows of their own
    "tilecheck.history": set(),  # its files have rows of their own
    "tilecheck.__main__": {"tilecheck.cli"},
    LANGUAGE: set(),
    "tilecheck.model": set(),
    "tilecheck.example": set(),
    "tilecheck.errors": {"tilecheck.model"},
    "tilecheck.identifiers": BASE,
    "tilecheck.text": BASE,
    "tilecheck.parallel": set(),
    "tilecheck.installed": set(),
    "tilecheck.cancellation": set(),
    "tilecheck.garbage": set(),
    "tilecheck.overlay": set(),
    "tilecheck.options": {"tilecheck.model"},
    "tilecheck.rule": {"tilecheck.model"},
    "tilecheck.hygiene": BASE,
    "tilecheck.history.fingerprint": BASE,
    "tilecheck.findings.wording": {"tilecheck.model", "tilecheck.ir"},
    "tilecheck.exit_codes": {
        "tilecheck.demand",
        "tilecheck.hygiene",
        "tilecheck.model",
        "tilecheck.options",
    },
    "tilecheck.registry": {"tilecheck.errors", "tilecheck.model", "tilecheck.rule"},
    "tilecheck.verify.discover": BASE
    | {"tilecheck.config", "tilecheck.frontend", "tilecheck.hygiene", "tilecheck.uses"},
    "tilecheck.config": BASE
    | {"tilecheck.frontend", "tilecheck.hygiene", "tilecheck.options", "tilecheck.registry"},
    "tilecheck.verify.importers": {
        "tilecheck.verify.discover",
        "tilecheck.identifiers",
        "tilecheck.model",
        "tilecheck.uses",
    },
    "tilecheck.uses": BASE | {"tilecheck.patches"},
    "tilecheck.packages": BASE | {"tilecheck.config"},
    "tilecheck.history.baseline": {"tilecheck.history.fingerprint", "tilecheck.hygiene", "tilecheck.model"},
    "tilecheck.history.baseline_location": set(),
    "tilecheck.history.baseline_file": {
        "tilecheck.history.baseline",
        "tilecheck.history.baseline_location",
        "tilecheck.errors",
        "tilecheck.model",
    },
    "tilecheck.history.git": {"tilecheck.errors"},
    "tilecheck.history.since_config": {"tilecheck.config", "tilecheck.history.git"},
    "tilecheck.history.since": BASE
    | {
        "tilecheck.cache",
        "tilecheck.config",
        "tilecheck.verify.discover",
        "tilecheck.frontend",
        "tilecheck.history.git",
        "tilecheck.verify.importers",
        "tilecheck.overlay",
        "tilecheck.packages",
        "tilecheck.parallel",
        "tilecheck.patches",
        "tilecheck.history.since_config",
    },
    "tilecheck.verify.suppressions": {
        "tilecheck.errors",
        "tilecheck.frontend",
        "tilecheck.hygiene",
        "tilecheck.model",
        "tilecheck.registry",
    },
    "tilecheck.ir": BASE,
    "tilecheck.patches": BASE,
    "tilecheck.frontend": BASE | {"tilecheck.ir", "tilecheck.patches"},
    "tilecheck.analysis": BASE | {"tilecheck.ir"},
    "tilecheck.cache": BASE
    | {
        "tilecheck.config",
        "tilecheck.verify.discover",
        "tilecheck.frontend",
        "tilecheck.ir",
        "tilecheck.jit",  # verdicts for launches, which a cache hands on
        "tilecheck.options",
        "tilecheck.overlay",
        "tilecheck.rules",  # where its files are: they are part of the program
    },
    "tilecheck.certificate": set(),  # shares no code with the prover that it checks
    "tilecheck.proof": BASE
    | {"tilecheck.ir", "tilecheck.analysis", "tilecheck.certificate", "tilecheck.garbage"},
    "tilecheck.verify.queries": BASE | {"tilecheck.proof", "tilecheck.certificate"},
    "tilecheck.verify.certificates": BASE | {"tilecheck.ir", "tilecheck.proof", "tilecheck.certificate"},
    "tilecheck.rules": {
        "tilecheck.model",
        "tilecheck.ir",
        "tilecheck.rule",
        "tilecheck.analysis",
        "tilecheck.proof.obligation",
    },
    "tilecheck.report": BASE
    | {
        "tilecheck.demand",
        "tilecheck.exit_codes",
        "tilecheck.history.fingerprint",
        "tilecheck.hygiene",
        "tilecheck.options",
        "tilecheck.rule",
        "tilecheck.registry",
    },
    # Shares no code with what it judges, only the name and bytes of what is not saved yet.
    "tilecheck.reference": {"tilecheck.overlay"},
    "tilecheck.jit": EVERYTHING,
    "tilecheck.host": BASE | {"tilecheck.ir", "tilecheck.jit", "tilecheck.proof.solver.solver"},
    "tilecheck.verify.show": EVERYTHING,
    "tilecheck.findings.verdict": EVERYTHING,
    "tilecheck.findings.kernels": EVERYTHING,
    "tilecheck.findings.advice": EVERYTHING,
    "tilecheck.findings.duplicates": BASE,
    "tilecheck.findings.launches": EVERYTHING,
    "tilecheck.verify.launch_sites": {
        *BASE,
        "tilecheck.verify.discover",
        "tilecheck.frontend",
        "tilecheck.ir",
        "tilecheck.uses",
    },
    "tilecheck.findings.premises": {"tilecheck.ir", "tilecheck.model"},
    "tilecheck.demand": {"tilecheck.hygiene", "tilecheck.model"},
    "tilecheck.verify.pipeline": EVERYTHING,
    "tilecheck.verify.file_result": {"tilecheck.verify.discover", "tilecheck.frontend", "tilecheck.model"},
    "tilecheck.verify.files": EVERYTHING,
    "tilecheck.verify.stages": EVERYTHING,
    "tilecheck.assumptions.host_contracts": EVERYTHING,
    "tilecheck.verify.host_functions": EVERYTHING,
    "tilecheck.findings.host_functions": EVERYTHING,
    "tilecheck.assumptions.initial_values": EVERYTHING,
    "tilecheck.assumptions.proposals": EVERYTHING,
    "tilecheck.assumptions.shared_tensors": EVERYTHING,
    "tilecheck.assumptions.rerun": EVERYTHING,
    "tilecheck.gate": {  # one module of text through the pipeline, and nothing of files or configs
        *BASE,
        "tilecheck.cache",  # how a kernel is written as a key
        "tilecheck.cli.crash",
        "tilecheck.frontend",
        "tilecheck.garbage",
        "tilecheck.hygiene",
        "tilecheck.ir",
        "tilecheck.verify.launch_sites",
        "tilecheck.options",
        "tilecheck.overlay",
        "tilecheck.proof",
        "tilecheck.verify.stages",
        "tilecheck.report",
        "tilecheck.verify.suppressions",
    },
    "tilecheck.cli": EVERYTHING,
    "tilecheck.lsp": EVERYTHING,
    "tilecheck.testing": EVERYTHING,
    "tilecheck.kernels": {"tilecheck", "tilecheck.example"},
}
# Only these may see the reference backend: they replay counterexamples on it.
REPLAY = {
    "tilecheck.host.reference",
    "tilecheck.proof.launches.aliasing",
    "tilecheck.proof.refute.confirmation",
    "tilecheck.proof.refute.collisions",
    "tilecheck.proof.refute.counterexample",
    "tilecheck.proof.solver.fuel",
    "tilecheck.proof.launches.claims",
    "tilecheck.proof.launches.replays.contents",
    "tilecheck.proof.launches.replays.replay",
    "tilecheck.proof.launches.replays.trials",
    "tilecheck.proof.launches.replays.memory",
    "tilecheck.proof.refute.replay",
    "tilecheck.proof.refute.replay_order",
    "tilecheck.proof.initialisation.undefined_lanes",
    "tilecheck.proof.initialisation.unwritten_memory",
}
# These evaluate many points at once.
SEARCH = {
    "tilecheck.proof.refute.concrete",
    "tilecheck.proof.launches.inputs.tables",
    "tilecheck.proof.refute.table_contents",
    "tilecheck.proof.refute.witness",
    "tilecheck.proof.initialisation.written_elements",
}
THIRD_PARTY: dict[str, set[str]] = {
    "libcst": {"tilecheck.frontend"},
    "networkx": {"tilecheck.analysis"},
    "z3": {"tilecheck.proof"},
    "cvc5": {"tilecheck.certificate.second_solver"},
    "rich": {"tilecheck.report"},
    "lsprotocol": {"tilecheck.lsp.server"},
    "pygls": {"tilecheck.lsp.server"},
    "tomli": {"tilecheck.config"},  # before Python 3.11
    "numpy": {"tilecheck.jit", "tilecheck.reference", "tilecheck.kernels", *REPLAY, *SEARCH},
    "cuda": {"tilecheck.jit", "tilecheck.host", "tilecheck.kernels"},
    "torch": {"tilecheck.jit", "tilecheck.kernels"},
    "triton": {"tilecheck.jit", "tilecheck.kernels"},
}


def _modules() -> dict[str, Path]:
    found = {}
    for folder, package in (
        ("tilecheck", "tilecheck"),
        ("rules", "tilecheck.rules"),
        ("kernels", "tilecheck.kernels"),
    ):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join((package, *parts))] = path
    return found


MODULES = _modules()


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


@cache
def _imports(path: Path) -> tuple[tuple[str, int, bool, bool], ...]:
    """Each imported module, its line, whether it is for types only, and whether it stands in a function."""

    def walk(node: ast.AST, *, types: bool, lazy: bool) -> Iterator[tuple[str, int, bool, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield alias.name, child.lineno, types, lazy
            elif isinstance(child, ast.ImportFrom):
                # The library's kernels import each other so that tilecheck follows them in a checkout too,
                # where the folder has another name than the installed package.
                inside = child.level > 0 and path.parents[child.level - 1].is_relative_to(ROOT / "kernels")
                assert child.level == 0 or inside, f"{path}:{child.lineno}: a relative import"
                if inside:
                    continue
                for alias in child.names:
                    name = f"{child.module}.{alias.name}"
                    yield (name if name in MODULES else child.module or ""), child.lineno, types, lazy
            else:
                for_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
                inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
                yield from walk(child, types=types or for_types, lazy=lazy or inside)

    return tuple(walk(_tree(path), types=False, lazy=False))


def _room(module: str) -> str:
    for room in ROOMS:
        if module == room or module.startswith(room + "."):
            return room
    return module


def _allowed(module: str, target: str) -> bool:
    if _room(module) == _room(target):
        return True
    if target == LANGUAGE:
        return _room(module) not in ALONE
    if target == "tilecheck.reference" or target.startswith("tilecheck.reference."):
        return module in REPLAY or EDGES[_room(module)] is EVERYTHING
    allowed = EDGES[_room(module)]
    return allowed is EVERYTHING or bool({target, _room(target)} & allowed)


@pytest.mark.parametrize("module", MODULES)
def test_every_import_is_listed(module: str) -> None:
    assert _room(module) in EDGES, f"{module} is in no listed room"
    wrong = []
    for target, line, types, _ in _imports(MODULES[module]):
        where = f"{MODULES[module].relative_to(ROOT)}:{line}"
        top = target.split(".")[0]
        if top == "tilecheck":
            if not _allowed(module, target):
                wrong.append(f"{where}: {module} may not import {target}")
        elif top in THIRD_PARTY and not types and not {module, _room(module)} & THIRD_PARTY[top]:
            wrong.append(f"{where}: {top} is not used in {module}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("module", [m for m in MODULES if not m.startswith("tilecheck.kernels")])
def test_imports_inside_functions_say_why(module: str) -> None:
    """On their line or at the head of their group: usually `# lazy`, to keep something out of cheap runs."""
    lines = MODULES[module].read_text().splitlines()
    for target, line, types, lazy in _imports(MODULES[module]):
        if not lazy or types or target.split(".")[0] not in {"tilecheck", *THIRD_PARTY}:
            continue
        first = line - 1
        while "#" not in lines[first] and lines[first - 1].strip().startswith(("from ", "import ")):
            first -= 1
        assert "#" in lines[first], f"{MODULES[module].relative_to(ROOT)}:{line}: no comment says why"


@pytest.mark.parametrize("module", MODULES)
def test_third_party_packages_are_the_known_ones(module: str) -> None:
    known = {"tilecheck", "__future__", *THIRD_PARTY, *sys.stdlib_module_names}
    unknown = {t for t, *_ in _imports(MODULES[module]) if t.split(".")[0] not in known}
    assert not unknown


def test_modules_do_not_import_each_other_in_circles() -> None:
    """Among the imports that run when a module is loaded."""
    graph = {
        module: {
            t for t, _, types, lazy in _imports(path) if t in MODULES and t != module and not types and not lazy
        }
        for module, path in MODULES.items()
    }
    done: set[str] = set()
    while len(done) < len(graph):
        ready = {module for module, targets in graph.items() if module not in done and targets <= done}
        assert ready, f"a circle among {sorted(set(graph) - done)}"
        done |= ready


def test_the_root_is_not_importable() -> None:
    """A `kernels` or `rules` at the root of sys.path would shadow other people's packages."""
    assert str(ROOT) not in [str(Path(entry).resolve()) for entry in sys.path if entry]


def test_every_package_is_shipped() -> None:
    """A folder that is not listed in pyproject.toml would be missing from the wheel alone."""
    text = (ROOT / "pyproject.toml").read_text()
    table = text[text.index("packages = [") : text.index("]", text.index("packages = ["))]
    listed = {line.strip().strip('",') for line in table.splitlines() if line.strip().startswith('"')}
    packages = {module for module, path in MODULES.items() if path.name == "__init__.py"}
    folders = {
        ".".join(p.relative_to(ROOT).parts) for p in (ROOT / "tilecheck").rglob("*") if list(p.glob("*.py"))
    }
    assert packages == listed
    assert folders <= listed


_FALLBACKS = {
    LANGUAGE: {"dataclass": "for types"},
    "tilecheck.frontend.text.syntax": {"walk_kind": "overloads"},
    "tilecheck.host.operations.operations": {"zip": "overloads", "unzip": "overloads"},
}


@pytest.mark.parametrize("module", MODULES)
def test_no_name_of_a_module_is_bound_twice(module: str) -> None:
    """The second table of one name would replace the first, wherever either is used."""
    bound = Counter(_bound(_tree(MODULES[module]).body))
    twice = {name for name, times in bound.items() if times > 1}
    assert twice == _FALLBACKS.get(module, {}).keys()


def _bound(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that statements of a module bind, in the branches of conditions and loops too."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names):
                modules = {alias.asname or alias.name for alias in names}  # `import a, a.b` binds one package
                yield from (name for name in modules if "." not in name)
            case ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                yield from _stored(statement)
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _bound(getattr(statement, part, []))
        for handler in getattr(statement, "handlers", []):
            yield from _bound(handler.body)


def _stored(statement: ast.Assign | ast.AnnAssign | ast.AugAssign) -> Iterator[str]:
    places = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for node in (node for place in places for node in ast.walk(place)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


# Most modules of a folder, by the longest prefix. What a reader cannot take in at once is split by subject.
MOST = {"tilecheck": 20, "tilecheck.frontend": 14, "tilecheck.proof": 14}


def test_no_folder_holds_too_many_modules() -> None:
    held = Counter(
        module.rpartition(".")[0]
        for module, path in MODULES.items()
        if path.is_relative_to(ROOT / "tilecheck") and path.name != "__init__.py"
    )
    assert {folder: count for folder, count in held.items() if count > _most(folder)} == {}


def _most(folder: str) -> int:
    return MOST[max((p for p in MOST if folder == p or folder.startswith(p + ".")), key=len)]


def test_the_guide_for_contributors_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([a-z_]+/[\w./]*)`", text) if "NNN" not in name}
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
