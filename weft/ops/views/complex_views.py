"""Makes complex tensors, their conjugates and their real and imaginary parts."""

from __future__ import annotations

from typing import Any

from ...core.public import public
from ...core.registry import add_function, add_member
from ...core.tensor import Tensor
from ...families.custom_vjp import custom_vjp
from ..assembly.copying import clone
from .views import CONJ, IMAG, NEG_VIEW, REAL, VIEW_AS_COMPLEX, VIEW_AS_REAL


@public("function")
def view_as_real(input: Tensor) -> Tensor:
    """Return a view of a complex tensor as pairs of real numbers, along a new last dimension of size 2.

    Shapes: [*] -> [*, 2]. Raises: RuntimeError for real tensors.

    >>> import weft as torch
    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return VIEW_AS_REAL(input)


@public("function", autocast="raise")
def view_as_complex(input: Tensor) -> Tensor:
    """Return a view of pairs of real numbers, in the last dimension, as complex numbers.

    Shapes: [*, 2] -> [*]. Raises: RuntimeError if the strides or the offset do not allow it.

    >>> import weft as torch
    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    result = VIEW_AS_COMPLEX(input)
    if input.storage_offset() % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return result


@public("function")
def real(input: Tensor) -> Tensor:
    """A view of the real parts. A real tensor is returned itself.

    >>> import weft as torch
    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """
    return REAL(input) if input.spec.dtype.is_complex else input


@public("function")
def imag(input: Tensor) -> Tensor:
    """Return a view of the imaginary parts.

    Raises: RuntimeError for real tensors.

    >>> import weft as torch
    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """
    return IMAG(input)


def _set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value)


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value)


add_member("real", property(real, _set_real, doc=real.__doc__))
add_member("imag", property(imag, _set_imag, doc=imag.__doc__))


@public("function method")
def conj(input: Tensor) -> Tensor:
    """The complex conjugate, as a view that conjugates when it is read. A real tensor is returned itself.

    >>> import weft as torch
    >>> torch.tensor([1 + 2j]).conj()
    tensor([1.-2.j])
    """
    return CONJ(input) if input.spec.dtype.is_complex else input


@public("function method inplace", out=True)
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate in new memory. A real tensor is returned itself.

    >>> import weft as torch
    >>> torch.conj_physical(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return _conj_physical(input) if input.spec.dtype.is_complex else input


def _conjugated(ct, out, a):
    return _conj_physical(ct)


@custom_vjp(_conjugated)
def _conj_physical(input: Tensor) -> Tensor:
    return clone(CONJ(input))


@public("function method", name="_neg_view")
def neg_view(input: Tensor) -> Tensor:
    """The negative, as a view that negates when it is read."""
    return NEG_VIEW(input)


add_function("_conj", conj)
add_function("conj_physical_", vars(Tensor)["conj_physical_"])
