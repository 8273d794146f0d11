"""Parameters that are cut: one collective gathers all those of a module, and another adds their gradients up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...autograd.parameter import Parameter
from ...core.dtype import DType
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...nn.module import Module
from ...ops.assembly.joining import cat
from .. import _collectives
from ..device_mesh import DeviceMesh
from ..tensor import DTensor, Replicate, Shard, distribute_tensor
from ..tensor._storage import Placements, wrap
from ..tensor.placement_types import Placement, _StridedShard, is_cut
from ._communication import Communication


class Cut:
    """A parameter that is cut along the last dim of a mesh, and the modules that have it under a name.

    A DTensor, which tensor parallelism has cut along other dims of the mesh, is cut further: `beyond` says how it lies on them.
    """

    def __init__(self, given: Parameter, mesh: DeviceMesh, place: Placement):
        self.owners: list[tuple[Module, str]] = []
        self.is_summoned = (
            False  # whether modules have the whole parameter for a while, by `summon_full_params`
        )
        self.mesh, self.place = mesh, place
        places = (place,) if mesh.ndim == 1 else (Replicate(), place)
        value: Any = given.detach()
        self.beyond: tuple[DeviceMesh, Placements, Spec] | None = None
        if isinstance(value, DTensor):
            self.beyond = value.device_mesh, value.placements, value.spec
            value = value.to_local()
        self.spec = value.spec  # of what the processes of the mesh have together
        cut: Any = distribute_tensor(value, mesh, places, src_data_rank=None)
        if self.beyond is not None:
            cut = _on_both(cut, *self.beyond)
        self.parameter: Any = Parameter(cut, requires_grad=given.requires_grad)
        self.count = mesh.size(mesh.ndim - 1) if is_cut(place) else 1  # of pieces
        self.piece = list(self.spec.shape)  # sizes of the largest piece
        if is_cut(place):
            self.piece[place.dim] = -(-self.piece[place.dim] // self.count)

    def renew(self) -> None:
        """Use the parameter that `load_state_dict(assign=True)` has put in the place of this one.

        Raises: RuntimeError if it does not lie as this one does.
        """
        module, name = self.owners[0]
        given: Any = module._parameters[name]
        if given is self.parameter or self.is_summoned:
            return
        old = self.parameter._storage
        new = given._storage if isinstance(given, DTensor) else None
        if (
            new is None
            or (new.mesh, new.placements) != (old.mesh, old.placements)
            or given.shape != self.parameter.shape
        ):
            lies = f"placements {given.placements}" if isinstance(given, DTensor) else "no placements"
            raise RuntimeError(
                f"{type(module).__name__}.{name} was replaced by a {type(given).__name__} of size {list(given.shape)} with {lies}, but fully_shard "
                f"needs a DTensor of size {list(self.parameter.shape)} on {old.mesh} with placements {old.placements}: "
                "make it by distribute_tensor()"
            )
        self.parameter = given
        for other, own_name in self.owners:
            other._parameters[own_name] = given

    @property
    def local(self) -> Tensor:
        """The part of this process."""
        return self.parameter._storage.local

    def padded(self, dtype: DType) -> Tensor:
        """The part of this process in a row, as long as the largest one."""
        local = self.local.detach().to(dtype)
        if list(local.spec.shape) != self.piece:
            whole = local.new_zeros(self.piece)
            whole.narrow(self.place.dim, 0, local.spec.shape[self.place.dim]).copy_(local)  # type: ignore[attr-defined]
            local = whole
        return local.reshape(-1)

    def joined(self, pieces: Tensor) -> Tensor:
        """The whole tensor, from [pieces, elements of each]."""
        if self.count == 1:
            return _alone(pieces.reshape(self.spec.shape))
        dim: int = self.place.dim  # type: ignore[attr-defined]
        sizes = list(self.piece)
        sizes[dim] *= self.count
        rows = pieces.reshape(self.count, *self.piece).movedim(0, dim).reshape(sizes)
        return _alone(rows.narrow(dim, 0, self.spec.shape[dim]))

    def pieces(self, gradient: Tensor) -> Tensor:
        """The pieces of a gradient: [pieces, elements of each]."""
        if self.count == 1:
            return gradient.reshape(1, -1)
        dim: int = self.place.dim  # type: ignore[attr-defined]
        sizes = [*self.spec.shape[:dim], self.count, self.piece[dim], *self.spec.shape[dim + 1 :]]
        flat = list(self.spec.shape)
        flat[dim] = self.count * self.piece[dim]
        if flat != list(gradient.spec.shape):
            padded = gradient.new_zeros(flat)
            padded.narrow(dim, 0, gradient.spec.shape[dim]).copy_(gradient)
            gradient = padded
        return gradient.reshape(sizes).movedim(dim, 0).reshape(self.count, -1)

    def part(self, piece: Tensor) -> Any:
        """The gradient that belongs to the parameter, from this process's piece of it in a row."""
        found = piece.reshape(self.piece).to(self.spec.dtype)
        if self.count > 1:
            dim: int = self.place.dim  # type: ignore[attr-defined]
            found = found.narrow(dim, 0, self.local.spec.shape[dim])
        storage = self.parameter._storage
        return wrap(found.contiguous(), self.parameter.spec, storage.mesh, storage.placements)

    def as_used(self, whole: Tensor) -> Tensor:
        """What modules find: the whole tensor, or the DTensor that tensor parallelism made. Autograd follows."""
        if self.beyond is None:
            return whole
        mesh, places, spec = self.beyond
        return DTensor.from_local(whole, mesh, places, shape=spec.shape, stride=spec.stride)


