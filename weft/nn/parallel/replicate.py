"""Copies a module to several GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from ..module import Module
from ._functions import Broadcast
from .comm import broadcast_coalesced, check_gpus

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Copies of `network` on the GPUs `devices`. Gradients of their parameters are added to those of `network`, unless they are to `detach`.

    The parameters of a copy are attributes: it has no `parameters()`, because they are results and no leaves.

    Raises: ValueError for a device that is not a GPU, AssertionError for a network on the CPU.
    """
    check_gpus(devices)
    if not devices:
        return []
    params: list[Tensor] = list(network.parameters())
    buffers = list(network.buffers())
    copies = _copies(params, devices, detach), _copies(buffers, devices, True)
    modules = list(network.modules())
    return [
        _replica(modules, dict(zip(params, own, strict=True)), dict(zip(buffers, others, strict=True)))
        for own, others in zip(*copies, strict=True)
    ]


def _copies(tensors: list[Tensor], devices: Sequence[Any], detach: bool) -> list[list[Tensor]]:
    """For each device copies of all tensors."""
    if not tensors:
        return [[] for _ in devices]
    if detach:
        return broadcast_coalesced([each.detach() for each in tensors], devices)
    found = Broadcast.apply(devices, *tensors)
    return [list(found[k : k + len(tensors)]) for k in range(0, len(found), len(tensors))]


def _replica(modules: list[Module], params: dict[Any, Tensor], buffers: dict[Any, Tensor]) -> Module:
    """Copies of all modules with these tensors in the place of theirs; returns that of the first."""
    replicas: dict[Module, Any] = {each: each._replicate_for_data_parallel() for each in modules}
    for module, replica in replicas.items():
        replica._former_parameters = {}
        for name, child in module._modules.items():
            replica._modules[name] = None if child is None else replicas[child]
        for name, param in module._parameters.items():
            if param is None:
                replica._parameters[name] = None
            else:
                setattr(replica, name, params[param])
                replica._former_parameters[name] = params[param]
        for name, buffer in module._buffers.items():
            replica._buffers[name] = None if buffer is None else buffers[buffer]
    return replicas[modules[0]]
