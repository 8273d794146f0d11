"""The layers of `torch.ao.nn.intrinsic.qat`."""

from ......compat.missing import package_names

__all__, __getattr__ = package_names(
    __name__,
    {
        "conv_fused": (
            "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d "
            "ConvReLU3d freeze_bn_stats update_bn_stats"
        ),
        "linear_fused": "LinearBn1d",
        "linear_relu": "LinearReLU",
    },
)
