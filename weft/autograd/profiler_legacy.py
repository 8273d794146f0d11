"""`torch.autograd.profiler_legacy`: the older interface of `torch.autograd.profiler`."""

from __future__ import annotations

from typing import Any

from ..compat.missing import module_getattr
from . import profiler

__all__ = ["profile"]


class profile(profiler.profile):  # noqa: N801 (PyTorch's name)
    """As `torch.autograd.profiler.profile`."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
    ):
        options: dict[str, Any] = {"with_flops": with_flops, "profile_memory": profile_memory}
        super().__init__(
            enabled,
            use_cuda=use_cuda,
            record_shapes=record_shapes,
            with_stack=with_stack,
            with_modules=with_modules,
            **options,
        )


__getattr__ = module_getattr(__name__)
