"""Our engine, as the harness runs it: the one place of the harness that knows `qwen3.decoder`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from qwen3.decoder import Decoder
from qwen3.machine import machine
from qwen3.profile import Span, spans
from qwen3.weights import load
from qwen3_models import Array, Drawn, config_of

from tilecheck import host

Prompts = Sequence[Sequence[int]]


class Engine:
    """A model with random weights on verified kernels. Mutable: it decodes.

    Args:
        model: its size.
        device: "cuda" or "reference".
        slots: for the tokens of a sequence.
        batch: sequences at a time.
        is_eager: whether each step is launched kernel by kernel, without a graph.
    """

    name = "tilecheck"

    def __init__(self, model: str, device: str, slots: int, batch: int, *, is_eager: bool = False) -> None:
        self.variant = "eager" if is_eager else "graph"
        config, place = config_of(model), machine(device)
        weights = load(Drawn("cuda" if device == "cuda" else "cpu"), config, place)  # type: ignore[arg-type]
        self._decoder = (_Eager if is_eager else Decoder)(place, config, weights, slots, None, 0, batch)

    def run(self, prompts: Prompts, new: int) -> tuple[float, float]:
        """Seconds until the first tokens of some prompts are on the host, and from there until the last are.

        Tokens are fed back on the device; the host waits for the first and for the last.
        """
        decoder = self._decoder
        began = time.perf_counter()
        decoder.start(prompts)
        decoder.step()
        decoder.history()
        first = time.perf_counter()
        for _ in range(new - 1):
            decoder.step()
        decoder.history()
        return first - began, time.perf_counter() - first

    def tokens(self, prompts: Prompts, new: int) -> tuple[list[list[int]], Array]:
        """The tokens that follow some prompts, and the logits of the last of them."""
        self.run(prompts, new)
        history = self._decoder.history()
        ends = [len(prompt) - 1 for prompt in prompts]
        found = [row[end : end + new].tolist() for row, end in zip(history, ends, strict=True)]
        return found, self._decoder.logits().astype(np.float32)

    def logits(self, others: Prompts, tokens: Sequence[int], positions: Iterable[int]) -> Iterator[Array]:
        """The logits of the first sequence after the first tokens of a text, which is given and not made.

        Args:
            others: the prompts of the other sequences of the batch; each goes on with its last token.
            tokens: of the text.
            positions: after how many tokens, rising.
        """
        decoder, seen = self._decoder, -1
        for position in positions:
            if position != seen + 1:
                decoder.start([tokens[:position], *others])
            decoder.step(following=[tokens[position], *(other[-1] for other in others)])
            seen = position
            yield decoder.logits()[0].astype(np.float32)

    def spans(self, prompts: Prompts, steps: int) -> list[Span]:
        """The kernels of some steps after some prompts on the GPU; none where they cannot be seen."""
        decoder = self._decoder
        decoder.start(prompts)
        decoder.step()  # nothing of the prompt runs any more when its token is there
        decoder.history()

        def work() -> None:
            for _ in range(steps):
                decoder.step()
            decoder.history()

        return spans(work)

    def nodes(self) -> list[str]:
        """The kernels of a step, in the order of the graph."""
        return [node.name for node in self._decoder.describe().nodes if node.kind == "kernel"]


class _Eager(Decoder):
    """A decoder whose steps are launched one kernel after the other."""

    def _updating(self) -> host.Updating:
        return host.updating(self.machine.stream)

    def _capture(self, *, is_short: bool) -> Any:
        return _Steps(self, is_short=is_short)


class _Steps:
    """Stands in for the captured graph of a decoder: `launch` runs the kernels one by one. Mutable."""

    def __init__(self, decoder: Decoder, *, is_short: bool) -> None:
        self._decoder = decoder
        self._is_short = is_short

    def launch(self, stream: host.Stream) -> None:
        self._decoder._step(is_short=self._is_short, may_depend=False)  # noqa: SLF001 - as a part of it

    def output(self, name: str) -> host.Array:
        decoder = self._decoder
        known = {"finished": decoder._state["finished"], "history": decoder._history, "logits": decoder._logits}  # noqa: SLF001 - as above
        return known[name]

    def describe(self) -> str:
        return "no graph"
