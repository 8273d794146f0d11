"""Batch normalization of quantized tensors that ends with ReLU."""

from ....quantized import BatchNorm2d, BatchNorm3d


class BNReLU2d(BatchNorm2d):
    """Batch normalization of images and ReLU, which costs nothing."""

    _relu = True


class BNReLU3d(BatchNorm3d):
    """Batch normalization of volumes and ReLU, which costs nothing."""

    _relu = True
