"""What of `tilecheck.host` checks itself as it runs, and what each call gives.

Whatever is not listed is not checked, or not known to be. `UNCHECKED` says why for what people may look for.
"""

from __future__ import annotations

from tilecheck.dataclass import dataclass

PREFIX = "tilecheck.host."


@dataclass(frozen=True, slots=True)
class Call:
    """A function or method of the library.

    Args:
        gives: the class of the result: of the library, or `plain`, `none`, `operation of C`, `result`
            (of the operation), `all` of the arguments, `boxed C`.
        memory: the positions and names of arguments whose memory the library takes from its owner; `*` and `**`
            are all others.
        code: the positions and names of arguments that are functions, called as the work is enqueued.
        takes_arrays: whether it copies from arrays of NumPy.
    """

    gives: str
    memory: tuple[int | str, ...] = ()
    code: tuple[int | str, ...] = ()
    takes_arrays: bool = False


FUNCTIONS: dict[str, Call] = {
    "own": Call("Array", memory=(0, "array")),
    "share": Call("Shared", memory=(0, "array")),
    "value": Call("operation of it"),
    "stream": Call("Stream"),
    "current": Call("Stream"),
    "default": Call("Runtime"),
    "using": Call("Using"),
    "updating": Call("Updating"),
    "synchronize": Call("none"),
    "reap": Call("none"),
    "parked": Call("plain"),
    "reaped_total": Call("plain"),
    "leaked": Call("plain"),
    "empty": Call("operation of Array"),
    "zeros": Call("operation of Array"),
    "full": Call("operation of Array"),
    "arange": Call("operation of Array"),
    "fill": Call("operation of Array"),
    "copy": Call("operation of Array"),
    "copy_to_device": Call("operation of Array", memory=(0, "source"), takes_arrays=True),
    "copy_to_host": Call("operation of HostArray"),
    "pinned": Call("HostArray"),
    "launch": Call("operation of all", memory=(2, "args", "**"), code=(1, "grid")),
    "enqueue": Call("none", memory=(3, "args", "**"), code=(2, "grid")),
    "zip": Call("operation of results"),
    "first": Call("operation of items"),
    "unzip": Call("operations of items"),
    "partition": Call("Partition"),
    "partition_prefix": Call("Partition"),
    "partition_map": Call("Partition", code=(3, "tile_map")),
    "unpartition": Call("Array"),
    "capture": Call("Scope", memory=("inputs",)),
    "Runtime": Call("Runtime"),
    "RoundRobin": Call("Policy"),
    "SingleStream": Call("Policy"),
    "reference.ReferenceDriver": Call("Driver"),
    "reference.ReferenceKernel": Call("Kernel"),
    "cuda.Cuda": Call("Driver"),
}

_VALUES = {"tolist": Call("plain"), "item": Call("plain")}
_RUNS = Call("result")
METHODS: dict[str, dict[str, Call]] = {
    "View": _VALUES,
    "Array": _VALUES | {"share": Call("Shared")},
    "Shared": _VALUES | {"clone": Call("Shared"), "unshare": Call("Array")},
    "Borrowed": _VALUES,
    "HostArray": _VALUES | {"read": Call("plain"), "write": Call("none"), "assign": Call("none")},
    "Partition": {"pieces": Call("boxed Array")},
    "Stream": {"record": Call("Event"), "wait": Call("none"), "sync": Call("none"), "close": Call("none")},
    "Event": {"is_done": Call("plain"), "sync": Call("none")},
    "Scope": {"output": Call("none")},
    "Graph": {
        "describe": Call("plain"),
        "launch": Call("none"),
        "update": Call("none", memory=(0, "inputs"), takes_arrays=True),
        "output": Call("Borrowed"),
        "sync": Call("none"),
        "close": Call("none"),
    },
    "Runtime": {"stream": Call("Stream"), "current": Call("Stream"), "reap": Call("none")},
    "Operation": {
        "submit": _RUNS,
        "sync": _RUNS,
        "sync_on": _RUNS,
        "__await__": _RUNS,
        "shared": Call("itself"),
        "map": Call("operation of code", code=(0, "function")),
        "then": Call("operation of operations of code", code=(0, "make")),
        "cancel": Call("none"),
        "graph": Call("Graph"),
    },
    "Using": {},
    "Updating": {},
    "Policy": {},
    "Driver": {},
    "Kernel": {},
}

_SHAPED = {"shape": "plain", "dtype": "plain", "nbytes": "plain"}
ATTRIBUTES: dict[str, dict[str, str]] = {
    "View": _SHAPED,
    "Array": _SHAPED,
    "Shared": _SHAPED | {"count": "plain"},
    "Borrowed": _SHAPED,
    "HostArray": _SHAPED,
    "Partition": {"grid": "plain", "tile": "plain", "counts": "plain"},
    "Scope": {"graph": "Graph", "stream": "Stream"},
    "Graph": {"state": "plain", "inputs": "plain", "outputs": "plain"},
    "Kernel": {"record": "plain"},
}

# Classes by the name under which annotations may say them.
CLASSES = frozenset(
    "View Array Shared Borrowed HostArray Partition Stream Event Scope Graph Updating Runtime Policy "
    "Operation".split()
)
ENTERED = {"Scope": "Scope", "Using": "Runtime", "Graph": "Graph", "Updating": "Updating"}

_OUTSIDE = "gives {} to code that the library does not see"
UNCHECKED: dict[str, str] = {
    "call": "what your own function touches is not checked against what it says",
    "stream_of": "work that others enqueue on their stream is not seen",
    "tensor": _OUTSIDE.format("the memory"),
    "array": _OUTSIDE.format("the memory"),
    "launched": _OUTSIDE.format("the memory"),
    "handle": _OUTSIDE.format("the stream"),
    "driver": _OUTSIDE.format("the device"),
    "__array_interface__": _OUTSIDE.format("the memory"),
    "__cuda_stream__": _OUTSIDE.format("the stream"),
    "recording": "a recorder is for tests",
    "Recorder": "a recorder is for tests",
}
