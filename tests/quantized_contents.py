"""Results as plain values, so that those of both libraries can be compared."""

import torch

import weft


def content(value):
    if isinstance(value, (torch.Tensor, weft.Tensor)):
        if not value.is_quantized:
            return [str(value.dtype), tuple(value.shape), value.tolist()]
        integers = value.int_repr()
        found = [
            str(value.dtype),
            tuple(value.shape),
            value.stride(),
            str(value.qscheme()),
            integers.tolist(),
        ]
        if "tensor" in str(value.qscheme()):
            return [*found, value.q_scale(), value.q_zero_point()]
        channels = value.q_per_channel_scales(), value.q_per_channel_zero_points()
        return [*found, *map(content, channels), value.q_per_channel_axis()]
    if isinstance(value, (list, tuple)):
        return [content(each) for each in value]
    return str(value)
