"""Checks of an array API namespace against array_api_strict, function by function.

`python tests/array_standard.py` counts what passes for weft, and for PyTorch through array_api_compat.
"""

import warnings
from itertools import product

import array_api_strict as strict
import numpy as np

BOOL = ("bool",)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL, NUMERIC = INTEGERS + FLOATS, INTEGERS + FLOATS + COMPLEX
FLOATING, ALL = FLOATS + COMPLEX, BOOL + INTEGERS + FLOATS + COMPLEX
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.5, 3.0, 1e-30, 20.0]

UNARY = {
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 sin sinh sqrt tan tanh reciprocal": FLOATING,
    "abs negative positive square sign round": NUMERIC,
    "isfinite isinf isnan": NUMERIC,
    "ceil floor trunc": REAL,
    "signbit": FLOATS,
    "conj real": NUMERIC,
    "imag": COMPLEX,
    "logical_not": BOOL,
    "bitwise_invert": BOOL + INTEGERS,
}
BINARY = {
    "add subtract multiply": NUMERIC,
    "equal not_equal": ALL,
    "divide": FLOATING,
    "floor_divide remainder": REAL,
    "less less_equal greater greater_equal maximum minimum": REAL,
    "pow": NUMERIC,
    "atan2 copysign hypot logaddexp nextafter": FLOATS,
    "logical_and logical_or logical_xor": BOOL,
    "bitwise_and bitwise_or bitwise_xor": BOOL + INTEGERS,
    "bitwise_left_shift bitwise_right_shift": INTEGERS,
}
# x: [2, 3, 4]; m: [3, 3]; v: [5]; n: 0-dim; e: [0, 3]; one: [1, 3, 1]; i: indices
EXPRESSIONS = """
BOOL xp.all(x) | xp.all(x, axis=0) | xp.all(x, axis=(0, 2), keepdims=True) | xp.all(x, axis=()) | xp.all(e, axis=0)
BOOL xp.any(x) | xp.any(x, axis=-1) | xp.any(x, axis=(0, 2), keepdims=True) | xp.any(x, axis=()) | xp.any(e, axis=0)
NUMERIC xp.all(x) | xp.any(x, axis=1)
NUMERIC xp.sum(x) | xp.sum(x, axis=1) | xp.sum(x, axis=(0, -1), keepdims=True) | xp.sum(x, axis=()) | xp.sum(n) | xp.sum(e)
NUMERIC xp.sum(x, dtype=xp.complex128) | xp.sum(x, keepdims=True) | xp.sum(e, axis=0)
NUMERIC xp.prod(m) | xp.prod(m, axis=1) | xp.prod(m, axis=(0, 1), keepdims=True) | xp.prod(m, axis=()) | xp.prod(e)
REAL xp.max(x) | xp.max(x, axis=1) | xp.max(x, axis=(0, 2), keepdims=True) | xp.max(x, axis=()) | xp.max(n)
REAL xp.min(x) | xp.min(x, axis=1) | xp.min(x, axis=(0, 2), keepdims=True) | xp.min(x, axis=()) | xp.min(n, keepdims=True)
FLOATING xp.mean(x) | xp.mean(x, axis=1) | xp.mean(x, axis=(0, 2), keepdims=True) | xp.mean(x, axis=()) | xp.mean(n)
FLOATS xp.std(x) | xp.std(x, axis=1, correction=1) | xp.std(x, axis=(0, 2), keepdims=True) | xp.std(x, axis=()) | xp.std(n)
FLOATS xp.var(x) | xp.var(x, axis=1, correction=1.0) | xp.var(x, axis=(0, 2), keepdims=True) | xp.var(x, axis=())
NUMERIC xp.count_nonzero(x) | xp.count_nonzero(x, axis=1) | xp.count_nonzero(x, axis=(0, 1), keepdims=True)
NUMERIC xp.cumulative_sum(v) | xp.cumulative_sum(x, axis=1) | xp.cumulative_sum(x, axis=-1, include_initial=True)
NUMERIC xp.cumulative_prod(v) | xp.cumulative_prod(m, axis=1) | xp.cumulative_prod(m, axis=-1, include_initial=True)
NUMERIC xp.diff(v) | xp.diff(x, axis=0) | xp.diff(v, n=2) | xp.diff(v, prepend=v) | xp.diff(v, append=v)
REAL xp.argmax(x) | xp.argmax(x, axis=1) | xp.argmax(x, axis=1, keepdims=True) | xp.argmax(x, keepdims=True)
REAL xp.argmin(x) | xp.argmin(x, axis=1) | xp.argmin(x, axis=1, keepdims=True) | xp.argmin(x, keepdims=True)
REAL xp.sort(x) | xp.sort(x, axis=0) | xp.sort(x, descending=True) | xp.sort(v, stable=False) | xp.sort(e, axis=1)
REAL xp.argsort(x) | xp.argsort(x, axis=0) | xp.argsort(x, descending=True) | xp.argsort(e)
ALL xp.nonzero(x) | xp.nonzero(v) | xp.nonzero(e)
REAL xp.searchsorted(xp.sort(v), x) | xp.searchsorted(xp.sort(v), v, side='right')
REAL xp.searchsorted(v, v, sorter=xp.argsort(v)) | xp.searchsorted(xp.sort(v), n)
ALL xp.where(x == x[:, :1, :], x, n) | xp.where(v == v, v, v)
NUMERIC xp.where(v == v, v, 1) | xp.where(v == v, 1, v)
REAL xp.unique_all(x) | xp.unique_all(n) | xp.unique_all(e) | xp.unique_all(v)
REAL xp.unique_counts(x) | xp.unique_counts(v)
REAL xp.unique_inverse(x) | xp.unique_inverse(v)
REAL xp.unique_values(x) | xp.unique_values(v) | xp.unique_values(e)
REAL xp.isin(x, v) | xp.isin(x, 1) | xp.isin(n, x)
REAL xp.clip(x, n, None) | xp.clip(x, None, 1) | xp.clip(x, 0, 2) | xp.clip(x, x, x + 1) | xp.clip(x) | xp.clip(v, n, 3)
ALL xp.concat([x, x]) | xp.concat([x, x[:, :, :2]], axis=-1) | xp.concat([x, v], axis=None) | xp.concat([e, e])
ALL xp.stack([x, x]) | xp.stack([x, x], axis=-1) | xp.stack([n, n])
ALL xp.unstack(x) | xp.unstack(x, axis=-1)
ALL xp.expand_dims(x, axis=0) | xp.expand_dims(x, axis=-1) | xp.expand_dims(x, axis=(0, -1)) | xp.expand_dims(n, axis=0)
ALL xp.squeeze(one, axis=0) | xp.squeeze(one, axis=(0, -1)) | xp.squeeze(one, axis=-1)
ALL xp.flip(x) | xp.flip(x, axis=1) | xp.flip(x, axis=(0, -1)) | xp.flip(n)
ALL xp.permute_dims(x, (2, 0, 1)) | xp.moveaxis(x, 0, -1) | xp.moveaxis(x, (0, 1), (2, 0)) | xp.matrix_transpose(x)
ALL xp.repeat(x, 2) | xp.repeat(x, 2, axis=1) | xp.repeat(v, xp.asarray([1, 0, 2, 1, 1])) | xp.repeat(x, i, axis=1)
ALL xp.reshape(x, (6, 4)) | xp.reshape(x, (-1,)) | xp.reshape(x, (4, 6), copy=True) | xp.reshape(x, (24,), copy=False)
ALL xp.roll(x, 1) | xp.roll(x, 2, axis=1) | xp.roll(x, (1, 2), axis=(0, 1)) | xp.roll(x, -1, axis=-1) | xp.roll(x, 1, axis=(0, 1))
ALL xp.tile(x, (2,)) | xp.tile(x, (2, 1, 1, 2)) | xp.tile(n, (2, 2)) | xp.tile(x, ())
ALL xp.broadcast_to(v, (2, 5)) | xp.broadcast_to(n, (2, 5)) | xp.broadcast_arrays(x, one, n)
ALL xp.tril(m) | xp.tril(x, k=1) | xp.triu(m) | xp.triu(x, k=-1)
ALL xp.take(v, i) | xp.take(x, i, axis=1) | xp.take(x, i - 2, axis=-1) | xp.take(v, i[:0])
ALL xp.take_along_axis(x, xp.argsort(xp.zeros(x.shape)), axis=-1) | xp.take_along_axis(v, i - 3)
ALL xp.asarray(x) | xp.asarray(x, copy=True) | xp.asarray(n) | xp.meshgrid(v, v) | xp.meshgrid(v, v, indexing='ij')
ALL xp.zeros_like(x) | xp.ones_like(x) | xp.full_like(x, 1) | xp.empty_like(x).shape | xp.zeros_like(x, dtype=xp.float64)
ALL xp.astype(x, xp.bool) | xp.astype(x, x.dtype) | xp.astype(x, x.dtype, copy=False) | xp.astype(x, xp.complex128)
NUMERIC xp.matmul(m, m) | xp.matmul(m, m[0]) | xp.matmul(m[0], m[0]) | xp.matmul(x[:, :, :3], m) | xp.matmul(e, m) | m @ m
NUMERIC xp.tensordot(m, m) | xp.tensordot(x, x, axes=((0, 1), (0, 1))) | xp.tensordot(m, m, axes=1) | xp.tensordot(v, v, axes=0)
NUMERIC xp.vecdot(m, m) | xp.vecdot(x, x, axis=-1) | xp.vecdot(x, x[:1], axis=-2) | xp.vecdot(v, v)
ALL x[0] | x[..., 1] | x[:, None, ::2] | x[xp.asarray(True)] | x[x == x] | v[i] | x[1, 2, 3] | x[i - 1 < 1, ...] if False else x[-1:]
REAL x + 1 | 2 - x | x * n | x // 2 | x % 3 | x < 2 | -x | abs(x) | x == n
FLOATING x / 2 | 2 / x | x ** 2 | x + 1j if 'complex' in str(x.dtype) else x
INTEGERS x & 1 | x | x ^ 3 | ~x | x << 1 | x >> 1
NONE xp.arange(5) | xp.arange(1, 5) | xp.arange(0, 1, 0.25) | xp.arange(5, 0, -2) | xp.arange(3, 1) | xp.arange(5, dtype=xp.float32)
NONE xp.arange(4, dtype=xp.uint8) | xp.arange(2.5) | xp.arange(0)
NONE xp.zeros(3) | xp.zeros((2, 3), dtype=xp.int16) | xp.ones(()) | xp.ones((0, 2), dtype=xp.bool) | xp.empty((2, 3)).shape
NONE xp.full(3, 1) | xp.full((2,), 2.5) | xp.full((2,), True) | xp.full((), 1j) | xp.full((2, 2), 7, dtype=xp.uint8)
NONE xp.eye(3) | xp.eye(2, 4) | xp.eye(3, k=1) | xp.eye(3, 5, k=-2, dtype=xp.int32) | xp.eye(2, k=9) | xp.eye(0) | xp.eye(3, 1, k=2)
NONE xp.linspace(0, 1, 5) | xp.linspace(0, 1, 4, endpoint=False) | xp.linspace(1, 1, 1) | xp.linspace(0, 9, 4, dtype=xp.float32)
NONE xp.linspace(0, 1, 0) | xp.linspace(0, 1, 1, endpoint=False) | xp.linspace(5, -5, 11)
NONE xp.asarray(1) | xp.asarray(1.5) | xp.asarray([1, 2]) | xp.asarray([[True], [False]]) | xp.asarray([1j, 2]) | xp.asarray([])
NONE xp.asarray([1, 2.5]) | xp.asarray(3, dtype=xp.uint16) | xp.meshgrid() | xp.broadcast_shapes((2, 1), (3,)) | xp.broadcast_shapes()
NONE xp.isdtype(xp.int8, 'integral') | xp.isdtype(xp.bool, 'numeric') | xp.isdtype(xp.float32, ('bool', 'real floating'))
NONE xp.isdtype(xp.complex64, xp.complex64) | xp.isdtype(xp.uint8, 'signed integer') | xp.isdtype(xp.uint8, ('complex floating', xp.uint8))
NONE xp.e | xp.pi | xp.inf | xp.nan | xp.newaxis | xp.float32 == xp.float64
NONE xp.finfo(xp.float32).bits | xp.finfo(xp.float64).eps | xp.finfo(xp.float32).max | xp.finfo(xp.complex64).min
NONE xp.finfo(xp.float32).smallest_normal | xp.finfo(xp.complex128).dtype == xp.float64 | xp.finfo(xp.ones(2)).bits
NONE xp.iinfo(xp.int8).max | xp.iinfo(xp.uint64).max | xp.iinfo(xp.int64).min | xp.iinfo(xp.int16).dtype == xp.int16
NONE xp.from_dlpack(xp.arange(3)) | sorted(xp.__array_namespace_info__().default_dtypes()) | xp.__array_namespace_info__().capabilities()['boolean indexing']
NONE sorted(xp.__array_namespace_info__().dtypes(kind='integral')) | sorted(xp.__array_namespace_info__().dtypes())
"""
SETS = {
    name: globals()[name] for name in ("BOOL", "INTEGERS", "FLOATS", "REAL", "NUMERIC", "FLOATING", "ALL")
}
SETS["NONE"] = ("float64",)
SHAPES = {"x": (2, 3, 4), "m": (3, 3), "v": (5,), "n": (), "e": (0, 3), "one": (1, 3, 1)}
TOLERANCE = {"float32": 2e-6, "complex64": 2e-6, "float64": 1e-13, "complex128": 1e-13}


