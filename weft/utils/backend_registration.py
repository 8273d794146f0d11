"""Names for the device of an extension in C++, of which weft loads none."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"]


def rename_privateuse1_backend(backend_name: str) -> NoReturn:
    """Give the device of an extension a name.

    Raises: NotImplementedError, because weft has no devices of extensions; docs/adding-a-device.md says how to add one.
    """
    raise NotImplementedError(
        f"rename_privateuse1_backend({backend_name!r}): weft has no devices of C++ extensions; a device of weft is a "
        "Python class"
    )


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
