"""Operations on the elements that a mask selects, and tensors that keep their mask, `torch.masked`."""

from __future__ import annotations

from ..compat.missing import module_getattr
from ..core.registry import namespace

globals().update(namespace("masked"))

__all__ = [  # noqa: F822 (functions come from `namespace`, MaskedTensor from `__getattr__`)
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

# Imported when it is first used: while no subclass of Tensor asks for `__torch_function__`, functions do not look for one.
__getattr__ = module_getattr(
    __name__,
    lazy=("_ops", "maskedtensor"),
    names={
        **dict.fromkeys(("_canonical_dim", "_combine_input_and_mask", "_where"), "_ops"),
        **dict.fromkeys(("_input_mask", "_output_mask", "_reduction_identity"), "_ops"),
        "MaskedTensor": "maskedtensor.core",
        "is_masked_tensor": "maskedtensor.core",
        "as_masked_tensor": "maskedtensor.creation",
        "masked_tensor": "maskedtensor.creation",
    },
)
