"""Backend, the name of what carries collectives out, and which of them there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import Enum
from importlib.util import find_spec
from typing import Any, NamedTuple

from ._group import BackendType


class _Plugin(NamedTuple):
    creator_fn: Callable[..., Any]
    extended_api: bool


class Backend(str):
    """The name of a backend, in small letters.

    >>> from weft.distributed import Backend
    >>> Backend("GLOO"), Backend.GLOO
    ('gloo', 'gloo')
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    XCCL = "xccl"
    UCC = "ucc"
    MPI = "mpi"
    FAKE = "fake"

    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    backend_capability: dict[str, list[str]] = {
        GLOO: ["cpu", "cuda"],
        NCCL: ["cuda"],
        XCCL: ["xpu"],
        UCC: ["cpu", "cuda"],
        MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda", "hpu", "xpu"],
    }
    backend_type_map = {
        UNDEFINED: BackendType.UNDEFINED,
        GLOO: BackendType.GLOO,
        NCCL: BackendType.NCCL,
        XCCL: BackendType.XCCL,
        UCC: BackendType.UCC,
        MPI: BackendType.MPI,
        FAKE: BackendType.CUSTOM,
    }
    _plugins: dict[str, _Plugin] = {}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        value = getattr(cls, name.upper(), cls.UNDEFINED)
        return str.__new__(cls, name.lower() if value == cls.UNDEFINED else value)

    @classmethod
    def register_backend(
        cls,
        name: str,
        func: Callable[..., Any],
        extended_api: bool = False,
        devices: str | Sequence[str] | None = None,
    ) -> None:
        """Let `func(store, rank, size, timeout)` make the groups of the backend `name`."""
        if devices is None:
            devices = [
                device for device, backend in cls.default_device_backend_map.items() if backend == name
            ]
            devices = devices or ["cpu", "cuda", "hpu", "xpu"]
        elif isinstance(devices, str):
            devices = [devices]
        if name.lower() not in cls.backend_list:
            cls.backend_list.append(name.lower())
        for device in devices:
            if device not in ("cpu", "cuda"):
                cls.default_device_backend_map[device] = name.lower()
        cls.backend_type_map[name.lower()] = BackendType.CUSTOM
        cls.backend_capability[name.lower()] = list(devices)
        setattr(cls, name.upper(), name.lower())
        cls._plugins[name.upper()] = _Plugin(func, extended_api)


class BackendConfig:
    """Which backend serves which kind of device.

    >>> from weft.distributed import Backend, BackendConfig
    >>> BackendConfig(Backend("gloo"))
    cpu:gloo,cuda:gloo
    """

    def __init__(self, backend: Backend) -> None:
        name = str(backend)
        if name == Backend.UNDEFINED:
            self.device_backend_map = {"cpu": Backend(Backend.GLOO)}
        elif ":" in name:
            self.device_backend_map = _pairs(name)
        else:
            devices = Backend.backend_capability.get(name.lower(), ["cpu", "cuda"])
            self.device_backend_map = {device: Backend(name) for device in devices}

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, Backend]:
        return self.device_backend_map


def _pairs(text: str) -> dict[str, Backend]:
    """The map that "cpu:gloo,cuda:nccl" describes."""
    pairs: dict[str, Backend] = {}
    for part in text.lower().split(","):
        device, colon, backend = part.partition(":")
        if not colon or ":" in backend:
            raise ValueError(
                f"Invalid device:backend pairing: {part}, in {text!r}. Expected "
                '"<device_type1>:<backend1>,<device_type2>:<backend2>..."'
            )
        if device in pairs:
            raise ValueError(f"Duplicate device type {device} in backend string: {text}")
        pairs[device] = Backend(backend)
    return pairs


class DebugLevel(Enum):
    """How much torch.distributed reports, by the environment variable TORCH_DISTRIBUTED_DEBUG."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """The level of reports; weft itself reports nothing."""
    if _level is None:
        set_debug_level_from_env()
    return _level or DebugLevel.OFF


def set_debug_level(level: DebugLevel) -> None:
    """Set the level that `get_debug_level` returns."""
    global _level
    _level = level


def set_debug_level_from_env() -> None:
    """Read the level from TORCH_DISTRIBUTED_DEBUG."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(
            f"The value of TORCH_DISTRIBUTED_DEBUG must either be `OFF`, `INFO`, or `DETAIL`, not {name!r}"
        )
    set_debug_level(DebugLevel[name])


def is_gloo_available() -> bool:
    """Whether there is the backend "gloo": for the processes of one machine."""
    return True


def is_nccl_available() -> bool:
    """Whether there is the backend "nccl": if NVIDIA's NCCL is installed."""
    from .engine.nccl import library  # loaded when first used

    return library() is not None


def is_mpi_available() -> bool:
    """Whether there is the backend "mpi": if mpi4py is installed."""
    return find_spec("mpi4py") is not None


def is_ucc_available() -> bool:
    """Whether there is the backend "ucc": no."""
    return False


def is_xccl_available() -> bool:
    """Whether there is the backend "xccl": no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchrun has started this process, which the environment variable TORCHELASTIC_RUN_ID tells."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend: str) -> bool:
    """Whether a group can use `backend`.

    >>> import weft as torch
    >>> torch.distributed.is_backend_available("gloo"), torch.distributed.is_backend_available("nccl")
    (True, False)
    """
    if backend.lower() == Backend.MPI:
        return is_mpi_available()
    if backend.lower() == Backend.NCCL:
        return is_nccl_available()
    return backend.lower() == Backend.GLOO or backend.upper() in Backend._plugins


def get_default_backend_for_device(device: Any) -> str:
    """The backend that PyTorch uses for a device."""
    from ..core.device import device as Device

    name = Device(device).type
    backend = Backend.default_device_backend_map.get(name)
    if backend is None:
        raise ValueError(f"Default backend not registered for device : {device}")
    return backend
