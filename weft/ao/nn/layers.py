"""What several packages ask of layers and of QConfigs."""

from __future__ import annotations

from typing import Any


def conv_arguments(conv: Any) -> tuple[Any, ...]:
    """The arguments with which a constructor of convolutions makes one like `conv`, up to `padding_mode`."""
    geometry = conv.kernel_size, conv.stride, conv.padding, conv.dilation, conv.groups
    return conv.in_channels, conv.out_channels, *geometry, conv.bias is not None, conv.padding_mode


def activation_is_memoryless(qconfig: Any) -> bool:
    """Whether the observer of the results is a moving average that forgets all tensors but the last."""
    activation = qconfig.activation()
    observer = getattr(activation, "activation_post_process", activation)
    return getattr(observer, "averaging_constant", None) == 1
