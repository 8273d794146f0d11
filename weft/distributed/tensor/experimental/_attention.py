"""`torch.distributed.tensor.experimental._attention`: context parallelism, attention of a sequence that is cut among processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ....compat.missing import module_getattr
from ....core.grad_mode import no_grad
from ....core.tensor import Tensor
from ....nn import functional
from ....nn.module import Module
from ....ops.assembly.joining import cat
from ....ops.nn import attention
from ... import _collectives
from .._api import DTensor
from .._redistribute import piece_of
from ..parallel.style import ParallelStyle
from ..placement_types import Shard
from ._load_balancer import _HeadTailLoadBalancer, _LoadBalancer
from ._ring import ring_attention

__getattr__ = module_getattr(__name__, ())


class _RotateMethod(Enum):
    ALL_TO_ALL = auto()
    ALL_GATHER = auto()


@dataclass
class _ContextParallelOptions:
    """enable_load_balance: whether `context_parallel` changes the order of sequences. weft computes in float32 or wider, whatever `convert_to_f32` says."""

    convert_to_f32: bool = True
    enable_load_balance: bool = True
    rotate_method: _RotateMethod = _RotateMethod.ALL_GATHER


_cp_options = _ContextParallelOptions()


def set_rotate_method(rotate_method: str) -> None:
    """Accept "allgather" or "alltoall". With both weft sends keys and values around the ring of processes.

    Raises: NotImplementedError for another method.
    """
    methods = {"allgather": _RotateMethod.ALL_GATHER, "alltoall": _RotateMethod.ALL_TO_ALL}
    if rotate_method not in methods:
        raise NotImplementedError(
            f"Context Parallel does not support using {rotate_method} for kv shards rotation: use 'allgather' or 'alltoall'"
        )
    _cp_options.rotate_method = methods[rotate_method]


def _create_default_load_balancer(seq_length: int, world_size: int, device: Any) -> _LoadBalancer | None:
    if _cp_options.enable_load_balance and seq_length % (2 * world_size) == 0:
        return _HeadTailLoadBalancer(seq_length, world_size, device)
    return None


# ---- Parts of sequences ----------------------------------------------------------------------------------------------------


def _reordered(buffer: Tensor, dim: int, order: Tensor) -> Tensor:
    """The positions in another order, that of all samples (dim 0) or one for each."""
    if order.shape[0] == 1:
        return buffer.index_select(dim, order[0])
    if order.shape[0] != buffer.shape[0]:
        raise ValueError(f"there are {order.shape[0]} orders for a tensor of {buffer.shape[0]} samples")
    samples = [each.index_select(dim - 1, own) for each, own in zip(buffer, order, strict=True)]
    return cat([each.unsqueeze(0) for each in samples])


def _parts(
    mesh: Any, buffers: Sequence[Tensor], dims: Sequence[int], balancer: _LoadBalancer | None
) -> list[Tensor]:
    if len(buffers) != len(dims):
        raise ValueError(
            f"`seq_dims` must have the same number of elements as `buffers`, but there are {len(dims)} dims for {len(buffers)} buffers"
        )
    group, order = mesh.get_group(), None if balancer is None else balancer._generate_indices()
    found = []
    for buffer, dim in zip(buffers, dims, strict=True):
        whole = buffer if order is None else _reordered(buffer, dim, order)
        found.append(piece_of(whole, dim, group.size(), group.rank()).contiguous())
    return found


def _context_parallel_shard(
    mesh: Any, buffers: Any, seq_dims: Any, load_balancer: _LoadBalancer | None = None
) -> Any:
    """The parts of tensors on this process, each cut along its dim of `seq_dims`, in the order of `load_balancer`.

    buffers, seq_dims: both lists, or both dictionaries with the same keys.
    """
    _cp_options.enable_load_balance = load_balancer is not None
    if isinstance(buffers, dict):
        names = list(buffers)
        parts = _parts(
            mesh, [buffers[name] for name in names], [seq_dims[name] for name in names], load_balancer
        )
        return dict(zip(names, parts, strict=True))
    return _parts(mesh, buffers, seq_dims, load_balancer)


@no_grad()
def context_parallel_unshard(
    mesh: Any, buffers: Sequence[Tensor], seq_dims: Sequence[int], load_balancer: _LoadBalancer | None = None
) -> list[Tensor]:
    """The whole sequences, in their first order, from the parts that the processes have. All processes of the mesh must call this.

    load_balancer: what changed the order; without it the one of `context_parallel`.
    """
    group = mesh.get_group()
    balancer = load_balancer or _create_default_load_balancer(
        buffers[0].shape[seq_dims[0]] * group.size(), group.size(), buffers[0].device
    )
    order = None if balancer is None else balancer._generate_indices(restore=True)
    found = []
    for buffer, dim in zip(buffers, seq_dims, strict=True):
        pieces = [buffer.new_empty(buffer.shape) for _ in range(group.size())]
        _collectives.all_gather(pieces, buffer.contiguous(), group=group)
        whole = cat(pieces, dim)
        found.append(whole if order is None else _reordered(whole, dim, order))
    return found


# ---- Attention -------------------------------------------------------------------------------------------------------------


def _attention_on(mesh: Any) -> Any:
    """`scaled_dot_product_attention` of the parts of sequences on this process."""

    def scaled_dot_product_attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if attn_mask is not None or dropout_p:
            given = "dropout_p" if attn_mask is None else "attn_mask"
            raise NotImplementedError(
                f"scaled_dot_product_attention({given}=) under context parallelism: use is_causal, or attention of whole sequences"
            )
        balanced = _cp_options.enable_load_balance
        return ring_attention(mesh.get_group(), query, key, value, is_causal, balanced, scale, enable_gqa)

    return scaled_dot_product_attention


@contextmanager
def _replaced_attention(mesh: Any) -> Iterator[None]:
    """A region in which layers that call `torch.nn.functional.scaled_dot_product_attention` attend to the parts of all processes."""
    places: tuple[Any, ...] = (functional, attention)
    before = functional.scaled_dot_product_attention
    for each in places:
        each.scaled_dot_product_attention = _attention_on(mesh)
    try:
        yield
    finally:
        for each in places:
            each.scaled_dot_product_attention = before


@contextmanager
def context_parallel(
    mesh: Any,
    *,
    buffers: Sequence[Tensor] | None = None,
    buffer_seq_dims: Sequence[int] | None = None,
    no_restore_buffers: set[Tensor] | None = None,
) -> Iterator[None]:
    """A region in which sequences are cut among the processes of a mesh, and `scaled_dot_product_attention` attends to all of them.

    Args:
        mesh: of one dimension.
        buffers: Tensors with a dim of positions: inputs, targets, embeddings of positions. Within the region they have the part of this process.
        buffer_seq_dims: The dim of positions of each.
        no_restore_buffers: Those that need not have their contents back after the region.

    With `is_causal=True`, positions are in another order, so that all processes have as much to do (`_HeadTailLoadBalancer`), if their number can be divided by twice the
    number of processes. `context_parallel_unshard` undoes this. Key and value blocks go around the ring of processes (`_ring.py`).

    >>> import weft as torch
    >>> from weft.distributed.tensor.experimental import context_parallel
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(1, 2, 4, 8)
    >>> with context_parallel(dist.init_device_mesh("cpu", (1,)), buffers=[x], buffer_seq_dims=[2]):
    ...     torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True).shape
    torch.Size([1, 2, 4, 8])
    >>> dist.destroy_process_group()
    """
    tensors, dims, dropped = list(buffers or ()), list(buffer_seq_dims or ()), no_restore_buffers or set()
    if not all(any(each is other for other in tensors) for each in dropped):
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    kept = [(each, each.detach().clone()) for each in tensors if not any(each is other for other in dropped)]
    was_balanced = _cp_options.enable_load_balance
    balancer = None
    if tensors:
        balancer = _create_default_load_balancer(tensors[0].shape[dims[0]], mesh.size(), tensors[0].device)
    with no_grad():
        for each, part in zip(tensors, _parts(mesh, tensors, dims, balancer), strict=True):
            part = part.clone()
            each.resize_(part.shape).copy_(part)
    if tensors:
        _cp_options.enable_load_balance = balancer is not None
    try:
        with _replaced_attention(mesh):
            yield
    finally:
        _cp_options.enable_load_balance = was_balanced
        with no_grad():
            for each, before in kept:
                each.resize_(before.shape).copy_(before)


class _ContextParallel(ParallelStyle):
    """For `parallelize_module`: a layer whose arguments are query, key and value attends to the parts of all processes."""

    class AttentionType(Enum):
        FLEX = "flex_attention"
        SDPA = "scaled_dot_product_attention"

    def __init__(self, seq_dim: int, attention_type: AttentionType) -> None:
        super().__init__()
        self.seq_dim, self.attention_type = seq_dim, attention_type

    def _apply(self, module: Module, mesh: Any) -> Module:
        if self.attention_type is not self.AttentionType.SDPA:
            raise NotImplementedError(
                f"_ContextParallel(attention_type={self.attention_type}): use AttentionType.SDPA"
            )
        forward = module.forward

        def parallel(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = _as_parts((args, kwargs), Shard(self.seq_dim))
            with _replaced_attention(mesh):
                return forward(*args, **kwargs)

        module.forward = parallel  # type: ignore[method-assign]
        return module


def _as_parts(value: Any, place: Shard) -> Any:
    """The value with the part of this process for each DTensor, which must be cut along the dim of positions."""
    if isinstance(value, (tuple, list)):
        return type(value)([_as_parts(each, place) for each in value])
    if isinstance(value, dict):
        return {name: _as_parts(each, place) for name, each in value.items()}
    if not isinstance(value, DTensor):
        return value
    if value.placements != (place,):
        raise AssertionError(f"expected a DTensor with the placements ({place},), got {value.placements}")
    return value.to_local()
