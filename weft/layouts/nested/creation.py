"""The functions of `torch.nested` that make nested tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.dtype import int64
from ...core.grad_mode import no_grad
from ...core.layout import Layout
from ...core.layout import jagged as JAGGED
from ...core.layout import strided as STRIDED
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from . import access, multi_head, writes  # noqa: F401 (fill the rules)
from .dims import narrow as narrow_dim
from .padding import to_padded_tensor
from .tensors import Piece, Span, concatenated, contiguous_pieces, is_nested, jagged, packed, strided

arange, as_tensor, cat, empty, tensor = (
    FUNCTIONS[name] for name in ("arange", "as_tensor", "cat", "empty", "tensor")
)

__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged",
    "to_padded_tensor",
]  # fmt: skip


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: Any = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A nested tensor that copies the tensors of a list, or what `torch.tensor` takes. It is a leaf of autograd.

    layout: torch.strided (default), in which the components may differ in several dims, or torch.jagged, for one such dim. Most
    functions of a jagged tensor run once on the values of all components.

    >>> import weft as torch
    >>> torch.nested.nested_tensor([[1.0, 2.0], [3.0]])
    nested_tensor([
      tensor([1., 2.]),
      tensor([3.])
    ])
    >>> torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(5, 3)], layout=torch.jagged).values().shape
    torch.Size([7, 3])
    """
    with no_grad():
        tensors = [each if isinstance(each, Tensor) else as_tensor(each) for each in tensor_list]
        result = _of_list([each.detach() for each in tensors], layout, dtype, device)
    return result.requires_grad_() if requires_grad else result


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Layout | None = None) -> Tensor:
    """A nested tensor of a list of tensors, or of the rows of a tensor. Gradients go through to them.

    >>> import weft as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.nested.as_nested_tensor([x, torch.ones(3)]).to_padded_tensor(0.0).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    if not isinstance(ts, Tensor):
        if not isinstance(ts, (list, tuple)) or not all(isinstance(each, Tensor) for each in ts):
            raise TypeError(
                "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors"
            )
        return _of_list(list(ts), layout, dtype, device)
    if ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if is_nested(ts):
        if layout is not None and layout is not ts.layout:
            return _of_list(list(ts.unbind()), layout, dtype, device)
        return ts.to(device=ts.device if device is None else device, dtype=dtype or ts.dtype)
    rows = ts.to(device=ts.device if device is None else device, dtype=dtype or ts.dtype).contiguous()
    count, length = rows.shape[:2]
    if _checked(layout) is STRIDED:
        return strided(rows.reshape(-1), contiguous_pieces([rows.shape[1:]] * count))
    offsets = arange(0, count * length + 1, length) if length else FUNCTIONS["zeros"](count + 1, dtype=int64)
    spans = tuple(Span(k * length, length) for k in range(count))
    return jagged(rows.flatten(0, 1), offsets, spans=spans)


def _checked(layout: Layout | None) -> Layout:
    if layout not in (None, STRIDED, JAGGED):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout or STRIDED


def _of_list(tensors: list[Tensor], layout: Layout | None, dtype: Any, device: Any) -> Tensor:
    wanted = _checked(layout)
    if any(each.layout is not STRIDED or is_nested(each) for each in tensors):
        raise RuntimeError(
            "the components of a nested tensor must be plain tensors: write x.to_dense(), or x.unbind()"
        )
    if wanted is STRIDED:
        if not tensors:
            return strided(empty(0, dtype=dtype, device=device), ())
        for place, each in enumerate(tensors):
            if each.dim() != tensors[0].dim():
                raise RuntimeError(
                    f"All Tensors given to nested_tensor must have the same dimension. Found dimension {each.dim()} for Tensor at index "
                    f"{place} and dimension {tensors[0].dim()} for Tensor at index 0."
                )
        return packed(
            [each.to(device=device or each.device, dtype=dtype or tensors[0].dtype) for each in tensors]
        )
    ragged_dim = _ragged_dim(tensors)
    return concatenated(
        [each.to(device=device or each.device, dtype=dtype or each.dtype) for each in tensors], ragged_dim
    )


def _ragged_dim(tensors: list[Tensor]) -> int:
    """The dim in which components differ.

    Raises: RuntimeError if the jagged layout cannot hold them.
    """
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for name, kinds in (
        ("dtype", {each.dtype for each in tensors}),
        ("device", {each.device for each in tensors}),
        ("dim", {each.dim() for each in tensors}),
    ):
        if len(kinds) > 1:
            raise RuntimeError(
                f"When constructing a nested tensor, all tensors in list must have the same {name}"
            )
    if tensors[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    ragged = [
        dim
        for dim, sizes in enumerate(zip(*(each.shape for each in tensors), strict=True), 1)
        if len(set(sizes)) > 1
    ]
    if len(ragged) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout, which has one ragged dim: the tensors differ "
            f"in the dims {[dim - 1 for dim in ragged]}. Use layout=torch.strided."
        )
    return ragged[0] if ragged else 1


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A jagged tensor on the memory of `values`, which has the components one after another in dim `jagged_dim - 1`.

    offsets: where components begin, and where the last one ends; lengths: how long they are. One of them suffices; with both,
    there may be gaps between the components. min_seqlen, max_seqlen: hints that weft does not need.

    >>> import weft as torch
    >>> x = torch.nested.nested_tensor_from_jagged(torch.arange(5.0), lengths=torch.tensor([2, 3]))
    >>> x.unbind()
    (tensor([0., 1.]), tensor([2., 3., 4.]))
    """
    for name, each in (("values", values), ("offsets", offsets), ("lengths", lengths)):
        if not isinstance(each, Tensor) and (each is not None or name == "values"):
            raise TypeError(
                f"nested_tensor_from_jagged(): argument '{name}' must be Tensor, not {type(each).__name__}"
            )
        if is_nested(each):
            raise RuntimeError(
                f"nested_tensor_from_jagged(): {name} must be a plain tensor: write x.values()"
            )
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = cat((tensor([0]), lengths.cumsum(0))), None
    if jagged_dim is not None and jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    return jagged(values, offsets, lengths, 1 if jagged_dim is None else jagged_dim)


