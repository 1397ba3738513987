"""Runs drawn host functions on a stand-in for PyTorch that writes down each action as a `HostProgram`.

Python itself ends the storage of a tensor with its last reference: that is a `Free`. Three things are invisible
at run time, so calls that report them are put into the text before it runs: which name a value is bound to,
which names a launch is given, and what is appended to a list.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from soundness_host_kernels import OPERATIONS, Kernel, Wait

from tilecheck.ir import host_program as hp
from tilecheck.ir.expr import const
from tilecheck.model import Site, Span

CALLER = "current"
KERNELS = {kernel.name: kernel for kernel in (Kernel(name, wait) for name in OPERATIONS for wait in Wait)}


def recorded(text: str, name: str, rounds: int, size: int = 1024) -> hp.HostProgram:
    """What one function of a module asks of the device in a run with so many rounds.

    Args:
        text: the module.
        name: the function.
        rounds: for its parameter of this name.
        size: how many elements the tensors of the caller have, where the function does not say.
    """
    tree = ast.parse(text)
    [function] = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    tree.body = [_Said().visit(function)]
    recorder = _Recorder()
    space = {"torch": _torch(recorder), "triton": types.SimpleNamespace(cdiv=lambda a, b: -(-a // b))}
    space |= {"_bound": recorder.bound, "_kept": recorder.keep}
    space |= {kernel: _Launcher(recorder, KERNELS[kernel]) for kernel in KERNELS}
    space |= {f"run_{kernel}": space[kernel].by_helper for kernel in KERNELS}
    cuda = vars(space["torch"].cuda)
    space |= {name: cuda[name] for name in ("CUDAGraph", "Event", "Stream", "current_stream")}
    exec(compile(ast.fix_missing_locations(tree), name, "exec"), space)
    found = [node.comparators[0] for node in ast.walk(function) if _is_shape(node)]
    size = found[0].elts[0].value if found else size
    given = [
        rounds if argument.arg == "rounds" else _Tensor(recorder, recorder.handed(argument.arg, size), 0, size)
        for argument in function.args.args
    ]
    result = space[name](*given)  # what the function keeps for itself ends here
    returned = [t for t in (result if isinstance(result, tuple) else (result,)) if isinstance(t, _Tensor)]
    recorder.running = False
    return hp.HostProgram(
        name,
        _site(0),
        tuple(recorder.memories.values()),
        tuple(recorder.actions),
        CALLER,
        tuple(tensor.region() for tensor in returned),
    )


def _is_shape(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Tuple)


def _site(line: int) -> Site:
    return Site("host.py", Span(line, line))


def _is_helper(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id.startswith("run_")


class _Said(ast.NodeTransformer):
    """Lets the text say what names are bound, given to launches, and appended to."""

    def visit_Assign(self, node: ast.Assign) -> Any:
        [target] = node.targets
        if not isinstance(target, ast.Name):
            return node
        return [node, *ast.parse(f"_bound({target.id!r})").body]

    def visit_Expr(self, node: ast.Expr) -> Any:
        call = node.value
        if isinstance(call, ast.Call) and (isinstance(call.func, ast.Subscript) or _is_helper(call.func)):
            names = ast.Constant(tuple(a.id for a in call.args if isinstance(a, ast.Name)))
            call.keywords.append(ast.keyword("names", names))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append":
            results = ast.unparse(call.func.value)
            return [node, *ast.parse(f"_kept({results!r}, {results})").body]
        return node


# ---- what is written down ------------------------------------------------------------------------------------


@dataclass
class _Recorder:
    """The actions so far. Mutable: a run in progress."""

    actions: list[hp.Action] = field(default_factory=list)
    memories: dict[str, hp.Memory] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    current: str = CALLER
    graph: str | None = None
    made: int = 0
    running: bool = True

    def site(self) -> Site:
        """The line of the function under test."""
        frame: types.FrameType | None = inspect.currentframe()
        while frame is not None and frame.f_globals.get("_bound") is None:
            frame = frame.f_back
        return _site(frame.f_lineno if frame is not None else 0)

    def name(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    def add(self, make: Any, *arguments: Any, **named: Any) -> None:
        self.actions.append(make(self.site(), *arguments, **named))

    def work(self, reads: list[_Tensor], writes: list[_Tensor], *, launch: bool = True, **named: Any) -> None:
        footprint = _footprint(reads, writes)
        self.add(hp.Work, self.name("work"), self.current, footprint, is_launch=launch, **named)

    def handed(self, name: str, size: int) -> _Storage:
        memory = hp.Memory(name, _site(0), extents=(const(size),), handed_in=True)
        self.memories[name] = memory
        return _Storage(self, memory, owned=False)

    def allocate(self, size: int, *, pinned: bool = False) -> _Storage:
        name = self.name("memory")
        where = {"place": hp.Place.PINNED} if pinned else {"stream": self.current, "pool": self.graph}
        memory = hp.Memory(name, self.site(), extents=(const(size),), **where)  # type: ignore[arg-type]  # by name
        self.memories[name] = memory
        self.add(hp.Allocate, name)
        return _Storage(self, memory, owned=True)

    def bound(self, name: str) -> None:
        if name in self.frozen:
            self.add(hp.Rebind, name)

    def keep(self, name: str, results: list[_Tensor]) -> None:
        self.add(hp.Keep, results[-1].storage.memory.name, f"{name}{len(results)}")

    def join(self, **what: str) -> None:
        if self.graph is None:
            self.add(hp.Join, **what)
        else:
            self.add(hp.Forbidden, "a wait of the host", "a synchronisation")


class _Storage:
    """One allocation. Python ends it."""

    def __init__(self, recorder: _Recorder, memory: hp.Memory, *, owned: bool) -> None:
        self.recorder, self.memory, self.owned = recorder, memory, owned
        self.streams: dict[str, None] = {}  # recorded ones; for pinned memory those of its copies

    def __del__(self) -> None:
        if self.owned and self.recorder.running:
            self.recorder.add(hp.Free, self.memory.name, tuple(self.streams))


class _Tensor:
    """A range of elements of a storage, in rows if it is a ring."""

    device = "cuda"

    def __init__(self, recorder: _Recorder, storage: _Storage, start: int, stop: int, rows: int = 1) -> None:
        self.recorder, self.storage = recorder, storage
        self.start, self.stop, self.rows = start, stop, rows

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.numel() // self.rows) if self.rows > 1 else (self.numel(),)

    def numel(self) -> int:
        return self.stop - self.start

    def is_contiguous(self) -> bool:
        return True

    def region(self) -> hp.Region:
        return hp.Region(self.storage.memory.name, ((const(self.start), const(self.stop)),))

    def __getitem__(self, index: int | slice) -> _Tensor:
        if isinstance(index, slice):
            start, stop, _ = index.indices(self.numel())
            return _Tensor(self.recorder, self.storage, self.start + start, self.start + stop)
        size = self.numel() // self.rows
        return _Tensor(self.recorder, self.storage, self.start + index * size, self.start + (index + 1) * size)

    @property
    def is_pinned(self) -> bool:
        return self.storage.memory.place is hp.Place.PINNED

    def copy_(self, source: _Tensor, *, non_blocking: bool = False) -> None:
        for tensor in (self, source):
            if tensor.is_pinned:
                tensor.storage.streams[self.recorder.current] = None
        self.recorder.work([source], [self], launch=False)
        assert non_blocking or not (self.is_pinned or source.is_pinned)

    def add_(self, number: float) -> None:
        self.recorder.work([self], [self])

    def fill_(self, number: float) -> None:
        assert self.is_pinned
        self.recorder.add(hp.Touch, "fill_", _footprint([], [self]))

    def tolist(self) -> list[float]:
        assert self.is_pinned
        self.recorder.add(hp.Touch, "tolist", _footprint([self], []))
        return []

    def clone(self) -> _Tensor:
        copied = _Tensor(self.recorder, self.recorder.allocate(self.numel()), 0, self.numel())
        self.recorder.work([self], [copied])
        return copied

    def record_stream(self, stream: _Stream) -> None:
        self.storage.streams[stream.name] = None


def _footprint(reads: list[_Tensor], writes: list[_Tensor]) -> hp.Footprint:
    return hp.Footprint(tuple(t.region() for t in reads), tuple(t.region() for t in writes))


class _Launcher:
    """`kernel[grid](...)`."""

    def __init__(self, recorder: _Recorder, kernel: Kernel) -> None:
        self.recorder, self.kernel = recorder, kernel

    def __getitem__(self, grid: tuple[int, ...]) -> _Launcher:
        return self

    def by_helper(self, *given: Any, names: tuple[str, ...], dependent: bool = False) -> None:
        self(*given, names=names, BLOCK=0, launch_pdl=dependent)

    def __call__(self, *given: Any, names: tuple[str, ...], BLOCK: int, launch_pdl: bool = False) -> None:
        kernel = self.kernel
        tensors = dict(zip(kernel.arrays, given, strict=False))
        early = [tensors[name] for name in kernel.does.inputs if name in kernel.early()]
        late = [tensors[name] for name in kernel.does.inputs if name not in kernel.early()]
        out = [tensors[kernel.does.out]]
        waits = kernel.wait is not Wait.NEVER
        named = {"dependent": launch_pdl, "waits": waits}
        named["before"] = _footprint(early, [] if waits else out)
        if self.recorder.graph is not None:
            self.recorder.frozen |= {*names}
            named["frozen"] = names
        self.recorder.work(late, out if waits else [], **named)


# ---- streams, events, graphs ---------------------------------------------------------------------------------


class _Stream:
    def __init__(self, recorder: _Recorder, name: str = "") -> None:
        self.recorder = recorder
        self.name = name or recorder.name("stream")

    def wait_stream(self, other: _Stream) -> None:
        event = _Event(self.recorder)
        event.record(other)
        self.wait_event(event)

    def wait_event(self, event: _Event) -> None:
        self.recorder.add(hp.Await, self.name, event.name)

    def record_event(self, event: _Event) -> None:
        event.record(self)

    def synchronize(self) -> None:
        self.recorder.join(stream=self.name)


class _Event:
    def __init__(self, recorder: _Recorder) -> None:
        self.recorder, self.name = recorder, recorder.name("event")

    def record(self, stream: _Stream | None = None) -> None:
        self.recorder.add(hp.Record, self.name, stream.name if stream is not None else self.recorder.current)

    def wait(self) -> None:
        self.recorder.add(hp.Await, self.recorder.current, self.name)

    def synchronize(self) -> None:
        self.recorder.join(event=self.name)


class _Graph:
    def __init__(self, recorder: _Recorder) -> None:
        self.recorder, self.name = recorder, recorder.name("graph")

    def replay(self) -> None:
        self.recorder.add(hp.Replay, self.name, self.recorder.current)


def _torch(recorder: _Recorder) -> types.SimpleNamespace:
    """The parts of PyTorch that drawn functions use."""

    def new(shape: int | tuple[int, ...], *, pinned: bool = False) -> _Tensor:
        extents = (shape,) if isinstance(shape, int) else shape
        size = extents[0] * (extents[1] if len(extents) > 1 else 1)
        rows = extents[0] if len(extents) > 1 else 1
        return _Tensor(recorder, recorder.allocate(size, pinned=pinned), 0, size, rows)

    def filled(shape: int | tuple[int, ...]) -> _Tensor:
        made = new(shape)
        recorder.work([], [made])
        return made

    def stack(tensors: list[_Tensor]) -> _Tensor:
        for number in range(1, len(tensors) + 1):
            recorder.add(hp.UseKept, f"results{number}")
        made = new(max(1, sum(tensor.numel() for tensor in tensors)))
        recorder.work(tensors, [made])
        return made

    @contextlib.contextmanager
    def on(stream: _Stream) -> Iterator[None]:
        before, recorder.current = recorder.current, stream.name
        yield
        recorder.current = before

    @contextlib.contextmanager
    def capture(graph: _Graph) -> Iterator[None]:
        recorder.join()
        before, recorder.current, recorder.graph = recorder.current, f"of_{graph.name}", graph.name
        recorder.add(hp.Capture, graph.name, recorder.current)
        yield
        recorder.add(hp.EndCapture, graph.name)
        recorder.current, recorder.graph = before, None

    cuda = types.SimpleNamespace(
        Stream=lambda: _Stream(recorder),
        Event=lambda: _Event(recorder),
        CUDAGraph=lambda: _Graph(recorder),
        current_stream=lambda: _Stream(recorder, recorder.current),
        stream=on,
        graph=capture,
        synchronize=recorder.join,
    )
    return types.SimpleNamespace(
        Tensor=_Tensor,
        empty=lambda shape, device="", pin_memory=False: new(shape, pinned=pin_memory),
        ones=lambda shape, device="": filled(shape),
        empty_like=lambda tensor: new(tensor.numel()),
        zeros_like=lambda tensor: filled(tensor.numel()),
        stack=stack,
        cuda=cuda,
    )
