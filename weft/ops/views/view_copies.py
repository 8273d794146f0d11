"""The `*_copy` forms of views, which return the elements of the view in new, contiguous memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...core.checking import checked
from ...core.layout import contiguous_format
from ...core.public import public
from ...core.recording import needs_recording, tape
from ...core.tensor import Tensor
from ..assembly.copying import clone, detach
from . import broadcasting, complex_views, reshaping, slicing, splitting, transposing, views


def copied(result: Any) -> Any:
    """A contiguous copy of a view. In autograd's graph it is the result of the step that made the view."""
    if not isinstance(result, Tensor):
        return tuple([copied(piece) for piece in result])
    copy = clone(detach(result), memory_format=contiguous_format)
    if needs_recording((result,)):
        tape.take_grad_fn_of(copy, result)
        tape.rename(copy, lambda node: f"{node.removesuffix('_copy')}_copy")
    return copy


def _copy_of(name: str, view: Callable, forms: str = "function") -> None:
    @functools.wraps(view)
    def copy(*args: Any, **kwargs: Any) -> Any:
        return copied(view(*args, **kwargs))

    copy.__doc__ = f"`{name}`, copied into new contiguous memory."
    public(forms, name=f"{name}_copy", out=True)(copy)


def _view(input: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    return reshaping.view(input, size, dtype=dtype) if dtype is None else reshaping.view(input, dtype=dtype)


def _slice(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    return views.SLICE(input, dim, start, end, step)


def _narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    if dim >= input.spec.ndim:  # here PyTorch raises another type than in `narrow`
        raise RuntimeError(f"narrow_copy(): there is no dimension {dim} in shape {list(input.spec.shape)}")
    return slicing.narrow(input, dim, start, length)


def _alias(input: Tensor) -> Tensor:
    return views.ALIAS(input)


for _name, _function in {
    "view": _view,
    "expand": broadcasting.expand,
    "permute": transposing.permute,
    "transpose": transposing.transpose,
    "t": transposing.t,
    "squeeze": reshaping.squeeze,
    "unsqueeze": reshaping.unsqueeze,
    "as_strided": slicing.as_strided,
    "diagonal": slicing.diagonal,
    "select": slicing.select,
    "slice": checked(_slice, "slice_copy"),
    "unfold": slicing.unfold,
    "unbind": splitting.unbind,
    "split": splitting.split,
    "split_with_sizes": splitting.split_with_sizes,
    "alias": _alias,
    "detach": detach,
    "view_as_real": complex_views.view_as_real,
    "view_as_complex": complex_views.view_as_complex,
}.items():
    _copy_of(_name, _function)  # type: ignore[arg-type]
_copy_of("narrow", checked(_narrow, "narrow_copy"), "function method")
