"""Functions that leave nothing in flight but what `tilecheck.host` checks, and functions that do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tilecheck.frontend.host_guards import Guarding

Judged = Callable[..., dict[str, Guarding]]
GUARDED = (
    "simple two_streams unordered with_torch captured annotated composed awaited Model.__init__ Model.run "
    "Gpu.__init__ Gpu.launch Gpu.zeros through nested uploads using_reference pieces graph_of waits_for_torch "
    "in_order Cache.__init__ Cache.captured Cache.launch in_context Derived.array inherited bound_side_by_side"
).split()
OWNER = "what its owner goes on doing with this memory"
UNSEEN = "does not see what this does"
LAUNCH = "does not see this launch"
KEEPS = "a graph keeps what"
BESIDE = "work beside tilecheck.host"
UNGUARDED = {
    "raw_stream_beside": "torch.cuda.Stream",
    "foreign_stream": "on their stream",
    "raw_pointer": "on their stream",
    "foreign_driver": "a driver of the program's own",
    "given_driver": "a driver of the program's own",
    "foreign_policy": "a policy of the program's own",
    "handed_in": OWNER,
    "used_after": OWNER,
    "used_in_loop": OWNER,
    "alias_of": OWNER,
    "in_closure": OWNER,
    "held_by_other_names": OWNER,
    "two_owners": OWNER,
    "only_last_round": OWNER,
    "given_pieces": OWNER,
    "plain_args": OWNER,
    "numpy_changed": OWNER,
    "tensor_out": "gives the memory",
    "hidden_in_list": "gives the memory",
    "array_out": "gives the memory",
    "calls_own_code": "what your own function touches",
    "any_args": "which arrays this holds",
    "global_buffer": "which arrays this holds",
    "global_buffer_beside": OWNER,
    "unknown_helper": UNSEEN,
    "unknown_helper_plain": UNSEEN,
    "callback": "not in view",
    "async_copy": UNSEEN,
    "async_copy_position": UNSEEN,
    "pinned_copy": UNSEEN,
    "pdl": LAUNCH,
    "other_launch": LAUNCH,
    "own_handle_to_raw": LAUNCH,
    "in_thread": UNSEEN,
    "raw_in_capture": BESIDE,
    "raw_in_capture_helper": BESIDE,
    "raw_in_map": BESIDE,
    "frozen_number": KEEPS,
    "frozen_operation": KEEPS,
    "frozen_item": KEEPS,
    "frozen_loop": "what `k` is now",
    "frozen_by_closure": "what `value` is now",
    "Frozen.capture": "what `position` is now",
    "Stale.captured": "what `x` is now",
    "Listed.captured": KEEPS,
    "numbers_in_memory": KEEPS,
    "kept_handles": "a handle that is kept",
    "own_kernel": "a kernel of the program's own",
    "no_class_in_view": "no class in view is a `Machine`",
    "one_raw_class": "torch.cuda.stream",
    "dynamic": "not in view",
    "patched": "setting this attribute",
    "setter": "setting this attribute",
    "partial": UNSEEN,
    "compiled": UNSEEN,
    "numpy_view": UNSEEN,
    "exchanged": UNSEEN,
    "graph_raw": UNSEEN,
    "yield_in_capture": "what the caller does",
    "other_tasks": "what other tasks do",
    "in_generator": "in which capture",
    "decorated_in": "its decorators",
    "waits_elsewhere": UNSEEN,
    "by_operator": "the operators of this object",
    "made_before_the_capture": "what this was given before the capture",
    "as_dictionary": UNSEEN,
    "comprehended": "a handle that is kept",
    "exit_stack": "does not check this use",
}


@pytest.mark.parametrize("name", GUARDED)
def test_work_that_the_library_checks_is_guarded(guarded_hosts: dict[str, Guarding], name: str) -> None:
    assert guarded_hosts[name].is_guarded


@pytest.mark.parametrize("name", UNGUARDED)
def test_work_that_passes_the_library_by_is_not(unguarded_hosts: dict[str, Guarding], name: str) -> None:
    found = unguarded_hosts[name]
    assert found.uses_library
    assert found.why is not None
    assert UNGUARDED[name] in found.why[1]


def test_the_reason_names_the_place(unguarded_hosts: dict[str, Guarding]) -> None:
    text = (Path(__file__).parent / "unguarded_hosts.txt").read_bytes()
    why = unguarded_hosts["frozen_number"].why
    assert why is not None
    assert text[why[0].span.start : why[0].span.end] == b"position"


@pytest.mark.parametrize(
    ("line", "replaced"),
    [
        ("host.enqueue(b, scale", "torch.cuda.Stream(); host.enqueue(b, scale"),
        ("a, b = host.stream(), host.stream()", "a, b = host.stream(), host.stream_of(3)"),
        ("b.wait(a)", "b.wait(a.handle)"),
        ("return out", "return out.tensor()"),
    ],
)
def test_one_call_beside_it_makes_the_difference(judged: Judged, line: str, replaced: str) -> None:
    text = (Path(__file__).parent / "guarded_hosts.txt").read_text()
    before, after = re.split(r"(?=def two_streams)", text, maxsplit=1)
    changed = before + after.replace(line, replaced, 1)
    assert judged(text)["two_streams"].why is None
    assert judged(changed)["two_streams"].why is not None


# ---- files beside -------------------------------------------------------------------------------------------

MACHINE = """
from typing import Any, Protocol
from tilecheck import host

