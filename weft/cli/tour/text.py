"""The pages of the tour: text in a small part of Markdown, and cells of Python with what they print."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "pages"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


class Cell(NamedTuple):
    """Code, and the text that it prints; pictures are not text."""

    code: str
    output: str


class Page(NamedTuple):
    """A page: `parts` are HTML or cells, in their order."""

    name: str
    title: str
    parts: list[str | Cell]

    @property
    def cells(self) -> list[Cell]:
        return [part for part in self.parts if isinstance(part, Cell)]


def pages() -> list[Page]:
    """The pages in the order of their files' names, such as `2-views.md`."""
    return [
        page(path.stem.partition("-")[2], path.read_text(encoding="utf-8"))
        for path in sorted(FOLDER.glob("*.md"))
    ]


def page(name: str, source: str) -> Page:
    """Read a page. It begins with its title; blocks of `python` are cells, and a block of `output` is what the cell before prints."""
    title, _, source = source.partition("\n")
    parts: list[str | Cell] = []
    place = 0
    for fence in _FENCE.finditer(source):
        language, content = fence.groups()
        text = source[place : fence.start()].strip()
        if text:
            parts.append(html(text))
        if language == "python":
            parts.append(Cell(content, ""))
        elif language == "output" and not text and parts and isinstance(parts[-1], Cell):
            parts[-1] = parts[-1]._replace(output=content)
        else:
            raise ValueError(f"page {name}: a block of {language!r} does not follow a cell")
        place = fence.end()
    if rest := source[place:].strip():
        parts.append(html(rest))
    return Page(name, title.removeprefix("# "), parts)


def html(text: str) -> str:
    """Headings (`## `), lists (`- `) and paragraphs; in them `code`, **strong** words and [links](page).

    >>> html("Tensors have a `shape`.")
    '<p>Tensors have a <code>shape</code>.</p>'
    """
    return "".join(_block(block.strip()) for block in re.split(r"\n\s*\n", text) if block.strip())


def _block(block: str) -> str:
    if block.startswith("## "):
        return f"<h2>{_inline(block[3:])}</h2>"
    if block.startswith("- "):
        items = re.split(r"\n- ", block[2:])
        return f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</ul>"
    return f"<p>{_inline(block)}</p>"


def _inline(text: str) -> str:
    pieces = escape(" ".join(text.split()), quote=False).split("`")
    for place in range(0, len(pieces), 2):  # what is not code
        pieces[place] = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", pieces[place])
        pieces[place] = re.sub(r"\[(.+?)\]\((\w+)\)", r'<a href="#\2">\1</a>', pieces[place])
    return "".join(f"<code>{piece}</code>" if place % 2 else piece for place, piece in enumerate(pieces))
