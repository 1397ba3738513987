"""Which tensors hold what their allocation left at a launch, and which of them are returned."""

from __future__ import annotations

import textwrap

import pytest

LAUNCH = "ct.launch(stream, (1,), fill, (out,))"


def host(*lines: str, after: tuple[str, ...] = ("return out",)) -> str:
    body = textwrap.indent("\n".join((*lines, LAUNCH, *after)), "    ")
    return f"def f(x, n, flag, stream, ctx, out=None):\n{body}\n"


@pytest.mark.parametrize(
    "made",
    [
        ("out = torch.empty(n)",),
        ("out = torch.empty_like(x)",),
        ("out = x.new_empty(x.shape)",),
        ("out = torch.empty(n, 4).view(-1)",),
        ("if out is None: out = torch.empty(n)",),
        ("other = torch.zeros(n)", "other.zero_()", "out = torch.empty(n)"),
        ("out = torch.empty(n)", "ctx.save_for_backward(x, out)"),
    ],
)
def test_what_nothing_wrote_is_blank(launches, made) -> None:
    found = [dict(launch.arguments)["out"] for launch in launches(host(*made))]
    assert any(tensor.blank for tensor in found)


@pytest.mark.parametrize(
    "made",
    [
        ("out = torch.zeros(n)",),
        ("out = torch.empty(n)", "out.zero_()"),
        ("out = torch.empty(n).fill_(1)",),
        ("out = torch.empty(n)", "out[0] = 1"),
        ("out = torch.empty(n)", "out += 1"),
        ("out = torch.empty(n)", "out.view(-1).copy_(x)"),
        ("out = torch.empty(n)", "torch.add(x, 1, out=out)"),
        ("out = torch.empty(n)", "unread(out)"),
        ("out = torch.empty(n)", "torch.nn.init.zeros_(out)"),
        ("out = torch.empty(n)", "if flag: out.zero_()"),
        ("out = torch.empty(n)", "for i in range(n): out[i] = 1"),
        ("out = torch.empty(n)", "ct.launch(stream, (1,), fill, (out,))"),
        ("out = x",),
    ],
)
def test_what_may_be_written_is_not_blank(launches, made) -> None:
    found = launches(host(*made))
    assert not dict(found[-1].arguments)["out"].blank


@pytest.mark.parametrize(
    ("after", "returned"),
    [
        (("return out",), ("out",)),
        (("return x, out",), ("out",)),
        (("return out.view(-1, 4)",), ("out",)),
        (("ctx.save_for_backward(out)", "return out"), ("out",)),
        (("return out[1:]",), ()),
        (("return x",), ()),
        (("out[0] = 1", "return out"), ()),
        (("unread(out)", "return out"), ()),
        (("ct.launch(stream, (1,), fill, (out,))", "return out"), ()),
        (("return out.clone()",), ()),
    ],
)
def test_what_one_launch_alone_writes_is_returned(launches, after, returned) -> None:
    found = launches(host("out = torch.empty(n)", after=after))
    assert found[0].returned == returned
