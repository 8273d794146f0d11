"""Forward mode with dual tensors, `torch.autograd.forward_ad`.

>>> import weft as torch
>>> import weft.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
...     y = fwAD.unpack_dual(x * x)
>>> y
UnpackedDualTensor(primal=tensor([1., 4.]), tangent=tensor([2., 0.]))
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.batched import is_sample
from ..core.dtype import FLOAT
from ..core.layout import contiguous_format
from ..core.layout_spec import is_strided
from ..core.restoring import Restoring
from ..core.tensor import Tensor
from ..ops.tensor.printing import tensor_repr
from . import dual

_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent, or None if it has no tangent."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open a level of forward differentiation; prefer the context `dual_level`."""
    global _current_level
    if _current_level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _current_level += 1
    dual.user_levels.append(dual.open_level())
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level that was opened last, and drop the tangents at this level."""
    global _current_level
    if level is None:
        level = _current_level
    if not dual.user_levels:
        raise RuntimeError("Dual level must be a positive number.")
    if level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    dual.close_level(dual.user_levels.pop())
    _current_level = level - 1


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that has a tangent of the same shape.

    Raises: RuntimeError outside of `dual_level`, or if the shapes differ; ValueError for integer tensors.
    """
    if not dual.user_levels:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if tensor.spec.dtype.category < FLOAT:
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype!r}")
    if tangent.spec.dtype.category < FLOAT:
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype!r}")
    if tensor.spec.shape != tangent.spec.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    level = dual.user_levels[-1]
    if level in dual.tangents(tangent):
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported."
        )
    return dual.with_tangent(
        tensor, level, tangent if _lies_alike(tangent, tensor) else _laid_out(tangent, tensor)
    )


def _lies_alike(tangent: Tensor, tensor: Tensor) -> bool:
    """Whether views of the tensor are views of the tangent as well, which PyTorch requires of a tangent that it does not copy."""
    own, other = tensor.spec, tangent.spec
    if not is_strided(own) or not is_strided(other):
        return True
    strides = zip(own.shape, own.stride, other.stride, strict=True)
    return (
        all(size == 1 or step == step_of_tangent for size, step, step_of_tangent in strides)
        and (own.conj, own.neg) == (other.conj, other.neg)
        and (not own.numel or tensor.storage_offset() == tangent.storage_offset())
        and (is_sample(tangent) or is_sample(tensor) or _elements(tensor) == _elements(tangent))
    )


def _elements(tensor: Tensor) -> int:
    """How many elements the storage of a tensor has."""
    return tensor._storage.nbytes_ // tensor.spec.dtype.itemsize


def _laid_out(tangent: Tensor, tensor: Tensor) -> Tensor:
    """A copy of the tangent with the dims in the order in which those of the tensor lie in memory."""
    strides = tensor.spec.stride
    order = sorted(range(len(strides)), key=lambda dim: -strides[dim])
    back = sorted(range(len(strides)), key=order.__getitem__)
    return tangent.permute(order).clone(memory_format=contiguous_format).permute(back)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a tensor."""
    if not dual.user_levels:
        return UnpackedDualTensor(tensor, None)
    tangent = dual.tangents(tensor).get(dual.user_levels[-1])
    return UnpackedDualTensor(
        tensor if tangent is None else dual.at_outer_levels(tensor, dual.user_levels[-1]), tangent
    )


def _is_fwd_grad_enabled() -> bool:
    """Whether operations compute tangents in this thread."""
    return dual.state.enabled


class _set_fwd_grad_enabled(Restoring):  # noqa: N801
    """A context in which operations compute tangents, or do not."""

    def __init__(self, mode: bool):
        self._before, dual.state.enabled = dual.state.enabled, mode

    def __enter__(self) -> None:
        """It was set when the object was made."""

    def _restore(self) -> None:
        dual.state.enabled = self._before


def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    value, tangent = unpack_dual(self)
    return tensor_repr(value, tensor_contents=tensor_contents, tangent=tangent)


_repr.__name__ = "__repr__"  # the name that `__torch_function__` gets to see
Tensor.__repr__ = _repr  # type: ignore[method-assign, assignment]


class dual_level(Restoring):  # noqa: N801 (PyTorch's name)
    """A context with a level of forward mode. Tangents made in the context end with it."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def _restore(self) -> None:
        exit_dual_level()
