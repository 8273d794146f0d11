"""DistributedDataParallel: a module of which every process has a copy, and whose gradients are averages over the processes."""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.dtype import int32
from ..core.grad_mode import is_grad_enabled
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..nn.module import Module
from ..ops.creation.from_data import tensor
from ._coalesced import broadcast_coalesced
from ._collectives import all_reduce
from ._delayed import DelayedAverage
from ._grad_bucket import GradBucket
from ._lower_precision import LowerPrecision, _MixedPrecision
from ._objects import all_gather_object
from ._reduce_op import ReduceOp
from ._reducer import DEFAULT_LIMITS, Reducer
from .algorithms.ddp_comm_hooks.default_hooks import allreduce_hook, fp16_compress_hook
from .algorithms.ddp_comm_hooks.optimizer_overlap_hooks import (
    _hook_then_optimizer,
    _OptimizerHookState,
    _update_in_backward_hook,
)
from .algorithms.join import Join, Joinable, JoinHook
from .distributed_c10d import ProcessGroup, _get_default_group
from .optim.apply_optimizer_in_backward import in_backward_optimizers, param_to_optim_hook_handle_map
from .optim.utils import as_functional_optim

__all__ = ["DistributedDataParallel"]

_MEGABYTE = 1 << 20


class DistributedDataParallel(Module, Joinable):
    """Calls `module`; after backward every process has the average gradient of all.

    At first, all processes get the parameters and buffers of rank 0; unless `forward_sync_buffers=False`, its buffers also before each call. The deprecated
    `broadcast_buffers=False` sends no buffers at all. `static_graph` implies `find_unused_parameters`. `mixed_precision` lets the module compute with
    copies of its parameters in fewer bits. `delay_all_reduce_named_params`, pairs of a name and a parameter, are averaged all at once when the gradient of
    `param_to_hook_all_reduce` is there.

    Raises: ValueError without a process group, or for one of the last two without the other, RuntimeError for a module without parameters that require a gradient, for a mesh of several
    dimensions, or if the processes have parameters of other sizes.

    >>> import weft as torch
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    >>> model(torch.ones(1, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[1., 1.]])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: int | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: _MixedPrecision | None = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        Module.__init__(self)
        Joinable.__init__(self)
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None and device_mesh.ndim != 1:
            raise RuntimeError(
                f'Only 1D device mesh is supported, but got {device_mesh}. Take one dimension of it, such as mesh["dp"].'
            )
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time."
            )
        self.process_group = (
            device_mesh.get_group(0) if device_mesh is not None else process_group or _get_default_group()
        )
        self.device_mesh = device_mesh
        ignored = getattr(module, "_ddp_params_and_buffers_to_ignore", ())
        delayed = dict(delay_all_reduce_named_params or ())
        self.parameters_to_ignore = {*ignored, *delayed}
        self._delay_all_reduce_params = list(delayed.values())
        self._delay_trigger = param_to_hook_all_reduce
        self._module_parameters = [
            each
            for name, each in module.named_parameters()
            if each.requires_grad and name not in self.parameters_to_ignore
        ]
        if not self._module_parameters and not delayed:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if device_ids or output_device is not None:
            devices = {each.device for each in module.parameters()}
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device "
                f"GPU modules or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module "
                f"parameters {devices}."
            )
        if check_reduction:
            warnings.warn(
                "`check_reduction` of DistributedDataParallel is deprecated: it has no effect.",
                FutureWarning,
                stacklevel=user_level(),
            )
        self.module = module
        # Kept, because looking for them in each call takes as long as a few layers.
        self.modules_buffers = self._found_buffers()
        self.dim = dim
        self.device = next(module.parameters()).device
        self.device_type = self.device.type
        self.device_ids = None
        self.output_device = None
        self.is_multi_device_module = False
        if broadcast_buffers is not None:
            warnings.warn(
                "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead, with which buffers are still sent once, by the constructor."
                + (
                    " It is ignored beside `forward_sync_buffers`."
                    if forward_sync_buffers is not None
                    else ""
                ),
                FutureWarning,
                stacklevel=user_level(),
            )
        given = (forward_sync_buffers, broadcast_buffers, True)
        self.forward_sync_buffers: bool = next(each for each in given if each is not None)
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = False
        self.mixed_precision = mixed_precision
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.bucket_bytes_cap_list = [int(each * _MEGABYTE) for each in bucket_cap_mb_list or ()]
        if bucket_cap_mb is not None and not bucket_cap_mb_list:
            self._bucket_limits: Sequence[int] = [int(bucket_cap_mb * _MEGABYTE)]
        else:
            self._bucket_limits = self.bucket_bytes_cap_list or DEFAULT_LIMITS
        self.bucket_bytes_cap = max(self._bucket_limits)
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self.batched_grad_copy = batched_grad_copy  # buckets copy all their gradients at once in any case
        self._comm_hooks: list[tuple[Callable, Any]] = []
        self._reducer: Reducer | None = None
        self._delayed: DelayedAverage | None = None
        self._divide_by_initial_world_size = True
        if self.process_group.size() > 1:
            self._check_parameters()
            if init_sync:
                self._sync_module_states(0, forward_sync_buffers is not None or self.forward_sync_buffers)
        self._lower: LowerPrecision | None = None
        if mixed_precision is not None:
            self._lower = LowerPrecision(module, mixed_precision, self.parameters_to_ignore)
        self._start_averages()
        if static_graph:
            self._set_static_graph()

    def _check_parameters(self) -> None:
        """Raise RuntimeError unless all ranks have parameters of the same sizes."""
        own = [tuple(each.shape) for each in self._module_parameters]
        shapes: list[Any] = [None] * self.process_group.size()
        all_gather_object(shapes, own, self.process_group)
        for rank, theirs in enumerate(shapes):
            if len(theirs) != len(own):
                raise RuntimeError(
                    "DDP expects same model across all ranks, but Rank "
                    f"{self.process_group.rank()} has {len(own)} params, while rank {rank} has inconsistent {len(theirs)} params."
                )
            for index, (a, b) in enumerate(zip(own, theirs)):
                if a != b:
                    raise RuntimeError(
                        f"DDP: parameter {index} has the size {a} on rank {self.process_group.rank()} and {b} on rank {rank}"
                    )

    def _start_averages(self) -> None:
        """One process averages only for the sake of a hook, or of rounding."""
        if self._delay_all_reduce_params:
            self._delayed = DelayedAverage(
                self._delay_all_reduce_params,
                self._delay_trigger,
                self.process_group,
                lambda: self.require_backward_grad_sync,
            )
        if self._module_parameters and (
            self.process_group.size() > 1 or self._comm_hooks or self._lower is not None
        ):
            self._start_reducer()

    def _start_reducer(self) -> None:
        find_unused = self.find_unused_parameters or self.static_graph
        keeps_limits = find_unused or self.bucket_bytes_cap_list
        self._reducer = Reducer(
            self._module_parameters,
            self.process_group,
            self._bucket_limits if keeps_limits else [math.inf],
            self._bucket_limits,
            find_unused,
            self.gradient_as_bucket_view,
            self.skip_all_reduce_unused_params,
        )
        if self._lower is not None:
            self._reducer.hook = self._lower.average, self.process_group
        elif self._comm_hooks:
            self._reducer.hook = self._comm_hooks[0]

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a file has: all but the group and what averages gradients in it."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("process_group", "device_mesh", "_reducer", "_delayed")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become a copy, which averages gradients in the default group, with the hook of the original."""
        super().__setstate__(state)
        self.process_group, self.device_mesh = _get_default_group(), None
        self._reducer = self._delayed = None
        self._start_averages()

    def _sync_module_states(self, root: int, with_buffers: bool = True) -> None:
        """Send the parameters and buffers of a rank of the group to all."""
        named = [*self.module.named_parameters(), *(self.module.named_buffers() if with_buffers else ())]
        states = [each for name, each in named if name not in self.parameters_to_ignore]
        broadcast_coalesced(self.process_group, states, root)

    # ---- Calls

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        self.prepare_call()
        if self._lower is not None:
            return self._lower.call(self.module, inputs, kwargs)
        return self.module(*inputs, **kwargs)

    def prepare_call(self) -> None:
        """What `forward` does before it calls the module: send buffers, and let the backward pass average."""
        active = Join.notify_join_context(self)
        if self._delayed is not None:
            self._delayed.prepare()
        if self._reducer is not None:
            if not self._reducer.averages:
                self._update_in_backward()
            self._prepare(self._reducer, active)

    def _prepare(self, reducer: Reducer, active: Any) -> None:
        """What all ranks do before a call. `active`: within `join` a Work with the number of ranks that still have inputs."""
        reducer.divisor = self.process_group.size()
        if active is not None:
            active.wait()
            if not self._divide_by_initial_world_size:
                reducer.divisor = int(active.result()[0].item())
        if self._join_config.enable:
            self._sync_backward(self.require_backward_grad_sync)
        if self.will_sync_module_buffers():
            self._sync_buffers(joined=False)
        self.require_forward_param_sync = is_grad_enabled() and self.require_backward_grad_sync
        if self.require_forward_param_sync:
            reducer.prepare()

    def _sync_backward(self, wanted: bool) -> bool:
        """Whether a rank that has inputs averages in this iteration, as all of them learn."""
        flag = tensor([int(wanted)], dtype=int32)
        all_reduce(flag, group=self.process_group)
        return bool(flag.item())

    def _sync_buffers(self, joined: bool) -> None:
        """Send the buffers of rank 0, or within `join` of the last rank that has inputs, to all."""
        self.modules_buffers = self._found_buffers()  # the module may have replaced some
        root = self._last_rank(not joined) if self._join_config.enable else 0
        broadcast_coalesced(self.process_group, self.modules_buffers, root)

    def _last_rank(self, candidate: bool) -> int:
        """The highest rank that is a candidate."""
        rank = tensor([self.process_group.rank() if candidate else -1], dtype=int32)
        all_reduce(rank, op=ReduceOp.MAX, group=self.process_group)
        return int(rank.item())

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes within only accumulate: the next one outside averages."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def average_next_backward(self) -> None:
        """Let the next backward pass average, also if `forward` was called within `no_sync`."""
        if self._reducer is not None:
            self._reducer.prepare()

    def train(self, mode: bool = True) -> DistributedDataParallel:
        super().train(mode)
        return self

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        from ..nn.parallel.scatter_gather import scatter_kwargs

        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def to_kwargs(self, inputs: Any, kwargs: Any, device_id: Any) -> Any:
        """Return the arguments of a call on one device: there is one."""
        return (inputs,), (kwargs,)

    def gather(self, outputs: Any, output_device: Any) -> Any:
        from ..nn.parallel.scatter_gather import gather

        return gather(outputs, output_device, dim=self.dim)

    @property
    def broadcast_buffers(self) -> bool:
        """The old name of `forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    def will_sync_module_buffers(self) -> bool:
        """Return whether the next call sends the buffers of rank 0 to all."""
        return self.require_forward_param_sync and self.forward_sync_buffers and bool(self.modules_buffers)

    def _found_buffers(self) -> list[Tensor]:
        return [each for name, each in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _set_static_graph(self) -> None:
        """Promise that all passes use the same parameters."""
        self.static_graph = True
        if self._reducer is not None:
            self._reducer.find_unused = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: Any
    ) -> None:
        """Leave some parameters and buffers of `module`, by name, to each process."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore  # type: ignore[assignment]

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "backend_name": self.process_group.name(),
            "broadcast_buffers": int(self.broadcast_buffers),
            "find_unused_parameters": int(self.find_unused_parameters),
            "bucket_cap_bytes": self.bucket_bytes_cap,
        }

    # ---- Uneven inputs

    @contextmanager
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Iterator[None]:
        """Within, processes may have different numbers of inputs."""
        with Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        ):
            yield

    def join_hook(self, **kwargs: Any) -> JoinHook:
        self._divide_by_initial_world_size = kwargs.get("divide_by_initial_world_size", True)
        return _DDPJoinHook(self)

    @property
    def join_device(self) -> Any:
        return self.device

    @property
    def join_process_group(self) -> ProcessGroup:
        return self.process_group

    # ---- Communication hooks

    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """Let `hook(state, bucket)` average gradients: it returns a Future of the averages.

        Raises: RuntimeError for a second hook.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._comm_hooks or self._lower is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        parameters = inspect.signature(hook).parameters
        if parameters["bucket"].annotation not in (
            inspect.Parameter.empty,
            GradBucket,
            "GradBucket",
            "dist.GradBucket",
        ):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        self._use_hook(hook, state)

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        """Let one of PyTorch's built-in hooks average gradients: ALLREDUCE or FP16_COMPRESS."""
        if self._comm_hooks or self._lower is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        name = getattr(comm_hook_type, "name", comm_hook_type)
        hooks = {"ALLREDUCE": allreduce_hook, "FP16_COMPRESS": fp16_compress_hook}
        self._use_hook(hooks[name], self.process_group)

    def _register_fused_optim(
        self, optim: Any, *args: Any, optim_params: Iterable[Tensor] | None = None, **kwargs: Any
    ) -> None:
        """Let an optimizer update the parameters of each bucket as soon as their gradients are averaged, within the backward pass.

        Args:
            optim: the class of the optimizer.
            args, kwargs: its settings, in the order of PyTorch's functional optimizers: the learning rate comes first.
            optim_params: the parameters that it updates; all of the module by default.

        Raises: ValueError for an optimizer that `as_functional_optim` does not know, RuntimeError if there is a hook already.
        """
        state = _OptimizerHookState(as_functional_optim(optim, *args, **kwargs), optim_params)
        self.register_comm_hook(None, _hook_then_optimizer(allreduce_hook, state))

    def _update_in_backward(self) -> None:
        """Let the optimizers of `_apply_optimizer_in_backward` wait for the average of their gradients. Raises: RuntimeError if there is a hook already."""
        chosen = [each for each in self._module_parameters if in_backward_optimizers(each)]
        if not chosen or [hook for hook, _ in self._comm_hooks] == [_update_in_backward_hook]:
            return
        for each in chosen:
            for handle in param_to_optim_hook_handle_map.pop(each, ()):
                handle.remove()
        self.register_comm_hook(self.process_group, _update_in_backward_hook)

    @property
    def _has_rebuilt_buckets(self) -> bool:
        """Whether buckets stay as they are. Those of a static graph count as such after the second pass, because PyTorch orders them then."""
        reducer = self._reducer
        return (
            reducer is not None and reducer.order is None and (not self.static_graph or reducer.averages > 1)
        )

    def _use_hook(self, hook: Callable, state: object) -> None:
        self._comm_hooks.append((hook, state))
        if self._reducer is None:  # one process averages only for the sake of a hook
            self._start_reducer()
        else:
            self._reducer.hook = hook, state


class _DDPJoinHook(JoinHook):
    """Calls the collectives of a module's iterations while other processes still have inputs."""

    def __init__(self, owner: DistributedDataParallel) -> None:
        self.owner = owner

    def main_hook(self) -> None:
        owner = self.owner
        if owner._reducer is None:
            return
        sync = owner._sync_backward(False)
        if owner.will_sync_module_buffers():
            owner._sync_buffers(joined=True)
        owner.require_forward_param_sync = sync
        if sync:
            owner._reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        if self.owner._reducer is not None:
            self.owner._sync_module_states(self.owner._last_rank(is_last_joiner))


def _find_tensors(obj: Any) -> list[Tensor]:
    """Return the tensors in a container."""
    if isinstance(obj, Tensor):
        return [obj]
    items = obj.values() if isinstance(obj, dict) else obj if isinstance(obj, list | tuple) else ()
    return [tensor for item in items for tensor in _find_tensors(item)]


def _dump_DDP_relevant_env_vars() -> None:  # noqa: N802 (PyTorch's name)
    """Print the environment variables that groups read."""
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES"):
        print(f"env:{name}={os.environ.get(name, 'N/A')}")
