"""What the files of a run assign in modules of each other: for each module, the names that cannot be relied on.

Only files of the run count, and what a file that was named by itself imports from beside it. Whether and when
the code runs is not asked.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from tilecheck.identifiers import words_in
from tilecheck.overlay import read
from tilecheck.patches.files import Finder
from tilecheck.patches.hints import imports_in, may_patch
from tilecheck.patches.patched import Patches

_OWN = __name__.partition(".")[0]  # `tilecheck`, which kernels import, patches nothing of theirs


def patches_of(files: Mapping[str, bytes], alone: Iterable[str] = ()) -> Patches:
    """What the code of files, by path, assigns in modules. Of files named `alone`, what they import from beside
    them counts as well."""
    texts = {path: words_in(data) for path, data in files.items()}
    finder, every = Finder(files), dict(files)
    _follow(texts, every, finder, alone)
    known = frozenset(word for path in texts for word in finder.named(path))
    patching = [
        path
        for path, words in texts.items()
        if may_patch(words, known, functools.partial(finder.leads_anywhere, path))
    ]
    if not patching:
        return Patches()
    from tilecheck.patches.effects import Effects, events_in  # lazy: few runs have a file that may

    effects = Effects(finder)
    for path in patching:
        for event in events_in(every[path]):
            effects.add(event, path)
    return effects.patches()


def _follow(texts: dict[str, str], files: dict[str, bytes], finder: Finder, alone: Iterable[str]) -> None:
    """Read what files that were named by themselves import from their folders, and so on."""
    todo = [path for path in alone if path in texts]
    around = tuple(f"{PurePath(path).parent.as_posix()}/" for path in todo)
    while todo:
        file = todo.pop()
        for found in imports_in(texts[file]):
            if found.level == 0 and found.parts[:1] == [_OWN]:
                continue
            for path in _on_the_way(finder, file, found.level, found.parts):
                near = path.startswith(around) or "./" in around
                if path not in texts and path.endswith(".py") and near:
                    try:
                        files[path] = read(path)
                    except OSError:
                        continue
                    texts[path] = words_in(files[path])
                    todo.append(path)


def _on_the_way(finder: Finder, file: str, level: int, parts: list[str]) -> Iterable[str]:
    """The modules that are run where a dotted name is imported."""
    if level:
        here = [finder.package(file, level)]
        yield f"{here[0]}/__init__.py" if finder.below(here[0], "__init__") else here[0]
    else:
        here = list(finder.absolute(parts[0], file)) if parts else []
        parts = parts[1:]
        yield from here
    for part in parts:
        here = [found for module in here if (found := finder.inside(module, part))]
        yield from here
