"""Which kernels are as they were at a revision of git, so that a run need not look at them.

A kernel counts as unchanged if nothing has changed that its verdict may be read from: its own text and the rest
of its file, apart from the bodies of kernels that it cannot reach; the files that these import, and what those
import; the launches of it in other files, with what they import; the configuration. Layout does not count, nor
do comments that say nothing to tilecheck. What cannot be compared has changed: a file that the commit lacks, a
link, text that does not parse. Nothing is said of the verdict that an unchanged kernel has.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilecheck.cache.evidence import Files
from tilecheck.cache.tokens import Layout, layout_of
from tilecheck.cache.views import Views
from tilecheck.config.patterns import absolute
from tilecheck.dataclass import dataclass
from tilecheck.errors import SourceError
from tilecheck.history.git import Revision, revision
from tilecheck.history.since_config import has_changed
from tilecheck.identifiers import words_in
from tilecheck.overlay import is_file
from tilecheck.packages import packages_of
from tilecheck.parallel import in_order
from tilecheck.patches.index import patches_of
from tilecheck.text import Source, decode
from tilecheck.verify.discover import Candidate, Discovery, display_path, split_target
from tilecheck.verify.importers import launchers

if TYPE_CHECKING:
    from tilecheck.config.files import Configs
    from tilecheck.frontend.modules.project import Project

Unchanged = tuple[tuple[str, str], ...]
_HOST = ("",)  # the view of no kernel: the file without the bodies of all of them


def narrowed(
    found: Discovery, name: str, paths: Sequence[str], configs: Configs, jobs: int
) -> tuple[Discovery, Unchanged]:
    """What is left to be verified of what was found, and the kernels that are not: file and name.

    Args:
        found: what the paths lead to.
        name: the revision.
        paths: those of the command line.
        configs: the configurations above the files.
        jobs: how many processes may work.

    Raises:
        UsageError: git has no such revision.
    """
    then = revision(name, Path.cwd())
    given = {c.path: c.data for c in (*found.hosts, *found.candidates)}
    comparison = Comparison(then, Files(given))
    before = _files_before(comparison, paths)
    folders = {Path(absolute(path)).parent for path in given} | {(then.root / path).parent for path in before}
    used = {configs.of(path).file for path in given}
    texts = comparison.texts_before(before)
    if texts is None or has_changed(then, folders, [file for file in used if file is not None]):
        return found, ()
    if patches_of(texts, found.named) != patches_of(found.texts, found.named):
        return found, ()
    work = launchers(found.candidates, found.hosts, found.texts, packages_of(found.texts))
    then_too = [replace(c, data=texts.get(c.path, c.data)) for c in found.candidates]
    earlier = launchers(then_too, (), texts, packages_of(texts))
    every = [(now, (*hosts, *old)) for (now, hosts), (_, old) in zip(work, earlier, strict=True)]
    answers = in_order(functools.partial(_answer, comparison), every, jobs)
    kept = tuple(
        replace(candidate, kernels=left)
        for (candidate, _), (left, unchanged) in zip(work, answers, strict=True)
        if left is not None
    )
    pairs = zip(found.candidates, answers, strict=True)
    unchanged = tuple((candidate.path, name) for candidate, (_, names) in pairs for name in names)
    names = {candidate.path for candidate in kept}
    left_out = tuple(candidate for candidate in found.candidates if candidate.path not in names)
    return replace(found, candidates=kept, left_out=left_out), unchanged


def _files_before(comparison: Comparison, paths: Sequence[str]) -> list[str]:
    """The Python files at the revision in which a run over the same paths would have looked for launches."""
    named = [split_target(path)[0] for path in paths]
    targets = [*map(absolute, named), *(Path(os.path.realpath(path)).as_posix() for path in named)]
    root = comparison.then.root.as_posix()
    found = [path for path in comparison.then.files if path.endswith(".py")]
    if any(
        comparison.path(path) is None for path in comparison.files.given
    ):  # by a link, it may be any of them
        return found
    return [
        path
        for path in found
        if any(f"{root}/{path}" == t or f"{root}/{path}".startswith(t.rstrip("/") + "/") for t in targets)
    ]


def _answer(
    comparison: Comparison, item: tuple[Candidate, tuple[Candidate, ...]]
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The kernels of a file that are left to be verified (none named: all of them; None: not even the file),
    and the unchanged ones. With the file come those that launch its kernels, or did at the revision."""
    candidate, importers = item
    names = comparison.kernels(candidate.path, candidate.data)
    asked = [name for name in names if name in candidate.kernels or not candidate.kernels]
    if any(name not in names for name in candidate.kernels):
        return candidate.kernels, ()  # it has not what is asked for
    if not asked:
        return None if comparison.is_same_with_imports(candidate.path) else (), ()
    unchanged = comparison.unchanged(candidate, names, importers)
    left = tuple(dict.fromkeys(name for name in asked if name not in unchanged))
    if len(left) == len(set(asked)):
        return candidate.kernels, ()
    return left or None, tuple(name for name in asked if name in unchanged)


