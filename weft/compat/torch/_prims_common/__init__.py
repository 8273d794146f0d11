"""`torch._prims_common`: what PyTorch's references ask of dtypes and shapes."""

from __future__ import annotations

from enum import Enum
from numbers import Number
from typing import Any

from weft.core import dtype as dtypes
from weft.core.dtype import DType, get_default_dtype
from weft.core.promotion import common_dtype, number_dtype
from weft.core.tensor import Tensor
from weft.library.fake_tensor import MetadataMismatchError

# The dtype of each kind of Python number, from the lowest to the highest.
_KINDS = (bool, int, float, complex)
# Dtypes in which elements are computed in a wider one.
_COMPUTED_IN = {
    dtypes.float16: dtypes.float32,
    dtypes.bfloat16: dtypes.float32,
    dtypes.complex32: dtypes.complex64,
}
_REALS = {
    dtypes.complex32: dtypes.float16,
    dtypes.complex64: dtypes.float32,
    dtypes.complex128: dtypes.float64,
}
_COMPLEXES = {real: dtype for dtype, real in _REALS.items()} | {dtypes.bfloat16: dtypes.complex64}


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """How an operation's dtypes follow from those of its operands: like add, cat, sin, abs, pow, eq; see `elementwise_dtypes`."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


def compare_tensor_meta(
    a: Tensor, b: Tensor, check_sizes: bool = True, check_strides: bool = False, *, check_conj: bool = True
) -> None:
    """Raises: MetadataMismatchError, a RuntimeError, if shapes, dtypes, devices, or pending conjugations differ.

    check_strides: also compare strides, of dims longer than 1, and offsets.
    """
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        raise AssertionError("compare_tensor_meta: both must be tensors")
    long = [dim for dim in range(a.dim()) if a.shape[dim] > 1 and 0 not in a.shape]
    compared: dict[str, list[Any]] = {
        "dtype": [a.dtype, b.dtype],
        "device": [str(a.device), str(b.device)],
        "neg": [a.is_neg(), b.is_neg()],
    }
    if check_sizes:
        compared["shape"] = [a.shape, b.shape]
    if check_conj:
        compared["conj"] = [a.is_conj(), b.is_conj()]
    for name, (one, other) in compared.items():
        if one != other:
            raise MetadataMismatchError(f"{name}: {one} and {other}")
    if check_strides and (
        any(a.stride(dim) != b.stride(dim) for dim in long) or a.storage_offset() != b.storage_offset()
    ):
        raise MetadataMismatchError(
            f"strides: {a.stride()} from {a.storage_offset()} and {b.stride()} from {b.storage_offset()}"
        )


def elementwise_dtypes(
    *args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND
) -> tuple[DType, DType]:
    """The dtype that an elementwise operation computes in, and that of its result.

    args: tensors and Python numbers; None is left out.

    >>> import weft as torch
    >>> kind = ELEMENTWISE_TYPE_PROMOTION_KIND
    >>> elementwise_dtypes(torch.ones(2, dtype=torch.half), 2.0, type_promotion_kind=kind.DEFAULT)
    (torch.float32, torch.float16)
    """
    kinds = ELEMENTWISE_TYPE_PROMOTION_KIND
    operands = [each for each in args if each is not None]
    for each in operands:
        if not isinstance(each, (Number, Tensor)):
            raise ValueError(f"Unexpected type {type(each)} when computing elementwise type promotion!")
    parts = [each.spec if isinstance(each, Tensor) else type(each) for each in operands]
    result = common_dtype(parts) if parts else dtypes.bool_
    is_whole = not result.is_floating_point and not result.is_complex
    if type_promotion_kind is kinds.NO_OPMATH:
        return result, result
    if type_promotion_kind is kinds.INT_TO_FLOAT and is_whole:
        result = get_default_dtype()
    elif type_promotion_kind is kinds.BOOL_TO_LONG and result is dtypes.bool_:
        result = dtypes.int64
    computed = get_computation_dtype(result)
    if type_promotion_kind is kinds.COMPLEX_TO_FLOAT:
        result = _REALS.get(result, result)
    elif type_promotion_kind is kinds.ALWAYS_BOOL:
        result = dtypes.bool_
    return computed, result


def get_computation_dtype(dtype: DType) -> DType:
    """The dtype in which elements of `dtype` are computed: float32 for the narrow floats."""
    return _COMPUTED_IN.get(dtype, dtype)


def is_boolean_dtype(dtype: DType) -> bool:
    return dtype is dtypes.bool_


def is_integer_dtype(dtype: DType) -> bool:
    return dtype_to_type(dtype) is int


def is_float_dtype(dtype: DType) -> bool:
    return dtype.is_floating_point


def is_complex_dtype(dtype: DType) -> bool:
    return dtype.is_complex


def is_low_precision_dtype(dtype: DType) -> bool:
    """Whether elements of `dtype` are computed in a wider one."""
    return dtype in _COMPUTED_IN


def is_grad_dtype(dtype: DType) -> bool:
    """Whether tensors of `dtype` may require gradients."""
    return dtype.is_floating_point or dtype.is_complex


def corresponding_real_dtype(dtype: DType) -> DType:
    """The dtype of the real parts of `dtype`.

    >>> corresponding_real_dtype(dtypes.complex64)
    torch.float32
    """
    return _REALS[dtype]


def corresponding_complex_dtype(dtype: DType) -> DType:
    """The complex dtype that can hold `dtype`."""
    return dtype if dtype.is_complex else _COMPLEXES[dtype]


def dtype_to_type(dtype: DType) -> type:
    """The type of Python number that elements of `dtype` become.

    >>> dtype_to_type(dtypes.uint8), dtype_to_type(dtypes.bfloat16)
    (<class 'int'>, <class 'float'>)
    """
    if not isinstance(dtype, DType):
        raise AssertionError(f"dtype must be torch.dtype, got {type(dtype)}")
    if dtype is dtypes.bool_:
        return bool
    return complex if dtype.is_complex else float if dtype.is_floating_point else int


def type_to_dtype(typ: type) -> DType:
    """The dtype of Python numbers of a type."""
    if typ in _KINDS:
        return number_dtype(typ)
    raise ValueError(f"Invalid type {typ}!")
