"""Identifiers are read in the form NFKC everywhere: kernels, helpers, hosts, imports and contracts."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import libcst as cst
import pytest

from tilecheck import verify_paths
from tilecheck.errors import SourceError
from tilecheck.frontend.text.source import parse
from tilecheck.identifiers import normalised, words_in, words_of
from tilecheck.text import decode
from tilecheck.verify.discover import split_target

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n"
CUTILE = "import cuda.tile as ct\nimport torch\n\n"
FILL = """@triton.jit
def fill(out, B: tl.constexpr):
    tl.store(out + tl.program_id(0) * B + tl.arange(0, B), 1.0)

"""


def wide(text: str) -> str:
    """The full-width letters that Python reads as `text`."""
    return "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in text)


def marked(text: str) -> str:
    """A text in which `<name>` stands for the full-width form of a name."""
    head, *parts = text.split("<")
    return head + "".join(wide(name) + rest for name, _, rest in (part.partition(">") for part in parts))


def verdicts(path: Path, text: str) -> list[str]:
    path.write_text(marked(text))
    return [kernel.verdict.value for kernel in verify_paths([str(path)]).kernels]


RACES = {
    "assigned again": HEAD + "@triton.jit\ndef k(out):\n    o = tl.program_id(0)\n"
    "    <o> = o // 2\n    tl.store(out + o, 1.0)\n",
    "updated": HEAD + "@triton.jit\ndef k(out):\n    o = tl.program_id(0)\n"
    "    <o> //= 2\n    tl.store(out + o, 1.0)\n",
    "loop variable": HEAD + "@triton.jit\ndef k(out):\n    o = tl.program_id(0)\n"
    "    for <o> in range(2):\n        tl.store(out + o, 1.0)\n",
    "keyword argument": HEAD + "@triton.jit\ndef at(i, d=1):\n    return i // d\n\n"
    "@triton.jit\ndef k(out):\n    tl.store(out + at(tl.program_id(0), <d>=2), 1.0)\n",
    "attribute": HEAD + "@triton.jit\ndef k(out):\n    tl.store(out + tl.<program_id>(0) // 2, 1.0)\n",
    "parameter": HEAD + "@triton.jit\ndef at(<i>):\n    i = i // 2\n    return <i>\n\n"
    "@triton.jit\ndef k(out):\n    tl.store(out + at(tl.program_id(0)), 1.0)\n",
    "import alias": HEAD + "from math import floor as at\nfrom triton.language import <program_id>\n\n"
    "@triton.jit\ndef k(out):\n    tl.store(out + program_id(0) // 2, 1.0)\n",
    "decorator": "import triton\nimport triton.language as tl\n\n"
    "@<triton>.<jit>\ndef k(out):\n    tl.store(out + tl.program_id(0) // 2, 1.0)\n",
    "cutile local": CUTILE + "@ct.kernel\ndef k(out, T: ct.Constant[int]):\n    b = ct.bid(0)\n    <b> = 0\n"
    "    ct.store(out, index=(b,), tile=ct.zeros((T,), dtype=ct.float32))\n",
    "cutile keyword": CUTILE + "@ct.kernel\ndef k(out, T: ct.Constant[int]):\n    b = ct.bid(0) // 2\n"
    "    ct.store(out, <index>=(<b>,), tile=ct.zeros((T,), dtype=ct.float32))\n",
    "cutile helper": CUTILE + "def at(b):\n    return b\n\ndef <at>(b):\n    return b // 2\n\n"
    "@ct.kernel\ndef k(out, T: ct.Constant[int]):\n"
    "    ct.store(out, index=(at(ct.bid(0)),), tile=ct.zeros((T,), dtype=ct.float32))\n",
    "host default": HEAD + FILL + "def host(x: torch.Tensor, g=8):\n    out = torch.empty(4 * 64)\n"
    "    fill[(<g>,)](out, 64)\n",
    "host keyword": HEAD + FILL + "def host(x: torch.Tensor):\n    fill[(4,)](torch.empty(64), <B>=64)\n",
    "host launches": HEAD + FILL + "def host(x: torch.Tensor):\n    <fill>[(8,)](torch.empty(4 * 64), 64)\n",
    "host global": HEAD + FILL + "G = 4\n<G> = 8\n\ndef host(x: torch.Tensor):\n"
    "    fill[(G,)](torch.empty(4 * 64), 64)\n",
}


@pytest.mark.parametrize("text", RACES.values(), ids=RACES.keys())
def test_another_form_of_a_name_is_the_name(tmp_path: Path, text: str) -> None:
    assert verdicts(tmp_path / "k.py", text) == ["violated"]


RIGHT = {
    "bound again": HEAD + "D = tl.constexpr(2)\n<D> = tl.constexpr(1)\n\n"
    "@triton.jit\ndef k(out):\n    tl.store(out + tl.program_id(0) // D, 1.0)\n",
    "contract": HEAD + "# tilecheck: requires <N> >= 1 -- rows are not empty\n"
    "@triton.jit\ndef k(out, N):\n    tl.store(out + tl.program_id(0) * N, 1.0)\n",
    "declared": HEAD + "# tilecheck: mut <out>\n"
    "@triton.jit\ndef k(out):\n    tl.store(out + tl.program_id(0), 1.0)\n",
    "annotation": CUTILE + "@ct.kernel\ndef k(out, T: <ct>.<Constant>[int]):\n"
    "    ct.store(out, index=(ct.bid(0),), tile=ct.zeros((T,), dtype=ct.float32))\n",
    "text is no name": HEAD + FILL + 'def host(x: torch.Tensor):\n    names = {"<n>": 8, "n": 4}\n'
    '    fill[(names["n"],)](torch.empty(4 * 64), 64)\n',
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT.keys())
def test_what_is_right_in_another_form_passes(tmp_path: Path, text: str) -> None:
    assert verdicts(tmp_path / "k.py", text) in (["proved"], ["conditional"])


def test_a_host_elsewhere_launches_under_another_form(tmp_path: Path) -> None:
    (tmp_path / "hosts.py").write_text(
        marked(f"{HEAD}from kernels import <fill>\n\n")
        + marked("def host(x: torch.Tensor):\n    <fill>[(8,)](torch.empty(256), 64)\n")
    )
    (tmp_path / "kernels.py").write_text(HEAD + FILL)
    [kernel] = verify_paths([str(tmp_path)]).kernels
    assert (kernel.verdict.value, len(kernel.launches)) == ("violated", 1)


def test_code_that_binds_names_in_another_form_is_seen(tmp_path: Path) -> None:
    kernel = "@triton.jit\ndef k(out):\n    tl.store(out + tl.program_id(0) // D, 1.0)\n"
    text = HEAD + 'D = tl.constexpr(1)\n<globals>()["D"] = tl.constexpr(2)\n\n' + kernel
    assert verdicts(tmp_path / "k.py", text) == ["unknown"]


def test_spans_stay_those_of_the_file() -> None:
    parsed = parse(decode("a.py", marked("<ab> = <c>.<d>\n").encode()))
    names = [node for node in parsed.index.nodes if isinstance(node, cst.Name)]
    assert {node.value: parsed.source.snippet(parsed.span(node)) for node in names} == {
        "ab": wide("ab"),
        "c": wide("c"),
        "d": wide("d"),
    }


@pytest.mark.parametrize("name", ["True", "None"])
def test_a_variable_that_is_called_like_a_constant_is_refused(name: str) -> None:
    with pytest.raises(SourceError, match=f"would be called `{name}`"):
        parse(decode("a.py", f"{wide(name)} = 0\n".encode()))


@pytest.mark.parametrize("name", ["o", wide("offs_1"), "ﬁlter", "𝐁𝐋𝐎𝐂𝐊", "ªx", "ſize", "é", "ядро"])  # noqa: RUF001
def test_names_are_what_python_makes_of_them(name: str) -> None:
    space: dict[str, int] = {}
    exec(f"{name} = 1", {}, space)
    assert list(space) == [normalised(name)]
    assert words_of(f"x.{name} = '…'") == f"x.{unicodedata.normalize('NFKC', name)} = '…'"


def test_words_are_read_in_the_encoding_of_the_file() -> None:
    assert words_in("# coding: latin-1\nª = 1\n".encode("latin-1")) == "# coding: latin-1\na = 1\n"
    assert words_in(b"\xff = 1") == "\ufffd = 1"


def test_a_kernel_may_be_named_in_another_form() -> None:
    assert split_target(f"k.py::{wide('fill')}") == ("k.py", "fill")
