"""Location tags of storages, functions that restore storages to a location, and `map_location`."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from typing import IO, Any, TypeAlias

from ..core.device import device, is_installed
from ..core.storage import Storage

# The type aliases of PyTorch for arguments of `load`.
MAP_LOCATION: TypeAlias = Callable[[Storage, str], Any] | device | str | bytes | dict[str, str] | None
FileLike: TypeAlias = str | os.PathLike | IO[bytes]

_Tagger = Callable[[Any], str | None]
_Deserializer = Callable[[Any, str], Any]

# (priority, location of a storage or None, storage at a location or None), lowest priority first.
_registry: list[tuple[int, _Tagger, _Deserializer]] = []


def register_package(priority: int, tagger: _Tagger, deserializer: _Deserializer) -> None:
    """Register functions for a location: `tagger(storage)` returns its tag, `deserializer(storage, location)` a storage there.

    Both return None for other locations. Functions with a lower priority are called first.
    """
    _registry.append((priority, tagger, deserializer))
    _registry.sort(key=lambda entry: entry[0])


def location_tag(storage: Any) -> str:
    """Return the location tag of a storage, such as "cpu" or "cuda:0".

    Raises: RuntimeError if no registered function returns a tag.
    """
    for _, tagger, _ in _registry:
        if location := tagger(storage):
            return location
    raise RuntimeError(f"don't know how to determine data location of {_type_name(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """Return the storage at the location with this tag.

    Raises: RuntimeError if this machine does not have the location, or no registered function knows the tag.
    """
    for _, _, deserializer in _registry:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of {_type_name(storage)} (tagged with {location})"
    )


def restorer(map_location: Any) -> Callable[[Storage, str], Any]:
    """Apply `map_location` to a storage with a location tag."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(
            storage, map_location.get(location, location)
        )
    if isinstance(map_location, (str, bytes, device)):
        target = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
        return lambda storage, location: default_restore_location(storage, target)

    def call(storage: Storage, location: str) -> Any:
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result

    return call


def is_meta(map_location: Any) -> bool:
    """Whether `map_location` is the meta device, so that no storage needs to be read."""
    return str(map_location) == "meta" if isinstance(map_location, (str, device)) else False


def _type_name(storage: Any) -> str:
    return f"{type(storage).__module__}.{type(storage).__qualname__}"


# ---- The locations of weft ------------------------------------------------------------------------------------------------------

# The devices, apart from the CPU, for which weft has a module.
_MODULES = ("cuda",)


def _on(kind: str) -> _Tagger:
    def tag(storage: Any) -> str | None:
        return str(storage.device) if storage.device.type == kind else None

    return tag


def _to_cpu(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _to_meta(storage: Any, location: str) -> Any:
    return Storage(storage.nbytes(), device=device("meta")) if location == "meta" else None


def _installed(storage: Any) -> str | None:
    """The location of a storage on a device of `weft/devices` that PyTorch does not have."""
    where = storage.device
    return str(where) if is_installed(where.type) and where.backend.has_memory else None


def _to_installed(storage: Any, location: str) -> Any:
    return storage.to(device=device(location)) if is_installed(location.partition(":")[0]) else None


def _to_accelerator(kind: str) -> _Deserializer:
    def restore(storage: Any, location: str) -> Any:
        if re.match(rf"{kind}(:|\d|$)", location):
            return storage.to(device=validate_device(location, kind))
        return None

    return restore


def validate_device(location: str, kind: str) -> device:
    """Return the device of a location tag.

    Raises: RuntimeError if this machine does not have the device.
    """
    advice = (
        "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map "
        "your storages to the CPU."
    )
    if kind not in _MODULES:
        raise RuntimeError(f"The {kind.upper()} device module is not registered. {advice}")
    module = importlib.import_module(f"weft.{kind}")
    if not module.is_available():
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is False. "
            f"{advice}"
        )
    found = device(location)
    if (found.index or 0) >= module.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on {kind.upper()} device {found.index} but torch.{kind}.device_count() "
            f"is {module.device_count()}. Please use torch.load with map_location to map your storages to an existing "
            "device."
        )
    return found


def validate_cuda_device(location: str) -> int | None:
    """Return the index of the CUDA device with this location tag."""
    return validate_device(location, "cuda").index


def validate_hpu_device(location: str) -> int | None:
    """Return the index of the HPU device with this location tag."""
    return validate_device(location, "hpu").index


register_package(10, _on("cpu"), _to_cpu)
register_package(22, _on("meta"), _to_meta)
register_package(23, _installed, _to_installed)
for _priority, _kind in ((20, "cuda"), (21, "mps"), (24, "hpu"), (25, "xpu"), (26, "mtia")):
    register_package(_priority, _on(_kind), _to_accelerator(_kind))
