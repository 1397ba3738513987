"""The runtime that is used where none is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilecheck.host.runtime import Runtime

_state: dict[str, Runtime] = {}


def default() -> Runtime:
    """The runtime in use: the GPU that is current, if no other was chosen."""
    found = _state.get("runtime")
    if found is None:
        try:
            from tilecheck.host.cuda import Cuda  # lazy: only where there is a GPU
        except ImportError as error:
            raise ImportError(
                f"`tilecheck.host` needs cuda-core: pip install 'tilecheck[gpu]' ({error})"
            ) from None
        found = _state["runtime"] = Runtime(Cuda())
    return found


@contextmanager
def using(runtime: Runtime) -> Iterator[Runtime]:
    """Use a runtime inside the `with` block, in all threads."""
    before = _state.get("runtime")
    _state["runtime"] = runtime
    try:
        yield runtime
    finally:
        if before is None:
            del _state["runtime"]
        else:
            _state["runtime"] = before