def values(dtype, shape, seed, special=False):
    """Small numbers, in which equal ones occur; with the special ones at the start."""
    random = np.random.default_rng(seed)
    number = random.integers(0, 2 if dtype == "bool" else 5, shape).astype(dtype)
    if dtype in FLOATING:
        number = (number + random.integers(0, 4, shape) / 4 - 2).astype(dtype)
    if dtype in COMPLEX:
        number = number + 1j * random.integers(-2, 3, shape).astype(dtype)
    if special and dtype in FLOATS:
        number = np.resize(np.append(number.ravel(), SPECIAL), shape).astype(dtype)
    return np.asarray(number, dtype)


def cases():
    """(function, label, evaluate), where `evaluate(xp)` gives the value."""
    for names, dtypes in UNARY.items():
        for name, dtype, shape in product(names.split(), dtypes, ((), (16,), (2, 3), (0, 2))):
            array = values(dtype, shape, 1, special=True)
            yield (
                name,
                f"{name}({dtype}{shape})",
                lambda xp, name=name, array=array: getattr(xp, name)(given(xp, array)),
            )
    for names, dtypes in BINARY.items():
        for name in names.split():
            yield from pairs(name, dtypes)
    for line in EXPRESSIONS.strip().splitlines():
        kind, rest = line.split(" ", 1)
        for expression, dtype in product(rest.split(" | "), SETS[kind]):
            yield of_expression(expression.strip(), dtype)
    types = [getattr(np, name + "_" * (name == "bool")) for name in ALL]
    for a, b in product(types, types):
        a, b = np.dtype(a).name, np.dtype(b).name
        if isinstance(
            outcome(strict, lambda xp, a=a, b=b: xp.result_type(getattr(xp, a), getattr(xp, b))), TypeError
        ):
            continue  # the standard leaves most mixtures of kinds open
        for call in ("str(xp.result_type(xp.{}, xp.{})).split('.')[-1]", "xp.can_cast(xp.{}, xp.{})"):
            yield of_expression(call.format(a, b), "float64")


