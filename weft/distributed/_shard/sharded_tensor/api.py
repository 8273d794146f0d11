"""`torch.distributed._shard.sharded_tensor.api`: ShardedTensor, a tensor of which each process has some shards."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any

from ....core.device import CPU, as_device, device
from ....core.dtype import DType
from ....core.grad_mode import is_grad_enabled
from ....core.layout import contiguous_format, preserve_format, strided
from ....core.size import Size
from ....core.spec import Spec
from ....core.tensor import Tensor
from ....core.warn import user_level
from ....ops.assembly.copying import parse_to
from ....ops.creation.creation import empty
from ....serialization import rebuild
from ... import distributed_c10d as c10d
from .._registration import sharded_tensors
from ..sharding_spec._internals import check_tensor, validate_non_overlapping_shards_metadata
from ..sharding_spec.api import ShardingSpec, _infer_sharding_spec_from_shards_metadata, custom_op_of
from ..sharding_spec.chunk_sharding_spec_ops import embedding, embedding_bag  # noqa: F401 (they enter their functions into a table)
from . import _ops
from ._base import ShardedTensorBase
from ._gathering import gathered
from .metadata import ShardedTensorMetadata, TensorProperties
from .reshard import resharded
from .shard import Shard
from .utils import (
    _flatten_tensor_size,
    _parse_and_validate_remote_device,
    build_global_metadata,
    build_metadata_from_local_shards,
    check_property,
)

__all__ = ["Shard", "ShardedTensor", "ShardedTensorBase", "ShardedTensorMetadata", "TensorProperties"]


class ShardedTensor(ShardedTensorBase):
    """A tensor of all processes of a group, of which each has some shards, as its spec says.

    Few operations take a ShardedTensor as a whole; programs compute with its shards. All processes create it together. dtype:
    of the default, if None.

    Raises: ValueError for what is no spec, and for other layouts and memory formats than the usual ones; NotImplementedError
    for `init_rrefs=True`, because there is no RPC.

    >>> import weft as torch
    >>> from weft.distributed._shard import sharded_tensor
    >>> from weft.distributed._shard.sharding_spec import ChunkShardingSpec
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = sharded_tensor.ones(ChunkShardingSpec(dim=0, placements=["rank:0/cpu"]), 2, 3)
    >>> x.local_tensor()
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    >>> x.metadata().shards_metadata
    [ShardMetadata(shard_offsets=[0, 0], shard_sizes=[2, 3], placement=rank:0/cpu)]
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        sharding_spec: ShardingSpec,
        *size: Any,
        dtype: DType | None = None,
        layout: Any = strided,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = contiguous_format,
        process_group: Any = None,
        init_rrefs: bool = False,
    ) -> None:
        self._prepare_init(process_group, init_rrefs)
        _check_layout(layout)
        if memory_format != contiguous_format:
            raise ValueError("Only torch.contiguous_format memory_format is currently supported")
        own = self._metadata.tensor_properties
        for each in self._metadata.shards_metadata:
            rank, where = _parse_and_validate_remote_device(self._process_group, each.placement)
            if rank == c10d.get_rank():
                tensor = empty(
                    each.shard_sizes,
                    dtype=own.dtype,
                    device=where,
                    requires_grad=requires_grad,
                    pin_memory=pin_memory,
                )
                self._local_shards.append(Shard(tensor, each))

    def _prepare_init(self, process_group: Any = None, init_rrefs: bool = False) -> None:
        if init_rrefs:
            raise NotImplementedError(
                "ShardedTensor with init_rrefs=True: torch.distributed.rpc is not there"
            )
        self._init_rrefs = False
        self._process_group = self._normalize_pg(process_group)

    @classmethod
    def _normalize_pg(cls, process_group: Any) -> Any:
        return c10d._get_default_group() if process_group is None else process_group

    # ---- Made from shards --------------------------------------------------------------------------------------------

    @classmethod
    def _init_from_local_shards(
        cls, local_shards: list[Shard], *global_size: Any, process_group: Any = None, init_rrefs: bool = False
    ) -> ShardedTensor:
        """The ShardedTensor of the shards of all processes. A size None follows from the shards, which are cut along dim 0."""
        is_unknown = None in global_size
        group = cls._normalize_pg(process_group)
        size = _flatten_tensor_size([0 if dim is None else dim for dim in global_size])
        own = None
        if local_shards:
            own = build_metadata_from_local_shards(local_shards, size, c10d.get_rank(), group)
        found: list[Any] = [None] * c10d.get_world_size(group)
        c10d.all_gather_object(found, own, group=group)
        whole = build_global_metadata(found, recalc_metadata=is_unknown)
        if is_unknown:
            _take_metadata(local_shards, whole)
        spec = _infer_sharding_spec_from_shards_metadata(whole.shards_metadata)
        return cls._of(local_shards, whole.size, whole.tensor_properties, spec, group, init_rrefs)

    @classmethod
    def _of(
        cls,
        local_shards: list[Shard],
        size: Size,
        properties: TensorProperties,
        spec: ShardingSpec,
        group: Any,
        init_rrefs: bool,
    ) -> ShardedTensor:
        made = cls.__new__(
            cls,
            spec,
            size,
            dtype=properties.dtype,
            layout=properties.layout,
            pin_memory=properties.pin_memory,
            requires_grad=properties.requires_grad,
        )
        made._prepare_init(group, init_rrefs)
        made._local_shards = local_shards
        return made

    @classmethod
    def _init_from_local_tensor(
        cls,
        local_tensor: Tensor,
        sharding_spec: ShardingSpec,
        *global_size: Any,
        process_group: Any = None,
        init_rrefs: bool = False,
    ) -> ShardedTensor:
        """The ShardedTensor of which this process has one shard. Processes do not compare what they have."""
        _warn_of_dtensors()
        if not local_tensor.is_contiguous():
            raise ValueError("local_tensor is not a contiguous Tensor.")
        properties = TensorProperties.create_from_tensor(local_tensor)
        metadata = sharding_spec.build_metadata(_flatten_tensor_size(global_size), properties)
        group = cls._normalize_pg(process_group)
        own = [Shard(local_tensor, each) for each in _own_shards(metadata, group)]
        return cls._init_from_local_shards_and_global_metadata(
            own, metadata, group, init_rrefs, sharding_spec
        )

    @classmethod
    def _init_from_local_shards_and_global_metadata(
        cls,
        local_shards: list[Shard],
        sharded_tensor_metadata: ShardedTensorMetadata,
        process_group: Any = None,
        init_rrefs: bool = False,
        sharding_spec: ShardingSpec | None = None,
    ) -> ShardedTensor:
        """The ShardedTensor with these shards of this process and this metadata, which processes do not compare."""
        group, shards = cls._normalize_pg(process_group), sharded_tensor_metadata.shards_metadata
        own, properties = (
            _own_shards(sharded_tensor_metadata, group),
            sharded_tensor_metadata.tensor_properties,
        )
        if len(local_shards) != len(own):
            raise RuntimeError(
                f"Number of local shards ({len(local_shards)}) does not match number of local shards metadata in "
                f"sharded_tensor_metadata ({len(own)}) on rank ({c10d.get_rank()}) "
            )
        if not shards:
            raise ValueError("shards_metadata must not be empty!")
        _check_layout(properties.layout)
        for shard in local_shards:
            _check_shard(shard, properties)
        validate_non_overlapping_shards_metadata(shards)
        check_tensor(shards, sharded_tensor_metadata.size)
        spec = sharding_spec or _infer_sharding_spec_from_shards_metadata(shards)
        return cls._of(local_shards, sharded_tensor_metadata.size, properties, spec, group, init_rrefs)

    # ---- What it is --------------------------------------------------------------------------------------------------

    def sharding_spec(self) -> ShardingSpec:
        """How the tensor is divided."""
        return self._sharding_spec

    def local_tensor(self) -> Tensor:
        """The tensor of the shard of this process. Raises: NotImplementedError unless it has one shard."""
        count = len(self._local_shards)
        if count != 1:
            raise NotImplementedError(f"Only single local shard is supported. Number of shards: {count}")
        return self._local_shards[0].tensor

    def is_pinned(self) -> bool:  # type: ignore[override]
        """Whether the shards are in memory from which an accelerator copies directly."""
        return self._metadata.tensor_properties.pin_memory

    def remote_shards(self) -> Any:
        """Raises: RuntimeError, because references to shards of other processes need RPC."""
        raise RuntimeError("ShardedTensor created with init_rrefs=False, no RRefs to remote shards available")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:  # type: ignore[override]
        return f"ShardedTensor({self._metadata})"

    # ---- Other places ------------------------------------------------------------------------------------------------

    def gather(  # type: ignore[override]
        self, dst: int = 0, out: Tensor | None = None, enforce_dtype: bool = False, dtype: DType | None = None
    ) -> None:
        """Write the whole tensor into `out` on rank `dst`. All processes must call this.

        dtype: the shards are sent as numbers of this dtype, without it as what they are. enforce_dtype: the older way to say so.

        Raises: ValueError if `out` is missing on rank `dst` or has another size there, or is given on other ranks.
        """
        if enforce_dtype:
            warnings.warn(
                "`enforce_dtype` is deprecated. Please use `dtype` instead.",
                FutureWarning,
                stacklevel=user_level(),
            )
            dtype = None
        gathered(self, dst, out, dtype or self._metadata.tensor_properties.dtype)

    def reshard(self, resharding_spec: ShardingSpec) -> ShardedTensor:
        """Divide the tensor in another way, in place. All processes must call this, each has one shard.

        Raises: NotImplementedError for other specs than ChunkShardingSpecs.
        """
        _warn_of_dtensors()
        return resharded(self, resharding_spec)

    def cpu(self, memory_format: Any = preserve_format, process_group: Any = None) -> ShardedTensor:  # type: ignore[override]
        """The tensor with shards in the memory of the host: itself, if they are there."""
        _check_format(memory_format)
        places = [each.placement.device() for each in self._metadata.shards_metadata]  # type: ignore[union-attr]
        if all(each == CPU for each in places):
            return self
        return self._moved(CPU, self._metadata.tensor_properties.dtype, process_group)

    def cuda(  # type: ignore[override]
        self,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: Any = preserve_format,
        process_group: Any = None,
    ) -> ShardedTensor:
        """The tensor with shards on the CUDA device of each process."""
        _check_format(memory_format)
        where = as_device("cuda" if device is None else device)
        return self._moved(
            where, self._metadata.tensor_properties.dtype, process_group, non_blocking=non_blocking
        )

    def to(self, *args: Any, **kwargs: Any) -> ShardedTensor:  # type: ignore[override]
        """The tensor with another dtype or on other devices: itself, if nothing changes and `copy` is not True.

        Raises: RuntimeError for one argument that is neither a dtype, nor a device, nor a tensor.
        """
        own = self._metadata.tensor_properties.dtype
        now = self._local_shards[0].tensor.device if self._local_shards else CPU
        process_group = kwargs.pop("process_group", None)
        if len(args) == 1 and not isinstance(args[0], (DType, Tensor, device, str, int)):
            raise RuntimeError(f"ShardedTensor.to() have wrong arguments: {args}")
        where, dtype, is_copy, memory_format = parse_to(args, kwargs)
        where, dtype = where or now, dtype or own
        if not is_copy and (where, dtype) == (now, own):
            return self
        return self._moved(where, dtype, process_group, copy=is_copy, memory_format=memory_format)

    def _moved(self, where: device, dtype: DType, process_group: Any, **options: Any) -> ShardedTensor:
        metadata = copy.deepcopy(self._metadata)
        properties = metadata.tensor_properties
        properties.dtype = dtype
        properties.requires_grad = properties.requires_grad and is_grad_enabled()
        own = [copy.deepcopy(shard.metadata) for shard in self._local_shards]
        for each in (*metadata.shards_metadata, *own):
            each.placement._device = where  # type: ignore[union-attr]
        tensors = [shard.tensor.to(where, dtype, **options) for shard in self._local_shards]
        return type(self)._init_from_local_shards_and_global_metadata(
            list(map(Shard, tensors, own)),
            metadata,
            self._process_group if process_group is None else process_group,
        )

    # ---- Calls of functions ------------------------------------------------------------------------------------------

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Raises: RuntimeError for functions that have no implementation for ShardedTensors."""
        _warn_of_dtensors()
        given = next(sharded_tensors(args, kwargs), None)
        found = given is not None and (
            _ops.CUSTOM.get(func) or custom_op_of(given._sharding_spec, func) or _ops.OPS.get(func)
        )
        if not found:
            raise RuntimeError(
                f"torch function '{func.__name__}', with args: {args} and kwargs: {kwargs or None} not supported for ShardedTensor!"
            )
        return found(types, args, kwargs, given._process_group)  # type: ignore[union-attr]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Raises: RuntimeError, because a ShardedTensor has no memory to compute with."""
        raise RuntimeError(
            f"{func}: operators do not compute with a {cls.__name__}, whose shards lie on several processes"
        )

    # ---- Pickles -----------------------------------------------------------------------------------------------------

    @dataclass
    class ProcessGroupState:
        """The ranks of this process and the numbers of processes, with which a pickle is loaded again."""

        local_rank: int
        global_rank: int
        local_world_size: int
        global_world_size: int

    def _group_state(self) -> ShardedTensor.ProcessGroupState:
        group = self._process_group
        return self.ProcessGroupState(
            c10d.get_rank(group), c10d.get_rank(), c10d.get_world_size(group), c10d.get_world_size()
        )

    def __getstate__(self) -> tuple[Any, ...]:
        return self._local_shards, self._metadata, self._group_state(), self._sharding_spec, self._init_rrefs

    def __reduce_ex__(self, protocol: Any) -> Any:
        """The shards of this process, as in PyTorch's files."""
        spec: Any = self.spec
        arguments = (
            ShardedTensor,
            spec.dtype,
            tuple(spec.shape),
            tuple(spec.stride),
            0,
            strided,
            CPU,
            self._metadata.tensor_properties.requires_grad,
        )
        return rebuild.rebuild_from_type, (
            rebuild.rebuild_wrapper_subclass,
            type(self),
            arguments,
            self.__getstate__(),
        )

    @staticmethod
    def _from_file(spec: Spec, requires_grad: bool) -> Any:
        """A ShardedTensor without shards yet, because its state has them."""
        return Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            ShardedTensor, spec.shape, strides=spec.stride, dtype=spec.dtype, requires_grad=requires_grad
        )

    def __setstate__(self, state: Any) -> None:
        """Raises: RuntimeError without a process group, or if the process has another rank than the one that saved it."""
        from ..api import _get_current_process_group  # the module that divides parameters imports this one

        if not c10d.is_initialized():
            raise RuntimeError(
                'Need to initialize default process group using "init_process_group" before loading ShardedTensor'
            )
        self._local_shards, self._metadata, saved, self._sharding_spec, self._init_rrefs = state
        self._process_group = _get_current_process_group()
        now = self._group_state()
        for name in ("local_rank", "global_rank", "local_world_size", "global_world_size"):
            then, current = getattr(saved, name), getattr(now, name)
            if then != current:
                what = name.replace("_", " ").capitalize()
                raise RuntimeError(f"{what} at save time was {then}, but at load time was {current}")


