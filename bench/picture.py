"""Time over size as a picture: one panel for each chain of the section "sizes", both axes logarithmic."""

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from bench.report import TITLES, Result

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 400, 300, 58, 74, 34, 40  # of one panel, in pixels
COLOURS = {"torch": "#d9480f", "weft": "#1864ab", "numpy": "#868e96", "limit": "#2b8a3e"}
LABEL_HEIGHT = 13  # pixels that a label at the end of a line needs
TIMES = {-7: "100 ns", -6: "1 us", -5: "10 us", -4: "100 us", -3: "1 ms", -2: "10 ms", -1: "100 ms", 0: "1 s"}

Points = list[tuple[float, float]]


def draw(result: Result) -> str:
    """The section as SVG."""
    panels = grouped(result)
    exponents = [math.log10(y) for lines in panels.values() for points in lines.values() for _, y in points]
    low, high = math.floor(min(exponents)), math.ceil(max(exponents))
    body = "".join(
        panel(title, lines, low, high, k * WIDTH) for k, (title, lines) in enumerate(panels.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(panels)} {HEIGHT}" '
        f'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n{body}</svg>\n'
    )


def grouped(result: Result) -> dict[str, dict[str, Points]]:
    """For each chain and implementation the times over the sizes. Names of rows end with the size."""
    panels: dict[str, dict[str, Points]] = {}
    for row in result.rows:
        title, _, size = row.name.rpartition(" ")
        for name in COLOURS:
            if name in row.values:
                panels.setdefault(title, {}).setdefault(name, []).append((float(size), row.values[name]))
    return panels


def panel(title: str, lines: dict[str, Points], low: int, high: int, left: float) -> str:
    sizes = sorted({x for points in lines.values() for x, _ in points})
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])

    def x_of(size: float) -> float:
        return left + LEFT + (math.log10(size) - first) / (last - first or 1) * (WIDTH - LEFT - RIGHT)

    def y_of(exponent: float) -> float:
        return HEIGHT - BOTTOM - (exponent - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [text(left + LEFT, TOP - 14, f"{title}, float32", "start", weight="bold")]
    for exponent in range(low, high + 1):
        y = y_of(exponent)
        parts.append(f'<path d="M{left + LEFT} {y:.0f}H{left + WIDTH - RIGHT}" stroke="#e9ecef"/>\n')
        parts.append(text(left + LEFT - 6, y + 4, TIMES.get(exponent, f"{10.0**exponent:.0e} s"), "end"))
    for size in sizes:
        parts.append(text(x_of(size), HEIGHT - BOTTOM + 16, f"10^{math.log10(size):.0f}", "middle"))
    parts.append(text(left + (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "elements", "middle"))
    ends = [(y_of(math.log10(points[-1][1])) + 4, name) for name, points in lines.items()]
    heights = dict(zip((name for _, name in sorted(ends)), apart([y for y, _ in sorted(ends)])))
    for name, points in lines.items():
        path = " ".join(f"{x_of(x):.1f},{y_of(math.log10(y)):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>\n')
        label = TITLES.get(name, name)
        parts.append(text(left + WIDTH - RIGHT + 6, heights[name], label, "start", COLOURS[name], "bold"))
    return "".join(parts)


def apart(heights: Sequence[float]) -> list[float]:
    """Ascending heights of labels, each moved down as far as the one above it needs."""
    placed: list[float] = []
    for y in heights:
        placed.append(max(y, placed[-1] + LABEL_HEIGHT) if placed else y)
    return placed


def text(x: float, y: float, words: str, anchor: str, fill: str = "#343a40", weight: str = "normal") -> str:
    style = f'text-anchor="{anchor}" fill="{fill}" font-weight="{weight}"'
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(words)}</text>\n'
