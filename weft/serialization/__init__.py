"""`torch.serialization`: read and write PyTorch's file formats. Files are untrusted input."""

from ..core.names import name_public
from .allowed import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .legacy_names import (
    StorageType,
    check_module_version_greater_or_equal,
    mkdtemp,
    normalize_storage_type,
    storage_to_tensor_type,
)
from .loading import _is_zipfile as _is_zipfile
from .loading import get_unsafe_globals_in_checkpoint, load
from .locations import (
    MAP_LOCATION,
    FileLike,
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from .options import (
    MAP_PRIVATE,
    MAP_SHARED,
    LoadEndianness,
    SourceChangeWarning,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from .saving import DEFAULT_PROTOCOL, save

__all__ = [
    "DEFAULT_PROTOCOL", "FileLike", "LoadEndianness", "MAP_LOCATION", "MAP_PRIVATE", "MAP_SHARED",
    "SourceChangeWarning", "StorageType", "add_safe_globals", "check_module_version_greater_or_equal",
    "clear_safe_globals", "default_restore_location", "get_crc32_options", "get_default_load_endianness",
    "get_default_mmap_options", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load",
    "location_tag", "mkdtemp", "normalize_storage_type", "register_package", "safe_globals", "save",
    "set_crc32_options", "set_default_load_endianness", "set_default_mmap_options", "skip_data",
    "storage_to_tensor_type", "validate_cuda_device", "validate_hpu_device",
]  # fmt: skip

name_public(
    __name__,
    "serialization.allowed",
    "serialization.legacy_names",
    "serialization.loading",
    "serialization.locations",
    "serialization.options",
    "serialization.saving",
)
