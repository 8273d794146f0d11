"""`torch.nn.parallel`: modules on several devices, of which there are none here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compat.missing import module_getattr
from .module import Module


class DataParallel(Module):
    """Runs `module`: with no GPU there is nothing to share a batch among, in PyTorch neither."""

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ):
        super().__init__()
        self.module = module
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


__getattr__ = module_getattr(__name__)
