"""`torch.distributed.algorithms.ddp_comm_hooks`: hooks of DistributedDataParallel."""

from __future__ import annotations

from enum import Enum, member
from functools import partial
from typing import Any

from ....compat.missing import module_getattr
from . import debugging_hooks as debugging
from . import default_hooks as default
from . import optimizer_overlap_hooks as optimizer_overlap  # noqa: F401 (PyTorch's name)
from . import powerSGD_hook as powerSGD  # noqa: N812 (PyTorch's name)
from . import quantization_hooks as quantization

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _ddp_comm_hook_wrapper(comm_hook: Any, model: Any, state: Any) -> None:
    model.register_comm_hook(state, comm_hook)


def _powerSGD_comm_hook_wrapper(  # noqa: N802 (PyTorch's name)
    comm_hook: Any, model: Any, state: Any, matrix_approximation_rank: int, start_powerSGD_iter: int = 1_000
) -> None:
    """`state`: a process group, as for the other hooks."""
    settings = powerSGD.PowerSGDState(state, matrix_approximation_rank, start_powerSGD_iter)
    model.register_comm_hook(settings, comm_hook)


def _registering(hook: Any) -> Any:
    return member(partial(_ddp_comm_hook_wrapper, comm_hook=hook))


def _registering_powerSGD(hook: Any, rank: int) -> Any:  # noqa: N802 (PyTorch's spelling)
    return member(partial(_powerSGD_comm_hook_wrapper, comm_hook=hook, matrix_approximation_rank=rank))


class DDPCommHookType(Enum):
    """The hooks by name. The value of each is a function of `model` and `state` that registers it."""

    ALLREDUCE = _registering(default.allreduce_hook)
    FP16_COMPRESS = _registering(default.fp16_compress_hook)
    BF16_COMPRESS = _registering(default.bf16_compress_hook)
    QUANTIZE_PER_TENSOR = _registering(quantization.quantization_pertensor_hook)
    QUANTIZE_PER_CHANNEL = _registering(quantization.quantization_perchannel_hook)
    POWER_SGD = _registering_powerSGD(powerSGD.powerSGD_hook, 1)
    POWER_SGD_RANK2 = _registering_powerSGD(powerSGD.powerSGD_hook, 2)
    BATCHED_POWER_SGD = _registering_powerSGD(powerSGD.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = _registering_powerSGD(powerSGD.batched_powerSGD_hook, 2)
    NOOP = _registering(debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let one of the hooks average the gradients of a DistributedDataParallel.

    state: what the hook gets, which is a process group for all of them; None stands for the default group.

    Raises: RuntimeError if the model has a hook already.

    >>> import weft as torch
    >>> from weft.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    >>> register_ddp_comm_hook(DDPCommHookType.BF16_COMPRESS, model)
    >>> model(torch.ones(1, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[1., 1.]])
    >>> dist.destroy_process_group()
    """
    comm_hook_type.value(model=model, state=state)


__getattr__ = module_getattr(__name__)
