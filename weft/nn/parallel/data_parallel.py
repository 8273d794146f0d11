"""DataParallel: a batch shared among GPUs. Without one it calls its module, as in PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ...core.device import accelerator, device, device_count, device_index
from ...core.grad_mode import is_grad_enabled
from ..module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Calls copies of `module` on several GPUs, each with a part of the batch, and joins the results on `output_device`.

    device_ids: the GPUs, by default all. The module must be on the first of them. Without a GPU it is called with the whole batch.

    >>> import weft as torch
    >>> list(torch.nn.DataParallel(torch.nn.Linear(2, 1)).state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ):
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids: list[Any] = []
        kind = accelerator()
        if kind is None:
            return
        self.device_ids = _numbers(kind, device_ids)
        self.output_device = self.device_ids[0] if output_device is None else device_index(output_device)
        self.src_device_obj = device(kind, self.device_ids[0])
        if len(self.device_ids) == 1:
            module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for each in itertools.chain(self.module.parameters(), self.module.buffers()):
            if each.device != self.src_device_obj:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.src_device_obj} (device_ids[0]) "
                    f"but found one of them on device: {each.device}"
                )
        places, names = self.scatter(inputs, kwargs, self.device_ids)
        if not places:  # a call without arguments
            places, names = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*places[0], **names[0])
        replicas = self.replicate(self.module, self.device_ids[: len(places)])
        return self.gather(self.parallel_apply(replicas, places, names), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        return replicate(module, device_ids, not is_grad_enabled())

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]
    ) -> Any:
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        return gather(outputs, output_device, dim=self.dim)


def _numbers(kind: str, device_ids: Sequence[Any] | None) -> list[Any]:
    if device_ids is None:
        return list(range(device_count(kind)))
    return [device_index(each) for each in device_ids]


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any | None = None,
) -> Any:
    """Call copies of a module on several GPUs, each with a part of the batch, as `DataParallel` does.

    Raises: RuntimeError without a GPU.
    """
    if accelerator() is None:
        raise RuntimeError(
            "device type could not be determined: data_parallel needs a GPU; call the module itself"
        )
    arguments = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*arguments, **(module_kwargs or {}))
