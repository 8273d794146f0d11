"""Views that repeat elements without copying them."""

from __future__ import annotations

from typing import Any

from ...core.arguments import integers
from ...core.iteration import broadcast_shapes as common_shape
from ...core.public import public
from ...core.size import Size
from ...core.tensor import Tensor
from .views import EXPAND


@public("method")
def expand(self: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """Repeat dims of size 1 without copying. A size of -1 keeps the dim, additional sizes add dims in front.

    >>> import weft as torch
    >>> torch.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return EXPAND(self, integers(sizes if size is None else (size,), "expand", "size"))


@public("method")
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expand to the shape of `other`.

    >>> import weft as torch
    >>> torch.tensor([1, 2]).expand_as(torch.zeros(2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return EXPAND(self, other.spec.shape)


@public("function")
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """Expand to `size`.

    >>> import weft as torch
    >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return EXPAND(input, integers((size,), "broadcast_to", "size"))


@public("method", name="broadcast_to")
def _broadcast_to(self: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """Expand to sizes that are given one by one or as a sequence."""
    return EXPAND(self, integers(sizes if size is None else (size,), "broadcast_to", "size"))


@public("function")
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Expand all tensors to their common shape.

    Raises: RuntimeError if they have no common shape.

    >>> import weft as torch
    >>> torch.broadcast_tensors(torch.tensor([1, 2]), torch.tensor([[3], [4]]))[0]
    tensor([[1, 2],
            [1, 2]])
    """
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got {type(tensor).__name__}"
            )
    sizes = common_shape("broadcast_tensors", *(tensor.spec.shape for tensor in tensors))
    return tuple(tensor if tensor.spec.shape == sizes else EXPAND(tensor, sizes) for tensor in tensors)


@public("function")
def broadcast_shapes(*shapes: Any) -> Size:
    """Return the common shape of tensors of these shapes.

    >>> import weft as torch
    >>> torch.broadcast_shapes((2,), (3, 1), (1, 1, 1))
    torch.Size([1, 3, 2])
    """
    tuples = [integers((each,), "broadcast_shapes", "shapes") for each in shapes]
    if any(size < 0 for sizes in tuples for size in sizes):
        raise ValueError("Attempting to broadcast a dimension with negative length!")
    return common_shape("broadcast_shapes", *tuples)
