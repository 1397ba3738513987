"""Other ways to write a host function that does the same: containers, starred calls, helpers, autograd."""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence

_MADE = ("y", "part")  # what a host allocates for its kernel
_INDENT = "    "


def rewritten(rng: random.Random, lines: Sequence[str]) -> list[str]:
    """The lines of a host with some of its allocations and its launch written in other ways."""
    found: list[str] = []
    for line in lines:
        name, equals, value = line.partition(" = ")
        if equals and name in _MADE and rng.random() < 0.4:
            found += _allocated(rng, name, value)
        elif line.startswith("{k}[") and "lambda" not in line and rng.random() < 0.4:
            found += _launched(rng, line)
        else:
            found.append(line)
    return found


def _allocated(rng: random.Random, name: str, value: str) -> list[str]:
    ways = [
        [f"made = [{value}]", f"{name} = made[0]"],
        [f"made = {{{{'out': {value}}}}}", f"{name} = made['out']"],
        [f"{name}, rest = {value}, 0"],
        [f"{name} = [{value} for _ in range(2)][1]"],
        ["def make():", f"{_INDENT}return {value}", f"{name} = make()"],
        ["made = []", f"made.append({value})", f"{name} = made.pop()"],
        [f"for {name} in ({value},):", f"{_INDENT}pass"],
    ]
    call = ast.parse(value, mode="eval").body
    if isinstance(call, ast.Call) and ast.unparse(call.func) == "torch.empty" and len(call.args) == 1:
        size = ast.unparse(call.args[0])
        listed = size if isinstance(call.args[0], ast.Tuple) else f"({size},)"
        ways.append([f"size = {listed}", f"{name} = torch.empty(*size, device='cuda')"])
        ways.append([f"size = list({listed})", f"{name} = torch.empty(size, device='cuda')"])
    return rng.choice(ways)


def _launched(rng: random.Random, line: str) -> list[str]:
    call = ast.parse(line.replace("{k}", "kernel")).body[0]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    launch = ast.unparse(call.value.func).replace("kernel", "{k}", 1)
    given = [ast.unparse(a) for a in call.value.args]
    named = [f"{k.arg}={ast.unparse(k.value)}" for k in call.value.keywords]
    first = rng.randint(1, len(given))
    ways = [
        [f"given = ({', '.join(given)},)", f"{launch}(*given, {', '.join(named)})"],
        [
            f"given = [{', '.join(given[:first])}]",
            f"given += [{', '.join(given[first:])}]",
            f"{launch}(*given, {', '.join(named)})",
        ],
        [
            f"named = dict({', '.join(named)})",
            f"{launch}({', '.join(given)}, **named)",
        ],
    ]
    return rng.choice(ways)


def function(
    rng: random.Random, host: str, takes: Sequence[tuple[str, int | str]], lines: Sequence[str]
) -> str:
    """A host function with these lines. Now and then it calls an autograd function that has them."""
    params = ", ".join(f"{name}{kind}" if str(kind).startswith("=") else name for name, kind in takes)
    names = [name for name, _ in takes]
    way = rng.choice(("plain", "plain", "plain", "plain", "forward", "backward"))
    if way == "plain" or not names:
        return "\n".join([f"def {host}({params}):", *_indented(lines, 1)])
    tensors = [name for name, kind in takes if isinstance(kind, int)]
    if way == "forward":
        body = ["@staticmethod", f"def forward(ctx, {', '.join(names)}):", *_indented(lines, 1)]
    else:
        numbers = [name for name in names if name not in tensors]
        body = [
            "@staticmethod",
            f"def forward(ctx, {', '.join(names)}):",
            *_indented(
                [f"ctx.save_for_backward({', '.join(tensors)})", *(f"ctx.{n} = {n}" for n in numbers)], 1
            ),
            f"{_INDENT}return torch.empty_like({tensors[0]})",
            "",
            "@staticmethod",
            "def backward(ctx, grad):",
            f"{_INDENT}{', '.join(tensors)}, = ctx.saved_tensors",
            *_indented([f"{n} = ctx.{n}" for n in numbers], 1),
            *_indented(lines, 1),
        ]
    operation = f"Operation_{host}"
    return "\n".join(
        [
            f"class {operation}(torch.autograd.Function):",
            *_indented(body, 1),
            "",
            "",
            f"def {host}({params}):",
            f"{_INDENT}return {operation}.apply({', '.join(names)})",
        ]
    )


def _indented(lines: Sequence[str], depth: int) -> list[str]:
    return [f"{_INDENT * depth}{line}" if line else line for line in lines]
