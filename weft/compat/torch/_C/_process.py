"""What PyTorch's C++ part says of this process and its tensors, under its names."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from weft.autograd.current_pass import _current_graph_task_id as _current_graph_task_id
from weft.autograd.current_pass import _will_engine_execute_node as _will_engine_execute_node
from weft.autograd.dual import state as dual
from weft.autograd.forward_ad import _is_fwd_grad_enabled as _is_fwd_grad_enabled
from weft.core.batched import is_sample
from weft.core.copy_on_write import CopyOnWrite
from weft.core.grad_mode import is_grad_enabled as is_grad_enabled
from weft.core.grad_mode import mode
from weft.core.overrides import handles_dispatch, overrides_functions, overriding, switch
from weft.core.registry import FUNCTIONS
from weft.core.tensor import Tensor
from weft.engine.workers import get_num_threads as get_num_threads
from weft.engine.workers import set_num_threads as set_num_threads
from weft.func.running import is_running as _are_functorch_transforms_active  # noqa: F401

TensorBase = _TensorBase = Tensor  # programs ask `isinstance(x, torch._C.TensorBase)`
_GLIBCXX_USE_CXX11_ABI = True  # what extensions for PyTorch 2.13 are built with


def _set_grad_enabled(enabled: bool) -> None:
    mode.enabled = bool(enabled)


def _set_fwd_grad_enabled(enabled: bool) -> None:
    """Whether operations compute tangents in this thread."""
    dual.enabled = enabled


def _is_torch_function_enabled() -> bool:
    """Whether handlers are asked."""
    return switch.on


def _has_torch_function(values: Any) -> bool:
    """Whether one of the values is of a class with a handler."""
    return switch.on and bool(overriding(values))


def _has_torch_function_unary(value: Any) -> bool:
    """Whether a value is of a class with a handler."""
    return switch.on and overrides_functions(type(value))


def _has_torch_function_variadic(*values: Any) -> bool:
    """Whether one of the values is of a class with a handler."""
    return _has_torch_function(values)


def _dispatch_isTensorSubclassLike(tensor: Tensor, /) -> bool:  # noqa: N802 (PyTorch's name)
    """Whether only the class of a tensor, or a `vmap` around, knows how to compute with it."""
    return handles_dispatch(type(tensor)) or is_sample(tensor)


def _is_tracing() -> bool:
    """False: no function is being traced."""
    return False


def _log_api_usage_metadata(event: str, metadata_map: dict[str, str]) -> None:
    """Nothing, as PyTorch does by default."""


def _get_cpu_capability() -> str:
    """The vector instructions of the CPU, in PyTorch's words."""
    from weft.backends.cpu import get_cpu_capability

    return get_cpu_capability()


def _is_alias_of(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors share a storage."""
    return a._storage is b._storage


def _data_address(tensor: Tensor) -> int:
    """The address of the first element, for comparing: unlike `data_ptr`, it does not expose the memory."""
    return tensor._storage.ptr + tensor._byte_offset


def _storage_address(tensor: Tensor) -> int:
    """A number that identifies the storage of a tensor."""
    return tensor._storage._cdata


def _is_cow_tensor(tensor: Tensor) -> bool:
    """Whether a tensor shares its memory with a lazy clone until one of them is written."""
    return type(tensor._storage) is CopyOnWrite


class _WeakTensorRef:
    """A reference to a tensor that does not keep it alive."""

    def __init__(self, tensor: Tensor):
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._reference() is None


class _VariableFunctionsClass:
    """The functions of `torch` that PyTorch writes in C++."""

    def __getattr__(self, name: str) -> Callable:
        function = FUNCTIONS.get(name)
        if function is None:
            raise AttributeError(f"type object 'torch._C._VariableFunctionsClass' has no attribute '{name}'")
        return function

    def __dir__(self) -> list[str]:
        return [name for name in FUNCTIONS if "." not in name]


_VariableFunctions = _VariableFunctionsClass()
