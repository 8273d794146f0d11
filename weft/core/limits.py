"""torch.finfo and torch.iinfo: the limits of element types."""

from __future__ import annotations

from .dtype import DType, bool_, get_default_dtype


class finfo:  # noqa: N801 (PyTorch's name)
    """Limits of a floating point dtype; of a complex one, those of its parts.

    >>> import weft as torch
    >>> torch.finfo(torch.float16).max, torch.finfo(torch.float32).eps
    (65504.0, 1.1920928955078125e-07)
    """

    __module__ = "torch"

    def __init__(self, type: DType | None = None):
        dtype = get_default_dtype() if type is None else type
        if not isinstance(dtype, DType):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        dtype = dtype.to_real()
        if not dtype.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        self._dtype = dtype
        self.dtype = dtype.name
        self.bits = 8 * dtype.itemsize
        # PyTorch gives half a step for e5m2fnuz.
        self.eps = 2.0 ** -(dtype.mantissa_bits + (dtype.name == "float8_e5m2fnuz"))
        self.max = _largest(dtype)
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - _bias(dtype))
        self.resolution = 10.0 ** -int((dtype.mantissa_bits) * 0.30103)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self._dtype is other._dtype

    def __hash__(self) -> int:
        return hash(self._dtype)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


def _bias(dtype: DType) -> int:
    return 2 ** (dtype.exponent_bits - 1) - 1 + dtype.name.endswith("fnuz")


def _largest(dtype: DType) -> float:
    """The largest finite value: formats without infinity use the top exponent for numbers too."""
    top = 2**dtype.exponent_bits - 1
    fraction = 2.0 - 2.0**-dtype.mantissa_bits
    if dtype.name == "float8_e4m3fn":  # the all-ones pattern is NaN
        return (2.0 - 2.0 ** (1 - dtype.mantissa_bits)) * 2.0 ** (top - _bias(dtype))
    if dtype.name.endswith("fnuz"):
        return fraction * 2.0 ** (top - _bias(dtype))
    return fraction * 2.0 ** (top - 1 - _bias(dtype))


class iinfo:  # noqa: N801 (PyTorch's name)
    """Limits of an integer dtype.

    >>> import weft as torch
    >>> torch.iinfo(torch.uint8)
    iinfo(min=0, max=255, dtype=uint8)
    """

    __module__ = "torch"

    def __init__(self, type: DType):
        if not isinstance(type, DType) or not type.is_integral:
            if type is bool_:
                raise TypeError("torch.bool is not supported by torch.iinfo")
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'"
            )
        self._dtype = type
        self.dtype = type.name
        self.bits = 8 * type.itemsize
        self.min = -(2 ** (self.bits - 1)) if type.kind == "i" else 0
        self.max = 2 ** (self.bits - (type.kind == "i")) - 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self._dtype is other._dtype

    def __hash__(self) -> int:
        return hash(self._dtype)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
