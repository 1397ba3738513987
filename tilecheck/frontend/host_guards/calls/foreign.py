"""Calls of Python, NumPy and PyTorch: what is known to compute, or to work on the current stream alone."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from tilecheck.frontend.host_guards.calls import containers
from tilecheck.frontend.host_guards.calls.arguments import Given, Node, of_values
from tilecheck.frontend.host_guards.kinds import (
    ARRAY,
    NONE,
    NOTHING,
    PLAIN,
    TENSOR,
    UNKNOWN,
    Atom,
    Box,
    Checked,
    Code,
    External,
    Kernel,
    Kind,
    Made,
    Method,
    Pending,
    Sort,
)
from tilecheck.frontend.host_guards.read.attributes import attribute
from tilecheck.frontend.host_guards.read.expressions import elements
from tilecheck.frontend.host_guards.read.operators import is_used_up, looked_at
from tilecheck.frontend.host_guards.run import Run
from tilecheck.frontend.host_programs.calls import torch_names

Invoke = Callable[[Run, Atom, Given], Kind]
_UNSEEN = "tilecheck.host does not see what this does"

# Functions of Python whose result holds nothing of what they are given.
_PLAIN = frozenset(
    "abs all any ascii bin bool bytes bytearray callable chr complex divmod float format hasattr hash hex id "
    "input int isinstance issubclass len object oct open ord pow print range repr round slice str sum".split()
)
_COLLECTING = frozenset("list tuple set frozenset iter reversed".split())
_LOOKING = frozenset("all any bool bytes complex float format int print repr str sum".split())  # at values
_MODULES = (
    "math.", "time.", "json.", "re.", "os.", "sys.", "string.", "struct.", "random.", "logging.", "warnings.",
    "statistics.", "datetime.", "decimal.", "fractions.", "pathlib.", "argparse.", "textwrap.", "platform.",
    "contextlib.nullcontext", "contextlib.suppress", "typing.", "enum.", "operator.",
)  # fmt: skip
_UNSAFE_MODULES = ("os.fork", "os.exec", "os.spawn", "os.system", "os.popen", "sys.settrace", "sys.setprofile")
_PLAIN_NAMES = frozenset("triton.cdiv triton.next_power_of_2 cuda.tile.cdiv torch.cuda.synchronize".split())
_VERIFIED = ("tilecheck.verified",)
_LAUNCHERS = ("cuda.tile.launch", "tilecheck.launch")
_PLAIN_PREFIXES = (
    "tilecheck.kernels.sizes.",
    "torch.cuda.is_available", "torch.cuda.device_count", "torch.cuda.current_device", "torch.cuda.get_device_",
    "torch.cuda.memory_", "torch.cuda.max_memory_", "torch.cuda.mem_get_info", "torch.cuda.manual_seed",
    "torch.cuda.empty_cache", "torch.manual_seed", "torch.is_", "torch.get_", "torch.finfo", "torch.iinfo",
    "torch.Size", "torch.device", "torch.no_grad", "torch.inference_mode", "torch.Generator",
)  # fmt: skip


def function(r: Run, name: str, given: Given, invoke: Invoke) -> Kind:
    """A call of a function or class of a library."""
    if name.startswith("builtins."):
        return _builtin(r, name.removeprefix("builtins."), given, invoke)
    if name in _VERIFIED:
        known = frozenset(atom for atom in given.get(0, "kernel") if isinstance(atom, Kernel))
        return known or frozenset({Kernel(name)})
    if name == "typing.cast":
        return given.get(1, "val")
    if name in _LAUNCHERS:
        return _launch(r, name, given)
    if name == "torch.cuda.current_stream":
        return frozenset({Sort.CURRENT})
    if name in _PLAIN_NAMES or name.startswith(_PLAIN_PREFIXES):
        if name == "torch.cuda.synchronize":
            r.raw(given.node)
        return _plain(r, given)
    if name.startswith("torch."):
        return _torch(r, name, given)
    if name.startswith("numpy."):
        return _numpy(r, name, given)
    if name.startswith(("collections.", "itertools.", "dataclasses.", "copy.")):
        found = containers.function(r, name, given)
        return _plain(r, given) if found is None else found
    if name.startswith(_MODULES) and not name.startswith(_UNSAFE_MODULES):
        return _plain(r, given)
    return r.refuse(given.node, _UNSEEN)


def _holds(r: Run, given: Given, *kinds: object) -> bool:
    """Whether an argument is, or holds, one of these."""
    classes = tuple(k for k in kinds if isinstance(k, type))
    inside = r.p.inside(given.kind())
    return any(atom in kinds or isinstance(atom, classes) for atom in inside)


def _plain(r: Run, given: Given) -> Kind:
    """A call that computes, if it gets nothing that enqueues work."""
    if _holds(r, given, Checked, Pending, Code, Sort.TENSOR, Method):
        return r.refuse(given.node, _UNSEEN)
    inside = r.p.inside(given.kind())
    if all(isinstance(atom, Box) or _is_plain(atom) for atom in inside):
        return PLAIN | (inside & ARRAY)
    return PLAIN | inside  # it may give back something of what it is given


def _is_plain(atom: Atom) -> bool:
    is_type = isinstance(atom, External) and atom.name.startswith(("builtins.", "numpy.", "torch."))
    return is_type or atom in (Sort.PLAIN, Sort.NONE, Sort.ARRAY)


# ---- Python ------------------------------------------------------------------------------------------------


def _builtin(r: Run, name: str, given: Given, invoke: Invoke) -> Kind:
    first = given.positional[0][0] if given.positional else given.more
    box = r.box(given.node)
    if name in _PLAIN:
        if name in _LOOKING | {"len", "hash", "round", "abs"}:
            looked_at(r, given.node, r.p.inside(given.kind()))
        key = given.keywords.get("key")
        return PLAIN if key is None else r.refuse(given.node, _UNSEEN)
    if name in _COLLECTING:
        return r.p.fill(box, elements(r, given.node, first))
    match name:
        case "dict":
            values = NOTHING.union(
                elements(r, given.node, first), *(kind for kind, _ in given.keywords.values())
            )
            return r.p.fill(box, values | elements(r, given.node, values), values | PLAIN)
        case "enumerate":
            row = r.p.row(r.box(given.node, "row"), (PLAIN, elements(r, given.node, first)))
            return r.p.fill(box, row)
        case "zip":
            if given.more:
                inside = elements(r, given.node, given.more)
                return r.p.fill(box, r.p.fill(r.box(given.node, "row"), inside))
            rows = [elements(r, given.node, kind) for kind, _ in given.positional]
            return r.p.fill(box, r.p.row(r.box(given.node, "row"), rows))
        case "map" | "filter":
            return _mapped(r, name, given, invoke)
        case "min" | "max" | "sorted":
            return _ordered(r, name, given, invoke)
        case "next":
            return elements(r, given.node, first) | given.get(1, "default")
        case "getattr":
            return _getattr(r, given)
        case "type":
            return NOTHING.union(*(frozenset({a.of}) if isinstance(a, Made) else UNKNOWN for a in first))
        case "super":
            return UNKNOWN
        case "property" | "staticmethod" | "classmethod":
            return UNKNOWN
        case _ if name.endswith(("Error", "Exception", "Iteration", "Warning", "Interrupt", "Exit")):
            return PLAIN
        case _:
            return r.refuse(given.node, _UNSEEN)


def _mapped(r: Run, name: str, given: Given, invoke: Invoke) -> Kind:
    """`map(f, xs)`: the function is called where the result is used, here or in what it is given to."""
    (function, _), *rows = given.positional or ((UNKNOWN, None),)
    kinds = [elements(r, given.node, kind) for kind, _ in rows]
    if given.more:
        return r.refuse(given.node, _UNSEEN)
    found: Kind = NOTHING
    if not is_used_up(r, given.node):
        r.frame.facts.lazy.append(r.table.site(given.node))
    for atom in function:
        if name == "filter" and atom is Sort.NONE:
            continue
        found |= invoke(r, atom, of_values(r, given.node, *kinds))
    return r.boxed(given.node, found if name == "map" else NOTHING.union(*kinds))


def _ordered(r: Run, name: str, given: Given, invoke: Invoke) -> Kind:
    """`min`, `max` and `sorted`."""
    key = given.keywords.get("key", (NOTHING, None))[0] - NONE
    values = NOTHING.union(given.more, *(kind for kind, _ in given.positional))
    if name == "sorted" or len(given.positional) == 1:
        values = elements(r, given.node, values)
    looked_at(r, given.node, values)
    for atom in key:
        invoke(r, atom, of_values(r, given.node, values))
    values |= given.keywords.get("default", (NOTHING, None))[0]
    return r.boxed(given.node, values) if name == "sorted" else values


def _getattr(r: Run, given: Given) -> Kind:
    """`getattr(owner, name)`; a name that the text does not say gives nobody knows what."""
    node = given.node
    default = given.get(2, "") if len(given.positional) > 2 else NOTHING
    match node:
        case cst.Call(args=[_, cst.Arg(value=cst.SimpleString(evaluated_value=str(name)))]):
            return attribute(r, node, given.positional[0][0], name) | default
    return UNKNOWN


# ---- arrays and tensors ------------------------------------------------------------------------------------


def _numpy(r: Run, name: str, given: Given) -> Kind:
    """A function of NumPy: it computes on the host, for which an array of the library is no argument."""
    if _holds(r, given, Checked, Pending, Code, Sort.TENSOR, Method) or name.endswith(
        (".ctypeslib", ".load_library")
    ):
        return r.refuse(given.node, _UNSEEN)
    unknown = r.p.inside(given.kind()) & UNKNOWN
    return ARRAY | PLAIN | unknown


def _torch(r: Run, name: str, given: Given) -> Kind:
    """A function of PyTorch that works on the current stream."""
    prefix = next(p for p in torch_names.FUNCTION_PREFIXES if name.startswith(p))
    short = name.removeprefix(prefix)
    known = torch_names.ALLOCATORS | torch_names.OPERATIONS if prefix == "torch." else torch_names.OPERATIONS
    if short not in known | _VIEWS or _holds(r, given, Checked, Pending, Code, Method) or _goes_on(given):
        return r.refuse(given.node, _UNSEEN)
    r.raw(given.node)
    return _results(r, short, given)


_VIEWS = frozenset("chunk split unbind narrow reshape transpose permute squeeze unsqueeze".split())
_SEVERAL = frozenset(
    "chunk split unbind topk sort max min mode median kthvalue cummax cummin unique aminmax".split()
)


def _results(r: Run, name: str, given: Given) -> Kind:
    """A tensor, or several of them."""
    return TENSOR | r.boxed(given.node, TENSOR) if name in _SEVERAL else TENSOR


def _goes_on(given: Given) -> bool:
    """Whether a copy goes on behind the call, or may."""
    for name in ("non_blocking", "async_op", "launch_pdl", "programmatic_dependent_launch"):
        if name in given.keywords and not _is_false(given.keywords[name][1]):
            return True
    return bool(given.others)


def _is_false(node: Node) -> bool:
    return isinstance(node, cst.Name) and node.value == "False"


_TENSOR_METHODS = (
    torch_names.ASKING - frozenset("untyped_storage storage is_shared".split())
    | torch_names.OVERWRITING
    | torch_names.OPERATIONS
    | _VIEWS
    | frozenset(
        "to cpu cuda view view_as contiguous type half float double bfloat16 int long bool expand expand_as t "
        "flatten unflatten detach new_empty new_zeros new_ones new_full new_tensor item tolist numpy "
        "requires_grad_ add_ sub_ mul_ div_ neg_ sqrt_ exp_ relu_ clamp_ masked_fill_ index_copy_ index_add_ "
        "scatter_".split()
    )
)
_MAY_GO_ON = frozenset(
    "copy_ to cuda cpu type".split()
)  # where `non_blocking` may stand behind the first argument


def method(r: Run, owner: Atom, name: str, given: Given) -> Kind:
    """A call of a method of a value that is no object of the project or the library."""
    match owner:
        case Sort.TENSOR:
            return _of_tensor(r, name, given)
        case Sort.ARRAY:
            if _holds(r, given, Checked, Pending, Code, Sort.TENSOR):
                return r.refuse(given.node, _UNSEEN)
            if name in ("fill", "sort", "put", "itemset", "partition", "resize", "setfield", "byteswap"):
                r.frame.facts.changes.append((None, given.node))
            return PLAIN if name in ("tolist", "item", "tobytes") else ARRAY | PLAIN
        case Box():
            return containers.method(r, owner, name, given)
        case Sort.CURRENT if name == "synchronize":
            r.raw(given.node)
            return NONE
        case Kernel(has_grid=False):
            return r.refuse(given.node, "what this does with the kernel is not followed")
        case _:
            return r.refuse(given.node, _UNSEEN)


def of_plain(r: Run, given: Given) -> Kind:
    """A method of a plain value."""
    return _plain(r, given)


def _of_tensor(r: Run, name: str, given: Given) -> Kind:
    rest = given.positional[1:] if name in _MAY_GO_ON else ()
    waits = all(_is_false(node) or isinstance(node, cst.Attribute) for _, node in rest)
    odd = _holds(r, given, Checked, Pending, Code, Method) or _goes_on(given) or bool(given.more)
    if name not in _TENSOR_METHODS or not waits or odd:
        return r.refuse(given.node, _UNSEEN)
    if name in torch_names.ASKING:
        return PLAIN
    r.raw(given.node)
    if name in ("item", "tolist"):
        return PLAIN
    if name == "numpy":
        return ARRAY | TENSOR  # the same memory
    return _results(r, name, given)


def launched(r: Run, given: Given) -> Kind:
    """`kernel[grid](...)`: a launch on the current stream, on memory of its owner."""
    if _holds(r, given, Checked, Pending, Made, Method, Sort.UNKNOWN) or _goes_on(given):
        return r.refuse(given.node, "tilecheck.host does not see this launch")
    r.raw(given.node)
    return UNKNOWN


def _launch(r: Run, name: str, given: Given) -> Kind:
    """`ct.launch(stream, grid, kernel, args)` on the current stream."""
    if not given.get(0, "stream") <= frozenset({Sort.CURRENT}):
        return r.refuse(given.node, "tilecheck.host does not see this launch, and whose stream it is on")
    rest = Given(given.node, given.positional[1:], given.keywords, given.more, given.others)
    launched(r, rest)
    return NONE
