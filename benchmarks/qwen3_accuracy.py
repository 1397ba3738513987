"""The numbers of our engine beside those of Transformers, and beside its own in another run.

Logits are teacher-forced: all see the same text, and are compared after some of its tokens. What counts as
right is Transformers in float32; its bfloat16 says how much an error in bfloat16 is.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from qwen3_engine import Engine
from qwen3_models import Array, config_of, prompt_of

MOST_ERROR = 2e-2  # of logits in bfloat16, relative
PROMPT = 18  # tokens before those that have to agree


def compared(
    model: str, device: str, batch: int, contexts: Sequence[int], first: int, steps: int, new: int
) -> dict[str, Any]:
    """The record of a model's accuracy.

    Args:
        model: its size.
        device: "cuda" or "reference".
        batch: sequences at a time; the first one is looked at.
        contexts: numbers of tokens after which logits are compared.
        first: tokens before the first of the steps whose greedy tokens are compared.
        steps: how many.
        new: how many tokens runs make that have to agree.
    """
    positions = sorted({*contexts, *range(first, first + steps)})
    tokens = prompt_of(config_of(model), max(positions) + 1)
    record: dict[str, Any] = {"model": model, "batch": batch, "contexts": [], "notes": []}
    engine = Engine(model, device, max(positions) + 1, batch)
    others = [prompt_of(config_of(model), 2 + 3 * number, number) for number in range(1, batch)]
    ours = np.stack(list(engine.logits(others, tokens, positions)))
    del engine
    is_right = True
    if importlib.util.find_spec("transformers") is None or importlib.util.find_spec("torch") is None:
        record["notes"].append("Transformers is not installed: nothing to compare logits with")
    else:
        is_right = _against_transformers(record, ours, model, device, tokens, positions, contexts)
    is_right &= _agreement(record, model, device, batch, new)
    record["verdict"] = "as it should be" if is_right else "WRONG"
    record["is_right"] = is_right
    return record


def _against_transformers(
    record: dict[str, Any],
    ours: Array,
    model: str,
    device: str,
    tokens: Sequence[int],
    positions: Sequence[int],
    contexts: Sequence[int],
) -> bool:
    from qwen3_transformers import WRONG_THETA, Transformers  # lazy: not everywhere installed

    their = Transformers(model, device)
    theirs, wrong = their.logits(tokens, positions), their.logits(tokens, contexts, theta=WRONG_THETA)
    their.to_float32()
    exact = their.logits(tokens, positions)
    del their
    for context, other in zip(contexts, wrong, strict=True):
        at = positions.index(context)
        mine, right = ours[at], exact[at]
        following = tokens[context]
        record["contexts"].append(
            {
                "context": context,
                "error": error(mine, right),
                "their_error": error(theirs[at], right),
                "wrong_theta_error": error(other, right),
                "kl": divergence(right, mine),
                "their_kl": divergence(right, theirs[at]),
                "nll": surprise(mine, following),
                "their_nll": surprise(theirs[at], following),
                "exact_nll": surprise(right, following),
            }
        )
    other_theta = min(at["wrong_theta_error"] for at in record["contexts"])
    errors = [error(mine, right) for mine, right in zip(ours, exact, strict=True)]
    greedy = greedy_tokens(ours, theirs, exact)
    record |= {"greedy": greedy, "worst_error": max(errors)}
    median, count, close = float(np.median(errors)), len(positions), greedy["close"]
    record["notes"] += [
        f"logits off by {max(errors):.4f} at most, {median:.4f} in the median; {MOST_ERROR} is allowed",
        f"with theta {WRONG_THETA:g} they would be off by {other_theta:.4f} at least",
        f"{count} greedy tokens: {greedy['same']} the same, {greedy['wrong']} wrong, and {close} others",
        f"mean KL {_mean(divergence, exact, ours):.2e}, theirs {_mean(divergence, exact, theirs):.2e}",
    ]
    return max(errors) <= MOST_ERROR and not greedy["wrong"]


def error(found: Array, right: Array) -> float:
    """The relative error of logits."""
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


def divergence(right: Array, found: Array) -> float:
    """The divergence of Kullback and Leibler of two distributions, given as logits."""
    p, q = _log_probabilities(right), _log_probabilities(found)
    return float(np.sum(np.exp(p) * (p - q)))


def surprise(logits: Array, token: int) -> float:
    """The negative logarithm of a token's probability."""
    return -float(_log_probabilities(logits)[token])


def _log_probabilities(logits: Array) -> Array:
    shifted = logits.astype(np.float64) - logits.max()
    found: Array = shifted - np.log(np.exp(shifted).sum())
    return found


def _mean(measure: Any, *logits: Array) -> float:
    return float(np.mean([measure(*each) for each in zip(*logits, strict=True)]))


def greedy_tokens(ours: Array, theirs: Array, exact: Array) -> dict[str, int]:
    """At how many positions the most probable token is the same; "close", another one where the best two are
    closer than `theirs` is off at that position; and wrong.
    """
    counts = {"same": 0, "close": 0, "wrong": 0}
    for mine, their, right in zip(ours, theirs, exact, strict=True):
        second, best = np.sort(right)[-2:]
        if mine.argmax() == right.argmax():
            counts["same"] += 1
        elif right[mine.argmax()] >= second and best - second < np.abs(their - right).max():
            counts["close"] += 1
        else:
            counts["wrong"] += 1
    return counts


# ---- runs that have to agree ---------------------------------------------------------------------------------


def made(
    model: str, device: str, batch: int, new: int, *, is_eager: bool = False, runs: int = 1
) -> list[dict[str, Any]]:
    """The tokens and the last logits of some runs of one engine, one after the other."""
    config = config_of(model)
    prompts = [prompt_of(config, PROMPT + number, number) for number in range(batch)]
    engine = Engine(model, device, PROMPT + batch + new, batch, is_eager=is_eager)
    found = [engine.tokens(prompts, new) for _ in range(runs)]
    return [{"tokens": tokens, "logits": logits.tolist()} for tokens, logits in found]


def _agreement(record: dict[str, Any], model: str, device: str, batch: int, new: int) -> bool:
    """Whether a graph, its second use, single launches and another process make the same tokens."""
    first, second = made(model, device, batch, new, runs=2)
    (eager,) = made(model, device, batch, new, is_eager=True)
    program = str(Path(__file__).with_name("qwen3.py"))
    options = ("--device", device, "--batch", str(batch), "--new", str(new))
    command = [sys.executable, program, "tokens", model, *options]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    process = json.loads(said.splitlines()[-1])
    is_same = True
    for name, other in (("a second run", second), ("an eager run", eager), ("a second process", process)):
        off = float(np.abs(np.subtract(first["logits"], other["logits"])).max())
        is_same &= first["tokens"] == other["tokens"]
        which = "the same" if first["tokens"] == other["tokens"] else "OTHER"
        record["notes"].append(f"{name} makes {which} tokens; its last logits are off by {off:.3g} at most")
    return is_same
