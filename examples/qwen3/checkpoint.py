"""Tensors by name in the SafeTensors files of a folder, mapped into memory and never copied here.

A file is a number of 8 bytes, a JSON object of that many bytes, which gives type, shape and place of each
tensor, and the tensors' bytes. Several files come with an index that says which one holds what.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qwen3.errors import UserError

INDEX = "model.safetensors.index.json"
WHOLE = "model.safetensors"
# NumPy has no bfloat16: its elements are taken as they lie in memory, in 16 bits.
TYPES = {"BF16": np.dtype("<u2"), "F16": np.dtype("<f2"), "F32": np.dtype("<f4")}
_MOST_HEADER = 100_000_000  # bytes, as the format has it


@dataclass(frozen=True, slots=True)
class Tensor:
    """The elements of a tensor where they lie, and the name of their type: BF16, F16 or F32."""

    data: np.ndarray[Any, Any]
    type: str

    def as_float32(self) -> np.ndarray[Any, Any]:
        if self.type == "BF16":
            return (self.data.astype(np.uint32) << 16).view(np.float32)
        return self.data.astype(np.float32)


class Checkpoint:
    """The tensors of a folder."""

    def __init__(self, folder: Path) -> None:
        self._tensors: dict[str, Tensor] = {}
        for name in _files(folder):
            found = _tensors(folder / name)
            if twice := self._tensors.keys() & found.keys():
                raise UserError(f"{folder / name} holds `{min(twice)}`, which another file holds too")
            self._tensors |= found

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A tensor by its name.

        Raises:
            UserError: there is none, or it has another shape than the configuration asks for.
        """
        found = self._tensors.get(name)
        if found is None:
            raise UserError(f"the model's files hold no tensor `{name}`: some are missing, or of another model")
        if found.data.shape != shape:
            raise UserError(f"`{name}` has the shape {found.data.shape}, and config.json asks for {shape}")
        return found


def _files(folder: Path) -> list[str]:
    if (folder / INDEX).exists():
        try:
            files = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise UserError(f"{folder / INDEX} is no index of SafeTensors files: {error!r}") from None
        if not isinstance(files, Mapping) or not all(map(_is_name, files.values())):
            raise UserError(f"{folder / INDEX} is no index of SafeTensors files of its folder")
        return sorted(set(files.values()))
    if (folder / WHOLE).exists():
        return [WHOLE]
    raise UserError(f"{folder} holds neither {WHOLE} nor {INDEX}")


def _is_name(value: Any) -> bool:
    """Whether a value names a file of the same folder."""
    return isinstance(value, str) and value not in {"", ".", ".."} and Path(value).name == value


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        mapped = np.memmap(path, dtype=np.uint8, mode="r")
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    try:
        length = int.from_bytes(bytes(mapped[:8]), "little")
        if len(mapped) < 8 or length > min(_MOST_HEADER, len(mapped) - 8):
            raise ValueError("its header is longer than the file")  # noqa: TRY301 - as what JSON raises
        header = json.loads(bytes(mapped[8 : 8 + length]))
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        data = mapped[8 + length :]
        _check_places([tuple(entry["data_offsets"]) for entry in entries.values()], len(data))
        return {name: _tensor(data, entry) for name, entry in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is no SafeTensors file, or is damaged: {error}") from None


def _check_places(places: Sequence[tuple[int, int]], length: int) -> None:
    """Check that tensors lie one behind the other and fill the file, as the format has it."""
    end = 0
    for start, following in sorted(places):
        if start != end or following < start:
            raise ValueError(f"its tensors overlap or leave a gap at byte {min(start, end)} of their data")
        end = following
    if end != length:
        raise ValueError(f"its tensors take {end} bytes, and it holds {length}")


def _tensor(data: np.ndarray[Any, Any], entry: dict[str, Any]) -> Tensor:
    kind, shape, (start, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    if kind not in TYPES:
        raise ValueError(f"tensors of type {kind} are not supported, only {', '.join(TYPES)}")
    if any(type(n) is not int or n < 0 for n in (*shape, start, end)):
        raise ValueError("a size or place is no number")
    if end - start != math.prod(shape) * TYPES[kind].itemsize:
        raise ValueError(f"a tensor of type {kind} and shape {list(shape)} does not take {end - start} bytes")
    return Tensor(data[start:end].view(TYPES[kind]).reshape(shape), kind)
