"""Mixed precision of DistributedDataParallel: a module computes with copies of its parameters in fewer bits."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..core.dtype import DType
from ..core.futures import Future
from ..core.pytree import tree_map
from ..core.tensor import Tensor
from ..nn.module import Module
from ._grad_bucket import GradBucket
from ._group import ProcessGroup


@dataclass
class _MixedPrecision:
    """The dtypes in which a module computes, gradients are added up, and buffers are. None leaves a dtype as it is."""

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    buffer_dtype: DType | None = None


def converted(value: Any, dtype: DType | None) -> Any:
    """Floating-point tensors in a dtype, unless it is None; everything else as it is."""
    if dtype is None or not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    return value.to(dtype)


class LowerPrecision:
    """Lets a module compute in lower precision. Its parameters, their gradients and the optimizer's state stay in their own.

    The copies are recorded, so that backward converts the gradients.
    """

    def __init__(self, module: Module, settings: _MixedPrecision, ignored: Collection[str]) -> None:
        self.settings, self.dtype = settings, settings.param_dtype
        named = dict(module.named_parameters())
        kept = {id(each) for name, each in named.items() if name in ignored}
        self.owners = [
            (owner, name, parameter)
            for owner in module.modules()
            for name, parameter in owner._parameters.items()
            if parameter is not None and parameter.is_floating_point() and id(parameter) not in kept
        ]
        for name, each in module.named_buffers():
            if settings.buffer_dtype is not None and name not in ignored:
                each.data = each.to(settings.buffer_dtype)

    def call(self, module: Module, args: Any, kwargs: Any) -> Any:
        """The results of the module for arguments in lower precision."""
        if self.dtype is None:
            return module(*args, **kwargs)
        args, kwargs = tree_map(lambda value: converted(value, self.dtype), (args, kwargs))
        copies = {id(parameter): parameter.to(self.dtype) for _, _, parameter in self.owners}
        for owner, name, parameter in self.owners:
            owner.__dict__[name] = copies[id(parameter)]  # which Python finds before the parameter
        try:
            return module(*args, **kwargs)
        finally:
            for owner, name, _ in self.owners:
                owner.__dict__.pop(name, None)

    def average(self, group: ProcessGroup, bucket: GradBucket) -> Future[Tensor]:
        """The hook that adds gradients up in `reduce_dtype`, by default in `param_dtype`, and divides them."""
        sent = converted(bucket.buffer(), self.settings.reduce_dtype or self.settings.param_dtype)
        work = group.allreduce([sent])  # type: ignore[attr-defined]
        return work.get_future().then(lambda done: done.value()[0].div_(group.size()))
