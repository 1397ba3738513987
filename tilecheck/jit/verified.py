"""`tilecheck.verified`: launches of Triton kernels that their verdicts cover, and none other."""

from __future__ import annotations

import inspect
import operator
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from tilecheck.jit.contracts import limit_of
from tilecheck.jit.guard import Guard
from tilecheck.jit.guard_triton import Threads, compile_guard, compile_threads
from tilecheck.jit.jitted import Layers, assignments, check_annotations, layers_of, warp_size
from tilecheck.jit.launch import captured
from tilecheck.jit.records import Record
from tilecheck.jit.verdicts import check_text, record_for

# Options of a launch with the values that verdicts cover: a program is one group of threads, programs do not
# wait for one another, and what runs is the kernel.
_OPTIONS: dict[str, tuple[Any, ...]] = {
    "num_ctas": (None, 1),
    "launch_cooperative_grid": (None, False),
    "ir_override": (None,),
    "enable_warp_specialization": (None, False),  # of earlier versions: several groups of warps
    "num_consumer_groups": (None, 0),
}
_WARPS = 4  # of a launch that does not say how many
_hooking = threading.Lock()
_REMEMBERED = 4096  # combinations of arguments with which every configuration passed

# By the identity of the kernel object: Triton's compare by what they compile to.
_ready: dict[tuple[int, int | None], tuple[weakref.ref[Any], Guarded]] = {}


def verified(kernel: Any, *, check_contracts: bool | int = False) -> Verified:
    """A Triton kernel whose launches are checked: `tilecheck.verified(kernel)[grid](*args, **kwargs)`.

    The first launch finds the kernel's verdict: an emitted one (`use_verdicts`), else by verifying its file
    now. Every launch is then checked against the conditions of the verdict and the standing obligations, and
    forwarded as it is.

    Args:
        kernel: a function under `triton.jit`, perhaps under `triton.autotune` and `triton.heuristics` as well.
        check_contracts: whether to hold the contracts on values in memory (`increasing(t)`, `distinct(t)`, ...)
            against the arrays of every launch. This waits until the device is idle and copies them to the host.
            Arrays of more than 65,536 elements are refused, unless the number that are allowed is given instead
            of True.
    """
    return Verified(kernel, limit_of(check_contracts))


