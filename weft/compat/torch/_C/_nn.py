"""Functions of `nn.functional` that PyTorch writes in C++: graphs name them by this module."""

from __future__ import annotations

from typing import Any

from weft.compat.missing import module_getattr
from weft.core.device import device
from weft.core.dtype import DType
from weft.core.layout import preserve_format
from weft.core.registry import namespace
from weft.ops.assembly.copying import is_non_blocking, parse_to

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
    non_blocking = is_non_blocking(args, kwargs)
    return where, dtype, non_blocking, None if memory_format is preserve_format else memory_format


# The operators of aten whose bindings PyTorch puts into this module. A reduction is a number in their arguments.
_OPERATORS = frozenset(
    (
        "_upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d "
        "_upsample_nearest_exact3d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d "
        "binary_cross_entropy col2im cross_entropy_loss elu fractional_max_pool2d fractional_max_pool3d gelu_ glu "
        "hardsigmoid hardsigmoid_ hardswish hardswish_ hardtanh huber_loss im2col l1_loss leaky_relu "
        "max_pool2d_with_indices max_pool3d_with_indices max_unpool2d max_unpool3d mish mish_ mse_loss multi_margin_loss "
        "multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd reflection_pad1d reflection_pad2d reflection_pad3d relu6 "
        "relu6_ replication_pad1d replication_pad2d replication_pad3d silu silu_ smooth_l1_loss soft_margin_loss "
        "upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d "
        "upsample_nearest3d upsample_trilinear3d"
    ).split()
)
_missing = module_getattr(__name__)


def __getattr__(name: str) -> Any:
    """An operator of aten, made when it is first asked for; other names are missing."""
    if name not in _OPERATORS:
        return _missing(name)
    from weft.library.namespaces import ops  # it takes 50 ms, and most programs need none of these

    return getattr(ops.aten, name)