def _warn_of_dtensors() -> None:
    warnings.warn(
        "Please use DTensor instead and we are deprecating ShardedTensor.",
        FutureWarning,
        stacklevel=user_level(),
    )


def _check_layout(layout: Any) -> None:
    if layout != strided:
        raise ValueError("Only torch.strided layout is currently supported")


def _check_format(memory_format: Any) -> None:
    if memory_format not in (preserve_format, contiguous_format):
        raise RuntimeError("Only `torch.contiguous_format` or `torch.preserve_format` is supported!")


def _own_shards(metadata: ShardedTensorMetadata, group: Any) -> list[Any]:
    """The metadata of the shards of this process."""
    found = [
        (_parse_and_validate_remote_device(group, each.placement), each) for each in metadata.shards_metadata
    ]
    return [each for (rank, _), each in found if rank == c10d.get_rank()]


def _take_metadata(local_shards: list[Shard], whole: ShardedTensorMetadata) -> None:
    """Give the shard of this process the offsets that follow from the sizes of all shards."""
    own = [each for each in whole.shards_metadata if each.placement.rank() == c10d.get_rank()]  # type: ignore[union-attr]
    if len(local_shards) != 1 or len(own) != 1:
        raise AssertionError(f"should has and only has one metadata for local rank, actual:{own}")
    local_shards[0].metadata = own[0]


