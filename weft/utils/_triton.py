"""`torch.utils._triton`: what there is of Triton, whose kernels run on GPUs only: nothing."""

from __future__ import annotations

from ._import_utils import _check_module_exists


def has_triton_package() -> bool:
    """Whether the package is installed."""
    return _check_module_exists("triton")


def get_triton_version(fallback: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Major and minor number of the package's version; `fallback` if it is not installed."""
    if not has_triton_package():
        return fallback
    import triton

    major, minor = triton.__version__.split(".")[:2]
    return int(major), int(minor)


def has_triton() -> bool:
    """False, because there is no device that runs its kernels."""
    return False


has_triton_tma = has_triton_tma_device = has_triton_stable_tma_api = has_triton
has_triton_experimental_host_tma = has_triton_tensor_descriptor_host_tma = has_triton
has_datacenter_blackwell_tma_device = has_triton
