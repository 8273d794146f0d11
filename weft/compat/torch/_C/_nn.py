"""Functions of `nn.functional` that PyTorch writes in C++: graphs name them by this module."""

from __future__ import annotations

from typing import Any

from weft.compat.missing import module_getattr
from weft.core.device import device
from weft.core.dtype import DType
from weft.core.layout import preserve_format
from weft.core.registry import namespace
from weft.ops.assembly.copying import parse_to

_FUNCTIONS = namespace("nn.functional")
globals().update(
    {
        name: _FUNCTIONS[name]
        for name in (
            "avg_pool2d", "avg_pool3d", "elu_", "gelu", "hardtanh_", "leaky_relu_", "linear", "one_hot", "pad",
            "scaled_dot_product_attention", "softplus", "softshrink",
        )
    }
)  # fmt: skip
log_sigmoid = _FUNCTIONS["logsigmoid"]


def _parse_to(*args: Any, **kwargs: Any) -> tuple[device | None, DType | None, bool, Any]:
    """(device, dtype, non_blocking, memory_format) of any form of `Module.to`; None where nothing is said."""
    where, dtype, _, memory_format = parse_to(args, kwargs)
    flags = [value for value in args if type(value) is bool]
    non_blocking = kwargs.get("non_blocking", flags[0] if flags else False)
    return where, dtype, non_blocking, None if memory_format is preserve_format else memory_format


__getattr__ = module_getattr(__name__)
