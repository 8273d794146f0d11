# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .conv_fused import ConvBn1d as ConvBn1d
from .conv_fused import ConvBn2d as ConvBn2d
from .conv_fused import ConvBn3d as ConvBn3d
from .conv_fused import ConvBnReLU1d as ConvBnReLU1d
from .conv_fused import ConvBnReLU2d as ConvBnReLU2d
from .conv_fused import ConvBnReLU3d as ConvBnReLU3d
from .conv_fused import ConvReLU1d as ConvReLU1d
from .conv_fused import ConvReLU2d as ConvReLU2d
from .conv_fused import ConvReLU3d as ConvReLU3d
from .linear_fused import LinearBn1d as LinearBn1d
from .linear_relu import LinearReLU as LinearReLU
from . import conv_fused as conv_fused
from .conv_fused import freeze_bn_stats as freeze_bn_stats
from . import linear_fused as linear_fused
from . import linear_relu as linear_relu
from .conv_fused import update_bn_stats as update_bn_stats
