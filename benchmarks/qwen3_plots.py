"""Line charts as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 220, 40, 50  # margins
COLORS = ("#0b6e4f", "#c1292e", "#235789", "#e08e00", "#7b2d8b", "#4d4d4d", "#2a9d8f", "#8c564b")


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its points from left to right."""

    label: str
    points: tuple[tuple[float, float], ...]


def chart(title: str, x_label: str, y_label: str, series: Sequence[Series]) -> str:
    """A chart whose horizontal axis is logarithmic; empty if there are no lines."""
    if not series:
        return ""
    xs = sorted({x for line in series for x, _ in line.points})
    low, high = math.log2(xs[0]), math.log2(xs[-1])
    step = _round(max(y for line in series for _, y in line.points) / 5)
    top = step * math.ceil(max(y for line in series for _, y in line.points) / step)

    def across(x: float) -> float:
        part = (math.log2(x) - low) / (high - low) if high > low else 0.5
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def up(y: float) -> float:
        return HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    parts = [_text(LEFT, TOP - 18, title, "start", 15)]
    for number in range(round(top / step) + 1):
        y = up(number * step)
        parts += [_line([(LEFT, y), (WIDTH - RIGHT, y)], "#ddd", 1)]
        parts += [_text(LEFT - 8, y + 4, f"{number * step:g}", "end")]
    parts += [_text(across(x), HEIGHT - BOTTOM + 18, f"{x:g}", "middle") for x in _apart(xs, across)]
    parts += [_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label, "middle")]
    parts += [_text(8, TOP - 18, y_label, "start")]
    for number, line in enumerate(series):
        color = COLORS[number % len(COLORS)]
        points = [(across(x), up(y)) for x, y in line.points]
        parts += [_line(points, color, 2)]
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
        y = TOP + 18 * number
        parts += [_line([(WIDTH - RIGHT + 12, y), (WIDTH - RIGHT + 32, y)], color, 2)]
        parts += [_text(WIDTH - RIGHT + 38, y + 4, line.label, "start")]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _round(value: float) -> float:
    """The first of 1, 2, 5, 10, ... that is not below a value above 0."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= value * (1 - 1e-9))


def _apart(xs: Iterable[float], across: Callable[[float], float]) -> list[float]:
    """The numbers that have room for a label."""
    kept: list[float] = []
    for x in xs:
        if not kept or across(x) - across(kept[-1]) >= 34:
            kept.append(x)
    return kept


def _line(points: Sequence[tuple[float, float]], color: str, width: int) -> str:
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{text}" fill="none" stroke="{color}" stroke-width="{width}"/>'


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
