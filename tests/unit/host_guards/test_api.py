"""The table of what `tilecheck.host` checks, held against the library itself."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from tilecheck import host, kernels
from tilecheck.frontend.host_guards import api
from tilecheck.frontend.host_guards.calls.ownership_transfer import _NUMPY, _TORCH
from tilecheck.host import reference  # noqa: F401 - `host.reference` is one of the names

# Types that programs name in annotations, get from calls, or write themselves.
TYPES = api.CLASSES | {"Driver", "GraphState", "HostRefused", "Kernel", "Policy", "Recorder"}
# What is not for programs, and what gives memory, streams or devices away. None of it is in the table.
INSIDE = {
    "View": "array check_alive check_current home hull launched lend loans move moved place region runtime "
    "serial storage tensor",
    "Array": "shared",
    "Borrowed": "graph kept source",
    "Partition": "check_free place undo whole",
    "Stream": "handle queue runtime",
    "Event": "mark runtime",
    "Policy": "next_stream",
    "Runtime": "adopt allocate capture capture_stream collect_if_free driver enter hand_out is_executing "
    "launches leave ledger lock name order pause policy queue_of reaper refuse_in_capture start stream_of "
    "submit sync synchronize table updating",
    "Operation": "is_holding place run runtime state take used",
}


def members(of: type) -> set[str]:
    """The public attributes of a class, those that `__init__` sets included."""
    text = "".join(inspect.getsource(one) for one in of.__mro__ if one.__module__.startswith("tilecheck."))
    assigned = set(re.findall(r"self\.([a-z]\w*)(?:: [^=\n]+)? = ", text))
    return {name for name in (*dir(of), *assigned) if not name.startswith("_")}


def known(of: str) -> set[str]:
    return {*api.METHODS.get(of, {}), *api.ATTRIBUTES.get(of, {})}


def test_every_public_name_is_in_the_table_or_left_out_of_it() -> None:
    assert set(host.__all__) - api.FUNCTIONS.keys() - TYPES == {"call", "stream_of", "recording"}
    assert {"call", "stream_of", "recording"} <= api.UNCHECKED.keys()


def test_every_name_of_the_table_is_there() -> None:
    for name in api.FUNCTIONS:
        owner: object = host
        for part in name.split("."):
            if name != "cuda.Cuda":  # which only a machine with a GPU imports
                owner = getattr(owner, part)


@pytest.mark.parametrize("of", sorted(api.CLASSES))
def test_every_method_is_in_the_table_or_left_out_of_it(of: str) -> None:
    """A new method is not checked until somebody has thought about it."""
    made = getattr(host, of)
    inside = set(INSIDE.get(of, "").split())
    if issubclass(made, host.View) and of != "View":
        inside |= set(INSIDE["View"].split())
    assert members(made) - known(of) <= inside
    assert {name for name in known(of) if not hasattr(made, name)} <= members(made) | {"__await__"}
    assert not known(of) & inside - {"shared"}


@pytest.mark.parametrize(("name", "at"), [("launch", 2), ("enqueue", 3), ("own", 0), ("share", 0)])
def test_memory_stands_where_the_table_says(name: str, at: int) -> None:
    parameters = list(inspect.signature(getattr(host, name)).parameters)
    assert at in api.FUNCTIONS[name].memory
    assert parameters[at] in api.FUNCTIONS[name].memory


@pytest.mark.parametrize(("name", "code"), [(n, c.code) for n, c in api.FUNCTIONS.items() if c.code])
def test_functions_stand_where_the_table_says(name: str, code: tuple[int, str]) -> None:
    at, parameter = code
    assert list(inspect.signature(getattr(host, name)).parameters)[at] == parameter


def test_constants_of_the_librarys_kernels_are_numbers() -> None:
    """They are given to launches without a look at the module that has them."""
    found = 0
    for path in Path(kernels.__file__).parent.rglob("*.py"):
        for line in ast.parse(path.read_text()).body:
            if isinstance(line, ast.Assign | ast.AnnAssign):
                targets = line.targets if isinstance(line, ast.Assign) else [line.target]
                names = [t.id for t in targets if isinstance(t, ast.Name) and t.id.isupper()]
                assert not names or is_number(line.value), f"{path}: {names}"
                found += len(names)
    assert found > 40


def is_number(value: ast.expr | None) -> bool:
    match value:
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(operand=operand) | ast.Call(func=ast.Attribute(attr="constexpr"), args=[operand]):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) and is_number(right)
        case ast.Name(id=name):
            return name.isupper()
        case _:
            return False


def test_makers_of_arrays_give_new_memory() -> None:
    assert not _TORCH & {"as_tensor", "asarray", "from_numpy", "frombuffer"}
    assert not _NUMPY & {"asarray", "frombuffer", "memmap", "ravel", "reshape"}
