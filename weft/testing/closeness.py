"""Whether tensors, numbers and containers of them are close, and what an error says when they are not."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import weft

from ..core.dtype import (
    DType,
    bfloat16,
    complex32,
    complex64,
    complex128,
    float16,
    float32,
    float64,
)
from ..core.layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from ..core.tensor import Tensor

# dtype -> (rtol, atol); all others have to be equal.
_TOLERANCES = {
    float16: (1e-3, 1e-5),
    bfloat16: (1.6e-2, 1e-5),
    float32: (1.3e-6, 1e-5),
    float64: (1e-7, 1e-7),
    complex32: (1e-3, 1e-5),
    complex64: (1.3e-6, 1e-5),
    complex128: (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Nothing, if |actual - expected| <= atol + rtol * |expected| everywhere. Sequences and mappings are compared by item.

    rtol and atol depend on the dtype unless given. msg: what the error says instead, or makes of the usual message.
    Raises: AssertionError if they are not close or differ in what is checked; ValueError if only one of rtol and
    atol is given; TypeError for what cannot be compared.

    >>> import weft as torch
    >>> torch.testing.assert_close(torch.ones(2), torch.ones(2) + 1e-7)
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    attributes = [
        name
        for name, wanted in (
            ("shape", True),
            ("device", check_device),
            ("layout", check_layout),
            ("dtype", check_dtype),
            ("stride()", check_stride),
        )
        if wanted
    ]
    problem = _difference(actual, expected, "", attributes, rtol, atol, equal_nan)
    if problem is not None:
        raise AssertionError(problem if msg is None else msg(problem) if callable(msg) else msg)


def _difference(actual: Any, expected: Any, where: str, attributes: list[str], *how: Any) -> str | None:
    """What is wrong, or None; `where` is the item, such as "['a'][0]"."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            missing, more = expected.keys() - actual.keys(), actual.keys() - expected.keys()
            return (
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
                f"Additional keys in the actual mapping: {sorted(more, key=str)}" + _at(where)
            )
        pairs = [(f"[{key!r}]", actual[key], expected[key]) for key in actual]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}" + _at(where)
        pairs = [(f"[{i}]", *pair) for i, pair in enumerate(zip(actual, expected, strict=True))]
    elif _is_strided_nested(actual) and _is_strided_nested(expected):
        return _difference(actual.unbind(), expected.unbind(), where, attributes, *how)
    else:
        problem = _leaf_difference(actual, expected, attributes, *how)
        return None if problem is None else problem + _at(where)
    found = (_difference(a, b, where + item, attributes, *how) for item, a, b in pairs)
    return next((problem for problem in found if problem is not None), None)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_strided_nested(value: Any) -> bool:
    """Whether this is a tensor whose sizes only its components have."""
    return isinstance(value, Tensor) and value.is_nested and value.layout is strided


def _at(where: str) -> str:
    return f"\n\nThe failure occurred for item {where}" if where else ""


def _leaf_difference(actual, expected, attributes, rtol, atol, equal_nan) -> str | None:
    if actual is None and expected is None:
        return None
    arrays = isinstance(actual, np.ndarray) and isinstance(expected, np.ndarray)
    if not arrays and not (isinstance(actual, Tensor) and isinstance(expected, Tensor)):
        if not _is_number(actual) or not _is_number(expected):
            raise TypeError(
                f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
            )
        return _number_difference(actual, expected, rtol, atol, equal_nan)
    a, b = weft.as_tensor(actual).detach(), weft.as_tensor(expected).detach()
    for name in attributes:
        ours, theirs = (t.stride() if name == "stride()" else getattr(t, name) for t in (a, b))
        if ours != theirs:
            return f"The values for attribute '{name}' do not match: {ours} != {theirs}."
        if name == "layout" and (problem := _quantizer_difference(a, b)):
            return problem
    if a.layout is not b.layout:
        a, b = a.to_dense(), b.to_dense()
    if a.layout in _INDICES and (problem := _specified_difference(a, b)):
        return problem
    for part, ours, theirs in _parts(a, b):
        problem = _values_difference(part, ours, theirs, rtol, atol, equal_nan)
        if problem is not None:
            return problem
    return None


# Layout of sparse tensors -> its name in messages, and the methods that give its indices.
_INDICES = {
    sparse_coo: ("COO", ("_indices",)),
    sparse_csr: ("CSR", ("crow_indices", "col_indices")),
    sparse_csc: ("CSC", ("ccol_indices", "row_indices")),
    sparse_bsr: ("BSR", ("crow_indices", "col_indices")),
    sparse_bsc: ("BSC", ("ccol_indices", "row_indices")),
}


