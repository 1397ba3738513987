"""A counterexample in words: the launch, the blocks, and the element."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilecheck.model import Witness

_EXTENT = re.compile(r"(?P<array>.+)\.shape\[(?P<axis>\d+)\]")


def describe(witness: Witness) -> tuple[str, str]:
    """Two lines: the launch, and what happens in it. Names are the user's."""
    return launch_values(witness), event(witness)


def launch_values(witness: Witness) -> str:
    """`grid=(2, 1, 1), x.shape=(1, 4), T=128, ids=[0, 0]`."""
    shapes: dict[str, dict[int, int | list[int]]] = {}
    for name, value in witness.values.items():
        found = _EXTENT.fullmatch(name)
        if found:
            shapes.setdefault(found["array"], {})[int(found["axis"])] = value
    parts = {} if witness.kind == "order" else {"grid": f"grid={tuple_text(witness.grid)}"}
    for name, value in witness.values.items():
        found = _EXTENT.fullmatch(name)
        extents = shapes[found["array"]] if found else {}
        if found and sorted(extents) == list(range(len(extents))):
            text = tuple_text([extents[axis] for axis in sorted(extents)])
            parts[f"{found['array']}.shape"] = f"{found['array']}.shape={text}"
        elif not name.startswith("grid["):
            parts[name] = f"{name}={value}"
    return ", ".join(parts.values())


def tuple_text(values: Sequence[int | list[int]]) -> str:
    """Python's text of a tuple."""
    return f"({values[0]},)" if len(values) == 1 else f"({', '.join(map(str, values))})"


def event(witness: Witness) -> str:
    """What happens in the launch: who touches what."""
    array = f"`{witness.array}`" if witness.array else "memory"
    element = element_text(witness)
    match witness.kind:
        case "overlap" if len(witness.blocks) > 1:
            return f"{_blocks(witness)} both touch {element}"
        case "overlap":
            return f"{_blocks(witness)} touches {element} twice{_lanes(witness)}"
        case "bounds" if witness.element is None:
            return f"{_blocks(witness)} reaches outside {array}"
        case "bounds":
            return f"{_blocks(witness)} touches {element}, outside {array}"
        case "overflow":
            return f"{_blocks(witness)} computes an index that does not fit in 32 bits"
        case "order":
            return f"both touch {element}"
        case "alias":
            return f"two arguments share {element}"
        case "ownership":
            return f"{_blocks(witness)} touches {element} against its declared ownership"
        case _:
            return f"{_blocks(witness)} reaches an operation that is not defined for these values"


def element_text(witness: Witness) -> str:
    """What is touched: `` `out[0, 3]` ``."""
    if witness.element is None:
        return f"`{witness.array}`" if witness.array else "one element"
    return f"`{witness.array}[{', '.join(map(str, witness.element))}]`"


def _blocks(witness: Witness) -> str:
    return " and ".join(block_text(witness, position) for position in range(len(witness.blocks))) or "a block"


def block_text(witness: Witness, position: int) -> str:
    """`block (1, 0) in iteration 2`: one block of a counterexample, where it stands in its loops."""
    text = f"block {tuple_text(witness.blocks[position])}"
    if witness.iterations and position < len(witness.iterations) and witness.iterations[position]:
        steps = witness.iterations[position]
        text += f" in iteration {steps[0] if len(steps) == 1 else tuple_text(steps)}"
    return text


def _lanes(witness: Witness) -> str:
    if not witness.lanes or len(witness.lanes) < 2:
        return ""
    return f", from tile positions {tuple_text(witness.lanes[0])} and {tuple_text(witness.lanes[1])}"
