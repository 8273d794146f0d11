"""Python functions of single elements, in place: `Tensor.apply_`, `map_` and `map2_`. They are slow by nature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.public import public
from ...core.tensor import Tensor


def _write(target: Tensor, name: str, function: Callable, *others: Tensor) -> Tensor:
    if any(isinstance(each, Tensor) and each.requires_grad for each in (target, *others)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
        )
    operands = [target, *(each.expand(target.shape) for each in others)]
    for each in others:
        if not isinstance(each, Tensor):
            raise TypeError(f"{name}(): expected a Tensor, not {type(each).__name__}")
        if each.dtype is not target.dtype:
            raise TypeError(
                f"expected Tensor of {target.dtype} for the other argument of {name}(), got one of {each.dtype}"
            )
    rows = zip(*(each.detach().reshape(-1).tolist() for each in operands), strict=True)
    values = target.new_tensor([function(*row) for row in rows]).to(target.dtype)
    return target.copy_(values.reshape(target.shape))


@public("method")
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by `callable(element)`.

    >>> import weft as torch
    >>> torch.tensor([1.0, 2.0]).apply_(lambda x: x * 10)
    tensor([10., 20.])
    """
    return _write(self, "apply_", callable)


@public("method")
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by `callable(element, element of tensor)`; `tensor` is expanded to this shape."""
    return _write(self, "map_", callable, tensor)


@public("method")
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by `callable(element, element of x, element of y)`."""
    return _write(self, "map2_", callable, x, y)
