"""Runs Triton kernels in Triton's own interpreter, on the CPU, and says what each program touched.

    TRITON_INTERPRET=1 python tests/soundness/triton_worker.py

A process of its own, because `TRITON_INTERPRET` is read when triton is imported: requests and answers are
pickles on its standard input and output. It knows nothing of tilecheck, nor of `soundness_triton_plain`.

Each argument lies between two stretches of cells that nobody owns. What reaches them is let through, so that
they show it afterwards; what reaches further is written down and not done.
"""

from __future__ import annotations

import importlib.util
import pickle
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
from triton.runtime import interpreter

GUARD = 1 << 14  # cells on either side of an argument
CANARY = -98765.0
KEPT_MODULES = 64
_BUILDER = interpreter.interpreter_builder


class Launch:
    """One launch. Mutable: it writes down what the programs do."""

    def __init__(self, arguments: dict[str, Any], order: Sequence[tuple[int, int, int]]) -> None:
        self.order = iter(order)
        self.program = (0, 0, 0)
        # (program, what it does, array or None, offsets from its first element)
        self.events: list[tuple[tuple[int, int, int], str, str | None, list[int]]] = []
        self.memory = {n: _guarded(v) for n, v in arguments.items() if isinstance(v, np.ndarray)}
        self.given = {
            n: self.memory[n][GUARD : GUARD + len(v)] if n in self.memory else v for n, v in arguments.items()
        }

    def see(self, effect: str, pointers: Any, mask: Any) -> Any:
        """Write down an access; the mask of what can be done without harm."""
        addresses, kept = np.broadcast_arrays(pointers.data, mask.data)
        harmless = np.array(kept, dtype=bool)
        found: dict[str | None, list[int]] = {}
        for lane in np.ndindex(addresses.shape):
            if kept[lane]:
                array, offset = self._place(int(addresses[lane]))
                harmless[lane] = array is not None
                found.setdefault(array, []).append(offset)
        self.events += [(self.program, effect, array, offsets) for array, offsets in found.items()]
        return interpreter.TensorHandle(harmless, mask.dtype)

    def _place(self, address: int) -> tuple[str | None, int]:
        for name, cells in self.memory.items():
            number, rest = divmod(address - cells.data_ptr(), cells.element_size())
            if 0 <= number < len(cells) and not rest:
                return name, number - GUARD
        return None, 0

    def buffers(self) -> dict[str, list[float]]:
        return {n: cells[GUARD : len(cells) - GUARD].tolist() for n, cells in self.memory.items()}

    def overrun(self) -> list[str]:
        """The arrays with a changed cell on either side."""
        return [
            name
            for name, cells in self.memory.items()
            if bool((torch.cat((cells[:GUARD], cells[len(cells) - GUARD :])) != CANARY).any())
        ]


def _guarded(values: np.ndarray[Any, Any]) -> Any:
    cells = torch.full((len(values) + 2 * GUARD,), CANARY, dtype=torch.float32)
    cells[GUARD : GUARD + len(values)] = torch.from_numpy(values.astype(np.float32))
    return cells


@contextmanager
def _watched(launch: Launch) -> Iterator[None]:
    """The interpreter tells `launch` of every access, and runs the programs in its order."""

    def load(pointers: Any, mask: Any, *rest: Any) -> Any:
        return own["create_masked_load"](pointers, launch.see("read", pointers, mask), *rest)

    def store(pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        return own["create_masked_store"](pointers, value, launch.see("write", pointers, mask), *rest)

    def update(what: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        return own["create_atomic_rmw"](what, pointers, value, launch.see("atomic", pointers, mask), *rest)

    def begin(*_: int) -> None:
        launch.program = next(launch.order)
        own["set_grid_idx"](*launch.program)

    hooks = {
        "create_masked_load": load,
        "create_masked_store": store,
        "create_atomic_rmw": update,
        "set_grid_idx": begin,
    }
    own = {name: getattr(_BUILDER, name) for name in hooks}
    for name, hook in hooks.items():
        setattr(_BUILDER, name, hook)
    try:
        yield
    finally:
        for name in hooks:
            delattr(_BUILDER, name)


def _kernel(text: str, name: str, folder: Path, known: dict[str, Any]) -> Any:
    """The interpreter reads the source of a kernel from its file."""
    if text not in known:
        if len(known) > KEPT_MODULES:
            known.clear()
        path = folder / f"kernel_{len(list(folder.iterdir()))}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        known[text] = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = known[text]
        spec.loader.exec_module(known[text])
    return getattr(known[text], name)


def _answer(request: dict[str, Any], folder: Path, known: dict[str, Any]) -> dict[str, Any]:
    try:
        kernel = _kernel(request["text"], request["name"], folder, known)
        launch = Launch(request["arguments"], request["order"])
        with _watched(launch), np.errstate(all="ignore"):
            kernel[tuple(request["grid"])](**launch.given)
    except Exception as error:  # noqa: BLE001 - whatever the interpreter says of a text
        return {"refused": f"{type(error).__name__}: {error}"}
    return {"events": launch.events, "buffers": launch.buffers(), "overrun": launch.overrun()}


def main() -> None:
    answers, sys.stdout = sys.stdout.buffer, sys.stderr  # what a kernel prints is no answer
    torch.set_num_threads(1)
    pickle.dump({"triton": triton.__version__, "torch": torch.__version__}, answers)
    answers.flush()
    known: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        while True:
            try:
                request = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            pickle.dump(_answer(request, Path(folder), known), answers)
            answers.flush()


if __name__ == "__main__":
    main()
