"""The one HTML document of the tour: all pages, their cells, and a script that shows one page and runs its cells."""

from __future__ import annotations

from html import escape
from pathlib import Path

from .text import Cell, Page, pages

_TEMPLATE = Path(__file__).with_name("page.html")


def document(nonce: str) -> str:
    """The document; `nonce` allows its script to run."""
    found = pages()
    links = "".join(f'<a href="#{page.name}">{escape(page.title)}</a>' for page in found)
    sections = "".join(
        _section(page, found[k + 1] if k + 1 < len(found) else None) for k, page in enumerate(found)
    )
    text = _TEMPLATE.read_text(encoding="utf-8")
    return (
        text.replace("NONCE", nonce, 1)
        .replace("<!-- links -->", links, 1)
        .replace("<!-- pages -->", sections, 1)
    )


def _section(page: Page, following: Page | None) -> str:
    parts = "".join(
        _cell(part) if isinstance(part, Cell) else f'<div class="text">{part}</div>' for part in page.parts
    )
    more = (
        f'<p class="text"><a href="#{following.name}">Next: {escape(following.title)} →</a></p>'
        if following
        else ""
    )
    head = f'<h1>{escape(page.title)}</h1><button class="all" type="button">Run all cells</button>'
    return f'<section id="{page.name}" hidden><header>{head}</header>{parts}{more}</section>'


def _cell(cell: Cell) -> str:
    rows = cell.code.count("\n")
    return (
        '<div class="cell"><div class="input">'
        '<div class="editor"><pre aria-hidden="true"></pre>'
        f'<textarea rows="{rows}" spellcheck="false" autocapitalize="off" aria-label="code">{escape(cell.code.rstrip())}</textarea></div>'
        '<div class="bar"><button class="run" type="button">Run</button><button class="stop" type="button" disabled>Stop</button>'
        '<button class="undo" type="button">Undo changes</button><span class="state"></span></div></div>'
        '<div class="output" aria-live="polite"></div></div>'
    )
