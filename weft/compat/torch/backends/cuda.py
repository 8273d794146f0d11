"""`torch.backends.cuda`: switches of CUDA's libraries, which weft does not use. Programs set and read them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from weft.core import switches
from weft.core.device import device_count
from weft.core.restoring import contextmanager

from ....core.warn import user_level

__all__ = [
    "SDPAParams", "allow_fp16_bf16_reduction_math_sdp", "blas_workspace_size", "can_use_cudnn_attention",
    "can_use_efficient_attention", "can_use_flash_attention", "cuBLASModule", "cuFFTPlanCache",
    "cuFFTPlanCacheAttrContextProp", "cuFFTPlanCacheManager", "cublas_workspace_size", "cublaslt_workspace_size",
    "cudnn_sdp_enabled", "cufft_plan_cache", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp",
    "enable_mem_efficient_sdp", "flash_sdp_enabled", "fp16_bf16_reduction_math_sdp_allowed", "is_built",
    "is_ck_sdpa_available", "is_flash_attention_available", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled",
    "preferred_blas_library", "preferred_linalg_library", "preferred_rocm_fa_library", "sdp_kernel",
]  # fmt: skip


def is_built() -> bool:
    """Whether weft can use CUDA: if there is a device, because nothing is built for it in advance."""
    return device_count("cuda") > 0


# ---- Kernels of attention ------------------------------------------------------------------------------------------------

_kernels = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}
_reduced = False


def flash_sdp_enabled() -> bool:
    """What `enable_flash_sdp` set."""
    return _kernels["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Allow a kernel of attention on CUDA."""
    _kernels["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """What `enable_mem_efficient_sdp` set."""
    return _kernels["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow a kernel of attention on CUDA."""
    _kernels["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """What `enable_math_sdp` set."""
    return _kernels["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Allow a kernel of attention on CUDA."""
    _kernels["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """What `enable_cudnn_sdp` set."""
    return _kernels["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow a kernel of attention on CUDA."""
    _kernels["cudnn"] = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What `allow_fp16_bf16_reduction_math_sdp` set."""
    return _reduced


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Allow sums in half precision in attention on CUDA."""
    global _reduced
    _reduced = bool(enabled)


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[dict[str, bool]]:
    """A context with these switches; deprecated in favour of `torch.nn.attention.sdpa_kernel`."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please "
        "see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
        stacklevel=user_level(),
    )
    outer = dict(_kernels)
    _kernels.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield {}
    finally:
        _kernels.update(outer)


class SDPAParams:
    """The arguments of attention, for the questions below."""

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool

    def __init__(
        self,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any,
        dropout: float,
        is_causal: bool,
        enable_gqa: bool,
    ):
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


def is_flash_attention_available() -> bool:
    """Whether PyTorch was built with that kernel: no."""
    return False


def is_ck_sdpa_available() -> bool:
    """Whether PyTorch was built with that kernel: no."""
    return False


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether a kernel of CUDA could compute this: no."""
    return False


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether a kernel of CUDA could compute this: no."""
    return False


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether a kernel of CUDA could compute this: no."""
    return False


# ---- Libraries -----------------------------------------------------------------------------------------------------------


class _Switches:
    """Attributes that may be set. Others than those that there are cannot."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise AttributeError(f"Unknown attribute {name}")
        object.__setattr__(self, name, value)


class cuBLASModule(_Switches):  # noqa: N801 (PyTorch's name)
    """Switches of products on CUDA."""

    allow_fp16_reduced_precision_reduction: Any = True
    allow_bf16_reduced_precision_reduction: Any = True
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        """Whether cuBLAS may round the operands of products of float32 to TF32.

        Raises: RuntimeError for other values than bools.
        """
        return bool(switches.rounds_to_tf32.value)

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if type(value) is not bool:
            raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(value).__name__}")
        self.fp32_precision = "tf32" if value else "ieee"

    @property
    def fp32_precision(self) -> str:
        """The same by name: "tf32", or else "ieee" or "none".

        Raises: RuntimeError for other names.
        """
        return switches.get_products_precision()

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in ("tf32", "ieee", "none"):
            raise RuntimeError(f"Unknown precision: {value}")
        switches.set_float32_matmul_precision("high" if value == "tf32" else "highest")
        switches.set_products_precision(value)


matmul = cuBLASModule()


def _no_cuda() -> AssertionError:
    return AssertionError("Torch not compiled with CUDA enabled")


class cuFFTPlanCacheAttrContextProp:  # noqa: N801 (PyTorch's name)
    """An attribute of a cache of plans, read and set by functions."""

    def __init__(self, getter: Any, setter: Any):
        self.getter, self.setter = getter, setter

    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        if obj is None:
            return self
        return self.getter(obj.device_index)

    def __set__(self, obj: Any, value: Any) -> None:
        self.setter(obj.device_index, value)


def _refuse(*args: Any) -> Any:
    raise _no_cuda()


class cuFFTPlanCache:  # noqa: N801 (PyTorch's name)
    """The plans of Fourier transforms on one GPU.

    Raises: AssertionError when it is asked, because there is none.
    """

    size = cuFFTPlanCacheAttrContextProp(_refuse, _refuse)
    max_size = cuFFTPlanCacheAttrContextProp(_refuse, _refuse)

    def __init__(self, device_index: int):
        self.device_index = device_index

    def clear(self) -> None:
        """Forget the plans."""
        raise _no_cuda()


class cuFFTPlanCacheManager:  # noqa: N801 (PyTorch's name)
    """The plans of all GPUs, of which there are none: `cufft_plan_cache[0]`."""

    def __getitem__(self, device: Any) -> cuFFTPlanCache:
        raise RuntimeError("cufft_plan_cache: expected 0 <= device index < 0, because there is no GPU")

    def __getattr__(self, name: str) -> Any:
        if name in ("size", "max_size"):
            raise _no_cuda()
        raise AttributeError(f"'cuFFTPlanCacheManager' object has no attribute {name!r}")

    def clear(self) -> None:
        """Forget the plans of the current GPU."""
        raise _no_cuda()


cufft_plan_cache = cuFFTPlanCacheManager()


class _LinalgBackend(IntEnum):
    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(IntEnum):
    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


class _ROCmFABackend(IntEnum):
    Default = 0
    AOTriton = 1
    Ck = 2


_chosen: dict[str, Any] = {
    "linalg": _LinalgBackend.Default,
    "blas": _BlasBackend.Cublas,
    "rocm": _ROCmFABackend.Default,
}
_OTHER_NAMES = {"hipblas": "cublas", "hipblaslt": "cublaslt"}


def _preferred(kind: str, choices: type[IntEnum], backend: Any) -> Any:
    if isinstance(backend, str):
        names = {each.name.lower(): each for each in choices}
        found = names.get(_OTHER_NAMES.get(backend, backend))
        if found is None:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(names)}.")
        _chosen[kind] = found
    elif backend is not None:
        _chosen[kind] = choices(backend)
    return _chosen[kind]


def preferred_linalg_library(backend: Any = None) -> Any:
    """The library for linear algebra on CUDA: "default", "cusolver" or "magma". It changes nothing here."""
    return _preferred("linalg", _LinalgBackend, backend)


def preferred_blas_library(backend: Any = None) -> Any:
    """The library for products on CUDA: "default", "cublas", "cublaslt" or "ck". It changes nothing here."""
    return _preferred("blas", _BlasBackend, backend)


def preferred_rocm_fa_library(backend: Any = None) -> Any:
    """The kernel of attention on ROCm: "default", "aotriton" or "ck". It changes nothing here."""
    return _preferred("rocm", _ROCmFABackend, backend)


def blas_workspace_size(size: int | None = None, backend: Any = None) -> int:
    """The bytes that a library on CUDA may use.

    Raises: AssertionError, because there is none.
    """
    raise _no_cuda()


def cublas_workspace_size(size: int | None = None) -> int:
    """`blas_workspace_size` of cuBLAS."""
    raise _no_cuda()


def cublaslt_workspace_size(size: int | None = None) -> int:
    """`blas_workspace_size` of cuBLASLt."""
    raise _no_cuda()
