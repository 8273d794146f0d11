"""The name of PyTorch's device type for extensions."""

from __future__ import annotations

from typing import Any, NoReturn

from ..core.device import rename_private

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]


def rename_privateuse1_backend(backend_name: str) -> None:
    """Give the device type "privateuseone", which is weft's reference device, another name.

    Devices of C++ extensions cannot be loaded; docs/adding-a-device.md says how to add a device.

    Raises: RuntimeError for the name of another device type, and for a second, different name.
    """
    rename_private(backend_name)


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype: Any = None,
) -> NoReturn:
    """Give tensors, modules and storages methods for the device of an extension.

    Raises: NotImplementedError, because weft has no devices of extensions.
    """
    raise NotImplementedError(
        "generate_methods_for_privateuse1_backend: weft has no devices of C++ extensions"
    )
