"""Views that change the order of dimensions."""

from __future__ import annotations

from typing import Any

from ...core.arguments import integers, wrong_type
from ...core.public import public
from ...core.registry import add_member
from ...core.tensor import Tensor, wrap_dim
from ...core.warn import warn_once
from .complex_views import conj
from .views import ALIAS, PERMUTE, TRANSPOSE, T


@public("function method")
def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """Put the dimensions into the order `dims`.

    >>> import weft as torch
    >>> torch.zeros(2, 3, 4).permute(2, 0, 1).shape
    torch.Size([4, 2, 3])
    """
    return PERMUTE(input, integers(order if dims is None else (dims,), "permute", "dims"))


@public("function method")
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dimensions.

    >>> import weft as torch
    >>> torch.zeros(2, 3).transpose(0, 1).shape
    torch.Size([3, 2])
    """
    return TRANSPOSE(input, dim0, dim1)


@public("function method")
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dimensions: another name of `transpose`.

    >>> import weft as torch
    >>> torch.zeros(2, 3).swapdims(0, 1).shape
    torch.Size([3, 2])
    """
    return transpose(input, dim0, dim1)


@public("function method")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two dimensions: another name of `transpose`.

    >>> import weft as torch
    >>> torch.zeros(2, 3).swapaxes(0, 1).shape
    torch.Size([3, 2])
    """
    return transpose(input, axis0, axis1)


@public("function method")
def t(input: Tensor) -> Tensor:
    """A matrix transposed; tensors of fewer dimensions as they are.

    Raises: RuntimeError for more than two dims.

    >>> import weft as torch
    >>> torch.tensor([[1, 2], [3, 4]]).t()
    tensor([[1, 3],
            [2, 4]])
    """
    return T(input)


@public("function method", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Move the dimensions `source` to the positions `destination`. The other dimensions keep their order.

    >>> import weft as torch
    >>> torch.zeros(2, 3, 4).movedim(0, -1).shape
    torch.Size([3, 4, 2])
    """
    if isinstance(source, (tuple, list)) != isinstance(destination, (tuple, list)):
        raise wrong_type(
            destination, "movedim", "destination", f"{type(source).__name__}, as the source is", 3
        )
    sources = integers((source,), "movedim", "source")
    targets = integers((destination,), "movedim", "destination")
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should contain the same "
            f"number of dims as destination ({list(targets)} dims)"
        )
    ndim = input.spec.ndim
    wrapped_sources = [wrap_dim(dim, ndim) for dim in sources]
    wrapped_targets = [wrap_dim(dim, ndim) for dim in targets]
    for name, wrapped, named in (
        ("source", wrapped_sources, sources),
        ("destination", wrapped_targets, targets),
    ):
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(named)})")
    if ndim == 0:
        return ALIAS(input)
    moves = dict(zip(wrapped_targets, wrapped_sources, strict=True))
    others = iter([dim for dim in range(ndim) if dim not in wrapped_sources])
    return PERMUTE(input, tuple(moves[dim] if dim in moves else next(others) for dim in range(ndim)))


def _numpy_transpose(self: Tensor) -> Tensor:
    """Reverse the order of all dimensions."""
    ndim = len(self.spec.shape)
    if ndim == 0:
        warn_once("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    elif ndim != 2:
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return PERMUTE(self, tuple(range(ndim - 1, -1, -1)))


def _matrices(self: Tensor, name: str) -> bool:
    """Whether the tensor has matrices to transpose. For a 0-dim tensor, which has none, a warning says that it is deprecated.

    Raises: RuntimeError for one dimension.
    """
    ndim = len(self.spec.shape)
    if ndim == 1:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got {ndim}-D tensor."
        )
    return ndim > 0


def _matrix_transpose(self: Tensor) -> Tensor:
    if _matrices(self, "mT"):
        return TRANSPOSE(self, -2, -1)
    warn_once("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.")
    return self


def _adjoint(self: Tensor, name: str) -> Tensor:
    if _matrices(self, name):
        return conj(TRANSPOSE(self, -2, -1))
    warn_once(f"{name} is deprecated on 0-D tensors. Consider using x.conj().")
    return conj(self)


@public("function method")
def adjoint(input: Tensor) -> Tensor:
    """Exchange the last two dimensions and conjugate.

    >>> import weft as torch
    >>> torch.zeros(5, 2, 3).adjoint().shape
    torch.Size([5, 3, 2])
    """
    return _adjoint(input, "adjoint()")


def _hermitian(self: Tensor) -> Tensor:
    ndim = len(self.spec.shape)
    if ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if ndim > 2 else "")
        )
    return _adjoint(self, "Tensor.H")


add_member("T", property(_numpy_transpose))
add_member("mT", property(_matrix_transpose))
add_member("H", property(_hermitian))
add_member("mH", property(lambda self: _adjoint(self, "mH"), doc=adjoint.__doc__))