_INCOMPATIBLE = (
    "Local shards' tensor {name} property is incompatible with {where} on rank {rank}: {where} {name}={expected}, local shard "
    "tensor {name}={actual}."
)


def _check_shard(shard: Shard, properties: TensorProperties) -> None:
    """Raises: ValueError if a shard differs from its metadata or from the properties of the whole."""
    tensor, own = shard.tensor, shard.metadata
    assert own.placement is not None, "Must specify placement for `Shard`!"
    of_tensor = {"where": "tensor property", "rank": own.placement.rank()}
    of_shard = {"where": "local ShardMetadata", "rank": own.placement.rank()}
    check_property(_INCOMPATIBLE, properties.layout, tensor.layout, "layout", **of_tensor)
    if not tensor.is_contiguous():
        raise ValueError("Only torch.contiguous_format memory_format is currently supported")
    check_property(_INCOMPATIBLE, list(own.shard_sizes), list(tensor.shape), "size", **of_shard)
    check_property(_INCOMPATIBLE, properties.pin_memory, tensor.is_pinned(), "pin_memory", **of_tensor)
    check_property(_INCOMPATIBLE, own.placement.device(), tensor.device, "device", **of_shard)
    check_property(_INCOMPATIBLE, properties.dtype, tensor.dtype, "dtype", **of_tensor)
    check_property(
        _INCOMPATIBLE, properties.requires_grad, tensor.requires_grad, "requires_grad", **of_tensor
    )