class Machine(Protocol):
    stream: host.Stream
    def zeros(self, n: int) -> host.Array: ...

class Gpu:
    def __init__(self) -> None:
        self.stream = host.stream()

    def zeros(self, n: int) -> host.Array:
        return host.zeros(n).sync_on(self.stream)
"""
RAW = """
import torch
from machine import Machine

class Raw(Machine):
    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()

    def zeros(self, n: int):
        with torch.cuda.stream(self.stream):
            return torch.zeros(n)
"""
USER = """
from machine import Machine
from tilecheck import host

class Model:
    def __init__(self, machine: Machine, n: int) -> None:
        self.machine = machine
        self.x = machine.zeros(n)

    def fill(self, n: int) -> None:
        host.copy(self.x, self.machine.zeros(n)).submit(self.machine.stream)
"""


def test_a_class_of_another_file_is_read(tmp_path: Path, judged: Judged) -> None:
    (tmp_path / "machine.py").write_text(MACHINE)
    found = judged(USER, (tmp_path / "user.py").as_posix())
    assert found["Model.fill"].is_guarded


def test_a_file_that_is_not_there_is_no_view(tmp_path: Path, judged: Judged) -> None:
    found = judged(USER, (tmp_path / "user.py").as_posix())
    assert found["Model.fill"].why is not None


def test_every_class_in_view_that_has_the_methods_counts(tmp_path: Path, judged: Judged) -> None:
    (tmp_path / "machine.py").write_text(MACHINE)
    (tmp_path / "raw.py").write_text(RAW)
    text = USER.replace("from machine", "from raw import Raw\nfrom machine").replace(
        "self.x = ", "Raw; self.x = "
    )
    found = judged(text, (tmp_path / "user.py").as_posix())
    assert found["Model.fill"].why is not None


def test_a_library_that_a_file_replaces_is_not_the_library(tmp_path: Path, judged: Judged) -> None:
    (tmp_path / "machine.py").write_text(MACHINE + "\nhost.stream = None\n")
    found = judged(USER, (tmp_path / "user.py").as_posix())
    assert found["Model.fill"].why is not None


def test_text_that_python_runs_may_be_anything(judged: Judged) -> None:
    text = "from tilecheck import host\n\ndef f(said: str):\n    h = host.zeros(8).sync()\n    exec(said)\n"
    assert not judged(text)["f"].uses_library  # every name of the file may be another
    assert judged(text.replace("exec(said)", "print(said)"))["f"].is_guarded
