"""What a run needs in memory, and what is said where there is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from qwen3.config import Config
from qwen3.errors import UserError
from qwen3.machine import Machine, Reference


@contextmanager
def memory_errors_as_advice(machine: Machine, config: Config, slots: int) -> Iterator[None]:
    """Turn an error of memory that has run out into one that says how much is needed, and what to lower.

    Args:
        machine: where the model runs.
        config: of the model.
        slots: for the tokens of one sequence.

    Raises:
        UserError: memory has run out.
    """
    try:
        yield
    except Exception as error:
        if not _is_of_memory(error):
            raise
        width = 4 if isinstance(machine, Reference) else 2  # bytes of an element
        weights, cache = config.weights * width, slots * config.token_cache * width
        raise UserError(
            f"not enough memory: the weights take {weights / 1e9:.2f} GB and the keys and values of {slots} "
            f"tokens {cache / 1e9:.2f} GB, beside what a prompt needs: lower --max-seq-len, or take a "
            "shorter prompt or a smaller model"
        ) from None


def _is_of_memory(error: Exception) -> bool:
    """Whether memory has run out, as Python, NumPy, PyTorch or the CUDA driver say it."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    text = str(error).lower().replace("_", " ")
    return bool(kinds & {"MemoryError", "OutOfMemoryError"}) or "out of memory" in text
