"""`Drawing`: text, boxes and lines of a picture, in colours that can be read on light and dark backgrounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from .picture import Picture

WIDTH = 800
MARGIN = 24
COLUMN = WIDTH - 2 * MARGIN  # the width that a picture has for its content

# Colours of hues 1 to 6 on a light and on a dark background. Hue 0 is for what several share, hue 7 for what nobody uses.
_HUES = (
    ("#b7791f", "#f0b429"), ("#2b6cb0", "#63b3ed"), ("#c05621", "#f6935a"), ("#2c7a7b", "#4fd1c5"),
    ("#b83280", "#f687b3"), ("#6b46c1", "#b794f4"), ("#4d7c0f", "#a3d65c"), ("#718096", "#8a97a8"),
)  # fmt: skip
SHARED, UNUSED = 0, 7
_INKS = {"ink": ("#1a202c", "#edf2f7"), "dim": ("#5a6678", "#a3b0c2")}
_CARD, _RULE = ("#ffffff", "#1b2130"), ("#dfe5ec", "#39445a")


def hue(number: int) -> int:
    """The hue of the thing with this number, from 0 on."""
    return 1 + number % 6


def _theme(side: int) -> str:
    """The rules of the colours on a light (0) or dark (1) background: t for text, l for lines, b for boxes."""
    rules = {"card": f"fill:{_CARD[side]};stroke:{_RULE[side]}", "rule": f"stroke:{_RULE[side]};fill:none"}
    rules |= {name: f"fill:{colours[side]}" for name, colours in _INKS.items()}
    for number, colours in enumerate(_HUES):
        colour = colours[side]
        rules[f"t{number}"] = f"fill:{colour}"
        rules[f"l{number}"] = f"stroke:{colour};fill:none"
        rules[f"b{number}"] = f"stroke:{colour};fill:{colour}"
    return "".join(f"svg.weft .{name}{{{rule}}}" for name, rule in rules.items())


_STYLE = (
    "svg.weft text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:13px}"
    "svg.weft .mono{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:12px}"
    "svg.weft .small{font-size:11px}svg.weft .bold{font-weight:600}svg.weft .title{font-size:15px;font-weight:600}"
    "svg.weft .pale{fill-opacity:.16}svg.weft .paler{fill-opacity:.07;stroke-opacity:.45}svg.weft path{stroke-width:1.4}"
    "svg.weft .bar{fill-opacity:.75}"
    "svg.weft rect[fill]{shape-rendering:crispEdges}svg.weft .light{fill:#f7fafc}svg.weft .dark{fill:#1a202c}"
    + _theme(0)
    + "@media(prefers-color-scheme:dark){"
    + _theme(1)
    + "}"
)

MONO = 7.3  # pixels; the widest of the usual fonts with characters of one width, at 12 px
SMALL_MONO = 6.7  # at 11 px


def number(value: float) -> str:
    """A coordinate with at most one digit behind the point, so that files stay small."""
    return f"{value:.1f}".removesuffix(".0")


class Drawing:
    """Collects the elements of one picture. Coordinates are pixels from the upper left corner."""

    def __init__(self, subject: str, title: str, note: str = "") -> None:
        self.subject, self.title = subject, title
        self._elements: list[str] = []
        self.y: float = MARGIN + 12  # where the next part of the picture begins
        self.text(MARGIN, self.y, title, "title ink")
        if note:
            self.text(WIDTH - MARGIN, self.y, note, "dim", anchor="end")
        self.y += 16

    def text(self, x: float, y: float, words: Any, style: str = "ink", anchor: str = "start") -> None:
        """One line of text, whose baseline is at `y`."""
        if not words and words != 0:
            return
        place = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._elements.append(
            f'<text x="{number(x)}" y="{number(y)}" class="{style}"{place}>{escape(str(words))}</text>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, style: str, radius: float = 3, hint: str = ""
    ) -> None:
        """A rectangle; browsers show `hint` while the pointer is over it."""
        inner = f"><title>{escape(hint)}</title></rect>" if hint else "/>"
        self._elements.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" '
            f'rx="{number(radius)}" class="{style}"{inner}'
        )

    def path(self, steps: str, style: str) -> None:
        """A line or an area, in SVG's language of paths."""
        self._elements.append(f'<path d="{steps}" class="{style}"/>')

    def fill(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """A rectangle of a colour that is no hue of the theme, for heat maps."""
        self._elements.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" fill="{colour}"/>'
        )

    def arrow(self, points: Sequence[tuple[float, float]], style: str) -> None:
        """A line through two points, or a curve with two points between its ends, with a head at its end."""
        first, *others = points
        letter = "C" if len(points) == 4 else "L"
        steps = f"M{_point(first)}{letter}{' '.join(_point(each) for each in others)}"
        self.path(steps, f"l{style}")
        (x, y), (before_x, before_y) = points[-1], points[-2]
        length = math.hypot(x - before_x, y - before_y) or 1.0
        along, across = (x - before_x) / length, (y - before_y) / length
        corners = [
            (x, y),
            (x - 7 * along + 3.2 * across, y - 7 * across - 3.2 * along),
            (x - 7 * along - 3.2 * across, y - 7 * across + 3.2 * along),
        ]
        self.path("M" + "L".join(_point(each) for each in corners) + "Z", f"t{style}")

    def picture(self, height: float) -> Picture:
        """The finished picture."""
        whole = math.ceil(height)
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="weft" viewBox="0 0 {WIDTH} {whole}" width="{WIDTH}" '
            f'height="{whole}" role="img" style="max-width:100%;height:auto"><title>{escape(self.title)}</title>'
            f"<style>{_STYLE}</style>"
            f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{whole - 1}" rx="8" class="card"/>'
            f"{''.join(self._elements)}</svg>\n"
        )
        return Picture(self.subject, WIDTH, whole, svg)


def _point(point: tuple[float, float]) -> str:
    return f"{number(point[0])},{number(point[1])}"
