"""Writes to positions in the tensor read as a vector."""

from __future__ import annotations

from ...core.derivative import Derivative
from ...core.dtype import LEGACY_NAMES, int64
from ...core.op import Op
from ...core.outputs import check_inplace
from ...core.public import add_inplace, public
from ...core.recording import check_recorded_write, needs_recording, record_inplace
from ...core.tensor import Tensor
from ...families.indexed import Scatter, add_elements
from .advanced_indexing import at
from .gather import check_index, flat, flat_error
from .masking import contiguous_copy

PUT_FLAT = Scatter("put_", at, wrap=True, error=flat_error)


def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write the elements of `source` to the positions `index` of this tensor read as a vector, or add them."""
    check_recorded_write(self, source)
    check_index(index, "put_", "Expected a long tensor for index, but got {}", (int64,))
    if self.spec.dtype is not source.spec.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{LEGACY_NAMES[self.dtype]} and source.dtype = {LEGACY_NAMES[source.dtype]}"
        )
    if index.spec.numel != source.spec.numel:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.spec.numel}, index.numel() = {index.spec.numel}"
        )
    if index.spec.numel and not self.spec.numel:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    check_inplace(self, "put")
    if needs_recording((self, source)):
        return record_inplace(
            _PUT, self, (self, index, source, accumulate), (), put_, self, index, source, accumulate
        )
    spec = self.spec
    plain = spec.is_contiguous and not spec.conj and not spec.neg
    target = self if plain else contiguous_copy(self)
    PUT_FLAT(
        flat(target), (index.reshape(-1),), source.reshape(-1), (0,), add_elements if accumulate else None
    )
    return self if plain else self.copy_(target)


def _put_target_back(ct, out, a, index, source, accumulate):
    return ct if accumulate else put(ct, index, ct.new_zeros(()).expand(index.shape))


_PUT = Op(
    "put",
    Derivative(
        _put_target_back,
        None,
        lambda ct, out, a, index, source, accumulate, *, specs: ct.take(index).reshape(specs[2].shape),
    ),
)


@public("function method")
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of `input` with the elements of `source` at the positions `index`, or added to them.

    >>> import weft as torch
    >>> torch.zeros(2, 2).put(torch.tensor([1, 2]), torch.tensor([5.0, 6.0]))
    tensor([[0., 5.],
            [6., 0.]])
    """
    return put_(input.clone(), index, source, accumulate)


add_inplace("put", put_)
