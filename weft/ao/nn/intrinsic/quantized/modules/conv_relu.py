"""Quantized convolutions that end with ReLU."""

from ......compat.missing import module_getattr
from ....quantized import Conv1d, Conv2d, Conv3d


class ConvReLU1d(Conv1d):
    """A quantized convolution and ReLU, which costs nothing."""

    _relu = True


class ConvReLU2d(Conv2d):
    """A quantized convolution and ReLU, which costs nothing."""

    _relu = True


class ConvReLU3d(Conv3d):
    """A quantized convolution and ReLU, which costs nothing."""

    _relu = True


__getattr__ = module_getattr(__name__)
