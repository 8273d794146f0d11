"""Represents class numbers as vectors."""

from __future__ import annotations

from ...core.batched import beneath
from ...core.dtype import int64
from ...core.public import public
from ...core.tensor import Tensor
from ...families.array_op import check_values
from ..assembly.filling import fill_
from ..creation.creation import new
from .masking import counting
from .scatter import scatter_

# Elements of the result. Up to here comparing each of them takes less time than filling and scattering: 320 elements take 2.9 us
# instead of 10.2, 10^4 in rows of 100 4.9 instead of 10.9, and 10^4 in rows of 10 12 in both ways (AMD Zen 4).
SMALL = 10**4


@public("function", name="nn.functional.one_hot")
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of zeros with a one at the position that `input` gives.

    Shapes: [...] -> [..., num_classes]. Without `num_classes`, the largest number decides.
    Raises: RuntimeError for dtypes other than int64, and for numbers that are negative or not below `num_classes`.

    >>> import weft as torch
    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if input.spec.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not input.spec.numel:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return fill_(new((*input.spec.shape, num_classes), int64, input.spec.device), 0)
    if num_classes == -1:
        check_values("one_hot without num_classes", input)
    elif num_classes < 1:
        raise RuntimeError("Class values must be smaller than num_classes.")
    if input.spec.device.backend.has_memory:
        num_classes = _checked_count(input, num_classes)
    if input.spec.numel * num_classes <= SMALL:
        return (input.unsqueeze(-1) == counting(num_classes, input.spec.device)).to(int64)
    result = fill_(new((*input.spec.shape, num_classes), int64, input.spec.device), 0)
    return scatter_(result, -1, input.unsqueeze(-1), 1)


def _checked_count(input: Tensor, num_classes: int) -> int:
    """The number of classes; -1 asks for one more than the greatest value.

    Raises: RuntimeError for values out of range.
    """
    if int(beneath(input).min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        return int(input.max()) + 1
    if int(beneath(input).max()) >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return num_classes
