"""A check of the device: the most probable token is found here too, from the logits of each step."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from qwen3.decoder import Decoder
from qwen3.errors import WrongResultError
from qwen3.generate import Times


def generate_on_host(decoder: Decoder, prompt: Sequence[int], most: int, times: Times) -> Iterator[int]:
    """The tokens of `generate`, one step at a time, each taken from logits that are read back.

    Args:
        decoder: of one sequence; it takes the most probable tokens.
        prompt: its tokens, fewer than the decoder has slots.
        most: how many tokens are made at most.
        times: filled in.

    Raises:
        WrongResultError: the device has found another token.
    """
    began = time.perf_counter()
    decoder.start([prompt])
    for position in range(len(prompt) - 1, min(len(prompt) + most, decoder.slots) - 1):
        decoder.step()
        logits, found = decoder.logits()[0], int(decoder.history()[0, position])
        token = int(logits.argmax())  # of equal ones the first, as on the device
        if not np.isfinite(logits).all() or token != found:
            raise WrongResultError(
                f"after position {position} the device takes token {found}, and the host {token}: of its "
                f"{logits.size} logits {np.isfinite(logits).sum()} are finite"
            )
        times.prompt = times.prompt or time.perf_counter() - began
        if token in decoder.config.stops:
            return
        times.tokens += 1
        times.generation = time.perf_counter() - began - times.prompt
        yield token
