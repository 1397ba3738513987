"""The standing obligations at one launch: S2, S3, S5, S7 and S8.

S2, S3  inputs at which they do not hold, replayed: two blocks that meet
S5      judged where the text fixes all sizes: the block that wraps runs, over arrays that are addresses alone
S7      the host's text shows neither the types of tensors nor their addresses
S8      the size of the tile against 32 threads for each of `num_warps`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, permutations

from tilecheck.analysis.ordering import WARP, laid_out_alike, large_tiles
from tilecheck.analysis.ranges import INT32_MAX
from tilecheck.ir.expr import (
    FALSE,
    ONE,
    Expr,
    Kind,
    Symbol,
    all_of,
    any_of,
    le,
    lt,
    mul,
    negate,
    render,
    sym,
    symbols,
)
from tilecheck.ir.host import DEFINED
from tilecheck.ir.kernel import Arithmetic, Effect, grid_symbol
from tilecheck.ir.launch import HostTensor, HostValue
from tilecheck.model import Witness
from tilecheck.proof.goals.predicate import ranges
from tilecheck.proof.launches.inputs.unread import rests_on_unread
from tilecheck.proof.launches.judge import Broken, Judge
from tilecheck.proof.launches.replays.harm import blocks_of
from tilecheck.proof.launches.replays.memory import nested
from tilecheck.proof.launches.replays.replay import LaunchRun, TooLarge, replay_launch
from tilecheck.proof.obligation import Holds, Obligation

RULE = "TC403"
_VARIES = (Kind.BLOCK, Kind.LANE, Kind.LOOP)
_MODELS = 2  # of one wrap that are replayed
_MAX_RANK = 4  # of tensors whose axes are tried in every order


@dataclass(eq=False)
class Standing:
    """Mutable: it collects what it finds. `undecided` are obligations that no launch is blamed for."""

    judge: Judge
    run: LaunchRun
    undecided: Sequence[Obligation]
    statuses: list[tuple[str, str]] = field(default_factory=list)
    broken: list[tuple[Broken, Witness | None]] = field(default_factory=list)

    def judge_all(self) -> None:
        written = {a.array for a in self.judge.kernel.accesses if a.effect is not Effect.READ}
        for name, value in self.judge.launch.arguments:
            # A Triton kernel is given the strides, or takes none: its conditions speak of them.
            repeats = (
                isinstance(value, HostTensor) and value.expanded and self.judge.kernel.language != "triton"
            )
            if isinstance(value, HostTensor) and repeats and name in written:
                text = f"S2: `{name}` is written, but several of its indices share one element"
                meet = all_of(lt(1, mul(*(value.shape or ()))), negate(_apart(value)))
                self._meets(text, meet, (name,))
        for axis in range(3 if written else 0):
            if axis not in self.judge.kernel.grid_axes:
                size = self.judge.rewritten(sym(grid_symbol(axis)))
                text = f"S3: grid[{axis}] is more than 1, but the kernel never reads axis {axis}"
                self._meets(text, lt(1, size), ())
        for operation in self.judge.kernel.arithmetic:
            self._fits(operation)
        self.statuses += [*self._numbers(), *self._layouts()]

    # ---- blocks that meet -----------------------------------------------------------------------------

    def _meets(self, text: str, harm: Expr, expanded: tuple[str, ...]) -> None:
        """Report blocks that meet where `harm` holds."""
        if harm is FALSE or self.judge.impossible((harm,)):
            return
        if rests_on_unread(self.judge, harm):
            self.statuses.append((text, "unread"))
            return
        for more in self.judge.more_blocks():
            for broken in self.judge.models((harm, *more), RULE, text, expanded):
                run = self.run
                try:
                    witness = replay_launch(self.judge.kernel, broken, run.path, run.fuel, self.undecided)
                except TooLarge:
                    continue
                if witness is not None:
                    self._note(broken, witness)
                    return
        self.statuses.append((text, "unmet"))

    def _note(self, broken: Broken, witness: Witness) -> None:
        self.broken.append((broken, witness))
        self.statuses.append((broken.text, "broken"))

    # ---- 32 bits --------------------------------------------------------------------------------------

    def _fits(self, operation: Arithmetic) -> None:
        """Report a value of 32 bits that wraps in some block, where the text fixes the sizes it is made of."""
        judge = self.judge
        wraps = (judge.rewritten(operation.guard), judge.rewritten(lt(INT32_MAX, operation.value)))
        goal = (*map(judge.rewritten, ranges(wraps)), *wraps)
        if FALSE in goal or not all(map(self._is_fixed, symbols(*goal))):
            return
        if judge.impossible(goal):
            return
        text = f"S5: `{render(operation.value)}` fits in 32 bits"
        fits = Holds(le(operation.value, INT32_MAX), operation.guard)
        asked = Obligation(RULE, fits, (operation.site,), text, stage=0, kind="overflow")
        for model in islice(judge.inputs(goal, empty=False), _MODELS):
            broken = judge.broken(RULE, text, model)
            witness = None if broken is None else self.run.of_blocks(broken, asked, blocks_of(model))
            if broken is not None and witness is not None:
                self._note(broken, witness)
                return
        self.statuses.append((text, "unmet"))

    def _is_fixed(self, symbol: Symbol) -> bool:
        """Whether the text fixes a value, or it is an index of the kernel. How often a loop of the host runs is
        neither."""
        if symbol in self._of_host:
            return symbol.origin == DEFINED
        return symbol.kind in _VARIES

    @cached_property
    def _of_host(self) -> frozenset[Symbol]:
        grid = (size for size in self.judge.launch.grid or () if size is not None)
        return frozenset(symbols(*grid, *self.judge.known.values()))

    # ---- arguments and options ------------------------------------------------------------------------

    def _numbers(self) -> Iterator[tuple[str, str]]:
        """Arguments that the proof takes for integers, where the host's text does not show that they are."""
        given = dict(self.judge.launch.arguments)
        for param in self.judge.kernel.params:
            if param.integer and not param.is_array and param.name in given:
                status = _of_number(given[param.name])
                if status != "holds":
                    yield f"`{param.name}` is an integer", status

    def _layouts(self) -> Iterator[tuple[str, str]]:
        """S7, and S8 by the number of warps that the launch or the tuner chooses."""
        judge = self.judge
        names = laid_out_alike(judge.kernel)
        if names:
            given = dict(judge.launch.arguments)
            tensors = [v for n in names if isinstance(v := given.get(n), HostTensor)]
            status = "caller" if any(t.given for t in tensors) else "unread"
            listed = ", ".join(f"`{name}`" for name in names)
            yield f"S7: {listed} have elements of one size, and are aligned alike", status
        warps = judge.launch.warps
        for size in large_tiles(judge.kernel):
            text = f"S8: {render(size)} >= {WARP} * num_warps"
            if warps is None:
                yield text, "unread"
                continue
            enough = le(mul(WARP, warps), judge.rewritten(size))
            unread = rests_on_unread(judge, enough)
            yield text, "holds" if judge.follows(enough) else "unread" if unread else "unmet"


def _apart(tensor: HostTensor) -> Expr:
    """That no two indices of a tensor share an element: in some order of its axes, each stride is longer than
    all that lies inside it reaches. A sufficient condition; FALSE where its strides are not known."""
    if tensor.shape is None or tensor.strides is None or len(tensor.shape) > _MAX_RANK:
        return FALSE
    axes = [(n, s) for n, s in zip(tensor.shape, tensor.strides, strict=True) if n is not ONE]
    return any_of(*(nested([n for n, _ in order], [s for _, s in order]) for order in permutations(axes)))


def _of_number(value: HostValue) -> str:
    """Whether an argument is an integer: a truth is none, as Triton makes a single bit of it."""
    if value is None:
        return "unread"
    return "unmet" if isinstance(value, str) or (isinstance(value, Expr) and value.is_bool) else "holds"
