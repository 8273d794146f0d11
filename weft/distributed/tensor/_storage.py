"""ShardedStorage: the memory of a DTensor. It holds the part of this process, and says how the parts make up the whole.

A DTensor is a tensor whose spec is that of the whole. So composed functions, which look at metadata and call ops, run unchanged;
a watcher (`_rules.py`) carries out the ops on the parts. Kernels cannot read the whole where it is cut, because `ptr` raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.dispatch import Lifetimes
from ...core.size import Size, shape
from ...core.spec import Spec, make_spec
from ...core.storage import FOREIGN, Storage
from ...core.tensor import Tensor, make
from .placement_types import Placement, Shard, _StridedShard, is_cut

Placements = tuple[Placement, ...]


class NoPlacementRule(NotImplementedError):
    """Code that has no rule for DTensors asked for the memory of one."""


sharded = Lifetimes()  # all ShardedStorages


class ShardedStorage(Storage):
    """The part `local` of this process, a plain tensor, and the placements of the parts on `mesh`."""

    __slots__ = ("local", "whole", "mesh", "placements", "is_copy")

    local: Tensor
    whole: Spec
    mesh: Any
    placements: Placements
    is_copy: bool  # whether this is a view whose elements had to be copied, so that writes would not reach its base

    def __init__(self, local: Tensor, whole: Spec, mesh: Any, placements: Placements):
        self.local, self.whole, self.mesh, self.placements = local, whole, mesh, placements
        self.is_copy = False
        sharded.note(self)
        self.device, self.bin, self.owner = whole.device, FOREIGN, None
        self.nbytes_ = whole.span * whole.dtype.itemsize  # which checks of bounds compare with
        self.exposed = True  # so that autograd never takes over the memory of a part

    @staticmethod
    def new_tensor() -> Any:
        from ._dispatch import dtensor_class  # defines the class when it is first needed

        return object.__new__(dtensor_class())

    def __del__(self) -> None:
        """The memory is that of the part."""

    def __deepcopy__(self, memo: dict[int, Any]) -> ShardedStorage:
        """The part in memory of its own, on the same mesh."""
        if id(self) not in memo:
            memo[id(self)] = ShardedStorage(
                self.local.detach().clone(), self.whole, self.mesh, self.placements
            )
        return memo[id(self)]

    @property
    def ptr(self) -> int:  # type: ignore[override]
        """The memory of the whole, where this process has all of it."""
        if self.mesh is not None and all(each.is_replicate() for each in self.placements):
            if self.local.spec.stride == self.whole.stride:
                return self.local._storage.ptr + self.local._byte_offset
        raise NoPlacementRule(
            "this operation reads the memory of a DTensor, and there is no rule for it; call full_tensor() first"
        )

    @property
    def version(self) -> Any:  # type: ignore[override]
        return self.local._storage.version

    @version.setter
    def version(self, number: Any) -> None:
        self.local._storage.version = number


def wrap(local: Tensor, whole: Spec, mesh: Any, placements: Sequence[Placement]) -> Tensor:
    """The DTensor with this part. `whole` is the spec of the whole; `local` takes no part in autograd."""
    return make(ShardedStorage(local, whole, mesh, tuple(placements)), 0, whole)


def is_distributed(value: Any) -> bool:
    return isinstance(value, Tensor) and type(value._storage) is ShardedStorage


def in_order(placements: Sequence[Placement]) -> list[tuple[int, Placement]]:
    """Each dim of the mesh with its placement, from the outermost cut to the innermost: cuts in turns come last."""
    return sorted(enumerate(placements), key=lambda each: isinstance(each[1], _StridedShard))


def own_piece(
    size: int, dim: int, mesh: Any, placements: Sequence[Placement], coordinate: Sequence[int] | None = None
) -> tuple[int, int]:
    """How many of the `size` elements along `dim` this process has, and from which on. Cuts of one dim are nested.

    coordinate: that of another process in the mesh.
    """
    start = 0
    for mesh_dim, place in in_order(placements):
        if is_cut(place) and place.dim == dim:
            rank = mesh.get_local_rank(mesh_dim) if coordinate is None else coordinate[mesh_dim]
            size, further = Shard.local_shard_size_and_offset(size, mesh.size(mesh_dim), rank)
            start += further
    return size, start


def local_sizes(sizes: Sequence[int], mesh: Any, placements: Sequence[Placement]) -> Size:
    """The sizes of the part of this process, of a tensor with these sizes."""
    return shape([own_piece(size, dim, mesh, placements)[0] for dim, size in enumerate(sizes)])


def strides_like(sizes: Sequence[int], like: Spec) -> tuple[int, ...]:
    """Strides for these sizes without gaps, the dims in the order of those of `like`; expanded dims stay expanded."""
    strides, step = [0] * len(sizes), 1
    for dim in sorted(range(len(sizes)), key=lambda dim: (like.stride[dim], -dim)):
        if like.stride[dim] or like.shape[dim] <= 1:
            strides[dim] = step
            step *= max(sizes[dim], 1)
    return tuple(strides)


def local_spec(whole: Spec, mesh: Any, placements: Placements) -> Spec:
    """The spec of a part without gaps of a tensor with the spec `whole`, its dims in the same order of memory."""
    sizes = local_sizes(whole.shape, mesh, placements)
    return make_spec(sizes, strides_like(sizes, whole), whole.dtype, whole.device, whole.conj, whole.neg)
