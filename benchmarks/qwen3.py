"""Qwen3 models with random weights: how fast they are, and whether they are right, beside Transformers.

    python benchmarks/qwen3.py run 4B --out DIR            times: a line of DIR/run.jsonl for each run
    python benchmarks/qwen3.py accuracy 4B --out DIR       numbers: a line of DIR/accuracy.jsonl for each model
    python benchmarks/qwen3.py timeline 4B --context 512   the kernels of a step, and one layer of them
    python benchmarks/qwen3.py tiles 4B --layers 12        the tiles of products that make a step fastest
    python benchmarks/qwen3.py aggregate DIR               tables and plots in DIR from these lines

The sweeps have the names that Grout gives them: `tgN` makes N tokens after a prompt of 18, `ppN` makes 36
after a prompt of N. Prompts are random tokens, of exactly their lengths. Time is that of the host, from the
call until the last token is there: of the prompt up to the first token, and of all steps after it.

Needs an NVIDIA GPU, PyTorch and Triton, and Transformers for the comparison. `--device reference` runs the same
program on the CPU, for the model `tiny`; its times mean nothing.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from qwen3_card import bandwidth, environment, multiplication
from qwen3_models import SIZES, config_of, prompt_of
from qwen3_records import ACCURACY, NOT_CARRIED, RUNS, append, write_tables

TG_PROMPT = 18
ENGINES = ("tilecheck", "transformers")


@dataclass(frozen=True, slots=True)
class Cell:
    """So many tokens after prompts of so many."""

    name: str
    pp: int
    tg: int
    batch: int


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    work: Callable[[argparse.Namespace], int] = given.work
    return work(given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    models = argparse.ArgumentParser(add_help=False)
    models.add_argument("models", nargs="+", choices=SIZES)
    models.add_argument("--device", choices=["cuda", "reference"], default="cuda")
    kept = argparse.ArgumentParser(add_help=False)
    kept.add_argument("--out", type=Path, required=True, metavar="DIR")
    kept.add_argument("--commit", help="the measured commit; needed outside a git repository")

    run = verbs.add_parser("run", parents=[models, kept])
    run.add_argument(
        "--tg", type=_several, nargs="*", default=[36, 128, 512], help="tokens after a prompt of 18"
    )
    run.add_argument("--pp", type=int, nargs="*", default=[18, 128, 512, 2048, 8192], help="tokens of prompts")
    run.add_argument("--new", type=_several, default=36, help="tokens after the prompts of --pp")
    run.add_argument("--batch", type=int, nargs="+", default=[1])
    run.add_argument("--reps", type=int, default=10)
    run.add_argument("--warmups", type=int, default=3)
    run.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    run.set_defaults(work=_run)

    accuracy = verbs.add_parser("accuracy", parents=[models, kept])
    accuracy.add_argument("--contexts", type=int, nargs="+", default=[18, 512, 4096, 4500, 8000])
    accuracy.add_argument("--first", type=int, default=64, help="tokens before the greedy ones")
    accuracy.add_argument("--steps", type=int, default=256, help="greedy tokens")
    accuracy.add_argument("--new", type=int, default=24, help="tokens of the runs that have to agree")
    accuracy.add_argument("--batch", type=int, nargs="+", default=[1])
    accuracy.set_defaults(work=_accuracy)

    timeline = verbs.add_parser("timeline", parents=[models])
    timeline.add_argument("--context", type=int, default=18)
    timeline.add_argument("--batch", type=int, default=1)
    timeline.set_defaults(work=_timeline)

    tiles = verbs.add_parser("tiles", parents=[models])
    tiles.add_argument("--layers", type=int, default=12, help="of the step that is timed")
    tiles.add_argument("--context", type=int, default=18)
    tiles.add_argument("--batch", type=int, default=1)
    tiles.set_defaults(work=_tiles)

    tokens = verbs.add_parser("tokens", parents=[models], help="of `accuracy`, for its second process")
    tokens.add_argument("--batch", type=int, default=1)
    tokens.add_argument("--new", type=int, default=24)
    tokens.set_defaults(work=_tokens)

    aggregate = verbs.add_parser("aggregate")
    aggregate.add_argument("folder", type=Path, metavar="DIR")
    aggregate.set_defaults(work=_aggregate)
    return parser


def _several(text: str) -> int:
    """A number of tokens, at least 2: the prompt makes the first token, steps make the rest."""
    if int(text) < 2:
        raise ValueError
    return int(text)


# ---- time ----------------------------------------------------------------------------------------------------


def _run(given: argparse.Namespace) -> int:
    print(NOT_CARRIED)
    said = environment(given.device, given.commit)
    for model in given.models:
        for batch in given.batch:
            cells = [Cell(f"tg{tg}", TG_PROMPT, tg, batch) for tg in given.tg]
            cells += [Cell(f"pp{pp}", pp, given.new, batch) for pp in given.pp]
            for name in given.engines:
                _release(given.device)
                rates = {
                    "bytes_per_s": bandwidth(given.device),
                    "operations_per_s": multiplication(given.device),
                }
                for record in _runs(name, given, model, cells):
                    append(given.out / RUNS, {**said, "model": model, **rates, **record})
    return 0


def _runs(name: str, given: argparse.Namespace, model: str, cells: list[Cell]) -> Iterator[dict[str, Any]]:
    """The records of one engine at all cells."""
    prepare: Callable[..., object]
    if name == "tilecheck":
        from qwen3_engine import Engine  # lazy, as all that needs Triton: tables are made anywhere

        slots = max(cell.pp + cell.tg for cell in cells)
        engine: Any = Engine(model, given.device, slots, cells[0].batch)
        prepare = lambda *_: None  # noqa: E731 - has captured its graph
    elif missing := [p for p in ("torch", "transformers") if importlib.util.find_spec(p) is None]:
        print(f"{model}: no comparison with Transformers: {' and '.join(missing)} not installed")
        return
    else:
        from qwen3_transformers import Transformers  # lazy: not everywhere installed

        engine = Transformers(model, given.device)
        prepare = engine.prepare
    for cell in cells:
        prompts = [prompt_of(config_of(model), cell.pp, number) for number in range(cell.batch)]
        prepare(prompts, cell.tg)
        for _ in range(given.warmups):
            engine.run(prompts, cell.tg)
        taken = [engine.run(prompts, cell.tg) for _ in range(given.reps)]
        step = statistics.median(decode for _, decode in taken) / (cell.tg - 1)
        prompt = statistics.median(prefill for prefill, _ in taken)
        print(
            f"{model} {cell.name} x {cell.batch}, {name}: prompt {1e3 * prompt:.2f} ms, "
            f"step {1e3 * step:.3f} ms, {cell.batch / step:.1f} tokens/s",
            flush=True,
        )
        for rep, (prefill, decode) in enumerate(taken):
            yield {
                "engine": engine.name,
                "variant": engine.variant,
                "name": cell.name,
                "pp": cell.pp,
                "tg": cell.tg,
                "batch": cell.batch,
                "rep": rep,
                "prompt_tokens": cell.pp * cell.batch,
                "gen_tokens": cell.tg * cell.batch,
                "e2e_ms": 1e3 * (prefill + decode),
                "prefill_ms": 1e3 * prefill,
                "decode_ms": 1e3 * decode,
            }


def _release(device: str) -> None:
    """Free the memory of the model that was measured before."""
    gc.collect()
    if device == "cuda":
        import torch

        torch.cuda.empty_cache()


# ---- numbers, kernels, tables --------------------------------------------------------------------------------


def _accuracy(given: argparse.Namespace) -> int:
    from qwen3_accuracy import compared

    is_right, said = True, environment(given.device, given.commit)
    for model in given.models:
        for batch in given.batch:
            _release(given.device)
            record = compared(model, given.device, batch, given.contexts, given.first, given.steps, given.new)
            append(given.out / ACCURACY, {**said, **record})
            print(f"{model} x {batch}: {record['verdict']}")
            print(*(f"    {note}" for note in record["notes"]), sep="\n", flush=True)
            is_right &= record["is_right"]
    return 0 if is_right else 1


def _timeline(given: argparse.Namespace) -> int:
    from qwen3_timeline import lines

    for model in given.models:
        print(*lines(model, given.device, given.context, given.batch), sep="\n")
    return 0


def _tiles(given: argparse.Namespace) -> int:
    from qwen3_tiles import tried

    for model in given.models:
        for line in tried(model, given.device, given.layers, given.context, given.batch):
            print(line, flush=True)
    return 0


def _tokens(given: argparse.Namespace) -> int:
    from qwen3_accuracy import made

    for model in given.models:
        print(json.dumps(made(model, given.device, given.batch, given.new)[0]))
    return 0


def _aggregate(given: argparse.Namespace) -> int:
    print(*write_tables(given.folder), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
