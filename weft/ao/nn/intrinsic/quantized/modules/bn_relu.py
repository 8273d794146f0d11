"""Batch normalization of quantized tensors that ends with ReLU."""

from ......compat.missing import module_getattr
from ....quantized import BatchNorm2d, BatchNorm3d


class BNReLU2d(BatchNorm2d):
    """Batch normalization of images and ReLU, which costs nothing."""

    _relu = True


class BNReLU3d(BatchNorm3d):
    """Batch normalization of volumes and ReLU, which costs nothing."""

    _relu = True


__getattr__ = module_getattr(__name__)
