"""DType: the types of elements, their promotion categories, and their NumPy dtypes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

# Categories in ascending order of promotion; uint and int are one category (see `promotion.py`).
BOOL, INTEGER, FLOAT, COMPLEX = range(4)


class DType:
    """The type of a tensor's elements, `torch.dtype`. There is one object per type; compare with `is`.

    >>> import weft as torch
    >>> torch.float16, torch.float16.itemsize, torch.float16.is_floating_point
    (torch.float16, 2, True)
    """

    __slots__ = (
        "name",
        "itemsize",
        "kind",
        "exponent_bits",
        "mantissa_bits",
        "part",
        "__weakref__",
    )

    name: str
    itemsize: int
    kind: str  # b, u, i, f or c, as in NumPy
    exponent_bits: int
    mantissa_bits: int
    part: DType | None  # for a complex dtype, the dtype of its real part; None for others

    def __init__(
        self, name: Any = None, itemsize: int = 0, kind: str = "", *, exponent=0, mantissa=0, part=None
    ):
        if not kind:  # a call of `torch.dtype`
            meant = name if isinstance(name, str) and name in DTYPES else "float32, torch.int64 and so on"
            raise TypeError(f"cannot create 'torch.dtype' instances: write torch.{meant}")
        self.name, self.itemsize, self.kind, self.part = name, itemsize, kind, part
        self.exponent_bits, self.mantissa_bits = exponent, mantissa

    @property
    def is_floating_point(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_signed(self) -> bool:
        if self in QUANTIZED:
            raise RuntimeError("isSignedType not supported for quantized types")
        return self.kind in "ifc"

    @property
    def is_integral(self) -> bool:
        """Whether this is an integer dtype. bool is not."""
        return self.kind in "ui"

    @property
    def category(self) -> int:
        return "buifc".index(self.kind) - (self.kind in "ifc")

    @property
    def is_fnuz(self) -> bool:
        """Whether this is a float format without infinity and without -0, whose only NaN has the bits of -0."""
        return self.name.endswith("fnuz")

    @property
    def exponent_bias(self) -> int:
        """What the stored exponent of a float has more than the exponent of two."""
        return 2 ** (self.exponent_bits - 1) - 1 + self.is_fnuz

    @property
    def numpy(self) -> np.dtype:
        """The NumPy dtype with the same bytes. complex32, which NumPy lacks, is a pair of float16."""
        return numpy_dtype(self)

    def to_real(self) -> DType:
        """complex64 -> float32. A real dtype returns itself."""
        return self.part or self

    def to_complex(self) -> DType:
        """float32 -> complex64. bfloat16, which has no complex dtype, returns complex64."""
        return _COMPLEX_OF.get(self, complex64 if self is bfloat16 else self)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):  # so that pickles and copies return the same object
        return _by_name, (self.name,)


DType.__name__ = DType.__qualname__ = "dtype"  # as PyTorch prints it


def _by_name(name: str) -> DType:
    return DTYPES.get(name) or OPAQUE[name]


@functools.cache
def numpy_dtype(dtype: DType) -> np.dtype:
    if dtype is complex32:
        return np.dtype([("real", np.float16), ("imag", np.float16)])
    if dtype.kind == "f" and (dtype.itemsize == 1 or dtype is bfloat16):
        import ml_dtypes  # imported here, because only programs with these dtypes need it

        return np.dtype(getattr(ml_dtypes, dtype.name))
    return np.dtype(dtype.name)


# fmt: off
bool_   = DType("bool",   1, "b")
uint8   = DType("uint8",  1, "u")
uint16  = DType("uint16", 2, "u")
uint32  = DType("uint32", 4, "u")
uint64  = DType("uint64", 8, "u")
int8    = DType("int8",   1, "i")
int16   = DType("int16",  2, "i")
int32   = DType("int32",  4, "i")
int64   = DType("int64",  8, "i")
float16  = DType("float16",  2, "f", exponent=5,  mantissa=10)
bfloat16 = DType("bfloat16", 2, "f", exponent=8,  mantissa=7)
float32  = DType("float32",  4, "f", exponent=8,  mantissa=23)
float64  = DType("float64",  8, "f", exponent=11, mantissa=52)
float8_e4m3fn   = DType("float8_e4m3fn",   1, "f", exponent=4, mantissa=3)
float8_e5m2     = DType("float8_e5m2",     1, "f", exponent=5, mantissa=2)
float8_e4m3fnuz = DType("float8_e4m3fnuz", 1, "f", exponent=4, mantissa=3)
float8_e5m2fnuz = DType("float8_e5m2fnuz", 1, "f", exponent=5, mantissa=2)
complex32  = DType("complex32",  4,  "c", part=float16)
complex64  = DType("complex64",  8,  "c", part=float32)
complex128 = DType("complex128", 16, "c", part=float64)
# fmt: on

DTYPES = {value.name: value for value in list(globals().values()) if isinstance(value, DType)}

# Dtypes of PyTorch for which weft has names and no operations. No plain tensor has one of these dtypes.
OPAQUE = {
    name: DType(name, size, kind)
    for names, size, kind in (
        (" ".join(f"int{bits}" for bits in range(1, 8)), 1, "i"),
        (" ".join(f"uint{bits}" for bits in range(1, 8)), 1, "u"),
        ("bits8 bits1x8 bits2x4 bits4x2 quint8 quint4x2 quint2x4", 1, "u"),
        ("bits16", 2, "u"),
        ("qint8", 1, "i"),
        ("qint32", 4, "i"),
        ("float4_e2m1fn_x2 float8_e8m0fnu", 1, "f"),
    )
    for name in names.split()
}
# The dtypes of quantized tensors, and those in which their integers are stored. quint4x2 and quint2x4 have several in a byte.
quint8, qint8, qint32 = OPAQUE["quint8"], OPAQUE["qint8"], OPAQUE["qint32"]
quint4x2 = OPAQUE["quint4x2"]
QUANTIZED = {
    OPAQUE["quint8"]: uint8,
    OPAQUE["qint8"]: int8,
    OPAQUE["qint32"]: int32,
    OPAQUE["quint4x2"]: uint8,
    OPAQUE["quint2x4"]: uint8,
}
_COMPLEX_OF = {dtype.part: dtype for dtype in DTYPES.values() if dtype.part}

ALIASES = {
    "half": float16,
    "float": float32,
    "double": float64,
    "short": int16,
    "int": int32,
    "long": int64,
    "chalf": complex32,
    "cfloat": complex64,
    "cdouble": complex128,
    **OPAQUE,
    "bit": OPAQUE["uint1"],
}


def is_dtype_name(name: Any) -> bool:
    """Whether `torch.name` is a dtype, for errors about a string in its place.

    >>> is_dtype_name("float"), is_dtype_name("gpu")
    (True, False)
    """
    return isinstance(name, str) and (name in DTYPES or name in ALIASES)


FLOAT8 = frozenset(dtype for dtype in DTYPES.values() if dtype.kind == "f" and dtype.itemsize == 1)
UNSIGNED_WIDE = frozenset((uint16, uint32, uint64))
REDUCED_FLOATS = FLOAT8 | {float16, bfloat16}
# By the bytes of an element, the dtype that shows its bits.
BITS = {1: uint8, 2: uint16, 4: uint32, 8: uint64}

# The names of dtypes in PyTorch's messages and in its legacy tensor and storage classes.
LEGACY_NAMES = {
    bool_: "Bool",
    uint8: "Byte",
    int8: "Char",
    int16: "Short",
    int32: "Int",
    int64: "Long",
    float16: "Half",
    bfloat16: "BFloat16",
    float32: "Float",
    float64: "Double",
    complex32: "ComplexHalf",
    complex64: "ComplexFloat",
    complex128: "ComplexDouble",
    uint16: "UInt16",
    uint32: "UInt32",
    uint64: "UInt64",
    **{dtype: dtype.name.capitalize() for dtype in DTYPES.values() if dtype in FLOAT8},
    OPAQUE["quint8"]: "QUInt8",
    OPAQUE["qint8"]: "QInt8",
    OPAQUE["qint32"]: "QInt32",
    OPAQUE["quint4x2"]: "QUInt4x2",
    OPAQUE["quint2x4"]: "QUInt2x4",
}

# The C++ types, which other messages contain.
_CPP_NAMES = {
    bool_: "bool",
    uint8: "unsigned char",
    uint16: "short unsigned int",
    uint32: "unsigned int",
    uint64: "long unsigned int",
    int8: "signed char",
    int16: "short int",
    int32: "int",
    int64: "long int",
    float16: "c10::Half",
    bfloat16: "c10::BFloat16",
    float32: "float",
    float64: "double",
    complex32: "c10::complex<c10::Half>",
    complex64: "c10::complex<float>",
    complex128: "c10::complex<double>",
    quint8: "c10::quint8",
    qint8: "c10::qint8",
    qint32: "c10::qint32",
    quint4x2: "c10::quint4x2",
    OPAQUE["quint2x4"]: "c10::quint2x4",
}


def cpp_name(dtype: DType) -> str:
    return _CPP_NAMES.get(dtype, dtype.name)


def compute_type(dtype: DType) -> DType:
    """The dtype in which kernels compute. The narrow floats are widened to float32."""
    if dtype in REDUCED_FLOATS:
        return float32
    return complex64 if dtype is complex32 else dtype


def from_numpy_dtype(dtype: Any) -> DType:
    """The DType for a NumPy dtype.

    Raises: TypeError for a NumPy dtype without a DType (object, str, datetime, float128).
    """
    dtype = np.dtype(dtype)
    found = DTYPES.get(dtype.name)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {dtype.type.__module__}.{dtype.type.__name__}. The only supported types "
            "are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
            "uint8, and bool (and ml_dtypes' bfloat16 and float8 types)."
        )
    return found


_default: DType = float32

# Called when cached plans must be made again: the default dtype has changed, or the number of threads.
when_plans_expire: list[Callable[[], None]] = []


def get_default_dtype() -> DType:
    """The default dtype of new floating point tensors.

    >>> import weft as torch
    >>> torch.get_default_dtype()
    torch.float32
    """
    return _default


def set_default_dtype(d: DType) -> None:
    """Set the default dtype of new floating point tensors.

    Raises: TypeError unless `d` is a floating point dtype, and for those of one byte.
    """
    global _default
    if not isinstance(d, DType):
        raise TypeError(
            f"invalid dtype object: only floating-point types are supported as the default type, got {d!r}"
        )
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d in FLOAT8:
        raise TypeError(
            f"couldn't find storage object {LEGACY_NAMES[d]}Storage: {d} cannot be the default dtype"
        )
    if d is not _default:
        _default = d
        for forget in when_plans_expire:
            forget()


def default_complex() -> DType:
    return _default.to_complex()


# The dtypes for Python types.
PYTHON_DTYPES: dict[Any, DType] = {float: float64, int: int64, bool: bool_, complex: complex128}
