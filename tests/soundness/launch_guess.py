"""Ordinary calls of host functions that say nothing of them, guessed from the use of their parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import product

from soundness_launch_truth import Host, read_hosts

_OF_TENSORS = frozenset(
    "shape stride numel size contiguous view reshape device dtype is_contiguous t transpose new_empty"
    " T dim ndim element_size unsqueeze expand permute flatten is_cuda storage_offset data_ptr narrow"
    " split chunk".split()
)
_NAMES = "ABCDE"
_RANKS = (1, 2, 3)
_MOST = 24


def hosts(text: str, kernel: str) -> list[tuple[Host, ...]]:
    """The functions of a module that may launch a kernel, each with the calls to try, the likeliest first."""
    said = {host.function: host for host in read_hosts(text)}
    tree = ast.parse(text)
    functions = [
        n for n in tree.body if isinstance(n, ast.FunctionDef) and not _is_kernel(n) and n.name != "examples"
    ]
    near = _reaching(tree, kernel)
    chosen = [node for node in functions if node.name in near]
    return [(said[n.name],) if n.name in said else tuple(_calls(n)) for n in chosen]


def _reaching(tree: ast.Module, kernel: str) -> set[str]:
    """The names of the module's functions and classes whose text leads to a kernel."""
    reaching = {kernel}
    for _ in range(3):
        for node in tree.body:
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and names & reaching:
                reaching.add(node.name)
    return reaching


def _is_kernel(node: ast.FunctionDef) -> bool:
    return any(
        "jit" in ast.unparse(d) or "kernel" in ast.unparse(d) or "function" in ast.unparse(d)
        for d in node.decorator_list
    )


def _calls(node: ast.FunctionDef) -> Iterator[Host]:
    spec = node.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    required = names[: len(names) - len(spec.defaults)]
    ranks = [_ranks(node, name) for name in required]
    for number, chosen in enumerate(product(*ranks)):
        if number == _MOST:
            return
        yield Host(node.name, " ".join(_said(n, r) for n, r in zip(required, chosen, strict=True)))
    if len(required) == 2 and ranks[0] == ranks[1] == [2]:  # factors
        yield Host(node.name, f"{required[0]}[A,B] {required[1]}[B,C]")


def _said(name: str, rank: int) -> str:
    return f"{name}=1..6" if rank == 0 else f"{name}[{','.join(_NAMES[5 - rank :])}]"


def _ranks(node: ast.FunctionDef, name: str) -> list[int]:
    """The ranks that a parameter may have; 0 is a number."""
    reads = [
        n
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == name
    ]
    annotation = next((a.annotation for a in node.args.args if a.arg == name), None)
    is_tensor = "Tensor" in ast.unparse(annotation) if annotation is not None else False
    if not is_tensor and not any(n.attr in _OF_TENSORS for n in reads):
        return [0] if annotation is not None or _is_counted(node, name) else [2, 1, 0]
    unpacked = [
        len(n.targets[0].elts)
        for n in ast.walk(node)
        if isinstance(n, ast.Assign)
        and isinstance(n.targets[0], ast.Tuple)
        and ast.unparse(n.value) in (f"{name}.shape", f"{name}.size()")
    ]
    return (
        [unpacked[0]]
        if unpacked
        else list(_RANKS if not _last_axis(node, name) else range(_last_axis(node, name) + 1, 5))
    )


def _is_counted(node: ast.FunctionDef, name: str) -> bool:
    """Whether arithmetic is done with a parameter."""
    return any(
        isinstance(n, ast.BinOp) and any(isinstance(s, ast.Name) and s.id == name for s in (n.left, n.right))
        for n in ast.walk(node)
    )


def _last_axis(node: ast.FunctionDef, name: str) -> int:
    """The largest axis that is read of a parameter's shape or strides."""
    axes = [0]
    for n in ast.walk(node):
        if (
            isinstance(n, ast.Subscript)
            and ast.unparse(n.value) == f"{name}.shape"
            and isinstance(n.slice, ast.Constant)
        ):
            axes.append(int(n.slice.value))
        if isinstance(n, ast.Call) and ast.unparse(n.func) in (f"{name}.stride", f"{name}.size") and n.args:
            axes += [a.value for a in n.args if isinstance(a, ast.Constant) and isinstance(a.value, int)]
    return max(axes)
