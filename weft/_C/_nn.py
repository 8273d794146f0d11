"""Functions of `nn.functional` that PyTorch writes in C++: graphs name them by this module."""

from __future__ import annotations

from ..compat.missing import module_getattr
from ..core.op import namespace

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

__getattr__ = module_getattr(__name__)
