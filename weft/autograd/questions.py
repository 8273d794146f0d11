"""What programs ask of `torch.autograd`: shapes of gradients, and which parts of PyTorch's engine there are."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor


def kineto_available() -> bool:
    """Whether profiles note operators and write traces, as PyTorch's do with the library Kineto: yes, without that library."""
    return True


def _calculate_shape(output: Any, grad: Tensor, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shapes of a result and of its gradient, which have to be equal. The first dim of batched gradients is left out."""
    if output.is_nested:
        if is_grads_batched:
            raise RuntimeError("Batched grads are not supported with Nested Tensor.")
        return output._nested_tensor_size(), grad._nested_tensor_size()
    return output.shape, grad.shape[1:] if is_grads_batched else grad.shape
