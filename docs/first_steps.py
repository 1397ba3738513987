"""Walks a new user's way and writes docs/first-steps.md: every command is run, and what it printed is kept.

    python3 docs/first_steps.py CHECKOUT > first-steps.md

Run it on a machine that has Python 3.10 or later, git and Neovim, and nothing of tilecheck: a fresh container,
or a chroot. It needs the package index. CHECKOUT is a clone of this repository without uncommitted changes.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from datetime import datetime, timezone
from pathlib import Path

RACY = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    start = tl.program_id(0) * (BLOCK // 2)
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * factor, mask=mask)


def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    scale_kernel[(triton.cdiv(n, 1024),)](x, out, n, factor, BLOCK=1024)
    return out
"""
FIXED = RACY.replace("(BLOCK // 2)", "BLOCK")
HOOKS = """\
repos:
  - repo: {url}
    rev: {revision}
    hooks:
      - id: tilecheck
"""
_WIDTH = 112


class Walk:
    """One walk: the folder it is in, and the text so far."""

    def __init__(self, checkout: Path, home: Path) -> None:
        self.checkout = checkout
        self.folder = home / "project"
        self.folder.mkdir()
        self.revision = self.quietly("git", "-C", str(checkout), "rev-parse", "HEAD")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))},
            "PATH": f"{self.folder}/.venv/bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "COLUMNS": str(_WIDTH),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.text: list[str] = []

    def say(self, *paragraphs: str) -> None:
        for paragraph in paragraphs:
            filled = textwrap.fill(paragraph, _WIDTH, break_on_hyphens=False, break_long_words=False)
            self.text.append(filled + "\n")

    def write(self, name: str, content: str, language: str) -> None:
        """Write a file of the project, and show it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        self.text.append(f"```{language}\n{self.masked(content)}```\n")

    def run(self, *commands: str, code: int = 0, show: str = "") -> str:
        """Run commands in the project and show them with what they print; the last must end with `code`."""
        shown = []
        output = ""
        for command in commands:
            ran = subprocess.run(  # noqa: S602 - the commands of this file
                command, shell=True, cwd=self.folder, env=self.environment, check=False, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, executable="/bin/bash",
            )  # fmt: skip
            wanted = code if command == commands[-1] else 0
            if ran.returncode != wanted:
                sys.exit(f"`{command}` ended with {ran.returncode}, not {wanted}:\n{ran.stdout}")
            output = ran.stdout
            kept = [line for line in output.splitlines() if re.search(show, line)]
            shown.append("\n".join([f"$ {command}", *kept]))
        ending = f"$ echo $?\n{code}" if code else ""
        block = "\n".join(filter(None, [*shown, ending]))
        self.text.append(f"```console\n{self.masked(block)}\n```\n")
        return output

    def quietly(self, *command: str) -> str:
        return subprocess.run(command, check=True, text=True, capture_output=True).stdout.strip()  # noqa: S603

    def masked(self, text: str) -> str:
        """The text without the paths of this machine."""
        return text.replace(str(self.checkout), "~/tilecheck").replace(str(self.folder), "~/project")

    def check(self, claim: str, *, holds: bool) -> None:
        """Stop where the walk does not show what its text says."""
        if not holds:
            sys.exit(f"this does not hold: {claim}\n" + "\n".join(self.text[-2:]))


def walk(w: Walk) -> None:
    install_and_find(w)
    continuous_integration(w)
    hook(w)
    editor(w)


def install_and_find(w: Walk) -> None:
    w.say(
        "## Install",
        "A virtual environment, and tilecheck from a clone of its repository. No GPU, no CUDA, no PyTorch and "
        "no Triton are needed:",
    )
    w.run("python3 -m venv .venv", f".venv/bin/pip install --quiet {w.checkout}", "tilecheck --version")
    w.say("## Find a race", "A kernel with the function that launches it, in `kernels/scale.py`:")
    w.write("kernels/scale.py", RACY, "python")
    w.run("tilecheck verify kernels/", code=1)
    w.say(
        "Each block begins half a block after the one before it, so two blocks share elements. The launch "
        "values, the blocks and the element were replayed. After `start` is corrected to "
        "`tl.program_id(0) * BLOCK`:"
    )
    (w.folder / "kernels/scale.py").write_text(FIXED, encoding="utf-8")
    w.run("tilecheck verify kernels/")
    w.say(
        "`conditional` means: proved for every launch that meets these conditions, and the launch in this file "
        "meets them for every input. What a word, a code or a reason means is one command away:"
    )
    w.run("tilecheck explain TC201 | head -20")


def continuous_integration(w: Walk) -> None:
    w.say(
        "## Add it to CI",
        "For GitHub, the block of [ci.md](ci.md#github-actions) as `.github/workflows/tilecheck.yml`:",
    )
    page = (w.checkout / "docs/ci.md").read_text(encoding="utf-8")
    workflow = page.split("```yaml\n# .github/workflows/tilecheck.yml\n")[1].split("```")[0]
    w.write(".github/workflows/tilecheck.yml", workflow, "yaml")
    w.say(
        "What its job runs can be tried here. With the race put back, one run prints the findings, annotates "
        "the pull request, and writes the reports for code scanning and for the test view:"
    )
    (w.folder / "kernels/scale.py").write_text(RACY, encoding="utf-8")
    w.run(
        "GITHUB_ACTIONS=true tilecheck verify kernels/ --format concise --report sarif=tilecheck.sarif "
        "--report junit=tilecheck.xml --report gitlab=gl-code-quality-report.json",
        code=1,
    )
    w.run("ls tilecheck.sarif tilecheck.xml gl-code-quality-report.json")
    w.run("rm tilecheck.sarif tilecheck.xml gl-code-quality-report.json")


def hook(w: Walk) -> None:
    w.say("## Add the hook", "`.pre-commit-config.yaml`:")
    w.write(".pre-commit-config.yaml", HOOKS.format(url=w.checkout, revision=w.revision), "yaml")
    w.say("Installed, it looks at what is committed. The race is still there:")
    git = "git -c user.name=me -c user.email=me@example.org -c init.defaultBranch=main"
    w.run(
        "pip install --quiet pre-commit",
        f"{git} init --quiet . && printf '.venv\\n.tilecheck_cache\\n' > .gitignore",
        "pre-commit install",
        "git add .",
        f"{git} commit --quiet -m 'Scale rows'",
        code=1,
        show=r"^(?!\[INFO\])",
    )
    (w.folder / "kernels/scale.py").write_text(FIXED, encoding="utf-8")
    w.say("With the corrected kernel the commit passes:")
    w.run("git add .", f"{git} commit --quiet -m 'Scale rows'", "git log --format=%s")


def editor(w: Walk) -> None:
    w.say(
        "## Set up the editor",
        "The language server comes with an extra; the settings for Neovim, Helix, Zed and VS Code are in "
        "[editors.md](editors.md). For Neovim 0.7:",
    )
    w.run(
        f"pip install --quiet {w.checkout}'[lsp]'",
        "mkdir -p ~/.config/nvim/lua",
        f"cp {w.checkout}/editors/neovim/tilecheck.lua ~/.config/nvim/lua/",
        """echo 'require("tilecheck").setup()' >> ~/.config/nvim/init.lua""",
    )
    (w.folder / "kernels/scale.py").write_text(RACY, encoding="utf-8")
    w.say("Opened with these settings, the racy kernel shows its diagnostic, the other access with it:")
    wait = "vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end, 50)"
    tell = "for _, d in ipairs(vim.diagnostic.get(0)) do print(d.lnum + 1, d.code, d.message) end"
    output = w.run(f"nvim --headless kernels/scale.py -c 'lua {wait}; {tell}' -c 'qa!'")
    w.check("Neovim shows the race", holds="TC201" in output)


def main() -> None:
    checkout = Path(sys.argv[1]).resolve()
    home = Path(tempfile.mkdtemp(prefix="walk-"))
    try:
        w = Walk(checkout, home)
        day = datetime.now(timezone.utc).date().isoformat()
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
        w.say(
            "# First steps",
            "From nothing to a verified kernel, a CI job, a commit hook and an editor. This is a transcript: "
            f"[first_steps.py](first_steps.py) ran each command on {day} on a fresh {system} with Python "
            f"{platform.python_version()} and wrote down what it printed.",
        )
        walk(w)
        sys.stdout.write("\n".join(w.text))
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
