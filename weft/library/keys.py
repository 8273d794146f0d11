"""Dispatch keys and tags of operators, and the sets of dispatch keys that a thread leaves out."""

from __future__ import annotations

import enum
import functools
import threading
from collections.abc import Iterable
from typing import Any

from ..core.restoring import Restoring
from ..core.tensor import Tensor

_DEVICES = (
    *("CPU", "CUDA", "HIP", "XLA", "MPS", "IPU", "XPU", "HPU", "VE", "Lazy", "MTIA", "MAIA"),
    *("PrivateUse1", "PrivateUse2", "PrivateUse3", "Meta"),
)  # fmt: skip
# Functionality that has a key for each device -> the number of the key for the CPU.
_PER_DEVICE = {
    "Dense": ("", 49), "Quantized": ("Quantized", 66), "Sparse": ("Sparse", 83), "SparseCsr": ("SparseCsr", 100),
    "NestedTensor": ("NestedTensor", 117), "AutogradFunctionality": ("Autograd", 134),
}  # fmt: skip


class _Numbered(enum.Enum):
    """An enumeration whose members serve as ints."""

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


def _key_numbers() -> dict[str, int]:
    found = {
        "Undefined": 0, "Dense": 1, "Quantized": 5, "Sparse": 8, "SparseCsr": 9, "NestedTensor": 10, "BackendSelect": 11,
        "Python": 13, "FuncTorchDynamicLayerBackMode": 14, "Functionalize": 15, "Conjugate": 16, "Negative": 17,
        "ZeroTensor": 18, "ADInplaceOrView": 19, "AutogradOther": 20, "AutogradFunctionality": 21,
        "AutogradNestedTensor": 22, "AutocastCPU": 24, "AutocastXPU": 27, "AutocastIPU": 28, "AutocastHPU": 29,
        "AutocastMPS": 31, "AutocastCUDA": 32, "AutocastPrivateUse1": 33, "FuncTorchBatched": 34, "FuncTorchVmapMode": 36,
        "FuncTorchGradWrapper": 39, "PythonTLSSnapshot": 41, "FuncTorchDynamicLayerFrontMode": 42, "PreDispatch": 45,
        "PythonDispatcher": 46, "Autograd": 150, "CompositeImplicitAutograd": 151, "FuncTorchBatchedDecomposition": 152,
        "CompositeImplicitAutogradNestedTensor": 153, "CompositeExplicitAutograd": 154,
        "CompositeExplicitAutogradNonFunctional": 155,
    }  # fmt: skip
    for functionality, (prefix, first) in _PER_DEVICE.items():
        for offset, each in enumerate(_DEVICES):
            found[f"{prefix}{each}"] = first + offset
        found[f"StartOf{functionality}Backends"] = first - 1
        found[f"EndOf{functionality}Backends"] = first + len(_DEVICES) - 1
    return found


_numbered: Any = _Numbered  # calling it makes an enumeration with these members
DispatchKey: Any = _numbered("DispatchKey", _key_numbers(), module="torch")
Tag: Any = _numbered(
    "Tag",
    {
        name: number
        for number, name in enumerate(
            "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
            "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
            "nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction "
            "view_copy".split()
        )
    },
    module="torch",
)


def parse_key(name: str) -> str:
    """The name of a dispatch key; "" stands for CompositeImplicitAutograd.

    Raises: RuntimeError if there is none of this name.
    """
    if isinstance(name, DispatchKey):
        return name.name
    if not name:
        return "CompositeImplicitAutograd"
    if name not in DispatchKey.__members__ and name not in ("FPGA", "Vulkan", "Metal", "Tracer", "Fake"):
        raise RuntimeError(f"could not parse dispatch key: {name}")
    return name


_DEVICE_KEYS = {each.lower(): each for each in _DEVICES} | {"privateuseone": "PrivateUse1"}


def device_key(device_type: str) -> str:
    """The dispatch key of kernels for a type of device: "CPU" for "cpu"."""
    return _DEVICE_KEYS.get(device_type, "CompositeExplicitAutograd")


class DispatchKeySet:
    """A set of dispatch keys, such as those of a tensor."""

    __module__ = "torch"

    def __init__(self, *keys: Any):
        flat = [
            each for key in keys for each in (key if isinstance(key, (list, tuple, frozenset)) else (key,))
        ]
        self._names: frozenset[str] = frozenset(
            name
            for each in flat
            for name in (each._names if isinstance(each, DispatchKeySet) else (parse_key(each),))
        )

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return _key_set(self._names | other._names)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return _key_set(self._names & other._names)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return _key_set(self._names - other._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)

    def has(self, key: Any) -> bool:
        """Whether the key is one of them."""
        return parse_key(key) in self._names

    def add(self, key: Any) -> DispatchKeySet:
        """The set with this key."""
        return _key_set(self._names | {parse_key(key)})

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without this key."""
        return _key_set(self._names - {parse_key(key)})

    def highestPriorityTypeId(self) -> Any:  # noqa: N802 (PyTorch's name)
        """The key whose kernel runs first."""
        return DispatchKey[_in_order(self._names)[-1]] if self._names else DispatchKey.Undefined

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(_in_order(self._names))})"


def _in_order(names: Iterable[str]) -> list[str]:
    """From the lowest priority to the highest: backends, then what wraps them."""

    def place(name: str) -> tuple[int, int]:
        number = DispatchKey[name].value if name in DispatchKey.__members__ else 0
        if 134 <= number <= 149:
            return 20, number
        return (0, number) if number >= 48 else (number, 0)

    return sorted(names, key=place)


@functools.cache
def _key_set(names: frozenset[str]) -> DispatchKeySet:
    return DispatchKeySet(names)


def keys_of(values: Iterable[Any]) -> DispatchKeySet:
    """The dispatch keys that the tensors among `values` ask for."""
    # `is_inference()` would be a call of a public function, for each operator.
    kinds = {
        (each.device.type, type(each._storage.version) is not int)
        for each in values
        if isinstance(each, Tensor)
    }
    return _keys_of_kinds(frozenset(kinds))


@functools.cache
def _keys_of_kinds(kinds: frozenset[tuple[str, bool]]) -> DispatchKeySet:
    """The keys of tensors on these types of devices, made in inference mode or not."""
    names: set[str] = set()
    for place, is_inference in kinds:
        key = device_key(place)
        names.add(key)
        if key != "Meta":
            names.add(f"Autocast{key}")
        if not is_inference:
            names |= {f"Autograd{key}", "ADInplaceOrView"}
    return _key_set(frozenset(names))


class _Excluded(threading.local):
    names: frozenset[str] = frozenset()


excluded = _Excluded()  # the keys that operators called in this thread leave out
AUTOGRAD = frozenset(name for name in DispatchKey.__members__ if name.startswith("Autograd"))


class _Excluding(Restoring):
    """Operators that are called inside leave out some dispatch keys."""

    def __init__(self, names: frozenset[str]):
        self._names = names

    def __enter__(self) -> None:
        self._outer = excluded.names
        excluded.names |= self._names

    def _restore(self) -> None:
        excluded.names = self._outer


class _AutoDispatchBelowAutograd(_Excluding):
    """The kernel of an operator for Autograd calls the operator inside this, and reaches the kernel below."""

    def __init__(self) -> None:
        super().__init__(AUTOGRAD)


class _ExcludeDispatchKeyGuard(_Excluding):
    """Operators that are called inside leave out the keys of a `DispatchKeySet`."""

    def __init__(self, keys: DispatchKeySet):
        super().__init__(keys._names)
