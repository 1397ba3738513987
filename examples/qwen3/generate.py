"""From a prompt to tokens as they are made."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from qwen3.decoder import Decoder

STEPS = 8  # that are enqueued before the host looks at what they found


@dataclass
class Times:
    """How long the parts of a run took, in seconds. Mutable: a run fills it in."""

    prompt: float = 0.0
    generation: float = 0.0
    tokens: int = 0

    def text(self) -> str:
        rate = self.tokens / self.generation if self.generation else 0.0
        return (
            f"prompt {self.prompt:.2f} s, {self.tokens} tokens in {self.generation:.2f} s: {rate:.1f} tokens/s"
        )


def generate(decoder: Decoder, prompt: Sequence[int], most: int, times: Times) -> Iterator[int]:
    """The tokens that follow a prompt, without a stop token at the end.

    Args:
        decoder: of one sequence.
        prompt: its tokens, fewer than the decoder has slots.
        most: how many tokens are made at most.
        times: filled in.
    """
    began = time.perf_counter()
    decoder.start([prompt])
    given, limit = len(prompt) - 1, min(len(prompt) + most, decoder.slots) - 1
    while given < limit:
        steps = min(STEPS, limit - given) if times.prompt else 1  # the first one ends the prompt
        for _ in range(steps):
            decoder.step()
        (history,) = decoder.history()
        times.prompt = times.prompt or time.perf_counter() - began
        for token in map(int, history[given : given + steps]):
            if token in decoder.config.stops:
                return
            times.tokens += 1
            times.generation = time.perf_counter() - began - times.prompt
            yield token
        given += steps


def generate_batch(decoder: Decoder, prompts: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """The tokens that follow each prompt, without stop tokens.

    Args:
        decoder: of as many sequences as there are prompts.
        prompts: their tokens, fewer each than the decoder has slots.
        most: how many tokens are made of each at most.
    """
    decoder.start(prompts)
    for done in range(0, most, STEPS):
        for _ in range(min(STEPS, most - done)):
            decoder.step()
        if decoder.finished().all():
            break
    found = []
    for prompt, history in zip(prompts, decoder.history(), strict=True):
        tokens = history[len(prompt) - 1 : -1][:most].tolist()
        ends = [n for n, token in enumerate(tokens) if token in decoder.config.stops]
        found.append(tokens[: ends[0]] if ends else tokens)
    return found
