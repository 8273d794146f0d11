"""`torch.distributed.device_mesh`: the processes of a group as an array with named dimensions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import prod
from types import TracebackType
from typing import Any

from ..core.dtype import int32
from ..core.spec import contiguous_stride
from ..core.tensor import Tensor
from ..ops.creation.from_data import as_tensor
from ._group import ProcessGroup
from ._groups import init_process_group, new_group
from ._world import GroupMember, _get_default_group, get_rank, get_world_size, is_initialized

__all__ = ["init_device_mesh", "DeviceMesh"]


class DeviceMesh:
    """An array of ranks. Each of its dimensions has a process group, of the ranks along it that this process is one of.

    All processes have to make the same meshes in the same order. Raises: RuntimeError for more ranks than there are processes.

    >>> import weft as torch
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    >>> mesh, mesh["tp"].size(), mesh.get_local_rank("dp")
    (DeviceMesh((dp=1, tp=1), 'cpu', stride=((), ())), 1, 0)
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
        _rank: int | None = None,
        _layout: Any = None,
        _rank_map: Any = None,
        _root_mesh: DeviceMesh | None = None,
    ) -> None:
        if not is_initialized():
            init_process_group()
        ranks = as_tensor(mesh, dtype=int32).cpu()
        if ranks.numel() > get_world_size():
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {get_world_size()}, but found "
                f"{ranks.numel()} ranks!"
            )
        strides = contiguous_stride(tuple(ranks.shape))
        self._set(device_type, ranks.unsqueeze(0), strides, mesh_dim_names, _root_mesh, [])
        if _init_backend:
            self._groups = [_groups_along(self._family, dim) for dim in range(ranks.dim())]

    def _set(
        self,
        device_type: str,
        family: Tensor,
        strides: Sequence[int],
        names: Sequence[str] | None,
        root: DeviceMesh | None,
        groups: list[Any],
    ) -> DeviceMesh:
        """Become the mesh of a family, [meshes, ...], that this process is in; the meshes of a family have no rank in common.

        strides: how far apart neighbours are in the mesh that the first one was taken from.
        """
        self._device_type = device_type
        self._family = family
        self._strides = tuple(strides)
        self._mesh_dim_names = None if names is None else tuple(names)
        self._root_mesh = root
        self._flatten_mapping: dict[str, DeviceMesh] = {}
        self._groups = groups
        own = get_rank()
        rows = family.flatten(1).tolist()
        number = next((number for number, ranks in enumerate(rows) if own in ranks), 0)
        self._mesh = family[number]
        self._coordinate = _place_of(rows[number].index(own), self.shape) if own in rows[number] else None
        return self

    @property
    def device_type(self) -> str:
        return self._device_type

    @property
    def mesh(self) -> Tensor:
        """The ranks."""
        return self._mesh

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        return self._mesh_dim_names

    @property
    def ndim(self) -> int:
        return self._mesh.dim()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of ranks, along one dimension or in all."""
        return self._mesh.numel() if mesh_dim is None else self.shape[mesh_dim]

    def __repr__(self) -> str:
        sizes = self.shape
        if self._mesh_dim_names is not None:
            shape = ", ".join(f"{name}={size}" for name, size in zip(self._mesh_dim_names, sizes))
            shape = f"({shape})"
        else:
            shape = str(sizes)
        strides = tuple(() if size == 1 else stride for size, stride in zip(sizes, self._strides))
        return f"DeviceMesh({shape}, {self._device_type!r}, stride={strides})"

    def _key(self) -> tuple[Any, ...]:
        return (self._device_type, self.shape, tuple(self._mesh.flatten().tolist()), self._mesh_dim_names)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, DeviceMesh) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    # ---- This process

    def get_rank(self) -> int:
        """The global rank of this process."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Where this process is in the mesh, None if it is not there."""
        return self._coordinate

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along a dimension."""
        if self.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions: `mesh_dim` needs to be specified when "
                "device_mesh.ndim > 1."
            )
        return self.get_group(mesh_dim).rank()

    # ---- Groups

    def _place(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions: `mesh_dim` needs to be specified when "
                    "device_mesh.ndim > 1; `get_all_groups()` gives the groups of all."
                )
            return 0
        if isinstance(mesh_dim, int):
            return mesh_dim
        names = self._mesh_dim_names or ()
        if mesh_dim not in names:
            raise KeyError(
                f"Mesh dimension '{mesh_dim}' does not exist. Available mesh dimensions are: {names}"
            )
        return names.index(mesh_dim)

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of the ranks along a dimension that this process is in."""
        if isinstance(mesh_dim, str) and mesh_dim in self._get_root_mesh()._flatten_mapping:
            return self._get_root_mesh()._flatten_mapping[mesh_dim].get_group()
        return self._groups[self._place(mesh_dim)]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The group of each dimension."""
        return list(self._groups)

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:
        """A mesh whose dimensions have these groups."""
        groups = group if isinstance(group, list | tuple) else [group]
        if not groups:
            raise ValueError("Expect at least one ProcessGroup to be specified")
        if mesh is None:
            if len(groups) > 1:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            mesh = list(range(groups[0].size()))
        found = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if found.ndim != len(groups):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got "
                f"mesh {found.mesh.tolist()} and {len(groups)} ProcessGroups"
            )
        found._groups = list(groups)
        return found

    # ---- Parts

    def _get_root_mesh(self) -> DeviceMesh:
        """The mesh that this one was taken from."""
        return self._root_mesh or self

    def _part(
        self, family: Tensor, strides: Sequence[int], names: Sequence[str] | None, groups: list[ProcessGroup]
    ) -> DeviceMesh:
        part = DeviceMesh.__new__(DeviceMesh)
        return part._set(self._device_type, family, strides, names, self._get_root_mesh(), groups)

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh with the named dimensions that this process is in."""
        if self._mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._mesh_dim_names:
            return self
        flat = self._get_root_mesh()._flatten_mapping
        if len(names) == 1 and names[0] in flat:
            return flat[names[0]]
        wrong = [name for name in names if name not in self._mesh_dim_names]
        if wrong:
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {[*self._mesh_dim_names, *flat]}."
            )
        places = [self._mesh_dim_names.index(name) for name in names]
        others = [place for place in range(self.ndim) if place not in places]
        family = self._family.permute(0, *[1 + place for place in (*others, *places)])
        family = family.reshape(-1, *[self.shape[place] for place in places])
        strides = [self._strides[place] for place in places]
        return self._part(family, strides, names, [self._groups[place] for place in places])

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """The mesh with one dimension, which the mesh that it was taken from then knows by name."""
        if self._mesh_dim_names is None:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._mesh_dim_names)
        family = self._family.flatten(1)
        stride = next(
            (stride for stride, size in zip(reversed(self._strides), reversed(self.shape)) if size > 1), 1
        )
        flat = self._part(family, (stride,), (name,), [_groups_along(family, 0)])
        self._get_root_mesh()._flatten_mapping[name] = flat
        return flat

    def _unflatten(
        self,
        dim: int | str,
        mesh_sizes: Sequence[int],
        mesh_dim_names: Sequence[str],
        backend_override: Any = None,
    ) -> DeviceMesh:
        """The mesh with one dimension divided into several."""
        place = self._place(dim)
        if prod(mesh_sizes) != self.shape[place]:
            raise ValueError(f"mesh_sizes={tuple(mesh_sizes)} must multiply to {self.shape[place]}")
        names = list(self._mesh_dim_names or ())
        names[place : place + 1] = mesh_dim_names
        family = self._family.unflatten(1 + place, tuple(mesh_sizes))
        inner = [self._strides[place] * stride for stride in contiguous_stride(tuple(mesh_sizes))]
        strides = [*self._strides[:place], *inner, *self._strides[place + 1 :]]
        made = [_groups_along(family, place + k) for k in range(len(mesh_sizes))]
        return self._part(family, strides, names, [*self._groups[:place], *made, *self._groups[place + 1 :]])

    @staticmethod
    def _concatenate(device_mesh_list: Sequence[DeviceMesh]) -> DeviceMesh:
        """A mesh with the dimensions of several parts of one mesh."""
        names = tuple(name for mesh in device_mesh_list for name in mesh.mesh_dim_names or ())
        return device_mesh_list[0]._get_root_mesh()[names]

    def __enter__(self) -> DeviceMesh:
        """Let functions that take a mesh use this one."""
        _mesh_resources.mesh_stack.append(self)
        return self

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _mesh_resources.mesh_stack.pop()


