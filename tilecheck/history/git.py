"""What a git repository holds at a revision. Only reads, and runs nothing of the repository's own."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import field
from pathlib import Path

from tilecheck.dataclass import dataclass
from tilecheck.errors import UsageError

_FILES = (b"100644", b"100755")  # no links and no submodules: what they lead to is not in this tree
_QUIET = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat"}


@dataclass(slots=True)
class Revision:
    """The files of a commit. Mutable: keeps what was read.

    `root` is the folder of the repository, without links; `files` maps paths from there to names of contents.
    """

    root: Path
    files: dict[str, str]
    _read: dict[str, bytes | None] = field(default_factory=dict, repr=False)

    def has(self, path: str, data: bytes) -> bool:
        """Whether the file at `path` has just these bytes in the commit."""
        name = self.files.get(path)
        if name is None:
            return False
        algorithm = hashlib.sha1(usedforsecurity=False) if len(name) == 40 else hashlib.sha256()
        algorithm.update(b"blob %d\0" % len(data))
        algorithm.update(data)
        return algorithm.hexdigest() == name

    def data(self, path: str) -> bytes | None:
        """The bytes of a file in the commit; None if it has none there, or they cannot be had."""
        name = self.files.get(path)
        if name is None:
            return None
        if name not in self._read:
            ran = _git(self.root, "cat-file", "blob", name)
            self._read[name] = ran.stdout if ran.returncode == 0 else None
        return self._read[name]


def revision(name: str, folder: Path) -> Revision:
    """A revision of the repository around `folder`, by any name that git has for it.

    Raises:
        UsageError: there is no git, no repository or no such commit.
    """
    what = f"--since {name}" if name else "--since"
    if not name or name.startswith("-") or "\0" in name:
        raise UsageError(
            f"`{name}` names no revision", "give a commit, a tag or a branch: `--since origin/main`"
        )
    found = _git(folder, "rev-parse", "--show-toplevel")
    if found.returncode != 0:
        outside = b"not a git repository" in found.stderr
        hint = "run it in the repository of the files" if outside else "git says above what is in the way"
        raise UsageError(f"{what} needs a git repository: {_said(found)}", hint)
    root = Path(os.path.realpath(os.fsdecode(found.stdout.removesuffix(b"\n"))))
    commit = _git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if commit.returncode != 0:
        raise UsageError(f"git has no revision `{name}`", _why_missing(root, name))
    listed = _git(root, "ls-tree", "-r", "-z", "--full-tree", commit.stdout.decode().strip())
    if listed.returncode != 0:
        raise UsageError(f"git cannot list the files of `{name}`: {_said(listed)}")
    return Revision(root, _entries(listed.stdout))


def _entries(listed: bytes) -> dict[str, str]:
    found = {}
    for entry in listed.split(b"\0"):
        about, _, path = entry.partition(b"\t")
        mode, _, rest = about.partition(b" ")
        if mode in _FILES:
            found[os.fsdecode(path)] = rest.split(b" ")[-1].decode()
    return found


def _why_missing(root: Path, name: str) -> str:
    shallow = _git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
    if shallow:
        return (
            f"this clone is shallow: fetch it with its history (`fetch-depth: 0`), or `git fetch origin {name}`"
        )
    return "`git fetch` gets what others have; `git branch --all` lists branches"


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 - no shell; what the user names is checked by `revision`
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - the user's own git
            env={**os.environ, **_QUIET},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise UsageError(f"--since needs git, which cannot be run: {error.strerror}") from None


def _said(ran: subprocess.CompletedProcess[bytes]) -> str:
    lines = ran.stderr.decode(errors="replace").strip().splitlines()
    return lines[0].removeprefix("fatal: ") if lines else f"git ended with {ran.returncode}"