def of_expression(expression, dtype):
    arrays = {key: values(dtype, shape, 7) for key, shape in SHAPES.items()}
    arrays["i"] = np.asarray([0, 2, 1])
    function = expression.split("xp.", 1)[1].split("(")[0] if "xp." in expression else "operators"
    return (
        function,
        f"{expression} of {dtype}",
        lambda xp: eval(expression, {"xp": xp, **{key: given(xp, value) for key, value in arrays.items()}}),
    )


def pairs(name, dtypes):
    """Two arrays of equal and of different dtypes and shapes, and an array and a scalar on either side."""
    for a, b in product(dtypes, dtypes):
        if {np.dtype(a).kind, np.dtype(b).kind} not in ({"u", "i"}, {"c", "f"}) and a[0] != b[0]:
            continue
        if name.startswith("bitwise") and name.endswith("shift") and a != b:
            continue
        for shapes in (
            (((2, 3), (3,)), ((), (4,)), ((4,), ())) if a != b else (((13,), (1, 13)), ((0,), ()), ((), ()))
        ):
            left, right = values(a, shapes[0], 2, True), values(b, shapes[1], 3, True)
            if name in ("floor_divide", "remainder") and right.dtype.kind in "iu":
                right = right + right.dtype.type(1)  # what integers divided by zero are is left open too
            yield (
                name,
                f"{name}({a}{shapes[0]}, {b}{shapes[1]})",
                lambda xp, left=left, right=right: getattr(xp, name)(given(xp, left), given(xp, right)),
            )
    scalars = {"b": (True,), "i": (2,), "u": (2,), "f": (2, 1.5), "c": (2, 1.5, 1j)}
    for dtype in dtypes:
        array = values(dtype, (4,), 4)
        if name in ("floor_divide", "remainder"):
            array = array + array.dtype.type(3)
        for scalar, first in product(scalars[np.dtype(dtype).kind], (True, False)):
            yield (
                name,
                f"{name}({dtype}, {scalar}, scalar first: {first})",
                lambda xp, array=array, scalar=scalar, first=first: getattr(xp, name)(
                    *((scalar, given(xp, array)) if first else (given(xp, array), scalar))
                ),
            )


