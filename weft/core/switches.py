"""PyTorch's global switches. Most are for what weft does in one way only: they are kept, and change nothing."""

from __future__ import annotations

import ctypes
import warnings

from .filling import set_filling
from .warn import user_level, warn_once

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")

_deterministic = False
_warn_only = False  # what was asked for last, also while the algorithms need not be deterministic
_fill_uninitialized_memory = True
_precision = "highest"
_products_precision = "none"
# 1 if products of float32 may be rounded to TF32. Machine code reads the word (`devices/_gpu/cublas.py`).
rounds_to_tf32 = ctypes.c_int64(0)
_interop_threads = 1


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for the same bits at every run, which weft gives in any case, and fill new memory.

    Functions such as `empty` fill it with NaN, the largest integer or True, unless
    `torch.utils.deterministic.fill_uninitialized_memory` is False.

    >>> import weft as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.are_deterministic_algorithms_enabled()
    True
    >>> torch.use_deterministic_algorithms(False)
    """
    global _deterministic, _warn_only
    for value, what in ((mode, "'mode' (position 1)"), (warn_only, "'warn_only'")):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument {what} must be bool, not {type(value).__name__}"
            )
    _deterministic, _warn_only = mode, warn_only
    set_filling(mode and _fill_uninitialized_memory)


def are_deterministic_algorithms_enabled() -> bool:
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """`debug_mode`: "default" (0), "warn" (1) or "error" (2)."""
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                + debug_mode
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if not 0 <= debug_mode <= 2:
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    return 0 if not _deterministic else 1 if _warn_only else 2


def set_fill_uninitialized_memory(mode: bool) -> None:
    """Whether deterministic mode fills new memory. Raises: RuntimeError unless `mode` is a bool."""
    global _fill_uninitialized_memory
    if not isinstance(mode, bool):
        raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
    _fill_uninitialized_memory = mode
    set_filling(_deterministic and mode)


def get_fill_uninitialized_memory() -> bool:
    return _fill_uninitialized_memory


def set_float32_matmul_precision(precision: str) -> None:
    """How exact products of float32 have to be: with "high" and "medium" cuBLAS rounds operands to TF32. All else has the "highest" precision."""
    global _precision
    if precision not in _PRECISIONS:
        warnings.warn(
            f"{precision} is not one of {', '.join(_PRECISIONS)}; the precision is left as it was",
            UserWarning,
            stacklevel=user_level(),
        )
        return
    _precision = precision
    set_products_precision("ieee" if precision == "highest" else "tf32")


def set_products_precision(name: str) -> None:
    """The same for CUDA by the names "tf32", "ieee" and "none", of which the last two mean the same."""
    global _products_precision
    _products_precision = name
    rounds_to_tf32.value = name == "tf32"


def get_products_precision() -> str:
    return _products_precision


def get_float32_matmul_precision() -> str:
    return _precision


def set_flush_denormal(mode: bool) -> bool:
    """Whether denormal numbers could be made to count as zero: no, but they can be kept."""
    return not mode


def set_warn_always(b: bool) -> None:
    """Whether warnings that come once in a process come at each call. Python's filters of warnings decide, too."""
    warn_once.always = bool(b)


def is_warn_always_enabled() -> bool:
    return warn_once.always


def set_num_interop_threads(num: int) -> None:
    """The number of threads that run operations side by side; weft runs them one after the other."""
    global _interop_threads
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    if num >= 2**63:
        raise ValueError("Overflow when unpacking long long")
    _interop_threads = num


def get_num_interop_threads() -> int:
    return _interop_threads


# ---- What PyTorch was built with -----------------------------------------------------------------------------------------

has_lapack = True  # through SciPy
has_mkl = False
has_openmp = False  # weft has threads of its own
has_spectral = True  # Fourier transforms


def compiled_with_cxx11_abi() -> bool:
    """Whether extensions in C++ would be compiled with the newer interface of strings: yes, as PyTorch's are."""
    return True


def is_vulkan_available() -> bool:
    """Whether tensors can lie on a Vulkan device: no."""
    return False


def init_num_threads() -> None:
    """PyTorch's way to choose its number of threads; weft's workers start with the first large operation."""


def set_vital(*args: str) -> bool:
    """Store a fact for PyTorch's log of vital facts, which weft does not have: nothing is stored."""
    return False


def read_vitals(*args: str) -> str:
    """PyTorch's log of vital facts: empty."""
    return ""


def thread_safe_generator() -> None:
    """The generator of a thread of a DataLoader. weft's loaders work in processes, so there is none."""
    return None
