"""Checks that PyTorch's own Python code makes, and that of libraries: `torch._assert`, `torch._check`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.entry import check_overrides, entry
from ...core.public import public
from ...core.registry import add_function
from ...core.tensor import Tensor


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with `message` unless `condition` holds. `torch.fx` traces it, unlike the statement.

    >>> import weft as torch
    >>> torch._assert(torch.tensor(1) < 2, "too large")
    """
    check_overrides(condition, message)
    assert condition, message


@public("function", name="_assert_async")
def assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raise RuntimeError if the only element of `input` is zero. On the CPU it happens at once."""
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _assert_scalar(self: Any, assert_msg: str) -> None:
    """Raise RuntimeError if a number is zero."""
    if not self:
        raise RuntimeError(assert_msg)


@public("function", name="_assert_tensor_metadata")
def assert_tensor_metadata(
    a: Tensor,
    size: Any = None,
    stride: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    layout: Any = None,
) -> None:
    """Raise RuntimeError if the tensor has another size, stride, dtype, device or layout than stated."""
    expectations = {
        "sizes": (None if size is None else tuple(size), tuple(a.shape)),
        "strides": (None if stride is None else tuple(stride), tuple(a.stride())),
        "dtype": (dtype, a.dtype),
        "device": (None if device is None else str(device), str(a.device)),
        "layout": (layout, a.layout),
    }
    for name, (expected, actual) in expectations.items():
        if expected is not None and expected != actual:
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {expected}, Got: {actual}")


# ---- torch._check and its relatives --------------------------------------------------------------------------------------

_UNEXPLAINED = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], str] | None) -> None:
    """Raise `error_type(message())` if `cond` is False.

    Raises: TypeError if `cond` is not a bool or `message` is not a function.
    """
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type(_UNEXPLAINED)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check_tensor_all_with(
    error_type: type[Exception], cond: Any, message: Callable[[], str] | None = None
) -> None:
    """`_check_with`, of all elements of a bool tensor."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.spec.dtype.kind != "b":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, cond.all().item(), message)


def _check(cond: Any, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError(message()) if `cond` is False; `message` is called only then.

    >>> import weft as torch
    >>> torch._check(2 > 1, lambda: "never made")
    """
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Callable[[], str] | None = None) -> None:
    """`_check` with IndexError."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Callable[[], str] | None = None) -> None:
    """`_check` with ValueError."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Callable[[], str] | None = None) -> None:
    """`_check` with TypeError."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], str] | None = None) -> None:
    """`_check` with NotImplementedError."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all(cond: Any, message: Callable[[], str] | None = None) -> None:
    """`_check` of all elements of a bool tensor."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i: Any, message: Callable[[], str] | None = None, *, max: int | None = None) -> None:
    """`_check` that a number is a possible size: 0 or more, and at most `max`."""
    _check(bool(i >= 0), message)
    if max is not None:
        _check(bool(i <= max), message)


for _function in (
    _assert_scalar, _check, _check_with, _check_index, _check_value, _check_type, _check_not_implemented,
    _check_is_size, _check_tensor_all, _check_tensor_all_with,
):  # fmt: skip
    add_function(_function.__name__, _function)
add_function("_assert", entry(_assert))
