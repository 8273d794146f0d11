"""Converts parameters to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import weft

from ...core.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return all elements of all parameters, one after the other.

    Raises: TypeError if the parameters are on different devices.

    >>> import weft as torch
    >>> torch.nn.utils.parameters_to_vector([torch.zeros(2, 1), torch.ones(1)])
    tensor([0., 0., 1.])
    """
    listed = list(parameters)
    _check_devices(listed)
    return weft.cat([parameter.view(-1) for parameter in listed])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make parameters views of consecutive parts of a vector. Raises: TypeError if `vec` is not a tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {weft.typename(vec)}")
    listed = list(parameters)
    _check_devices(listed)
    start = 0
    for parameter in listed:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end


def _check_devices(parameters: list[Tensor]) -> None:
    if len({parameter.device for parameter in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
