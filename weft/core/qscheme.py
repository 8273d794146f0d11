"""`torch.qscheme`, the ways to quantize, and exceptions: names that programs compare with and catch."""

from __future__ import annotations


class qscheme:  # noqa: N801 (PyTorch's name)
    """A quantization scheme. There is one object for each; compare with `is`."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> tuple:
        return _scheme, (self._name,)


def _scheme(name: str) -> qscheme:
    return SCHEMES[name]


SCHEMES = {
    name: qscheme(name)
    for name in (
        "per_tensor_affine",
        "per_channel_affine",
        "per_tensor_symmetric",
        "per_channel_symmetric",
        "per_channel_affine_float_qparams",
    )
}


class FatalError(Exception):
    """PyTorch's error for a broken installation. weft never raises it."""


class AcceleratorError(RuntimeError):
    """PyTorch's error for a failure of an accelerator. weft never raises it."""