class Verified:
    """A kernel with its guard; indexed with a grid like the kernel itself."""

    __slots__ = ("__weakref__", "_guarded", "_most", "kernel")

    def __init__(self, kernel: Any, most: int | None = None) -> None:
        self.kernel = kernel
        self._most = most  # how many elements an array may have whose contracts are checked
        self._guarded: Guarded | None = None

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """What launches the kernel with a grid: integers, or a function of the arguments that gives them.

        Raises:
            LaunchRefused: when called, if the kernel is not verified, or the launch breaks a condition.
        """
        return partial(self._launch, grid)

    def _launch(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        return (self._guarded or self.guarded).launch(self.kernel, grid, args, kwargs)

    @property
    def record(self) -> Record:
        """What its verdict asks of a launch.

        Raises:
            LaunchRefused: the kernel has none, or is not verified.
        """
        return self.guarded.record

    @property
    def guarded(self) -> Guarded:
        """What checks and forwards its launches.

        Raises:
            LaunchRefused: the kernel has no verdict, or is not verified.
        """
        if self._guarded is None:
            self._guarded = _guarded(self.kernel, self._most)
        return self._guarded

    def __repr__(self) -> str:
        return f"<verified {self.kernel!r}>"


def _guarded(kernel: Any, most: int | None) -> Guarded:
    key = (id(kernel), most)
    found = _ready.get(key)
    if found is not None and found[0]() is kernel:
        return found[1]
    layers = layers_of(kernel)
    record = record_for(layers.function)  # refuses a kernel with a free variable that is not bound yet
    names = captured(layers.function)
    guard = compile_guard(record, names)
    check_text(layers.jitted, layers.function)
    check_annotations(layers, record)
    looks = None if most is None else compile_guard(record, names, most=most)
    threads = compile_threads(record, names)
    bind = _binder(layers.function)
    guarded = Guarded(guard, looks, threads, bind, is_tuned=bool(layers.around))
    _ready[key] = (weakref.ref(kernel, lambda _: _ready.pop(key, None)), guarded)
    return guarded


class Guarded:
    """The guard of one kernel. Holds nothing of the kernel object, whose life it must not prolong.

    Mutable: it remembers the arguments with which every configuration of a tuned kernel passed.
    """

    def __init__(
        self,
        guard: Guard,
        looks: Guard | None,
        threads: Threads | None,
        bind: Callable[..., Any],
        *,
        is_tuned: bool,
    ) -> None:
        self.guard = guard
        self.looks = looks  # checks contracts as well
        self.threads = threads
        self.bind = bind
        self.is_tuned = is_tuned
        self.names = [a.name for a in guard.record.arguments]
        self.passed: set[Any] = set()
        self.warned = False

    @property
    def record(self) -> Record:
        return self.guard.record

    def remembers(self, grid: tuple[int, ...], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether a launch that has passed passes again while the layouts and addresses of its arrays, its
        numbers, its options and its grid stay the same, and no hook runs before it."""
        if self.is_tuned or self.looks is not None:
            return False
        return self.guard.remembers(grid, self.bind(*args, **kwargs)[0])

    def launch(self, kernel: Any, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Launch the kernel.

        Raises:
            LaunchRefused: the launch breaks a condition.
        """
        if self.is_tuned or kernel.pre_run_hooks:  # what the kernel is launched with is known late
            return self._launch_tuned(kernel, grid, args, kwargs)
        blocks = self._checked(grid, self._bound(args, kwargs), self.looks)
        return None if blocks is None else kernel[blocks](*args, **kwargs)

    def launch_dependent(self, kernel: Any, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Launch the kernel so that it may start before the launch before it has ended.

        The caller answers for what the two touch at the same time: `tilecheck.host` is the one that does.

        Raises:
            LaunchRefused: the launch breaks a condition, or a tuner is around the kernel.
        """
        if self.is_tuned or kernel.pre_run_hooks:
            raise self.guard.refusal(
                "a tuner or a hook may run it several times, so it cannot depend on one launch"
            )
        blocks = self._checked(grid, self._bound(args, kwargs), self.looks)
        return None if blocks is None else kernel[blocks](*args, **kwargs, launch_pdl=True)

    def _checked(self, grid: Any, values: Sequence[Any], guard: Guard | None = None) -> tuple[int, ...] | None:
        """The grid of a launch that passed; None if it has no blocks."""
        blocks = grid(dict(zip(self.names, values, strict=True))) if callable(grid) else grid
        try:
            sizes = tuple(map(operator.index, blocks)) if isinstance(blocks, (tuple, list)) else None
        except TypeError:
            sizes = None
        if sizes is None:
            raise self.guard.refusal(f"the grid {blocks!r} is not a tuple of integers")
        if 0 in sizes and min(sizes) == 0:
            return None
        (guard or self.guard).check(sizes, values)
        return sizes

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments by parameter, defaults included. What is left are options of the launch."""
        values: tuple[Any, ...]
        try:
            values, options = self.bind(*args, **kwargs)
        except TypeError as error:
            raise self.guard.refusal(f"its arguments do not fit its parameters: {error}") from None
        for name, value in options.items():
            if name in _OPTIONS and value not in _OPTIONS[name]:
                raise self.guard.refusal(f"the proof does not cover launches with `{name}={value}`")
        if options.get("launch_pdl") and (why := self.record.why_unordered(values)):
            raise self.guard.refusal(f"`launch_pdl={options['launch_pdl']}`: {why}")
        if self.threads is not None:
            self.threads(options.get("num_warps", _WARPS), values, warp_size())
        return values

    # ---- tuned kernels ---------------------------------------------------------------------------------------

    def _launch_tuned(self, kernel: Any, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Every configuration that may be chosen must pass before any runs.

        Each is checked again when it runs, with the arguments that Triton hands on: tuners and hooks may have
        changed them, or a configuration may not come from the list. Contracts are not looked at again for
        arguments with which they held before the first run: a tuner takes the time.
        """
        layers = layers_of(kernel)
        if not self.warned:
            self._warn_of_updates(layers)
            self.warned = True
        key = _key(grid, args, kwargs)
        looked: list[tuple[Any, ...]] = []  # the arguments whose contracts hold in this launch
        if key is None or key not in self.passed or layers.is_interpreted or self.looks is not None:
            looked = [
                self._bound(args, assigned) for assigned in assignments(layers, grid, tuple(args), kwargs)
            ]
            grids = [self._checked(grid, values, self.looks) for values in looked]
            if layers.is_interpreted:  # which gives grids other arguments than these
                if len(grids) != 1:
                    raise self.guard.refusal("Triton's interpreter does not tune")
                return None if grids[0] is None else kernel[grids[0]](*args, **kwargs)
            if key is not None:
                if len(self.passed) >= _REMEMBERED:
                    self.passed.clear()
                self.passed.add(key)

        def checked(meta: Mapping[str, Any]) -> tuple[int, ...]:
            try:
                values = tuple([meta[name] for name in self.names])
            except (KeyError, TypeError):
                raise self.guard.refusal("this version of Triton does not tell a grid all arguments") from None
            is_new = not any(_are_same(values, others) for others in looked)
            return self._checked(grid, values, self.looks if is_new else None) or (0,)

        with _hooked(layers.jitted, self._check_options):
            return kernel[checked](*args, **kwargs)

    def _check_options(self, *args: Any, **kwargs: Any) -> None:
        """Options, such as the number of warps, are not among what a grid is told. A tuner may launch with
        others than the configurations that these arguments leave it: it remembers what others left it."""
        self._bound(args, kwargs)

    def _warn_of_updates(self, layers: Layers) -> None:
        """Tuning runs a kernel many times: what it reads and writes must be put back each time."""
        for tuner in layers.tuners:
            if len(tuner.configs) < 2 or getattr(tuner, "user_defined_pre_hook", False):
                continue
            kept = {*tuner.reset_to_zero, *tuner.restore_value}
            for argument in self.record.arguments:
                if argument.updated and argument.name not in kept:
                    warnings.warn(
                        f"tuning runs `{self.record.name}` many times, and each run updates what is in "
                        f"`{argument.name}`: name it in `restore_value` or `reset_to_zero`",
                        RuntimeWarning,
                        stacklevel=5,
                    )


@contextmanager
def _hooked(jitted: Any, hook: Callable[..., None]) -> Iterator[None]:
    """Have each run of a jitted function call `hook` before it. Lists of hooks are replaced and never changed:
    another thread may be going through one."""
    with _hooking:
        jitted.pre_run_hooks = [*jitted.pre_run_hooks, hook]
    try:
        yield
    finally:
        with _hooking:
            hooks = list(jitted.pre_run_hooks)
            if hook in hooks:  # once: another thread may have added an equal one
                hooks.remove(hook)
            jitted.pre_run_hooks = hooks


def _are_same(values: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Whether these are the same arrays and equal numbers."""
    return all(
        one is two or (type(one) is type(two) and type(one) in (int, bool, float, str) and one == two)
        for one, two in zip(values, others, strict=True)
    )


def _key(grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the checks of a tuned kernel's configurations depend on, addresses apart; None where that is not
    known, as for arguments that can change.

    A grid that is a function may use more than its arguments: it is asked again by the launch itself.
    """
    found: list[Any] = [None if callable(grid) else grid, *kwargs]
    for value in (*args, *kwargs.values()):
        if hasattr(value, "data_ptr"):
            found += (value.shape, value.stride(), value.dtype)
        elif value is None or type(value) in (int, bool, float, str):
            found += (type(value), value)
        else:
            return None
    try:
        hash(key := tuple(found))
    except TypeError:
        return None
    return key


def _binder(function: types.FunctionType) -> Callable[..., Any]:
    """A function with the kernel's parameters, defaults included, that returns their values and all else."""
    parameters = inspect.signature(function).parameters
    listed: list[str] = []
    defaults: list[Any] = []
    for name, parameter in parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in listed:
            listed.append("*")
        if parameter.default is parameter.empty:
            listed.append(name)
        else:
            listed.append(f"{name}=defaults[{len(defaults)}]")
            defaults.append(parameter.default)
    rest = "_" * (1 + max(map(len, parameters), default=0))  # no parameter is as long
    values = "".join(f"{name}, " for name in parameters)
    text = f"def bind({', '.join([*listed, f'**{rest}'])}):\n    return ({values}), {rest}"
    scope: dict[str, Any] = {"defaults": defaults}
    exec(compile(text, f"<arguments of {function.__name__}>", "exec"), scope)  # noqa: S102 - names are all that it has of the user
    bind: Callable[..., Any] = scope["bind"]
    return bind
