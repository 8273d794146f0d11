"""`%load_ext weft`: tensors as tables in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from ..core.spec import Spec
from ..core.tensor import Tensor
from .tensors import values
from .words import of_shape, of_value

_MOST_ROWS, _MOST_COLUMNS = 10, 12


def load_ipython_extension(shell: Any) -> None:
    """Let notebooks show tensors as tables, with shape, dtype and device: `%load_ext weft`.

    Args:
        shell: the shell of IPython, which calls this function.
    """
    Tensor._repr_html_ = html  # type: ignore[attr-defined]


def unload_ipython_extension(shell: Any) -> None:
    """Let notebooks show tensors as PyTorch prints them: `%unload_ext weft`.

    Args:
        shell: the shell of IPython, which calls this function.
    """
    del Tensor._repr_html_  # type: ignore[attr-defined]


def html(tensor: Tensor) -> str:
    """A tensor as HTML: its metadata, and a table of its values if it has at most two dimensions, else PyTorch's text.

    Args:
        tensor: of any layout, on any device.

    >>> import weft as torch
    >>> "<td>3</td>" in html(torch.tensor([[1, 2], [3, 4]]))
    True
    """
    words = [of_shape(tensor.shape), tensor.dtype.name, str(tensor.device)]
    if tensor.layout.name != "strided":
        words.append(tensor.layout.name)
    if tensor.requires_grad:
        words.append("requires grad" if tensor.grad_fn is None else type(tensor.grad_fn).__name__)
    head = f'<div style="opacity:.7">{escape(" · ".join(words))}</div>'
    is_table = type(tensor.spec) is Spec and 0 < tensor.ndim <= 2 and tensor.device.backend.has_memory
    if not is_table or not tensor.numel():
        return f"<div>{head}<pre>{escape(repr(tensor))}</pre></div>"
    matrix = tensor.detach() if tensor.ndim == 2 else tensor.detach().unsqueeze(0)
    return f"<div>{head}{_table(matrix)}</div>"


def _table(matrix: Tensor) -> str:
    """The values, with "…" where rows or columns in the middle are left out."""
    rows = _shown(matrix.shape[0], _MOST_ROWS)
    columns = _shown(matrix.shape[1], _MOST_COLUMNS)
    lines = [["", *("…" if j is None else str(j) for j in columns)]]
    for i in rows:
        if i is None:
            lines.append(["…"] * (len(columns) + 1))
        else:
            row = values(matrix[i, [0 if j is None else j for j in columns]])
            lines.append([str(i), *("…" if j is None else of_value(value) for j, value in zip(columns, row))])
    head, *others = lines
    text = _row(head, "th", "th") + "".join(_row(line, "th", "td") for line in others)
    return f'<table style="font-family:monospace">{text}</table>'


def _shown(size: int, most: int) -> list[int | None]:
    """The places of a dimension that are shown; None for those that are left out."""
    if size <= most:
        return list(range(size))
    half = most // 2
    return [*range(half), None, *range(size - half, size)]


def _row(cells: Sequence[str], first: str, others: str) -> str:
    tags = [first, *[others] * (len(cells) - 1)]
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for tag, cell in zip(tags, cells))}</tr>"
