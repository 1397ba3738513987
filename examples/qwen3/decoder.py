"""One step of decoding as a captured graph: tokens in, the next tokens out, all state on the device.

A layer is five launches: norm and heads; attention; its output onto the residual; norm, gate and up; down onto
the residual. A launch may start while the one before it ends: until it waits it touches weights alone, which no
launch writes, and `tilecheck.host` refuses it otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from cuda.tile import cdiv

from qwen3.config import Config, Sampling
from qwen3.errors import UserError
from qwen3.machine import Machine
from qwen3.prefill import fill
from qwen3.products import products
from qwen3.weights import Layer, Weights
from tilecheck import host
from tilecheck.kernels.sizes import next_power_of_two
from tilecheck.kernels.triton.batch_gemv import MAX_SEQUENCES
from tilecheck.kernels.triton.decode_attention import (
    KEYS,
    ROWS,
    attention_kernel,
    merge_kernel,
    split_attention_kernel,
)
from tilecheck.kernels.triton.next_token import (
    BLOCK,
    MAX_TOP,
    argmax_blocks_kernel,
    embed_kernel,
    next_token_kernel,
    sample_token_kernel,
    top_blocks_kernel,
)

SHORT = 96  # positions up to here take one program a head; later ones are split over the keys
SPLITS = 64  # of the keys of a long context
STAGES = 2  # of loads: the programs of the product behind it need room to load their weights early
SEEDS_APART = 2**20  # of two sequences: more than there are positions, which are added to seeds


class Decoder:
    """Steps of some sequences at once. Mutable: it knows how many steps it has launched.

    Args:
        machine: where it runs.
        config: of the model.
        weights: of the model.
        slots: for the tokens of a sequence, prompt included.
        sampling: how tokens are drawn; the most probable ones are taken if None.
        seed: of the draws.
        sequences: how many advance with each step, each from its own prompt, at its own position.

    Raises:
        UserError: the model cannot be asked in this way.
    """

    def __init__(
        self,
        machine: Machine,
        config: Config,
        weights: Weights,
        slots: int,
        sampling: Sampling | None,
        seed: int,
        sequences: int = 1,
    ) -> None:
        if not 1 <= sequences <= MAX_SEQUENCES:
            raise ValueError(f"{sequences} sequences: from 1 to {MAX_SEQUENCES} are decoded at once")
        if sampling is not None and not 1 <= sampling.top_k <= MAX_TOP:
            raise UserError(f"--top-k is {sampling.top_k}, and has to be from 1 to {MAX_TOP}")
        if sampling is not None and (sampling.temperature <= 0 or sampling.top_p <= 0):
            raise UserError("--temperature and --top-p have to be above 0; without --sample nothing is drawn")
        self.machine, self.config, self.weights, self.slots = machine, config, weights, slots
        self.sampling, self.sequences = sampling, sequences
        self._products = products(sequences, config.hidden)
        self._positions = [0] * sequences  # those of sequences that have finished are behind these
        self._given: dict[str, Sequence[int]] = {}  # what the next step begins with
        half, group = config.width // 2, config.group
        # In float64: far on, the angle itself has few digits left in float32.
        angles = np.arange(slots)[:, None] * config.theta ** (-np.arange(half) / half)
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        self._turns = (machine.constant(cos), machine.constant(sin))
        self._stops = machine.constant(np.asarray(config.stops or (-1,), dtype=np.int32))
        seeds = (seed % 2**30 + SEEDS_APART * np.arange(sequences)) % 2**30
        self._seeds = machine.constant(seeds.astype(np.int32))
        heads = (group + 2) * config.kv_heads * config.width
        self._hidden = machine.zeros((sequences, config.hidden), "float32")
        self._qkv = machine.zeros((sequences, heads), "weight")
        self._attended = machine.zeros((sequences, config.heads * config.width), "weight")
        self._partial = machine.zeros((sequences, config.heads, SPLITS, config.width), "float32")
        self._weights = machine.zeros((sequences, config.heads, SPLITS), "float32")
        self._feed = machine.zeros((sequences, config.intermediate), "weight")
        self._logits = machine.zeros((sequences, config.vocabulary), "float32")
        cache = (sequences, config.kv_heads, slots, config.width)
        self._caches = [
            (machine.zeros(cache, "weight"), machine.zeros(cache, "weight")) for _ in weights.layers
        ]
        ranks = sequences * cdiv(config.vocabulary, BLOCK) * (sampling.top_k if sampling else 1)
        self._best = machine.zeros((ranks,), "float32")
        self._candidates = machine.zeros((ranks,), "int32")
        self._state = {name: machine.zeros((sequences,), "int32") for name in ("token", "position", "finished")}
        self._history = machine.zeros((sequences, slots), "int32")
        self._step(is_short=True, may_depend=False)  # compiles the kernels before they are captured
        self._step(is_short=False, may_depend=False)
        self._graphs: dict[bool, host.Graph[Any]] = {}  # for short contexts, and for long ones
        self._latest: host.Graph[Any] | None = None  # that was launched
        self.captured: list[Any] = []  # the descriptions of the graphs

    # ---- steps -----------------------------------------------------------------------------------------------

    def start(self, prompts: Sequence[Sequence[int]]) -> None:
        """Begin with a prompt for each sequence, as if nothing had been before.

        The first step takes in their last tokens.
        """
        if len(prompts) != self.sequences:
            raise ValueError(f"{len(prompts)} prompts for {self.sequences} sequences")
        # Each prompt fills the slots of its own sequence, and can reach no others.
        parts = [tuple(host.partition(x, (1, *x.shape[1:])) for x in pair) for pair in self._caches]
        with self._updating():
            for number, prompt in enumerate(prompts):
                caches = [(keys[number, 0, 0, 0], values[number, 0, 0, 0]) for keys, values in parts]
                if len(prompt) > 1:
                    fill(self.machine, self.config, self.weights, self._turns, caches, prompt[:-1])
        for keys, values in parts:
            host.unpartition(keys)  # `_caches` has the whole arrays, which are usable again
            host.unpartition(values)
        self._positions = [len(prompt) - 1 for prompt in prompts]
        self._given = {"token": [prompt[-1] for prompt in prompts], "position": self._positions}

    def step(self, *, following: Sequence[int] | None = None) -> None:
        """Launch one step; the next one begins with the tokens `following`, or with those that are found.

        Sequences that have finished stand still, unless tokens follow.
        """
        graph = self._latest = self._take_graph()
        if self._given:
            values = {**self._given, "finished": [0] * self.sequences}
            with self._updating():
                for name, value in values.items():
                    given = np.asarray(value, dtype=np.int32)
                    host.copy_to_device(given, self._state[name]).submit(self.machine.stream)
        graph.launch(self.machine.stream)
        self._positions = [position + 1 for position in self._positions]
        self._given = {} if following is None else {"token": following}

    def history(self) -> np.ndarray[Any, Any]:
        """The token found after each position, [sequences, slots]; waits for the steps."""
        return self._read("history")

    def finished(self) -> np.ndarray[Any, Any]:
        """Whether each sequence has met a stop token or filled its slots; waits for the steps."""
        return self._read("finished").astype(bool)

    def logits(self) -> np.ndarray[Any, Any]:
        """The logits of the last step, [sequences, vocabulary]; waits for it."""
        return self._read("logits")

    def describe(self) -> Any:
        """Nodes, edges and owned memory of the captured graph."""
        return self._take_graph().describe()

    def _read(self, name: str) -> np.ndarray[Any, Any]:
        assert self._latest is not None, "no step was launched"
        return self.machine.read(self._latest.output(name))

    def _take_graph(self) -> host.Graph[Any]:
        """The graph for the longest context: contexts grow, and long ones are split over programs."""
        is_short = max(self._positions) < SHORT
        if is_short not in self._graphs:
            self._graphs[is_short] = self._capture(is_short=is_short)
            self.captured.append(self._graphs[is_short].describe())
        return self._graphs[is_short]

    def _updating(self) -> host.Updating:
        """A block whose work may write the caches and the state, which the graphs own."""
        return host.updating(self.machine.stream, *self._graphs.values())

    # ---- the graph -------------------------------------------------------------------------------------------

    def _capture(self, *, is_short: bool) -> host.Graph[Any]:
        inputs = dict(self._state)
        for number, (keys, values) in enumerate(self._caches):
            inputs |= {f"keys {number}": keys, f"values {number}": values}
        with host.capture(self.machine.stream, inputs=inputs, runtime=self.machine.runtime) as scope:
            self._step(is_short=is_short, may_depend=self.machine.may_depend)
            scope.output("finished", self._state["finished"])
            scope.output("history", self._history)
            scope.output("logits", self._logits)
        return scope.graph

    def _step(self, *, is_short: bool, may_depend: bool) -> None:
        config, weights, launch = self.config, self.weights, self.machine.launch
        token = self._state["token"]
        rows = (token, weights.embedding, self._hidden, config.vocabulary, config.hidden, BLOCK, False)
        launch(embed_kernel, (self.sequences, cdiv(config.hidden, BLOCK)), rows)
        for layer, (keys, values) in zip(weights.layers, self._caches, strict=True):
            self._norm_gemv(layer.attention_gain, layer.qkv, self._qkv, may_depend)
            self._attention(layer, keys, values, is_short, may_depend)
            self._gemv_add(2, self._attended, layer.output, may_depend)
            self._gate_up(layer, may_depend)
            self._gemv_add(3, self._feed, layer.down, may_depend)
        self._norm_gemv(weights.gain, weights.head, self._logits, may_depend)
        self._take(may_depend)

    def _norm_gemv(self, gain: host.Shared, weight: host.Shared, out: host.Array, may_depend: bool) -> None:
        rows, columns = weight.shape
        args = (self._hidden, gain, weight, out, rows, columns, self.config.eps)
        self._products[0].launch(self.machine, args, rows, may_depend)

    def _gate_up(self, layer: Layer, may_depend: bool) -> None:
        rows, columns = self.config.intermediate, self.config.hidden
        args = (self._hidden, layer.feed_gain, layer.gate_up, self._feed, rows, columns, self.config.eps)
        self._products[1].launch(self.machine, args, rows, may_depend)

    def _gemv_add(self, number: int, x: host.Array, weight: host.Shared, may_depend: bool) -> None:
        rows, columns = weight.shape
        args = (x, weight, self._hidden, rows, columns)
        self._products[number].launch(self.machine, args, rows, may_depend)

    def _attention(
        self, layer: Layer, keys: host.Array, values: host.Array, is_short: bool, may_depend: bool
    ) -> None:
        config, launch, position = self.config, self.machine.launch, self._state["position"]
        given = (self._qkv, layer.q_gain, layer.k_gain, *self._turns, position, keys, values)
        scale, half = config.width**-0.5, config.width // 2
        sizes = (config.kv_heads, self.slots, scale, config.eps, config.group, half)
        if is_short:
            grid = (config.group, config.kv_heads, self.sequences)
            args = (*given, self._attended, *sizes, KEYS, may_depend)
            launch(attention_kernel, grid, args, dependent=may_depend, warps=2)
            return
        args = (*given, self._partial, self._weights, *sizes, KEYS, SPLITS, ROWS, STAGES, may_depend)
        launch(split_attention_kernel, (config.kv_heads, SPLITS, self.sequences), args, dependent=may_depend)
        parts = (self._partial, self._weights, position, self._attended, self.slots)
        args = (*parts, config.width, KEYS, SPLITS, may_depend)
        launch(merge_kernel, (config.heads, self.sequences), args, dependent=may_depend)

    def _take(self, may_depend: bool) -> None:
        config, launch, sampling = self.config, self.machine.launch, self.sampling
        blocks, stops = cdiv(config.vocabulary, BLOCK), self._stops.shape[0]
        state = (*self._state.values(), self._history)
        tile = next_power_of_two(stops)
        if sampling is None:
            args = (self._logits, self._best, self._candidates, config.vocabulary, BLOCK, may_depend)
            launch(argmax_blocks_kernel, (blocks, self.sequences), args, dependent=may_depend)
            args = (self._best, self._candidates, self._stops, *state, blocks, stops, self.slots)
            args = (*args, next_power_of_two(blocks), tile, may_depend)
            launch(next_token_kernel, (self.sequences,), args, dependent=may_depend)
            return
        top, ranks = sampling.top_k, blocks * sampling.top_k
        args = (self._logits, self._best, self._candidates, config.vocabulary, top, BLOCK, may_depend)
        launch(top_blocks_kernel, (blocks, self.sequences), args, dependent=may_depend)
        args = (self._best, self._candidates, self._seeds, self._stops, *state, ranks, stops, self.slots)
        args = (
            *args,
            sampling.temperature,
            sampling.top_p,
            top,
            next_power_of_two(top),
            next_power_of_two(ranks),
        )
        launch(sample_token_kernel, (self.sequences,), (*args, tile, may_depend), dependent=may_depend)