def _alone(tensor: Tensor) -> Tensor:
    """The tensor in memory that it shares with no other one, which can be freed."""
    is_alone = tensor.is_contiguous() and tensor._storage.nbytes_ == tensor.spec.nbytes
    return tensor if is_alone else tensor.clone().contiguous()


def _on_both(cut: Any, beyond: DeviceMesh, places: Placements, whole: Spec) -> Any:
    """A DTensor of parts that tensor parallelism made, as one on the mesh with all dims.

    Raises: ValueError if the two meshes are not parts of one.
    """
    mesh = cut.device_mesh
    names = (*(mesh.mesh_dim_names or ()), *(beyond.mesh_dim_names or ()))
    root = mesh._get_root_mesh()
    if root is not beyond._get_root_mesh() or len(names) != mesh.ndim + beyond.ndim:
        raise ValueError(
            f"fully_shard(mesh={mesh}) of a parameter that lies on {beyond}: both must be parts, with names, of one mesh such as "
            'init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))'
        )
    outer: list[Placement] = []
    for each in cut.placements:
        factor = 1
        for size, other in zip(beyond.shape, places, strict=True):
            factor *= size if isinstance(each, Shard) and other == each else 1
        outer.append(_StridedShard(each.dim, split_factor=factor) if factor > 1 else each)
    return wrap(cut._storage.local, whole, root[names], (*outer, *places))


class Gathering:
    """The whole tensors of several parameters, on their way."""

    def __init__(
        self, cuts: Sequence[Cut], dtype: DType | None, async_op: bool, communication: Communication
    ):
        self.cuts = cuts
        self.versions = [cut.local._version for cut in cuts]
        self._buffers: list[tuple[list[Cut], Tensor]] = []
        self._works: list[Any] = []
        for kind, own in _by_dtype([(cut, dtype or cut.spec.dtype) for cut in cuts]):
            row = cat([cut.padded(kind) for cut in own])
            found = row.unsqueeze(0)
            if own[0].count > 1:
                gather, count = communication.all_gather, own[0].count
                output = gather.allocate((count * row.spec.numel,), dtype=kind, device=row.spec.device)
                group = own[0].mesh.get_group(own[0].mesh.ndim - 1)
                self._works.append(
                    gather(output_tensor=output, input_tensor=row, group=group, async_op=async_op)
                )
                found = output.view(count, -1)
            self._buffers.append((own, found))

    @property
    def is_current(self) -> bool:
        """Whether the parameters have the values that were sent."""
        return self.versions == [cut.local._version for cut in self.cuts]

    def wait(self) -> list[Tensor]:
        """The whole tensors, each in memory of its own."""
        for work in self._works:
            if work is not None:
                work.wait()
        found: dict[Cut, Tensor] = {}
        for own, rows in self._buffers:
            for cut, pieces in zip(own, rows.split([_elements(cut) for cut in own], 1), strict=True):
                found[cut] = cut.joined(pieces)
        self._buffers = []
        return [found[cut] for cut in self.cuts]


