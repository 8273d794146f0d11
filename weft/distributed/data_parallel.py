"""DistributedDataParallel: a module of which every process has a copy. With one process gradients are its own."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..core.dtype import DType
from ..core.tensor import Tensor
from ..nn.module import Module
from ._grad_bucket import FIRST_BUCKET, GradBucket, gradient
from ._world import check_one_rank
from .algorithms.join import Join, Joinable, JoinHook
from .distributed_c10d import ProcessGroup, _get_default_group

__all__ = ["DistributedDataParallel"]

_MEGABYTE = 1 << 20


@dataclass
class _MixedPrecision:
    """The dtypes of a module in lower precision."""

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    buffer_dtype: DType | None = None


class DistributedDataParallel(Module, Joinable):
    """Calls `module`; after backward every process has the average gradient of all. So far there is one process.

    Raises: ValueError without a process group, RuntimeError for a module without parameters that require a gradient.

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
        if mixed_precision is not None:
            raise NotImplementedError(
                "DistributedDataParallel(mixed_precision=...) is not implemented: use torch.autocast instead"
            )
        self.process_group = (
            device_mesh.get_group(0) if device_mesh is not None else process_group or _get_default_group()
        )
        check_one_rank("DistributedDataParallel", self.process_group)
        self.device_mesh = device_mesh
        ignored = getattr(module, "_ddp_params_and_buffers_to_ignore", ())
        self.parameters_to_ignore = set(ignored)
        self._module_parameters = [
            each
            for name, each in module.named_parameters()
            if each.requires_grad and name not in self.parameters_to_ignore
        ]
        if not self._module_parameters:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if device_ids or output_device is not None:
            devices = {each.device for each in self._module_parameters}
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device "
                f"GPU modules or CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module "
                f"parameters {devices}."
            )
        self.module = module
        self.dim = dim
        self.device = self._module_parameters[0].device
        self.device_type = self.device.type
        self.device_ids = None
        self.output_device = None
        self.is_multi_device_module = False
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = False
        self.mixed_precision = mixed_precision
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.bucket_bytes_cap = (25 if bucket_cap_mb is None else bucket_cap_mb) * _MEGABYTE
        self._comm_hooks: list[tuple[Callable, Any]] = []
        self._hook_handles: list[Any] = []
        self._waiting: set[int] = set()
        if static_graph:
            self._set_static_graph()

    # ---- Calls

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        Join.notify_join_context(self)
        self._waiting = {id(each) for each in self._module_parameters}
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes within only accumulate: the next one outside averages."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

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

    def will_sync_module_buffers(self) -> bool:
        """Return whether the next call sends the buffers of rank 0 to all."""
        return self.require_forward_param_sync and self.broadcast_buffers and bool(self.modules_buffers)

    @property
    def modules_buffers(self) -> list[Tensor]:
        return [each for name, each in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _set_static_graph(self) -> None:
        """Promise that all passes use the same parameters."""
        self.static_graph = True

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
        """Within, processes may have different numbers of inputs. A single process does not wait."""
        with Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        ):
            yield

    def join_hook(self, **kwargs: Any) -> JoinHook:
        return JoinHook()

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
        if self._comm_hooks:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        parameters = inspect.signature(hook).parameters
        if parameters["bucket"].annotation not in (
            inspect.Parameter.empty,
            GradBucket,
            "GradBucket",
            "dist.GradBucket",
        ):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        self._comm_hooks.append((hook, state))
        self._hook_handles = [
            each.register_post_accumulate_grad_hook(self._gradient_is_ready)
            for each in self._module_parameters
        ]

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        """Do nothing: the built-in hooks compress messages, and one process sends none."""

    def _gradient_is_ready(self, parameter: Tensor) -> None:
        self._waiting.discard(id(parameter))
        if not self._waiting and self.require_backward_grad_sync:
            self._run_comm_hook()

    def _run_comm_hook(self) -> None:
        ((hook, state),) = self._comm_hooks
        buckets = self._buckets()
        for index, parameters in enumerate(buckets):
            bucket = GradBucket(index, parameters, index == len(buckets) - 1)
            result = hook(state, bucket).wait()
            bucket.set_buffer(result[0] if isinstance(result, list | tuple) else result)
            for parameter, averaged in zip(parameters, bucket.gradients()):
                gradient(parameter).copy_(averaged)

    def _buckets(self) -> list[list[Tensor]]:
        """Parameters by bucket. Those that are used last have their gradients first, so they are the first bucket."""
        buckets: list[list[Tensor]] = [[]]
        size = 0
        for parameter in self._module_parameters:
            buckets[-1].append(parameter)
            size += parameter.numel() * parameter.element_size()
            if size >= (FIRST_BUCKET if len(buckets) == 1 else self.bucket_bytes_cap):
                buckets.append([])
                size = 0
        return [bucket for bucket in reversed(buckets) if bucket]


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
