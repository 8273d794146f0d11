"""`torch.distributed.tensor.parallel.api`: carrying a plan out on a model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch

from ....core.warn import user_level
from ....nn.module import Module
from ...device_mesh import DeviceMesh, _mesh_resources
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | Mapping[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Cut the layers of a module by a plan: a style for the module itself, or styles by the names of modules in it.

    In names, `*` and the like stand for parts between dots. All processes get the parameters of `src_data_rank`; with None each keeps its own.
    Raises: ValueError for a mesh of several dimensions.

    >>> import weft as torch
    >>> from weft.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    >>> parallelize_module(model, dist.init_device_mesh("cpu", (1,)), plan)(torch.ones(3, 4)).shape
    torch.Size([3, 2])
    >>> dist.destroy_process_group()
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if mesh.ndim != 1:
        raise ValueError(f'parallelize_module needs a mesh of one dimension, such as mesh["tp"], not {mesh}')
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported.", stacklevel=user_level()
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    for pattern, style in parallelize_plan.items():
        found = list(_named(module, pattern.split(".") if pattern else []))
        if not found:
            warnings.warn(f"parallelize_module: no submodule is named {pattern}", stacklevel=user_level())
        for each in found:
            style.src_data_rank = src_data_rank
            style._apply(each, mesh)
    return module


def _named(module: Module, patterns: list[str]) -> Iterator[Module]:
    """The modules within `module` whose names match, part by part."""
    if not patterns:
        yield module
        return
    for name, child in module.named_children():
        if fnmatch(name, patterns[0]):
            yield from _named(child, patterns[1:])