class Kept:
    """Whole tensors of the pass before, in the place of a Gathering. `versions`: those of the parameters when they were gathered."""

    def __init__(self, cuts: Sequence[Cut], versions: list[int], wholes: list[Tensor]):
        self.cuts, self.versions, self.wholes = cuts, versions, wholes

    @property
    def is_current(self) -> bool:
        """Whether the parameters have not changed since."""
        return self.versions == [cut.local._version for cut in self.cuts]

    def wait(self) -> list[Tensor]:
        return self.wholes


def _elements(cut: Cut) -> int:
    found = 1
    for size in cut.piece:
        found *= size
    return found


def _by_dtype(given: Iterable[tuple[Cut, DType]]) -> Iterable[tuple[DType, list[Cut]]]:
    """The parameters of each dtype and number of pieces."""
    found: dict[tuple[DType, int], list[Cut]] = {}
    for cut, dtype in given:
        found.setdefault((dtype, cut.count), []).append(cut)
    return [(dtype, own) for (dtype, _), own in found.items()]


class Averaging:
    """The average over all processes of the gradients of several parameters, on its way. Each process gets its parts."""

    def __init__(
        self,
        cuts: Sequence[Cut],
        gradients: Sequence[Tensor],
        dtype: DType | None,
        async_op: bool,
        communication: Communication,
    ):
        self.cuts, self.communication = cuts, communication
        self._buffers: list[tuple[list[Cut], Tensor]] = []
        self._works: list[Any] = []
        given = dict(zip(cuts, gradients, strict=True))
        for kind, own in _by_dtype([(cut, dtype or given[cut].spec.dtype) for cut in cuts]):
            rows = cat([cut.pieces(given[cut].to(kind)) for cut in own], 1).contiguous()
            mesh, piece = own[0].mesh, rows
            group, op = mesh.get_group(mesh.ndim - 1), communication.op
            if own[0].count > 1:
                scatter = communication.reduce_scatter
                piece = scatter.allocate((rows.spec.shape[1],), dtype=kind, device=rows.spec.device)
                work = scatter(
                    output_tensor=piece, input_tensor=rows.view(-1), group=group, op=op, async_op=async_op
                )
            else:
                work = communication.all_reduce(piece, op=op, group=group, async_op=async_op)
            self._works.append(work)
            self._buffers.append((own, piece))

    def wait(self) -> list[Any]:
        """For each parameter the part of this process; None where groups with the same parts do not add theirs up yet."""
        for work in self._works:
            if work is not None:
                work.wait()
        found: dict[Cut, Any] = {}
        for own, piece in self._buffers:
            if self._is_for_all(own, piece):
                self.communication.finish(piece, own[0].mesh.size())
                parts = piece.view(-1).split([_elements(cut) for cut in own])
                found.update((cut, cut.part(part)) for cut, part in zip(own, parts, strict=True))
        self._buffers = []
        return [found.get(cut) for cut in self.cuts]

    def _is_for_all(self, own: Sequence[Cut], piece: Tensor) -> bool:
        """Add up the gradients of the groups that have the same parts, unless they are to be kept for a later pass."""
        mesh, partial = own[0].mesh, self.communication.partial
        if mesh.ndim == 1:
            return True
        before = partial.pop(tuple(own), None)
        if before is not None:
            piece += before
        if not self.communication.all_reduces:
            partial[tuple(own)] = piece
            return False
        for mesh_dim in range(mesh.ndim - 1):
            _collectives.all_reduce(piece, op=self.communication.op, group=mesh.get_group(mesh_dim))
        return True
