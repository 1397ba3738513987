"""`python -m qwen3 --model DIR --prompt TEXT`: text from a Qwen3 model on verified kernels."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from qwen3.errors import UserError


def main(arguments: list[str] | None = None) -> int:
    """Run the program; 0, or 2 for what the user can mend."""
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
    parser.add_argument("--top-k", type=int)
    parser.add_argument("--top-p", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=["auto", "cuda", "reference"], default="auto")
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="write what the run rests on, as JSON")
    given = parser.parse_args(arguments)
    try:
        return _run(given)
    except UserError as error:
        print(f"qwen3: {error}", file=sys.stderr)
        return 2


def _run(given: argparse.Namespace) -> int:
    # Here, so that --help needs none of what the program needs.
    from qwen3.certificate import certificate
    from qwen3.checkpoint import Checkpoint
    from qwen3.config import read_config
    from qwen3.decoder import Decoder
    from qwen3.generate import Times, generate
    from qwen3.machine import machine
    from qwen3.text import Text
    from qwen3.weights import load

    if given.max_new_tokens < 1 or given.max_seq_len < 2:
        raise UserError("--max-new-tokens has to be at least 1, and --max-seq-len at least 2")
    config, checkpoint, text = read_config(given.model), Checkpoint(given.model), Text(given.model)
    prompt = text.encode(given.prompt, is_raw=given.raw_prompt)
    if max(prompt) >= config.vocabulary:
        raise UserError(f"the tokenizer makes token {max(prompt)}, and the model knows {config.vocabulary}")
    slots = min(given.max_seq_len, config.positions)
    if len(prompt) >= slots:
        raise UserError(
            f"the prompt has {len(prompt)} tokens, and there are {slots} slots: raise --max-seq-len"
        )
    sampling = None
    if given.sample:
        asked = {"temperature": given.temperature, "top_k": given.top_k, "top_p": given.top_p}
        chosen = {name: value for name, value in asked.items() if value is not None}
        sampling = dataclasses.replace(config.sampling, **chosen)
    place = machine(given.device)
    print(f"{given.model.name} on {place.name}", file=sys.stderr)
    decoder = Decoder(place, config, load(checkpoint, config, place), slots, sampling, given.seed)
    times = Times()
    for piece in text.pieces(generate(decoder, prompt, given.max_new_tokens, times)):
        print(piece, end="", flush=True)
    print()
    print(times.text(), file=sys.stderr)
    if given.certificate is not None:
        try:
            given.certificate.write_text(certificate(given.model.name, decoder), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{given.certificate} cannot be written: {error}") from None
    return 0


if __name__ == "__main__":
    sys.exit(main())
