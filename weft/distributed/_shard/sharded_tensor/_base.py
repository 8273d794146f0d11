"""The base class of ShardedTensor. Modules that only ask isinstance(x, ShardedTensorBase) import this one.

Defining ShardedTensor makes every call of a function ask the classes of its arguments, because it has a `__torch_function__`.
This class has none, so that programs without ShardedTensors do not pay for saving checkpoints.
"""

from __future__ import annotations

from typing import Any

from ....core.dtype import DType, get_default_dtype
from ....core.layout import strided
from ....core.names import ROOT, set_name
from ....core.overrides import disabled
from ....core.tensor import Tensor
from ..sharding_spec.api import ShardingSpec
from .metadata import ShardedTensorMetadata, TensorProperties
from .shard import Shard
from .utils import _flatten_tensor_size


class ShardedTensorBase(Tensor):
    """A tensor without memory, whose shards the processes have."""

    __torch_function__ = staticmethod(disabled)

    _sharding_spec: ShardingSpec
    _metadata: ShardedTensorMetadata
    _local_shards: list[Shard]

    def __new__(
        cls,
        sharding_spec: ShardingSpec,
        *size: Any,
        dtype: DType | None = None,
        layout: Any = strided,
        requires_grad: bool = False,
        pin_memory: bool = False,
        **others: Any,
    ) -> Any:
        if not isinstance(sharding_spec, ShardingSpec):
            raise ValueError(f"Expecting ShardingSpec but got: {type(sharding_spec)}")
        sizes, dtype = _flatten_tensor_size(size), dtype or get_default_dtype()
        properties = TensorProperties(dtype, layout, requires_grad, pin_memory=pin_memory)
        metadata = sharding_spec.build_metadata(sizes, tensor_properties=properties)
        made: Any = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, sizes, dtype=dtype, layout=layout, pin_memory=pin_memory, requires_grad=requires_grad
        )
        made._sharding_spec, made._metadata, made._local_shards = sharding_spec, metadata, []
        return made

    def metadata(self) -> ShardedTensorMetadata:
        """The size, the properties and all shards of this tensor, which every process knows."""
        return self._metadata

    def local_shards(self) -> list[Shard]:
        """The shards of this process."""
        return self._local_shards


set_name(ShardedTensorBase, f"{ROOT}.distributed._shard.sharded_tensor.api", "ShardedTensorBase")
