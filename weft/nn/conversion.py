"""How a module gets another dtype or moves to another device."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from ..autograd.parameter import Parameter
from ..autograd.swapping import swap_tensors
from ..core import dtype as dt
from ..core.grad_mode import no_grad
from ..core.layout import preserve_format
from ..core.overrides import wraps_tensors
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..ops.assembly.copying import parse_to
from ..ops.creation.creation import empty_like
from ..ops.nn.kernels import _has_compatible_shallow_copy_type
from . import conversion_settings as future


class Conversion:
    """The part of `Module` that converts all parameters and buffers, in place."""

    if TYPE_CHECKING:
        _parameters: dict[str, Parameter | None]
        _buffers: dict[str, Tensor | None]
        children: Callable

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace every parameter, its gradient, and every buffer by the result of `fn`."""
        if recurse:
            for child in self.children():
                child._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                where = f"{type(self).__name__}.{name}"
                self._parameters[name] = _applied(fn, parameter, where)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert to a device, a dtype (floating point and complex tensors only) or a memory format, in place.

        Forms: to(device), to(dtype), to(device, dtype), to(tensor), to(memory_format=...).
        Raises: TypeError for a dtype that is neither floating point nor complex, RuntimeError for the argument `copy`.
        """
        device, dtype, _, memory_format = parse_to(args, kwargs, copies=False)
        if dtype is not None:
            _check_dtype(dtype)

        def convert(tensor: Tensor) -> Tensor:
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            # A memory format applies to images and volumes, which have 4 and 5 dimensions. Ask for the dimensions
            # only if there is a format, because an uninitialized parameter has none yet.
            if memory_format is not preserve_format and tensor.dim() in (4, 5):
                return tensor.to(device, wanted, memory_format=memory_format)
            return tensor.to(device, wanted)

        try:
            return self._apply(convert)
        except NotImplementedError as error:
            if str(error).startswith("Cannot copy out of meta tensor; no data!"):
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                ) from None
            raise

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device without the values, so that all memory is new and uninitialised."""
        return self._apply(lambda tensor: empty_like(tensor, device=device), recurse=recurse)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def cpu(self) -> Self:
        """Move to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move to a GPU."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def ipu(self, device: Any = None) -> Self:
        """Move to a Graphcore device, which weft does not have."""
        return self._apply(lambda tensor: tensor.ipu(device))

    def xpu(self, device: Any = None) -> Self:
        """Move to a GPU of Intel's."""
        return self._apply(lambda tensor: tensor.xpu(device))

    def mtia(self, device: Any = None) -> Self:
        """Move to an MTIA device, which weft does not have."""
        return self._apply(lambda tensor: tensor.mtia(device))

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32."""
        return self._to_floating(dt.float32)

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64."""
        return self._to_floating(dt.float64)

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16."""
        return self._to_floating(dt.float16)

    def bfloat16(self) -> Self:
        """Convert floating point parameters and buffers to bfloat16."""
        return self._to_floating(dt.bfloat16)

    def _to_floating(self, dtype: dt.DType) -> Self:
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


def _applied(fn: Callable[[Tensor], Tensor], parameter: Parameter, where: str) -> Parameter:
    """Convert a parameter and its gradient.

    Returns the same object, unless it moves to or from a device such as "meta", or `torch.__future__` asks for new ones. A tensor that wraps
    others, such as a DTensor, remains the same object in any case, because fully_shard and optimizers hold it.
    """
    grad = parameter.grad
    with no_grad():
        data = fn(parameter)
        new_grad = None if grad is None else fn(grad).requires_grad_(grad.requires_grad)
    if future.get_swap_module_params_on_conversion() or wraps_tensors(type(data)):
        return _swapped(parameter, data, grad, new_grad, where)
    if (
        _has_compatible_shallow_copy_type(parameter, data)
        and not future.get_overwrite_module_params_on_conversion()
    ):
        parameter.data = data
        result = parameter
    else:
        result = Parameter(data, parameter.requires_grad)
    if grad is not None:
        result.grad = None  # a gradient must have the dtype of its tensor, so drop the old one before the new one is set
        result.grad = new_grad
    return result


def _swapped(
    parameter: Parameter, data: Tensor, grad: Tensor | None, new_grad: Tensor | None, where: str
) -> Parameter:
    """Swap a parameter and its gradient with what they were converted to. `where` names the parameter in errors."""
    parameter.grad = None
    try:
        swap_tensors(parameter, Parameter(data, parameter.requires_grad))
    except Exception as error:
        parameter.grad = grad
        raise RuntimeError(f"_apply(): Couldn't swap {where}") from error
    if grad is not None and new_grad is not None:
        try:
            swap_tensors(grad, new_grad)
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {where}.grad") from error
        parameter.grad = grad
    return parameter


def _check_dtype(dtype: dt.DType) -> None:
    if not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(
            f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
        )
    if dtype.is_complex:
        warnings.warn(
            "Complex modules are a new feature under active development whose design may change, and some modules "
            "might not work as expected when using complex tensors as parameters or buffers.",
            stacklevel=user_level(),
        )