def given(xp, array):
    return xp.asarray(array.copy())


def plain(value):
    """A result as NumPy arrays and plain Python."""
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return np.asarray(value if not hasattr(value, "_array") else value._array)
    return value


def agree(expected, got):
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(map(agree, expected, got))
    if isinstance(expected, np.ndarray):
        if not isinstance(got, np.ndarray) or got.dtype != expected.dtype or got.shape != expected.shape:
            return False
        tolerance = TOLERANCE.get(expected.dtype.name, 0)
        finite = np.isfinite(expected)
        # Part by part: an infinity beside a NaN is still an infinity.
        parts = ((each[~finite].real, each[~finite].imag) for each in (expected, got))
        return np.allclose(got[finite], expected[finite], tolerance, tolerance) and all(
            np.array_equal(*each, equal_nan=True) for each in zip(*parts)
        )
    if isinstance(expected, float):
        return got == expected or np.isclose(got, expected, rtol=1e-6) or got != got and expected != expected
    return got == expected


def outcome(xp, evaluate):
    """The value as plain data, or the exception."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return plain(evaluate(xp))
        except Exception as error:
            return error


def failures(xp):
    """(number of cases, what differs), each by function; what array_api_strict refuses is left out."""
    total, failed = {}, {}
    for function, label, evaluate in cases():
        expected = outcome(strict, evaluate)
        if isinstance(expected, Exception):
            continue
        total[function] = total.get(function, 0) + 1
        got = outcome(xp, evaluate)
        if isinstance(got, Exception) or not agree(expected, got):
            failed.setdefault(function, []).append((label, expected, got))
    return total, failed


if __name__ == "__main__":
    import sys

    import array_api_compat.torch
    import torch

    import weft

    for library, xp, default in (
        ("weft", weft.ones(1).__array_namespace__(), weft),
        ("PyTorch, array_api_compat", array_api_compat.torch, torch),
    ):
        default.set_default_dtype(default.float64)
        total, failed = failures(xp)
        bad = sum(map(len, failed.values()))
        print(
            f"{library}: {sum(total.values()) - bad} of {sum(total.values())} cases, "
            f"{len(total) - len(failed)} of {len(total)} functions without a failure"
        )
        if "-v" in sys.argv:
            for function, each in failed.items():
                print(f"  {function}: {len(each)} of {total[function]}")
                for label, expected, got in each[:2]:
                    print(f"    {label}\n      {expected!r}\n      {got!r}")
