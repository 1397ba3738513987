"""The mutants of the kernels really race: the reference backend's log shows two blocks on one element."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilecheck.reference import run
from tilecheck.reference.log import Launch, Log

MUTANTS = Path(__file__).parents[2] / "fixtures" / "cutile" / "mutants"


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, dtype=np.float32)


MATRICES = {"a": (8, 8), "b": (8, 8), "out": (8, 8), "TILE_M": 4, "TILE_N": 4, "TILE_K": 4}
NORM = {"x": (4, 8), "weight": (8,), "out": (4, 8), "eps": 1e-6, "TILE_M": 2, "TILE_N": 8}
BATCH = {"a": (2, 8, 8), "b": (2, 8, 8), "out": (2, 8, 8), "TILE_M": 4, "TILE_N": 4, "TILE_K": 4}
SPLITS = {"a": (8, 16), "b": (16, 8), "partial": (2, 8, 8), "TILE_M": 4, "TILE_N": 4, "TILE_K": 4}
SUMS = {"partial": (4, 2, 8), "out": (2, 8), "TILE_S": 2, "TILE_N": 4}
TOKEN_TILES = {"TILE_T": 2, "TILE_Q": 2, "TILE_K": 1, "TILE_D": 4}
ROPE = {"q": (4, 2, 2, 4), "k": (4, 1, 2, 4), "cos": (9, 4), "sin": (9, 4)} | TOKEN_TILES
SLOTS = {"keys": (4, 2, 4), "values": (4, 2, 4), "key_cache": (9, 2, 4), "value_cache": (9, 2, 4)}
HEADS_OF_QUERIES = {"q": (1, 2, 8, 4), "k": (1, 1, 8, 4), "v": (1, 1, 8, 4), "out": (1, 2, 8, 4)}
ATTENTION = HEADS_OF_QUERIES | {"scale": 1.0, "GROUP": 2, "TILE_M": 4, "TILE_N": 4, "TILE_D": 4}
HEADS = {"x": (1, 2, 4, 4), "out": (1, 4, 2, 4), "TILE_M": 4, "TILE_D": 4}

LAUNCHES: dict[tuple[str, str], tuple[tuple[int, int, int], dict[str, Any]]] = {
    ("vector_add", "vector_add_kernel"): ((2, 1, 1), {"x": (8,), "y": (8,), "out": (8,), "TILE": 4}),
    ("rms_norm", "rms_norm_kernel"): ((2, 1, 1), NORM),
    ("softmax", "softmax_kernel"): ((2, 1, 1), {"x": (4, 8), "TILE_M": 2, "TILE_N": 8}),
    ("softmax", "softmax_online_kernel"): ((4, 1, 1), {"x": (4, 8), "out": (4, 8), "TILE_N": 4}),
    ("transpose", "transpose_kernel"): ((2, 1, 1), {"x": (8, 4), "out": (4, 8), "TILE_M": 4, "TILE_N": 4}),
    ("transpose", "transpose_square_kernel"): ((2, 2, 1), {"x": (8, 8), "TILE": 4}),
    ("permute_heads", "permute_heads_kernel"): ((2, 1, 1), HEADS),
    ("permute_heads", "permute_heads_batch_twice_kernel"): ((2, 1, 1), HEADS),
    ("matmul", "matmul_kernel"): ((2, 2, 2), MATRICES),
    ("matmul", "matmul_grouped_kernel"): ((8, 1, 1), MATRICES),
    ("matmul", "matmul_persistent_kernel"): ((2, 1, 1), MATRICES),
    ("linear", "linear_kernel"): (
        (2, 1, 1),
        {"x": (8, 8), "weight": (8, 8), "out": (8, 8), "TILE_M": 4, "TILE_N": 4, "TILE_K": 4},
    ),
    ("batched_matmul", "batched_matmul_kernel"): ((3, 1, 1), BATCH),
    ("split_k_matmul", "split_k_partial_kernel"): ((2, 2, 2), SPLITS),
    ("split_k_matmul", "split_k_reduce_kernel"): ((2, 2, 2), SUMS),
    ("rope", "rope_kernel"): ((2, 1, 1), ROPE | {"positions": np.arange(4)}),
    ("kv_cache_update", "kv_cache_update_kernel"): (
        (2, 1, 1),
        SLOTS | {"position": np.array([3], dtype=np.int32), "TILE_T": 2, "TILE_H": 2, "TILE_D": 4},
    ),
    ("flash_attention", "flash_attention_kernel"): ((2, 2, 1), ATTENTION),
    ("embedding", "embedding_kernel"): (
        (1, 2, 1),
        {"ids": (4,), "table": (3, 8), "out": (4, 8), "TILE_T": 4, "TILE_D": 4},
    ),
    ("axpy", "axpy_kernel"): ((2, 1, 1), {"a": 2.0, "x": (8,), "y": (8,), "TILE": 4}),
    ("silu_mul", "silu_mul_kernel"): (
        (4, 1, 1),
        {"gate": (4, 8), "up": (4, 8), "out": (4, 8), "TILE_M": 2, "TILE_N": 4},
    ),
    ("add_rms_norm", "add_rms_norm_kernel"): (
        (2, 2, 1),
        {"x": (2, 8), "residual": (2, 8), "weight": (8,), "out": (2, 8), "eps": 1e-6, "TILE_N": 8, "HALF": 4},
    ),
    ("layer_norm", "layer_norm_kernel"): (
        (4, 1, 1),
        {"x": (4, 8), "weight": (8,), "bias": (8,), "out": (4, 8), "eps": 1e-5, "TILE_M": 2, "TILE_N": 8},
    ),
    ("activations", "relu_kernel"): ((2, 1, 1), {"x": (8,), "out": (8,), "TILE": 4}),
    ("activations", "gelu_kernel"): ((2, 1, 1), {"x": (8,), "out": (8,), "TILE": 4}),
    ("layer_norm_backward", "layer_norm_backward_kernel"): (
        (2, 1, 1),
        {"grad": (4, 8), "x": (4, 8), "weight": (8,), "grad_x": (4, 8), "weight_parts": (2, 8)}
        | {"eps": 1e-5, "TILE_N": 8},
    ),
    ("layer_norm_backward", "sum_parts_kernel"): (
        (2, 2, 1),
        {"parts": (4, 8), "out": (8,), "TILE_PARTS": 2, "TILE_COLUMNS": 4},
    ),
    ("cross_entropy", "cross_entropy_kernel"): (
        (2, 2, 1),
        {"logits": (2, 8), "targets": (2,), "losses": (2,), "TILE": 4},
    ),
}


def launched(module: str, kernel: str) -> Log:
    grid, described = LAUNCHES[module, kernel]
    arguments = {
        name: zeros(*value) if isinstance(value, tuple) else value for name, value in described.items()
    }
    for name in {"ids", "targets"} & arguments.keys():
        arguments[name] = arguments[name].astype(np.int32)
    return run(Launch(str(MUTANTS / f"{module}.py"), kernel, grid, arguments))


def conflicts(log: Log) -> list[tuple[str, tuple[int, ...]]]:
    """Elements that one block writes and another one touches."""
    touched: dict[tuple[str, tuple[int, ...]], dict[tuple[int, int, int], bool]] = {}
    for access in log.accesses:
        for element in access.elements.tolist():
            blocks = touched.setdefault((access.array, tuple(element)), {})
            blocks[access.block] = blocks.get(access.block, False) or access.effect == "write"
    return [place for place, blocks in touched.items() if len(blocks) > 1 and any(blocks.values())]


@pytest.mark.parametrize(("module", "kernel"), LAUNCHES, ids=lambda name: name)
def test_two_blocks_meet(module: str, kernel: str) -> None:
    log = launched(module, kernel)
    assert conflicts(log)
    assert log.undefined == []  # what is wrong with a mutant is the race alone


def test_every_mutant_is_launched() -> None:
    names = {
        (path.stem, name)
        for path in sorted(MUTANTS.glob("*.py"))
        for name in re.findall(r"^@ct\.kernel\ndef (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert names == set(LAUNCHES)
