"""The kernels of one layer of a step on the GPU: their times, the gaps between them, how fast they read."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from qwen3.config import Config
from qwen3.profile import Span
from qwen3_card import bandwidth
from qwen3_engine import Engine
from qwen3_models import config_of, prompt_of

STEPS = 24


def lines(model: str, device: str, context: int, batch: int) -> list[str]:
    """The timeline of a model's step as a table."""
    config = config_of(model)
    engine = Engine(model, device, context + STEPS + 2, batch)
    prompts = [prompt_of(config, context, number) for number in range(batch)]
    spans, names = engine.spans(prompts, STEPS), engine.nodes()
    title = f"{model}, context {context}, batch {batch}"
    if not spans:
        return [f"{title}: kernels cannot be seen here"]
    if len(spans) != STEPS * len(names):
        return [f"{title}: {len(spans)} kernels were seen, and {STEPS} steps have {STEPS * len(names)}"]
    return [title, "", *table(config, batch, names, spans, bandwidth(device))]


def table(
    config: Config, batch: int, names: Sequence[str], spans: Sequence[Span], read_rate: float
) -> list[str]:
    """Lines of Markdown: a table of the kernels of the middle layer, and the time of a layer and of a step.

    Args:
        config: of the model.
        batch: sequences at a time.
        names: of the kernels of one step.
        spans: of the kernels of some steps, by their starts.
        read_rate: bytes a second.
    """
    steps = [spans[start : start + len(names)] for start in range(0, len(spans), len(names))]
    length = period(names)
    start = 1 + config.layers // 2 * length
    weights = iter(layer_bytes(config))
    found = ["| kernel | us | gap before it, us | of the bandwidth |", "| --- | --- | --- | --- |"]
    for at in range(start, start + length):
        took = statistics.median(step[at].end - step[at].start for step in steps)
        gap = statistics.median(step[at].start - step[at - 1].end for step in steps)
        share = ""
        if "attention" not in names[at] and "merge" not in names[at]:
            share = f"{100e6 * next(weights, 0) / took / read_rate:.1f} %"
        found.append(f"| {names[at]} | {took:.2f} | {gap:+.2f} | {share} |")
    layer = statistics.median(step[start + length].start - step[start].start for step in steps)
    whole = statistics.median(step[-1].end - step[0].start for step in steps)
    return [*found, "", f"A layer takes {layer:.2f} us, a step {whole:.1f} us: {len(names)} kernels."]


def period(names: Sequence[str]) -> int:
    """How many kernels a layer has: the first one embeds, and the layers come after it, one like the other."""
    return next(
        (n for n in range(1, len(names) // 2) if names[1 : 1 + n] == names[1 + n : 1 + 2 * n]), len(names) - 2
    )


def layer_bytes(config: Config) -> list[int]:
    """Bytes of the four matrices of a layer in the order of a step."""
    heads, every = config.heads * config.width, (config.heads + 2 * config.kv_heads) * config.width
    inner = config.intermediate
    return [2 * config.hidden * size for size in (every, heads, 2 * inner, inner)]