@dataclass(slots=True)
class Comparison:
    """The files of this run and those of a revision. Mutable: keeps what was compared."""

    then: Revision
    files: Files
    _same: dict[str, bool] = field(default_factory=dict)
    _same_for_hosts: dict[str, bool] = field(default_factory=dict)
    _imports: dict[str, tuple[bool, frozenset[str]]] = field(default_factory=dict)
    _direct: dict[str, tuple[bool, tuple[str, ...]]] = field(default_factory=dict)
    _inside: dict[str, str | None] = field(default_factory=dict)
    _project: Project | None = None

    # ---- one file -----------------------------------------------------------------------------------------

    def path(self, file: str) -> str | None:
        """A file's path in the repository; None if it is not in it, or a link leads there."""
        whole = Path(absolute(file))
        folder = str(whole.parent)
        if folder not in self._inside:
            self._inside[folder] = self._folder(whole.parent)
        inner = self._inside[folder]
        return None if inner is None or whole.is_symlink() else f"{inner}{whole.name}"

    def _folder(self, folder: Path) -> str | None:
        real = Path(os.path.realpath(folder))
        above = next((f for f in (folder, *folder.parents) if os.path.realpath(f) == str(self.then.root)), None)
        if above is None or real != self.then.root / folder.relative_to(above):
            return None
        inner = folder.relative_to(above).as_posix()
        return "" if inner == "." else f"{inner}/"

    def before(self, file: str) -> Source | None:
        """The text of a file at the revision."""
        path = self.path(file)
        data = None if path is None else self.then.data(path)
        try:
            return None if data is None else decode(file, data)
        except SourceError:
            return None

    def is_same(self, file: str) -> bool:
        """Whether a file that is there now has the text that it had, apart from layout."""
        if file not in self._same:
            self._same[file] = self._is_same(file)
        return self._same[file]

    def _is_same(self, file: str) -> bool:
        now, path = self.files.source(file), self.path(file)
        if now is None or path is None:
            return False
        if self.then.has(path, now.data):
            return True
        before, layout = self.before(file), self.files.layout(file)
        if before is None or layout is None or not layout.digest or _tree(now) is None:
            return False
        return layout.digest == layout_of(before).digest

    def is_same_with_imports(self, file: str) -> bool:
        """Whether a file and all that it imports are as they were."""
        settled, imported = self.imports(file)
        return settled and all(map(self.is_same, imported))

    def is_there_as_before(self, file: str) -> bool:
        """Whether a file that is looked for is there now if it was there, and only then."""
        path = self.path(file)
        if path is None:
            return not self.files.is_file(file)
        return self.files.is_file(file) == (path in self.then.files)

    # ---- what it imports ----------------------------------------------------------------------------------

    def imports(self, file: str) -> tuple[bool, frozenset[str]]:
        """Whether all imports of a file, and of what it imports, find files where they did, and these files."""
        if file not in self._imports:
            todo, found = [file], {file}
            settled = True
            while todo and settled:
                settled, files = self._imported(todo.pop())
                new = [path for path in files if path not in found]
                found.update(new)
                todo.extend(new)
            self._imports[file] = settled, frozenset(found)
        return self._imports[file]

    def _imported(self, importer: str) -> tuple[bool, tuple[str, ...]]:
        """As `imports`, for the imports of one file alone."""
        if importer not in self._direct:
            source = self.files.source(importer)
            tree = None if source is None else _tree(source)
            paths = frozenset() if tree is None else frozenset(_looked_for(tree, importer))
            settled = tree is not None and all(map(self.is_there_as_before, paths))
            self._direct[importer] = settled, tuple(filter(self.files.is_file, sorted(paths)))
        return self._direct[importer]

    # ---- kernels ------------------------------------------------------------------------------------------

    def kernels(self, file: str, data: bytes) -> list[str]:
        """The names of the kernels of a file, each as often as it is there; none if it cannot be read."""
        from tilecheck.frontend.kernels.definitions import find_kernels  # lazy: loads libcst
        from tilecheck.frontend.modules.project import Project  # lazy: as above
        from tilecheck.frontend.text.source import parse  # lazy: as above

        self._project = self._project or Project()
        try:
            table = self._project.add(parse(decode(file, data)))
        except SourceError:
            return []
        return [definition.name for definition in find_kernels(table)]

    def texts_before(self, paths: Sequence[str]) -> dict[str, bytes] | None:
        """The texts of files at the revision, by the paths of reports; None if one cannot be had."""
        found: dict[str, bytes] = {}
        for path in paths:
            file = display_path(str(self.then.root / path))
            source = self.files.source(file)
            same = source is not None and self.then.has(path, source.data)
            data = source.data if source is not None and same else self.then.data(path)
            if data is None:
                return None
            found[file] = data
        return found

    def unchanged(
        self, candidate: Candidate, names: Sequence[str], hosts: Sequence[Candidate]
    ) -> frozenset[str]:
        """The kernels of a file of which nothing has changed. `hosts` are the other files that may launch them,
        now or at the revision."""
        settled, imported = self.imports(candidate.path)
        if not settled or not all(self.is_same(file) for file in imported if file != candidate.path):
            return frozenset()
        same = self._with_same_view(candidate.path, names)
        for host in hosts:
            mentioned = {name for name in same if self._is_mentioned(name, host)}
            if mentioned and not self._launches_alike(host.path):
                same -= mentioned
        return same

    def _is_mentioned(self, name: str, host: Candidate) -> bool:
        word = re.compile(rf"\b{re.escape(name)}\b")
        now, before = self.files.source(host.path), self.before(host.path)
        texts = [host.data, *(source.data for source in (now, before) if source is not None)]
        return any(word.search(words_in(data)) for data in texts)

    def _launches_alike(self, host: str) -> bool:
        """Whether all that decides about the launches in a file is as it was. The bodies of kernels do not."""
        settled, imported = self.imports(host)
        return settled and all(map(self._is_same_for_hosts, sorted(imported)))

    def _is_same_for_hosts(self, file: str) -> bool:
        if file not in self._same_for_hosts:
            source = self.files.source(file)
            self._same_for_hosts[file] = self.is_same(file) or (
                source is not None
                and bool(names := self.kernels(file, source.data))
                and self._have_same_view(file, names, _HOST)
            )
        return self._same_for_hosts[file]

    def _with_same_view(self, file: str, names: Sequence[str]) -> frozenset[str]:
        if self.is_same(file):
            return frozenset(names)
        return frozenset(name for name in names if self._have_same_view(file, names, (name,)))

    def _have_same_view(self, file: str, names: Sequence[str], kernel: tuple[str, ...]) -> bool:
        now, before = self.files.source(file), self.before(file)
        if now is None or before is None or self.path(file) is None:
            return False
        views = [_views(source, names) for source in (now, before)]
        if None in views:
            return False
        digests = {view.of(kernel).digest for view in views if view is not None}
        return len(digests) == 1 and "" not in digests


