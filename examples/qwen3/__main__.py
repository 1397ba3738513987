"""`python -m qwen3 --model DIR --prompt TEXT`: text from a Qwen3 model on verified kernels."""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from qwen3.errors import UserError, ended, leave

if TYPE_CHECKING:
    from qwen3.config import Config, Sampling


def main(arguments: list[str] | None = None) -> int:
    """Run the program; its exit code."""
    given = _parser().parse_args(arguments)
    return ended(lambda: _run(given))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="qwen3", description=__doc__)
    parser.add_argument(
        "--model", type=Path, required=True, help="folder with config.json, weights, tokenizer.json"
    )
    parser.add_argument("--prompt", required=True)
    parser.add_argument(
        "--raw-prompt", action="store_true", help="take the prompt as it is, without a chat template"
    )
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--max-seq-len", type=int, default=4096, help="slots for tokens, prompt included")
    parser.add_argument(
        "--sample", action="store_true", help="draw tokens; else the most probable ones are taken"
    )
    parser.add_argument("--temperature", type=float, help="of --sample; else that of generation_config.json")
    parser.add_argument("--top-k", type=int, help="as --temperature")
    parser.add_argument("--top-p", type=float, help="as --temperature")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--stream",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="print text while it is made, or else all of it at the end",
    )
    parser.add_argument(
        "--host-argmax",
        action="store_true",
        help="read the logits of each step back, and check that the device takes the most probable token",
    )
    parser.add_argument("--profile", action="store_true", help="say where the time went")
    parser.add_argument("--device", choices=["auto", "cuda", "reference"], default="auto")
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="write what the run rests on, as JSON")
    return parser


def _run(given: argparse.Namespace) -> int:
    # Here, so that --help needs none of what the program needs.
    from qwen3.certificate import begin, finish
    from qwen3.checkpoint import Checkpoint
    from qwen3.config import read_config
    from qwen3.decoder import Decoder
    from qwen3.generate import Times, generate
    from qwen3.host_argmax import generate_on_host
    from qwen3.machine import machine
    from qwen3.memory import memory_errors_as_advice
    from qwen3.profile import Profile
    from qwen3.text import Text
    from qwen3.weights import load

    if given.max_new_tokens < 1 or given.max_seq_len < 2:
        raise UserError("--max-new-tokens has to be at least 1, and --max-seq-len at least 2")
    profile, times = Profile(), Times()
    with profile.part("files"):
        config, checkpoint, text = read_config(given.model), Checkpoint(given.model), Text(given.model)
    sampling = _sampling(given, config)
    slots = min(given.max_seq_len, config.positions)
    prompt = text.encode(given.prompt, is_raw=given.raw_prompt)
    if max(prompt) >= config.vocabulary:
        raise UserError(f"the tokenizer makes token {max(prompt)}, and the model knows {config.vocabulary}")
    if len(prompt) >= slots:
        raise UserError(
            f"the prompt has {len(prompt)} tokens, and there are {slots} slots: raise --max-seq-len"
        )
    if given.certificate is not None:
        begin(given.certificate)
    place = machine(given.device)
    print(f"{given.model.name} on {place.name}", file=sys.stderr)
    with memory_errors_as_advice(place, config, slots):
        with profile.part("weights"):
            weights = load(checkpoint, config, place)
        with profile.part("kernels"):  # are verified, compiled, and launched for the first time
            decoder = Decoder(place, config, weights, slots, sampling, given.seed)
        made = (generate_on_host if given.host_argmax else generate)(
            decoder, prompt, given.max_new_tokens, times
        )
        for piece in text.pieces(made) if given.stream else [text.decode(list(made))]:
            print(piece, end="", flush=True)
    print()
    print(times.text(), file=sys.stderr)
    if given.certificate is not None:
        finish(given.certificate, given.model.name, decoder)
    if given.profile:  # launches more
        print(profile.text(decoder, prompt, times), file=sys.stderr)
    return 0


def _sampling(given: argparse.Namespace, config: Config) -> Sampling | None:
    """How tokens are drawn: as the model's folder says, but for what is given; None if none are drawn."""
    asked = {"temperature": given.temperature, "top_k": given.top_k, "top_p": given.top_p}
    chosen = {name: value for name, value in asked.items() if value is not None}
    if not given.sample:
        if chosen:
            raise UserError(f"--{min(chosen).replace('_', '-')} is of use with --sample alone")
        return None
    if given.host_argmax:
        raise UserError("--host-argmax takes the most probable tokens, and --sample draws them: leave one out")
    if not all(map(math.isfinite, chosen.values())):
        raise UserError("--temperature and --top-p have to be numbers")
    return dataclasses.replace(config.sampling, **chosen)


if __name__ == "__main__":
    leave(main())
