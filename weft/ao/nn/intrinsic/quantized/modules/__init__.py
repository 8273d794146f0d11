"""The layers of `torch.ao.nn.intrinsic.quantized`."""

from ......compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "bn_relu": "BNReLU2d BNReLU3d",
        "conv_add": "ConvAdd2d ConvAddReLU2d",
        "conv_relu": "ConvReLU1d ConvReLU2d ConvReLU3d",
        "linear_relu": "LinearLeakyReLU LinearReLU LinearTanh",
    },
)