def _quantizer_difference(a: Tensor, b: Tensor) -> str | None:
    if a.is_quantized != b.is_quantized:
        return f"The values for attribute 'is_quantized' do not match: {a.is_quantized} != {b.is_quantized}."
    if a.is_quantized and a.qscheme() != b.qscheme():
        return f"The values for attribute 'qscheme()' do not match: {a.qscheme()} != {b.qscheme()}."
    return None


def _specified_difference(a: Tensor, b: Tensor) -> str | None:
    if a._nnz() == b._nnz():
        return None
    kind, _ = _INDICES[a.layout]
    return f"The number of specified values in sparse {kind} tensors does not match: {a._nnz()} != {b._nnz()}"


def _parts(a: Tensor, b: Tensor) -> Iterator[tuple[str, Tensor, Tensor]]:
    """What two tensors of one layout hold, part by part, as plain tensors: (the part's name in messages, of a, of b)."""
    if a.is_quantized:
        yield "Quantized tensor-likes", a.dequantize(), b.dequantize()
    elif a.is_nested:
        yield "Tensor-likes", a.values(), b.values()
    elif a.layout in _INDICES:
        kind, indices = _INDICES[a.layout]
        for method in indices:
            name = method.removeprefix("_")
            yield f"Sparse {kind} {name}", getattr(a, method)(), getattr(b, method)()
        values = "_values" if a.layout is sparse_coo else "values"
        yield f"Sparse {kind} values", getattr(a, values)(), getattr(b, values)()
    else:
        yield "Tensor-likes", a, b


def _values_difference(part: str, a: Tensor, b: Tensor, rtol, atol, equal_nan) -> str | None:
    if part.endswith("indices"):
        rtol = atol = 0.0
    elif rtol is None:
        rtol, atol = _tolerances(a.dtype, b.dtype)
    if a.dtype is not b.dtype:
        common = weft.promote_types(a.dtype, b.dtype)
        a, b = a.to(common), b.to(common)
    close = weft.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if close.all():
        return None
    if not a.dim():
        return _number_difference(a.item(), b.item(), rtol, atol, equal_nan)
    return _report(part, a, b, close, rtol, atol)


def _is_number(value: Any) -> bool:
    return isinstance(value, (numbers.Number, np.bool_))


def _tolerances(*dtypes: DType) -> tuple[float, float]:
    """The larger ones of two dtypes."""
    rtols, atols = zip(*(_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes), strict=True)
    return max(rtols), max(atols)


def _number_difference(actual, expected, rtol, atol, equal_nan) -> str | None:
    if rtol is None:
        rtol, atol = _tolerances(
            *(weft.as_tensor(each, dtype=_dtype_of(each)).dtype for each in (actual, expected))
        )
    if actual == expected or (equal_nan and actual != actual and expected != expected):
        return None
    distance = abs(actual - expected)
    if distance < float("inf") and distance <= atol + rtol * abs(expected):
        return None
    relative = distance / abs(expected) if expected else float("inf")
    exact = not rtol and not atol
    limits = ["", ""] if exact else [f" (up to {limit} allowed)" for limit in (atol, rtol)]
    return (
        f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {distance}{limits[0]}\nRelative difference: {relative}{limits[1]}"
    )


def _dtype_of(number: Any) -> DType | None:
    return float64 if isinstance(number, float) else complex128 if isinstance(number, complex) else None


def _report(part: str, actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    exact = not rtol and not atol
    if not actual.is_floating_point() and not actual.is_complex():
        actual, expected = actual.to(weft.int64), expected.to(weft.int64)
    distance = (actual - expected).abs()
    distance[close] = 0  # as for infinities that are equal
    relative = distance / expected.abs()
    relative[close] = 0
    count, total = int((~close).sum()), close.numel()
    lines = [
        f"{part} are not {'equal' if exact else 'close'}!\n",
        f"Mismatched elements: {count} / {total} ({count / total:.1%})",
    ]
    for name, values, limit in (("absolute", distance, atol), ("relative", relative, rtol)):
        largest, position = values.flatten().max(0)
        index = tuple(int(i) for i in np.unravel_index(int(position), values.shape))
        allowed = "" if exact else f" (up to {limit} allowed)"
        lines.append(f"Greatest {name} difference: {largest.item()} at index {index}{allowed}")
    return "\n".join(lines)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """`assert_close` of values alone, by its old name; deprecated."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please use "
        "`torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    values = [each if isinstance(each, Tensor) else weft.as_tensor(each) for each in (actual, expected)]
    if rtol is None and atol is None:
        rtol, atol = max(_OLD_TOLERANCES.get(each.dtype, (0.0, 0.0)) for each in values)
    assert_close(
        *values,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )


# dtype -> (rtol, atol)
_OLD_TOLERANCES = {float16: (1e-3, 1e-3), float32: (1e-4, 1e-5), float64: (1e-5, 1e-8)}
