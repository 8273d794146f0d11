"""PyTorch's global switches for what weft does in one way only: they are kept, and change nothing."""

from __future__ import annotations

import warnings

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")

_deterministic = 0  # an index into _DEBUG_MODES
_precision = "highest"
_warn_always = False
_interop_threads = 1


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for the same bits at every run, which weft gives in any case.

    >>> import weft as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.are_deterministic_algorithms_enabled()
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    set_deterministic_debug_mode(0 if not mode else 1 if warn_only else 2)


def are_deterministic_algorithms_enabled() -> bool:
    return _deterministic > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    return _deterministic == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`debug_mode`: "default" (0), "warn" (1) or "error" (2)."""
    global _deterministic
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                + debug_mode
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if not 0 <= debug_mode <= 2:
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _deterministic = int(debug_mode)


def get_deterministic_debug_mode() -> int:
    return _deterministic


def set_float32_matmul_precision(precision: str) -> None:
    """How exact products of float32 have to be; weft's are always of the "highest" precision."""
    global _precision
    if precision not in _PRECISIONS:
        warnings.warn(
            f"{precision} is not one of {', '.join(_PRECISIONS)}; the precision is left as it was",
            UserWarning,
            stacklevel=2,
        )
        return
    _precision = precision


def get_float32_matmul_precision() -> str:
    return _precision


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers could be made to count as zero: no, but they can be kept."""
    return not mode


def set_warn_always(b: bool) -> None:
    """Ask for warnings at every call; Python's filters of warnings decide."""
    global _warn_always
    _warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    return _warn_always


def set_num_interop_threads(num: int) -> None:
    """The number of threads that run operations side by side; weft runs them one after the other."""
    global _interop_threads
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _interop_threads = num


def get_num_interop_threads() -> int:
    return _interop_threads
