"""The host borrow graph as SVG: a lane for the host and for each stream, time downwards, arrows for the order
between lanes, and a broken red line between two steps that nothing orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from tilecheck.analysis.hosts.findings import HostFinding
from tilecheck.analysis.hosts.graph import AFTER, BEFORE, HostGraph, Path
from tilecheck.analysis.hosts.text import holder_text
from tilecheck.dataclass import dataclass
from tilecheck.ir.host_program import (
    Back,
    Capture,
    Destroy,
    EndCapture,
    Forbidden,
    Free,
    Join,
    Keep,
    Move,
    Rebind,
    Replay,
    Touch,
    UseKept,
    Work,
)
from tilecheck.model import Site

Where = Callable[[Site], str]
_WIDTH, _HEIGHT, _LANE, _ROW, _MARGIN = 300, 26, 340, 46, 20
_HOST = "the host"
_STEPS = (Join, Touch, Free, Move, Back, Capture, EndCapture, Destroy, Rebind, Keep, UseKept, Forbidden)
_STYLE = (
    "text{font:12px sans-serif}.box{fill:#eef3fb;stroke:#35507a}.host{fill:#f6f1e4;stroke:#7a6435}"
    ".lane{stroke:#cccccc}.order{stroke:#35507a;fill:none;marker-end:url(#tip)}"
    ".race{stroke:#c62828;stroke-width:2;stroke-dasharray:6 4;fill:none}.code{fill:#c62828}"
)


@dataclass(frozen=True, slots=True)
class _Item:
    """A box: its lane, its row, and the text in it."""

    lane: str
    row: int
    text: str


def svg(paths: Sequence[tuple[HostGraph, Sequence[HostFinding]]], where: Where) -> str:
    """One picture, with the paths through the function below each other."""
    parts: list[str] = []
    top, wide = 0, 0
    for graph, found in paths:
        items = _items(graph, where)
        lanes = {lane: k for k, lane in enumerate(dict.fromkeys([_HOST, *(i.lane for i in items.values())]))}
        wide = max(wide, 2 * _MARGIN + _LANE * len(lanes))
        height = 3 * _ROW + _ROW * len(items)
        parts.append(f'<g transform="translate({_MARGIN} {top + _MARGIN})">')
        parts += _drawn(graph, found, items, lanes)
        parts.append("</g>")
        top += height
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{top}">'
    tip = (
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#35507a"/></marker></defs>'
    )
    return "\n".join([head, f"<style>{_STYLE}</style>", tip, *parts, "</svg>"]) + "\n"


def _items(graph: HostGraph, where: Where) -> dict[Path, _Item]:
    """The boxes by their place in the program, one in each row."""
    shown: dict[Path, tuple[str, str]] = {}
    caller = f"stream {graph.program.caller}"
    for node in (BEFORE, AFTER):
        shown[graph.path(node)] = caller, holder_text(graph, node, where)
    for node in graph.of_kind("start"):
        action = graph.action(node)
        if isinstance(action, Work | Replay):
            what = action.name if isinstance(action, Work) else f"replay of {action.graph}"
            shown[graph.path(node)] = f"stream {action.stream}", f"{what} at {where(action.site)}"
    for node in graph.of_kind("step"):
        action = graph.action(node)
        if action is not None and isinstance(action, _STEPS):
            text = f"{type(action).__name__.lower()} at {where(action.site)}"
            shown.setdefault(graph.path(node), (_HOST, text))
    return {path: _Item(shown[path][0], row, shown[path][1]) for row, path in enumerate(sorted(shown))}


def _drawn(
    graph: HostGraph, found: Sequence[HostFinding], items: dict[Path, _Item], lanes: dict[str, int]
) -> Iterator[str]:
    bottom = _ROW * (len(items) + 1)
    yield f'<text x="0" y="0">{escape(graph.program.function)}</text>'
    for lane, k in lanes.items():
        x = _LANE * k + _WIDTH // 2
        yield f'<text x="{_LANE * k}" y="{_ROW - 18}">{escape(lane)}</text>'
        yield f'<line class="lane" x1="{x}" y1="{_ROW - 12}" x2="{x}" y2="{bottom}"/>'
    for item in items.values():
        x, y = _corner(item, lanes)
        style = "host" if item.lane == _HOST else "box"
        yield f'<rect class="{style}" x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4"/>'
        yield f'<text x="{x + 8}" y="{y + 17}">{escape(item.text)}</text>'
    for first, second, why in _orders(graph, items):
        yield f"<g><title>{escape(why)}</title>{_line(items[first], items[second], lanes, 'order')}</g>"
    for one in found:
        ends = [items[path] for path in (graph.path(h) for h in one.holders) if path in items]
        if len(ends) == 2 and ends[0] is not ends[1]:
            (x1, y1), (x2, y2) = (_corner(end, lanes) for end in ends)
            yield _line(ends[0], ends[1], lanes, "race")
            x, y = (x1 + x2 + _WIDTH) // 2, (y1 + y2 + _HEIGHT) // 2
            yield f'<text class="code" x="{x}" y="{y}">{one.code}</text>'


def _orders(graph: HostGraph, items: dict[Path, _Item]) -> Iterator[tuple[Path, Path, str]]:
    """The order between boxes of different lanes, through events and waits that are no boxes."""
    known: set[tuple[Path, Path]] = set()
    for node, data in graph.graph.nodes(data=True):
        start = data.get("path")
        if start not in items:
            continue
        todo = [(to, edge["why"]) for to, edge in graph.edges_from(node, "happens-before")]
        while todo:
            to, why = todo.pop()
            path = graph.path(to)
            if path not in items:
                todo += [(after, edge["why"]) for after, edge in graph.edges_from(to, "happens-before")]
            elif items[path].lane != items[start].lane and (start, path) not in known and why != "the host":
                known.add((start, path))
                yield start, path, why


def _corner(item: _Item, lanes: dict[str, int]) -> tuple[int, int]:
    return _LANE * lanes[item.lane], _ROW * (item.row + 1)


def _line(first: _Item, second: _Item, lanes: dict[str, int], style: str) -> str:
    (x1, y1), (x2, y2) = _corner(first, lanes), _corner(second, lanes)
    start, end = (x1 + _WIDTH, x2) if x1 < x2 else (x1, x2 + _WIDTH) if x1 > x2 else (x1 + 40, x2 + 40)
    return f'<path class="{style}" d="M{start} {y1 + _HEIGHT // 2} L{end} {y2 + _HEIGHT // 2}"/>'