# ---- text ---------------------------------------------------------------------------------------------------


def _tree(source: Source) -> ast.Module | None:
    try:
        return source.tree()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _looked_for(tree: ast.Module, importer: str) -> Iterator[str]:
    """Every path where an import of a file may look for a module, and where it is looked whether folders above
    the file are packages, which decides where absolute imports begin."""
    from tilecheck.frontend.modules.bindings import Import  # lazy: loads libcst
    from tilecheck.frontend.modules.project import candidates  # lazy: loads libcst

    modules: dict[tuple[str, int], None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                modules.update(((".".join(parts[: n + 1]), 0), None) for n in range(len(parts)))
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            modules[base, node.level] = None
            modules.update(
                ((f"{base}.{a.name}".lstrip("."), node.level), None) for a in node.names if a.name != "*"
            )
    folder = Path(importer).parent
    while modules:
        yield (folder / "__init__.py").as_posix()
        if not is_file(folder / "__init__.py") or folder.parent == folder:
            break
        folder = folder.parent
    for module, level in modules:
        yield from (path.as_posix() for path in candidates(Import(module, None, level), Path(importer)))


def _views(source: Source, names: Sequence[str]) -> Views | None:
    """The views of a file from its kernels; None if it does not parse. Only the body of a kernel that says
    nothing of the rest of its file may be left out of one."""
    tree = _tree(source)
    layout = Layout(()) if tree is None else layout_of(source)
    if tree is None or not layout.digest:
        return None
    defined: dict[str, list[ast.stmt]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            defined.setdefault(node.name, []).append(node)
    alone = [defined[name][0] for name in set(names) if len(defined.get(name, ())) == 1]
    own = [node for node in alone if isinstance(node, ast.FunctionDef) and _is_apart(node, names)]
    return Views(source, layout, [(node.name,) for node in own])


def _is_apart(kernel: ast.FunctionDef, names: Sequence[str]) -> bool:
    """Whether the body of a kernel leaves the names of its module, their values and other kernels alone."""
    if not kernel.decorator_list:  # made a kernel by a call: hosts may call it as well
        return False
    for statement in kernel.body:
        for node in ast.walk(statement):
            match node:
                case ast.NamedExpr() | ast.Global() | ast.Nonlocal() | ast.Import() | ast.ImportFrom():
                    return False
                case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                    return False
                case ast.Call(func=ast.Subscript()) | ast.Attribute(attr="launch") | ast.Name(id="launch"):
                    return False
                case ast.Name(id=name) if name in names:
                    return False
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
                    return False
    return True
