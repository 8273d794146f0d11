"""`Picture`: a drawing as SVG, which notebooks show and browsers open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


class Picture:
    """A picture that a function of `weft.viz` drew. Its last expression in a cell of a notebook shows it; `save` writes a file.

    >>> import weft as torch
    >>> picture = torch.viz.storage(torch.arange(6).reshape(2, 3))
    >>> picture
    <Picture of a storage: save(path) writes it, str() is its SVG>
    >>> str(picture)[:4]
    '<svg'
    """

    __slots__ = ("subject", "width", "height", "_svg")

    def __init__(self, subject: str, width: int, height: int, svg: str) -> None:
        self.subject, self.width, self.height, self._svg = subject, width, height, svg

    def save(self, path: Any) -> None:
        """Write the picture into a file.

        Args:
            path: the name of the file. It ends in .svg, because SVG is the only format that weft writes.

        Raises: ValueError for another ending.
        """
        if not os.fspath(path).endswith(".svg"):
            raise ValueError(
                f"save(): the path must end in .svg, but it is {os.fspath(path)!r}. weft writes SVG; "
                "browsers open it, and programs such as Inkscape convert it to PNG or PDF"
            )
        Path(path).write_text(self._svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self._svg

    def __str__(self) -> str:
        return self._svg

    def __repr__(self) -> str:
        return f"<Picture of {self.subject}: save(path) writes it, str() is its SVG>"
