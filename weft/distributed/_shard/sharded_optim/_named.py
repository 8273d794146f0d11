"""The parameters of a module, and ShardedTensors that are its attributes."""

from __future__ import annotations

from collections.abc import Iterator

from ....core.tensor import Tensor
from ....nn.module import Module
from ..sharded_tensor._base import ShardedTensorBase


def named_params_with_sharded_tensor(
    module: Module, prefix: str = "", recurse: bool = True
) -> Iterator[tuple[str, Tensor]]:
    """Each ShardedTensor that is an attribute of the module or, with `recurse`, of one inside of it, and each parameter, with its name."""
    modules = module.named_modules(prefix=prefix) if recurse else [(prefix, module)]
    seen: set[int] = set()
    for path, each in modules:
        for name, value in vars(each).items():
            if isinstance(value, ShardedTensorBase) and id(value) not in seen:
                seen.add(id(value))
                yield f"{path}.{name}" if path else name, value
    yield from module.named_parameters()
