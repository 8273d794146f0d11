"""`torch.nn.attention`: which kernels attention may use. weft has one, so that the choice has no effect."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence

from ...compat.missing import module_getattr


class SDPBackend(enum.Enum):
    """PyTorch's kernels for `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False) -> Iterator[None]:
    """A context, or a decorator, for attention; weft's one kernel serves whatever is asked for.

    Raises: AssertionError if `backends` is neither an `SDPBackend` nor a list of them.

    >>> import weft as torch
    >>> from weft.nn.attention import SDPBackend, sdpa_kernel
    >>> q = torch.ones(1, 1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    ...     torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([1, 1, 2, 4])
    """
    listed = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(listed, (list, tuple)) or not all(isinstance(each, SDPBackend) for each in listed):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    yield


__getattr__ = module_getattr(__name__, ("flex_attention",))
