"""Which tiles make a step of decoding fastest: each product with each tile, the others at their best."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterator, Sequence

from qwen3.decoder import Decoder
from qwen3.machine import machine
from qwen3.products import Product, products
from qwen3.weights import load
from qwen3_models import Drawn, config_of

NAMES = ("behind a norm", "gate and up", "attention onto the residual", "down onto the residual")
ONE = ((2, 4, 8), (1024, 2048), (2, 4, 8))  # rows, columns and warps for one sequence
SEVERAL = ((16, 32), (128, 256, 512), (2, 4, 8))
STEPS, ROUNDS = 24, 3
SHOWN = 6


def tried(model: str, device: str, layers: int, context: int, sequences: int) -> Iterator[str]:
    """The tiles of each product, the fastest first, as lines.

    The step has a few layers and the whole output layer.

    Args:
        model: its size.
        device: "cuda" or "reference".
        layers: of the step.
        context: tokens before the first step.
        sequences: decoded at once.
    """
    config, place = dataclasses.replace(config_of(model), layers=layers), machine(device)
    weights = load(Drawn("cuda" if device == "cuda" else "cpu"), config, place)  # type: ignore[arg-type]

    def step(choice: Sequence[Product]) -> float:
        """Microseconds of a step. The caches hold zeros: what they hold is of no matter to time."""
        decoder = Decoder(place, config, weights, context + STEPS * (ROUNDS + 1), None, 0, sequences)
        decoder._products = tuple(choice)  # noqa: SLF001 - nothing is captured yet
        decoder.start([[1]] * sequences)
        decoder._given["position"] = decoder._positions = [context] * sequences  # noqa: SLF001 - as said
        return min(_times(decoder))

    best = list(products(sequences, config.hidden))
    yield (
        f"{model}, {layers} layers, context {context}, batch {sequences}, with the tiles of `products.py`: "
        f"{step(best):.1f} us a step"
    )
    for number, name in enumerate(NAMES):
        rows, columns, warps = ONE if sequences == 1 else SEVERAL
        whole = best[number].columns
        pieces = (whole,) if len(whole) > 1 else tuple((size,) for size in columns)
        taken = {}
        for tile in itertools.product(rows, pieces, warps):
            trial = dataclasses.replace(best[number], rows=tile[0], columns=tile[1], warps=tile[2])
            try:
                taken[tile] = step([*best[:number], trial, *best[number + 1 :]])
            except Exception as error:  # noqa: BLE001 - Triton's own: a tile that is too large for the card
                yield f"  {name}, {tile}: {type(error).__name__}"
        order = sorted(taken, key=lambda tile: taken[tile])
        rows_, columns_, warps_ = order[0]
        best[number] = dataclasses.replace(best[number], rows=rows_, columns=columns_, warps=warps_)
        yield f"  {name}: " + ", ".join(f"{_text(tile)} {taken[tile]:.1f}" for tile in order[:SHOWN])


def _text(tile: tuple[int, tuple[int, ...], int]) -> str:
    rows, columns, warps = tile
    return f"{rows} x {'+'.join(map(str, columns))} / {warps}"


def _times(decoder: Decoder) -> Iterator[float]:
    """Microseconds of a step in some rounds, after one that captures."""
    for number in range(ROUNDS + 1):
        began = time.perf_counter()
        for _ in range(STEPS):
            decoder.step()
        decoder.history()
        if number:
            yield 1e6 * (time.perf_counter() - began) / STEPS