def _groups_along(family: Tensor, dim: int) -> ProcessGroup:
    """The group of the ranks along a dimension of the meshes that this process is in. All processes make all groups."""
    rows = family.movedim(1 + dim, -1).reshape(-1, family.shape[1 + dim]).tolist()
    if rows == [list(range(get_world_size()))]:
        return _get_default_group()
    made = [(ranks, new_group(ranks, sort_ranks=False)) for ranks in rows]
    return next((group for ranks, group in made if get_rank() in ranks), GroupMember.NON_GROUP_MEMBER)  # type: ignore[return-value]


def _place_of(number: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The indices of element `number` in an array of this shape."""
    place: list[int] = []
    for size in reversed(shape):
        number, index = divmod(number, size)
        place.insert(0, index)
    return tuple(place)


class _MeshEnv(threading.local):
    """The meshes whose `with` statements this thread is in."""

    def __init__(self) -> None:
        self.mesh_stack: list[DeviceMesh] = []

    def get_current_mesh(self) -> DeviceMesh:
        if not self.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.mesh_stack[-1]

    def get_root_mesh(self, device_mesh: DeviceMesh) -> DeviceMesh:
        return device_mesh._get_root_mesh()

    @staticmethod
    def num_devices_per_host(device_type: str) -> int:
        return get_world_size()

    @staticmethod
    def num_hosts(device_type: str) -> int:
        return 1


_mesh_resources = _MeshEnv()


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """A mesh of all processes in the given shape."""
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! "
                f"Found len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{len(mesh_shape)}."
            )
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. "
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'."
        )
    if any(size < 0 for size in mesh_shape):
        raise RuntimeError(f"mesh_shape must not have negative sizes, but is {mesh_shape}")
    ranks = as_tensor(range(prod(mesh_shape)), dtype=int32).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
