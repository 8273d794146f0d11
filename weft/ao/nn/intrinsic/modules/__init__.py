"""The layers of `torch.ao.nn.intrinsic`."""

from .....compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "fused": (
            "BNReLU2d BNReLU3d ConvAdd2d ConvAddReLU2d ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d "
            "ConvBnReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearBn1d LinearLeakyReLU LinearReLU LinearTanh"
        ),
    },
)
