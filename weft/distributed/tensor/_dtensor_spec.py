"""What a DTensor is apart from its part, in the form of PyTorch's files."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core.dtype import DType
from ...core.size import Size
from ...core.spec import Spec, make_spec
from ..device_mesh import DeviceMesh
from ._storage import Placements
from .placement_types import Placement, Shard, _StridedShard

__all__ = ["DTensorSpec", "ShardOrderEntry", "TensorMeta"]


class ShardOrderEntry(NamedTuple):
    """The dims of the mesh that cut a dim of the tensor, from the outermost on."""

    tensor_dim: int
    mesh_dims: tuple[int, ...]


class TensorMeta(NamedTuple):
    """Size, strides and dtype of the whole tensor."""

    shape: Size
    stride: tuple[int, ...]
    dtype: DType


_FIELDS = ("mesh", "placements", "tensor_meta", "shard_order", "use_strided_shard_as_shard_order", "_hash")


class DTensorSpec:
    """The mesh and the placements of a DTensor, and the metadata of the whole tensor."""

    mesh: DeviceMesh
    placements: Placements
    tensor_meta: TensorMeta
    shard_order: tuple[ShardOrderEntry, ...] | None
    use_strided_shard_as_shard_order: bool

    def __init__(self, mesh: DeviceMesh, placements: Placements, tensor_meta: TensorMeta) -> None:
        in_turns = any(isinstance(each, _StridedShard) for each in placements)
        values = mesh, placements, tensor_meta, None if in_turns else _order_of(placements), in_turns, None
        self.__setstate__(dict(zip(_FIELDS, values)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Raises: TypeError or ValueError for a state that is none of a DTensor."""
        mesh, placements, meta = (state.get(name) for name in _FIELDS[:3])
        if not isinstance(mesh, DeviceMesh) or not isinstance(meta, TensorMeta):
            raise TypeError("the state of a DTensor has a DeviceMesh and a TensorMeta")
        if not isinstance(placements, tuple) or not all(isinstance(each, Placement) for each in placements):
            raise TypeError("the placements of a DTensor must be a tuple of placements")
        ndim = len(meta.shape)
        if len(placements) != mesh.ndim or any(
            not 0 <= getattr(each, "dim", 0) < max(ndim, 1) for each in placements
        ):
            raise ValueError(f"the placements {placements} do not fit a tensor of {ndim} dims on {mesh}")
        self.__dict__.update({name: state.get(name) for name in _FIELDS})

    def whole(self, like: Spec) -> Spec:
        """The spec of the whole tensor, of which one with the spec `like` is a part."""
        shape, stride, dtype = self.tensor_meta
        return make_spec(Size(shape), tuple(stride), dtype, like.device)


def _order_of(placements: Placements) -> tuple[ShardOrderEntry, ...]:
    dims = sorted({each.dim for each in placements if isinstance(each, Shard)})
    return tuple(
        [
            ShardOrderEntry(dim, tuple([k for k, each in enumerate(placements) if each == Shard(dim)]))
            for dim in dims
        ]
    )
