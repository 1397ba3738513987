"""A counterexample in words: the launch, the blocks, and the element."""

from __future__ import annotations

from tilecheck.model import Witness


def describe(witness: Witness) -> tuple[str, str]:
    """Two lines: the launch, and what happens in it. Names are the user's."""
    return launch_values(witness), _event(witness)


def launch_values(witness: Witness) -> str:
    """`grid=(2, 1, 1), T=128, ids=[0, 0]`."""
    parts = [f"grid={tuple_text(witness.grid)}"]
    parts += [f"{name}={value}" for name, value in witness.values.items() if not name.startswith("grid[")]
    return ", ".join(parts)


def tuple_text(values: tuple[int, ...]) -> str:
    return f"({values[0]},)" if len(values) == 1 else f"({', '.join(map(str, values))})"


def _event(witness: Witness) -> str:
    array = f"`{witness.array}`" if witness.array else "memory"
    element = _element(witness)
    match witness.kind:
        case "overlap" if len(witness.blocks) > 1:
            return f"{_blocks(witness)} both touch {element}"
        case "overlap":
            return f"{_blocks(witness)} touches {element} twice{_lanes(witness)}"
        case "bounds":
            return f"{_blocks(witness)} touches {element}, outside {array}"
        case "overflow":
            return f"{_blocks(witness)} computes an index that does not fit in 32 bits"
        case "alias":
            return f"two arguments share {element}"
        case "ownership":
            return f"{_blocks(witness)} touches {element} against its declared ownership"
        case _:
            return f"{_blocks(witness)} reaches an operation that is not defined for these values"


def _element(witness: Witness) -> str:
    if witness.element is None:
        return f"`{witness.array}`" if witness.array else "one element"
    return f"`{witness.array}[{', '.join(map(str, witness.element))}]`"


def _blocks(witness: Witness) -> str:
    blocks = []
    for position, block in enumerate(witness.blocks):
        text = f"block {tuple_text(block)}"
        if witness.iterations and position < len(witness.iterations) and witness.iterations[position]:
            steps = witness.iterations[position]
            text += f" in iteration {steps[0] if len(steps) == 1 else tuple_text(steps)}"
        blocks.append(text)
    return " and ".join(blocks) or "a block"


def _lanes(witness: Witness) -> str:
    if not witness.lanes or len(witness.lanes) < 2:
        return ""
    return f", from tile positions {tuple_text(witness.lanes[0])} and {tuple_text(witness.lanes[1])}"