def _nested_view_from_buffer(
    buffer: Tensor, nested_size: Tensor, nested_strides: Tensor, offsets: Tensor
) -> Tensor:
    """A strided nested tensor whose components lie in `buffer`.

    Shapes: buffer [n], nested_size and nested_strides [components, dims], offsets [components].
    Raises: RuntimeError unless the components lie within the buffer.
    """
    sizes, strides = nested_size.tolist(), nested_strides.tolist()
    if (
        buffer.dim() != 1
        or nested_size.shape != nested_strides.shape
        or offsets.shape != nested_size.shape[:1]
    ):
        raise RuntimeError(
            f"_nested_view_from_buffer: a buffer of size {tuple(buffer.shape)} with sizes {tuple(nested_size.shape)}, strides "
            f"{tuple(nested_strides.shape)} and offsets {tuple(offsets.shape)} is no nested tensor"
        )
    pieces = [Piece(tuple(s), tuple(t), o) for s, t, o in zip(sizes, strides, offsets.tolist(), strict=True)]
    for each in pieces:
        last = each.offset + sum((s - 1) * t for s, t in zip(each.size, each.stride, strict=True))
        if min((*each.size, *each.stride, each.offset)) < 0 or 0 not in each.size and last >= buffer.shape[0]:
            raise RuntimeError(f"_nested_view_from_buffer: a component lies outside of the buffer: {each}")
    return strided(buffer, pieces)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Layout = STRIDED) -> Tensor:
    """A nested tensor of a part of each row of `tensor`: `length` elements from `start` on, in dim `dim`.

    layout: with torch.jagged, a view; `start` and `length` may be tensors with a number for each row, and `dim` must be 1.

    >>> import weft as torch
    >>> x = torch.arange(8).view(2, 4)
    >>> torch.nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=torch.jagged).unbind()
    (tensor([0, 1]), tensor([5, 6, 7]))
    """
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, (int, Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if _checked(layout) is STRIDED:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return narrow_dim(as_nested_tensor(tensor.unbind()), dim, start, length)
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    count, longest = tensor.shape[:2]
    starts, lengths = (_each(value, count) for value in (start, length))
    if bool(((starts < 0) | (lengths < 0) | (starts + lengths > longest)).any()):
        raise RuntimeError(
            f"narrow: start + length must be at most {longest} in each row, and neither negative"
        )
    begins = starts + longest * arange(count)
    offsets = cat((begins, begins[-1:] + lengths[-1:]))
    return jagged(tensor.view(-1, *tensor.shape[2:]), offsets, lengths)


def _each(value: Any, count: int) -> Tensor:
    given = as_tensor(value, dtype=int64)
    if given.dim() > 1 or given.numel() not in (1, count):
        raise RuntimeError(
            "When constructing a jagged nested tensor using narrow(), your start and length must be Tensors that broadcast to "
            "input.shape[0]"
        )
    return given.expand(count).contiguous()


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """A jagged tensor of the elements of each row (along the last dim) where the mask is True.

    >>> import weft as torch
    >>> x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> torch.nested.masked_select(x, x % 2 == 0).unbind()
    (tensor([2]), tensor([4, 6]))
    """
    for name, each in (("input", tensor), ("mask", mask)):
        if each.layout is not STRIDED or is_nested(each):
            raise RuntimeError(f"torch.nested.masked_select requires a strided {name}, given {each.layout}")
    counts = mask.expand(tensor.shape).sum(-1).view(-1)
    return nested_tensor_from_jagged(tensor.masked_select(mask), lengths=counts)
