"""A launch as host code writes it: `ct.launch(stream, grid, kernel, args)`. Plain data.

Everything is expressed over HOST symbols: the host function's own parameters and the shapes and strides of
the tensors that it is given (`x.shape[0]`), which are free. `facts` are what its text establishes before
the launch: asserts, early raises, the branches around it.
"""

from __future__ import annotations

from dataclasses import field

from tilecheck.dataclass import dataclass
from tilecheck.ir.contents import Contents
from tilecheck.ir.expr import Expr
from tilecheck.model import Site


@dataclass(frozen=True, slots=True)
class HostTensor:
    """A tensor argument.

    `name` is its text in the host function. `storage` names the buffer behind it: two tensors with one storage
    may overlap, different storages of which one is `fresh` (allocated by this function) do not. `shape` and
    `strides` are None where the text does not give them. `expanded` says that several indices share an element
    (`expand`, stride 0). `part` says which part of the storage it is: the slices that lead to it, () for all of
    it, None if that is not known. `copied` says that it may be a copy of that after all: "perhaps", or "unless
    contiguous", and which copy. Where a choice is not decided, `among` names the storages that it may have.
    `given` is a tensor that the caller passes, or that lies in something passed; `handed_on` a fresh one that
    other code was given, or that was put where other code finds it. `blank` is a fresh one whose memory nothing
    has written. While the rank is not known, `shape_of` and
    `strides_of` name the free tensor of the host function whose shape (strides) this one has. `contiguous` says
    that its strides are those of row-major order, `dense` that its elements lie side by side in some order.
    `span_of` names the free tensor that begins and ends where this one does. `number` is what it is if the
    kernel takes it for a number after all: an argument of which the host's text does not say what it is. Where
    `absent` holds, None is passed instead. `count` is the number of elements where `shape` does not say it.
    `contents` is what its elements are at the launch.

    `offset` is where its first element lies in the storage, counted in elements, and `room` how many elements
    that storage has, each None where the text does not say. `perhaps` names further storages that it may share:
    those that the code that computed it could reach; `given_back` names those among them that this code was
    given, `may_be` those that the text lets it be, and the objects that it lies in. `opaque` says that code
    which is not read computed it; `allocated` that its storage comes from an allocation in view, whether or not
    this call made it. `by_rank` has its shape for each rank that it may turn out to have, where the text makes
    `shape_of` of parts of others. `described` is a descriptor over the tensor's memory, with blocks of the
    shape `block`, None where that is not known.
    """

    name: str
    storage: str
    fresh: bool
    shape: tuple[Expr, ...] | None
    strides: tuple[Expr, ...] | None
    expanded: bool = False
    part: tuple[object, ...] | None = ()
    shape_of: str = ""
    strides_of: str = ""
    contiguous: bool = False
    dense: bool = False
    span_of: str = ""
    number: Expr | None = None
    absent: Expr | None = None
    count: Expr | None = None
    copied: str = ""
    among: tuple[str, ...] = ()
    given: bool = False
    handed_on: bool = False
    contents: Contents | None = None
    blank: bool = False
    offset: Expr | None = None
    room: Expr | None = None
    perhaps: tuple[str, ...] = ()
    given_back: tuple[str, ...] = ()
    may_be: tuple[str, ...] = ()
    opaque: bool = False
    allocated: bool = False
    described: bool = False
    block: tuple[Expr, ...] | None = None
    by_rank: tuple[tuple[Expr, ...] | None, ...] = ()


@dataclass(frozen=True, slots=True)
class HostList:
    """A list or tuple of arguments."""

    items: tuple[HostTensor | HostList | Expr | str | None, ...]


HostValue = HostTensor | HostList | Expr | str | None  # str: a literal; None: not understood


FLOAT = "a float"  # the literal that stands for any float


@dataclass(frozen=True, slots=True)
class Launch:
    """One visible launch of `kernel` (the name of its `def`) inside the host function `function`.

    `grid` has one expression per given axis, None where it is not understood; missing axes are 1. `arguments`
    are the values in the order of the kernel's parameters, as far as they were given. `problem` says why a
    launch is not understood at all (then everything else may be empty). `captured` are the values of the names
    that a kernel defined inside a function closes over. `unread` are the tensors and numbers in it that code
    which is not read computes: neither the caller nor the host's text decides them; or objects of which all
    are. `returned` are the parameters whose blank tensors the function returns, written by this launch alone.
    `doubted` are those of which code that is not read may have turned some away before the launch; where a
    launch is seen twice, the first time counts, after which the fewest are. `defaults` are the values that the
    host function itself gives to its numbers. `kept` are names under which host code keeps values between
    calls. `warps` is the number of warps of a Triton launch, None where it
    is not read. A launch through `tilecheck.launch` or `tilecheck.verified` is `guarded`; with an argument
    `check_contracts` it `checks_contracts` on values in memory, too. One through `tilecheck.host` is `checked`
    when it happens: its text is not looked at.
    """

    kernel: str
    kernel_file: str
    function: str
    site: Site
    grid: tuple[Expr | None, ...] | None
    arguments: tuple[tuple[str, HostValue], ...]
    facts: tuple[Expr, ...]
    problem: str | None = None
    captured: tuple[tuple[str, HostValue], ...] = ()
    unread: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    doubted: tuple[str, ...] = field(default=(), compare=False)
    defaults: tuple[tuple[str, Expr], ...] = ()
    kept: tuple[str, ...] = ()
    warps: Expr | None = None
    guarded: bool = False
    checks_contracts: bool = False
    checked: bool = False

    def keeps(self, name: str) -> bool:
        """Whether host code has kept a value from another call: no caller hands it in."""
        return any(name == own or name.startswith((f"{own}.", f"{own}[", f"{own} (")) for own in self.kept)
