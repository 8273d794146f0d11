"""torch.device: where a tensor lives. What a device can do is in `weft/devices/`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .above import above
from .names import ROOT
from .restoring import Restoring

if TYPE_CHECKING:
    from ..devices.base import Backend

# Device types that PyTorch knows. Those with a folder in weft/devices can exist here, as can other names that have one.
KNOWN = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, "
    "privateuseone"
).split(", ")
ACCELERATORS = ("cuda", "xpu")  # of these, the first that this computer has is `torch.accelerator`
DENSE = ("cpu", "cuda", "xpu")  # between these a tensor may be given other memory, as in PyTorch
SINGLE = ("cpu", "meta")  # of these types there is one device; PyTorch drops the index when it makes a tensor
# PyTorch's name for a device of an extension is here another name of the reference device. Programs may change it once.
PRIVATE = "privateuseone"
private_name = PRIVATE
NUMBERS = {"cpu": 0, "cuda": 1, "xla": 9, "xpu": 12, "meta": 14, PRIVATE: 20}  # of c10::DeviceType

_devices: dict[tuple[str, int | None], device] = {}


class device(Restoring):  # noqa: N801 (PyTorch's name)
    """A device type and, where there are several, a number. Equal devices are one object.

    >>> import weft as torch
    >>> torch.device("cpu"), torch.device("cuda", 1), torch.device("cuda:1").index
    (device(type='cpu'), device(type='cuda', index=1), 1)
    """

    __slots__ = ("type", "index", "place", "_backend", "_outer")

    type: str
    index: int | None
    place: (
        device  # of a tensor that is put here: without index if there is only one of the type, else with one
    )
    _backend: Any  # a Backend, found when first asked for; Any because the class is not imported here
    # The default device that the innermost `with` restores, then the one that the next `with` around it restores.
    _outer: Any

    def __new__(cls, type: Any = None, index: int | None = None, *, device: Any = None) -> Any:
        key = _parse(device if type is None else type, index)
        found = _devices.get(key)
        if found is None:
            found = object.__new__(cls)
            found.type, found.index = key
            found._backend = None
            found._outer = None
            place = _place(*key)
            found.place = found if place == key else cls(*place)
            found = _devices.setdefault(key, found)
        return found

    @property
    def is_claimed(self) -> bool:
        """Whether tensors here only say that they are on this device; see `claimed`."""
        return _claimed.get(_devices[self.type, self.index]) is self

    @property
    def backend(self) -> Backend:
        """What allocates, copies and launches here.

        Raises: RuntimeError if weft or this computer has no such device; the message says which is missing.
        """
        if self._backend is None:
            self._backend = _find_backend(self)
        return self._backend

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):  # by a function of ours: the class says that it is torch's
        return as_named_device, (str(self),)

    def __enter__(self):
        self._outer = _named_default, self._outer
        _set_default(self)
        return self

    def _restore(self):
        outer, self._outer = self._outer
        _set_default(outer)


_claimed: dict[device, device] = {}


def claimed(where: device) -> device:
    """A device that says that it is `where`, and that has no memory, as "meta".

    Tensors that only stand for values elsewhere are there: wrappers of other tensors, and FakeTensors. Their
    `device` is `where` itself.
    """
    found = _claimed.get(where)
    if found is None:
        found = object.__new__(device)
        found.type, found.index = where.type, where.index
        found._backend, found._outer, found.place = device("meta").backend, None, found
        found = _claimed.setdefault(where, found)
    return found


def _parse(type: Any, index: int | None) -> tuple[str, int | None]:
    if isinstance(type, device):
        return type.type, type.index if index is None else index
    if isinstance(type, int) and not isinstance(type, bool):
        if type < 0:
            raise RuntimeError(f"Device index must not be negative, got {type}")
        return "cuda", type
    if not isinstance(type, str):
        raise TypeError(f"device(): expected a device, a string or an int, got {type.__class__.__name__}")
    name, colon, number = type.partition(":")
    if name == PRIVATE:
        name = private_name
    elif name not in KNOWN and name != private_name and _module(name) is None:
        from .dtype import is_dtype_name  # which imports this file

        hint = " (NVIDIA's GPUs are called cuda)" if name == "gpu" else ""
        if is_dtype_name(name):
            hint = f" (the dtype is torch.{name}, without quotes)"
        raise RuntimeError(
            f"Expected one of {', '.join(KNOWN)} device type at start of device string: {name or type}{hint}"
        )
    if colon:
        if index is not None:
            raise RuntimeError(
                f"type (string) must not include an index because index was passed explicitly: {type}"
            )
        if not number.isdecimal() or (len(number) > 1 and number[0] == "0"):
            raise RuntimeError(f"Invalid device string: '{type}'")
        index = int(number)
    if index is not None and index < 0:
        raise RuntimeError(f"Device index must not be negative, got {index}")
    return name, index


def _place(type: str, index: int | None) -> tuple[str, int | None]:
    """The type and index of the device of a tensor that is put on a device with these."""
    if type in SINGLE:
        return type, None
    if index is None and is_installed(type):
        index = 0
    return type, index


def _module(name: str) -> str | None:
    """The module of a device type for `above`: a folder of weft/devices; None if there is none."""
    if not name.isidentifier() or name.startswith("_"):
        return None
    module_spec = importlib.util.find_spec(f"{ROOT}.devices.{name}")
    return f"devices.{name}" if module_spec is not None and module_spec.submodule_search_locations else None


def is_installed(type: str) -> bool:
    """Whether weft has devices of a type."""
    return type == private_name or _module(type) is not None


def device_count(type: str) -> int:
    """How many devices of a type that are numbered, such as "cuda", this computer has. The first call loads the driver."""
    return above(f"devices.{type}").device_count()


def is_present(type: str) -> bool:
    """Whether this computer has devices of a type that are numbered."""
    module = _module(type)
    return module is not None and hasattr(above(module), "device_count") and device_count(type) > 0


def accelerator() -> str | None:
    """The type of the accelerator of this computer; None without one."""
    return next(filter(is_present, ACCELERATORS), None)


def are_interchangeable(a: device, b: device) -> bool:
    """Whether a tensor may get memory on `b` in place of memory on `a`."""
    is_same = a.type == b.type or (a.type in DENSE and b.type in DENSE)
    return a is b or (is_same and not a.is_claimed and not b.is_claimed)


def current_index(type: str) -> int:
    """The number of the device that a type without a number means."""
    return device(type).place.index or 0


def set_current_index(type: str, index: int) -> None:
    """Let a type without a number mean the device with this number, in all threads."""
    named, place = device(type), device(type, index)
    if named.place is place:
        return
    named.place = place
    if _named_default is named:
        _set_default(named)
    else:
        _call_default_device_hooks()  # calls that were given `device=named` are remembered, too


def _find_backend(where: device) -> Backend:
    module = _module("reference" if where.type == private_name else where.type)
    if module is None:
        raise RuntimeError(_absence(where))
    return above(module).backend(where)


def rename_private(name: str) -> None:
    """Give the device type "privateuseone" another name.

    Raises: RuntimeError for the name of another device type, and for a second, different name.
    """
    global private_name
    if not isinstance(name, str):
        raise RuntimeError(f"_rename_privateuse1_backend expects a str, but got {type(name).__name__}")
    if private_name not in (PRIVATE, name):
        raise RuntimeError(
            f"torch.register_privateuse1_backend() has already been set! Current backend: {private_name}"
        )
    if name in KNOWN and name != PRIVATE:
        raise RuntimeError(f"Cannot register privateuse1 backend with in-tree device name: {name}")
    private_name = name


def _absence(where: device) -> str:
    return (
        f"PyTorch is not linked with support for {where.type} devices (weft {where.type!r} backend not available: "
        "this version of weft computes on cpu, cuda, xpu, xla and meta)"
    )


def started_backends() -> list[Backend]:
    """The backends of all devices used so far."""
    return [each._backend for each in list(_devices.values()) if each._backend is not None]


def as_named_device(value: Any) -> device:
    """The device object that a string, a number or a device names, with its index."""
    return value if type(value) is device else device(value)


CPU = device("cpu")
_named_default: device = CPU  # as the caller named it, with its index
_default: device = CPU  # where tensors made without `device=` live: the place of `_named_default`


def get_default_device() -> device:
    """The device of tensors made without one."""
    return _named_default


def set_default_device(device: Any) -> None:
    """Make `device` the device of tensors made without one; None means the CPU."""
    _set_default(CPU if device is None else as_named_device(device))


# Each is called when tensors without `device=`, or with a type without a number, begin to live on another device.
default_device_hooks: list[Callable[[], None]] = []


def _set_default(named: device) -> None:
    global _default, _named_default
    changes = named.place is not _default
    _named_default, _default = named, named.place
    if changes:
        _call_default_device_hooks()


def _call_default_device_hooks() -> None:
    for hook in default_device_hooks:
        hook()


def as_device(value: Any) -> device:
    """The device of a tensor that is made with `device=value`, which is None, a string, a number or a device.

    >>> as_device("cpu:3")
    device(type='cpu')
    """
    if value is None:
        return _default
    return as_named_device(value).place


def device_index(place: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """The number of a device; -1 for the CPU if that is allowed, None for None if it is `optional`.

    Raises: ValueError for anything else without a number.
    """
    if isinstance(place, str):
        place = device(place)
    if isinstance(place, device):
        if place.type == "cpu":
            if allow_cpu:
                return -1
            raise ValueError(f"Expected a non cpu device, but got: {place}")
        return 0 if place.index is None else place.index
    if isinstance(place, int):
        return place
    if optional:
        return None
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{place}")
