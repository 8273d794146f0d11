"""FSDPModule: the methods of a module that `fully_shard` was applied to."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from ...core.names import set_name
from ...core.tensor import Tensor
from ...core.warn import user_level
from .._extended_class import Extension
from ._communication import AllGather, ReduceScatter

__all__ = ["FSDPModule", "UnshardHandle", "share_comm_ctx"]


class UnshardHandle:
    """What `unshard(async_op=True)` returns."""

    def __init__(self, state: Any):
        self._state = state

    def wait(self) -> None:
        """Wait until the parameters are whole."""
        self._state.unshard()


class FSDPModule(Extension):
    """What `fully_shard` adds to the class of a module."""

    _extension_prefix, _extension_function = "FSDP", "fully_shard"
    _fsdp_state: Any

    def _states(self, recurse: bool) -> list[Any]:
        modules: Any = self.modules() if recurse else (self,)  # type: ignore[attr-defined]
        return [each.__dict__["_fsdp_state"] for each in modules if isinstance(each, FSDPModule)]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of this module, until `reshard` or the end of the next forward pass."""
        if not async_op:
            self._fsdp_state.unshard()
            return None
        self._fsdp_state.begin()
        return UnshardHandle(self._fsdp_state)

    def reshard(self) -> None:
        """Let the module have the parts of its parameters only."""
        self._fsdp_state.reshard()
        self._fsdp_state.drop_gathered()

    def reset_iter_state(self) -> None:
        """After an error in a forward or backward pass, forget the pass and the gradients that were not averaged.

        Raises: RuntimeError for a module within another one that is sharded.
        """
        if self._fsdp_state.is_inner:
            raise RuntimeError("reset_iter_state must be called on the root FSDP module")
        type(self._fsdp_state).inside = 0
        for each in self._states(recurse=True):
            each.forget()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward passes send gradients. While they do not, each process adds up its own whole gradients."""
        for each in self._states(recurse):
            each.syncs = each.communication.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Whether backward passes add gradients up over the first dim of a mesh of two. While they do not, each process keeps the sums of its parts."""
        for each in self._states(recurse):
            each.communication.all_reduces = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether the memory of whole parameters is freed between the forward and the backward pass.

        Raises: ValueError for anything but a bool.
        """
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for each in self._states(recurse):
            each.reshards = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether whole parameters are given up after the backward pass. Without that, the next pass uses them unless the parameters have changed."""
        for each in self._states(recurse):
            each.reshards_after_backward = reshard_after_backward

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Whether parameters are gathered for the backward pass. Without that, those stay whole that the pass needs; of an embedding it needs none."""
        self._fsdp_state.fills_before_backward = unshard_in_backward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide the sums of gradients by `factor`, and not by the number of processes."""
        self._fsdp_state.communication.divide_factor = factor

    def set_reduce_scatter_divide_factor(self, factor: float) -> None:
        """The old name of `set_gradient_divide_factor`."""
        warnings.warn("Use `set_gradient_divide_factor` instead", FutureWarning, stacklevel=user_level())
        self.set_gradient_divide_factor(factor)

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Whether collectives add gradients up, which are divided afterwards, and never average."""
        self._fsdp_state.communication.sums_only = enable

    def set_all_reduce_hook(self, hook: Callable[[Tensor], None], *, stream: Any = None) -> None:
        """Give the gradients of this process, in a row, to `hook`, which changes them in place.

        Raises: ValueError for a stream with a mesh of two dims.
        """
        if stream is not None and self._fsdp_state.mesh.ndim > 1:
            raise ValueError("stream cannot be set when using native HSDP")
        self._fsdp_state.communication.hook = hook

    def set_custom_all_gather(self, comm: AllGather) -> None:
        """Gather the parameters of this module by `comm`, which has the methods of `AllGather`."""
        self._fsdp_state.communication.all_gather = comm

    def set_custom_reduce_scatter(self, comm: ReduceScatter) -> None:
        """Add the gradients of this module up by `comm`, which has the methods of `ReduceScatter`."""
        self._fsdp_state.communication.reduce_scatter = comm

    def set_reduce_scatter_max_input_buffers(self, max_input_buffers: int, *, recurse: bool = True) -> None:
        """Let the gradients of so many modules be added up while the backward pass goes on.

        Raises: TypeError for anything but an int, ValueError for one below 1.
        """
        if isinstance(max_input_buffers, bool) or not isinstance(max_input_buffers, int):
            raise TypeError(f"max_input_buffers must be an int, got {type(max_input_buffers).__name__}")
        if max_input_buffers < 1:
            raise ValueError(f"max_input_buffers must be a positive int, got {max_input_buffers}")
        for each in self._states(recurse):
            each.communication.in_flight = max_input_buffers

    def set_reduce_scatter_unused_params(
        self, reduce_scatter_unused_params: bool, *, recurse: bool = True
    ) -> NoReturn:
        """Not there: gradients of unused parameters are sent as zeros, but not those of modules that a process does not use at all."""
        raise NotImplementedError("FSDPModule.set_reduce_scatter_unused_params")

    def set_separate_reduce_scatter_group(self, enable: bool = True, *, recurse: bool = True) -> NoReturn:
        """Not there: one group gathers parameters and adds gradients up."""
        raise NotImplementedError("FSDPModule.set_separate_reduce_scatter_group")

    def set_symm_mem_for_comm(self, backend: str = "NCCL") -> NoReturn:
        """Not there: memory that GPUs share."""
        raise NotImplementedError("FSDPModule.set_symm_mem_for_comm")

    def set_allocate_memory_from_process_group_for_comm(self, enable: bool) -> None:
        """Do nothing: the groups of weft, as PyTorch's Gloo, have no memory of their own."""

    def set_post_optim_event(self, event: Any) -> None:
        """Do nothing: an optimizer has updated the parameters when its `step` returns."""

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Do nothing: each backward pass is complete when it ends."""

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """Begin to gather the parameters of these modules when the forward pass of this one begins; without it, when they need them."""
        self._fsdp_state.forward_prefetch = [each._fsdp_state for each in _checked(modules)]

    def set_modules_to_backward_prefetch(self, modules: list[Any]) -> None:
        """Begin to gather the parameters of these modules when the backward pass of this one begins; without it, those of the module that computed before it."""
        self._fsdp_state.backward_prefetch = [each._fsdp_state for each in _checked(modules)]


def _checked(modules: list[Any]) -> list[Any]:
    """Raises: ValueError for a module that is not sharded."""
    for each in modules:
        if not isinstance(each, FSDPModule):
            raise ValueError(
                f"prefetching needs modules to which fully_shard() was applied, but got a {type(each).__name__}"
            )
    return modules


def share_comm_ctx(modules: list[Any]) -> None:
    """Let modules share streams, of which weft's groups have none.

    Raises: ValueError for a module that is not sharded.
    """
    _checked(modules)


for _value in (FSDPModule, UnshardHandle, share_comm_ctx):
    set_name(_value, __name__.rpartition(".")[0], _value.__name__)
