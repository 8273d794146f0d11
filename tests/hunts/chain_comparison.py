"""What must agree between a tensor of PyTorch and weft's, and in which way they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch

import weft
from weft.families.array_op import array

DTYPES = {
    getattr(torch, name): getattr(weft, name)
    for name in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex32 complex64 complex128".split()
}
# Relative tolerances: a chain rounds several times, and PyTorch's vector functions are some ulp off.
_TOLERANCE = {
    torch.float16: 1e-2, torch.bfloat16: 6e-2, torch.float32: 4e-5, torch.float64: 1e-9,
    torch.complex32: 2e-2, torch.complex64: 1e-4, torch.complex128: 1e-9,
}  # fmt: skip


def facts(tensor: Any) -> tuple:
    """What is no value: names are in FACTS."""
    return (
        tensor.shape,
        tensor.requires_grad,
        tensor.is_leaf,
        tensor.storage_offset() if tensor.numel() else 0,
        strides(tensor),
        tensor.is_conj(),
        tensor.is_neg(),
    )


FACTS = ("shape", "requires_grad", "is_leaf", "offset", "strides", "conj", "neg")


def strides(tensor: Any) -> tuple:
    """The strides of the dimensions along which there is another element."""
    found, shape = tensor.stride(), tensor.shape
    if 0 in shape:
        return ()
    if 1 not in shape:
        return found
    return tuple([step for step, size in zip(found, shape) if size > 1])


def difference(theirs: Any, mine: Any, computed_in: Sequence[Any] = ()) -> tuple[str, str] | None:
    """(what differs, how) of a tensor of PyTorch and weft's; None if all agrees.

    `computed_in`: dtypes whose precision the values may have, if that is less than the precision of their own.

    Where values agree within the tolerance, weft's get PyTorch's bits, so that roundings do not add up and no later
    decision (a comparison, a floor) depends on them.
    """
    if DTYPES.get(theirs.dtype) is not mine.dtype:
        return "dtype", f"{mine.dtype} instead of {theirs.dtype}"
    try:
        there = facts(theirs)
    except RuntimeError as error:
        return "unusable", f"PyTorch raises when asked about the tensor: {error}"
    here = facts(mine)
    if there != here:
        for name, expected, got in zip(FACTS, there, here):
            if expected != got:
                return name, f"{_plain(got)} instead of {_plain(expected)}"
    tolerance = max(_TOLERANCE.get(each, 0.0) for each in (theirs.dtype, *computed_in))
    return _values(theirs.detach(), mine.detach(), tolerance)


def settle_order(given: torch.Tensor, dim: int, theirs: Any, mine: Any) -> None:
    """Give weft's result of an unstable sort PyTorch's indices, if its own sort as well: equal elements may lie anyhow."""
    expected, got = numbers(theirs[1]), array(mine[1])
    if got.shape != expected.shape or not expected.ndim:
        return
    if np.array_equal(np.sort(got, dim), np.sort(expected, dim)):
        chosen = given.detach().gather(dim, torch.from_numpy(got.copy()))
        if _close(numbers(theirs[0].detach()), numbers(chosen), 0.0):
            got[...] = expected


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, tuple) else value


def _values(theirs: torch.Tensor, mine: Any, tolerance: float) -> tuple[str, str] | None:
    if theirs.is_conj() or theirs.is_neg():
        theirs, mine = theirs.resolve_conj().resolve_neg(), mine.resolve_conj().resolve_neg()
    if theirs.dtype is torch.complex32:  # NumPy has no such type
        theirs, mine = torch.view_as_real(theirs), weft.view_as_real(mine)
    expected, got = numbers(theirs), array(mine)
    if expected.tobytes() == got.tobytes():
        return None
    if _close(expected, got, tolerance):
        got[...] = expected
        return None
    kind = "values of non-finite complex numbers" if _both_not_finite(expected, got) else "values"
    return kind, f"{_text(got)} instead of {_text(expected)}"


def _both_not_finite(expected: np.ndarray, got: np.ndarray) -> bool:
    """Whether complex numbers differ only where both are infinite or NaN."""
    if expected.dtype.kind != "c":
        return False
    finite = np.isfinite(expected) | np.isfinite(got)
    return _close(expected[finite], got[finite], 1e-3)


def _text(values: np.ndarray) -> str:
    return " ".join(str(values.tolist()).split())


def numbers(tensor: torch.Tensor) -> np.ndarray:
    if tensor._is_zerotensor():  # gradients of zero that PyTorch has not made yet
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _close(expected: np.ndarray, got: np.ndarray, tolerance: float) -> bool:
    if expected.dtype.kind in "biu":
        return bool((expected == got).all())
    if expected.dtype.kind == "c":
        one, other = expected.astype(np.complex128), got.astype(np.complex128)
        return _close_floats(one.real, other.real, tolerance, one, other) and _close_floats(
            one.imag, other.imag, tolerance, one, other
        )
    one, other = expected.astype(np.float64), got.astype(np.float64)
    return _close_floats(one, other, tolerance, one, other)


def _close_floats(one: np.ndarray, other: np.ndarray, tolerance: float, *whole: np.ndarray) -> bool:
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    if same.all():
        return True
    sizes = np.concatenate([np.abs(each).reshape(-1) for each in whole])
    sizes = sizes[np.isfinite(sizes)]
    scale = (
        sizes.max() if sizes.size else 0.0
    )  # cancellation leaves errors of the size of the largest element
    return bool((same | (np.abs(one - other) <= tolerance * scale)).all())
