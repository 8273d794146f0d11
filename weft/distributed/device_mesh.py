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
from ._mesh_layout import _FlatLayout, _MeshLayout
from ._world import (
    GroupMember,
    _get_default_group,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    is_initialized,
)

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
        family, places = ranks.unsqueeze(0), tuple((place,) for place in range(ranks.dim()))
        groups = [_groups_along(family, dim) for dim in range(ranks.dim())] if _init_backend else []
        self._set(device_type, family, strides, mesh_dim_names, _root_mesh, groups, places, get_rank())

    def _set(
        self,
        device_type: str,
        family: Tensor,
        strides: Sequence[int],
        names: Sequence[str] | None,
        root: DeviceMesh | None,
        groups: list[Any] | None,
        places: Sequence[tuple[int, ...]] | _MeshLayout,
        own: int,
    ) -> DeviceMesh:
        """Become the mesh of a family, [meshes, ...], that rank `own` is in; the meshes of a family have no rank in common.

        strides: how far apart neighbours are in the mesh that the first one was taken from. groups: None if they are not made yet.
        places: for each dimension, the dimensions of that mesh of which it consists; or how it lies there, from a file in which that mesh may follow.
        """
        self._device_type = device_type
        self._family = family
        self._strides = tuple(strides)
        self._mesh_dim_names = None if names is None else tuple(names)
        self._root_mesh = root
        self._flatten_mapping: dict[str, DeviceMesh] = {}
        self._made_groups = groups
        self._given_places = places
        self._rank = own
        rows = family.flatten(1).tolist()
        number = next((number for number, ranks in enumerate(rows) if own in ranks), 0)
        self._mesh = family[number]
        self._coordinate = _place_of(rows[number].index(own), self.shape) if own in rows[number] else None
        return self

    @property
    def _groups(self) -> list[Any]:
        """The group of each dimension. Those of a mesh from a file are made when they are first asked for, by all processes."""
        if self._made_groups is None:
            self._made_groups = [_groups_along(self._family, dim) for dim in range(self.ndim)]
        return self._made_groups

    @property
    def _places(self) -> tuple[tuple[int, ...], ...]:
        """For each dimension, the dimensions of the mesh that this one was taken from of which it consists."""
        if isinstance(self._given_places, _MeshLayout):
            root = self._get_root_mesh()
            steps = list(enumerate(zip(root.shape, root._strides)))
            axes = self._given_places.axes
            self._given_places = [tuple([dim for dim, step in steps if axis.has(*step)]) for axis in axes]
        return tuple(self._given_places)

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
        if self._made_groups is None and self._coordinate is not None:
            return self._coordinate[self._place(mesh_dim)]
        return self.get_group(mesh_dim).rank()

    # ---- Files

    def __getstate__(self) -> dict[str, Any]:
        """The mesh as in PyTorch's files, without its groups."""
        root = self._get_root_mesh()
        ranks = root._family.flatten()
        groups = self._made_groups or []
        return {
            "_device_type": self._device_type,
            "_layout": _MeshLayout([self._axis(dim) for dim in range(self.ndim)]),
            "_rank_map": ranks,
            "_mesh_dim_names": self._mesh_dim_names,
            "_root_mesh": self._root_mesh,
            "_flatten_rank_map": tuple(ranks.tolist()),
            "_thread_id": None,
            "_flatten_mapping": dict(self._flatten_mapping),
            "_dim_group_names": [each.group_name for each in groups if isinstance(each, ProcessGroup)],
            "_rank": self._rank,
            "_coordinate_on_dim": self._coordinate,
            "_hash": None,
        }

    def _axis(self, dim: int) -> _FlatLayout:
        """How a dimension lies among the ranks of the mesh that this one was taken from."""
        root, size = self._get_root_mesh(), self.shape[dim]
        steps = [(root.shape[place], root._strides[place]) for place in self._places[dim]]
        if prod(count for count, _ in steps) != size:  # a part of a dimension, by _unflatten
            steps = [(size, self._strides[dim])]
        return _FlatLayout.of(steps)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Raises: TypeError or ValueError for a state that is none of a mesh."""
        kinds = {
            "_device_type": str,
            "_layout": _MeshLayout,
            "_rank_map": Tensor,
            "_flatten_mapping": dict,
            "_rank": int,
        }
        for name, kind in kinds.items():
            if not isinstance(state.get(name), kind):
                raise TypeError(
                    f"{name} of a DeviceMesh must be {kind.__name__}, not {type(state.get(name)).__name__}"
                )
        ranks = state["_rank_map"]
        if ranks.dim() != 1 or not ranks.is_contiguous() or ranks.is_floating_point() or ranks.is_complex():
            raise ValueError("_rank_map of a DeviceMesh must be a vector of integers")
        names, root, layout = state.get("_mesh_dim_names"), state.get("_root_mesh"), state["_layout"]
        sizes = [prod(axis.shape) for axis in layout.axes]
        if names is not None and not (isinstance(names, tuple) and len(names) == len(sizes)):
            raise ValueError(f"a DeviceMesh of {len(sizes)} dimensions has the names {names}")
        if not isinstance(root, DeviceMesh | None) or not all(
            isinstance(each, DeviceMesh) for each in state["_flatten_mapping"].values()
        ):
            raise TypeError("the parts of a DeviceMesh must be of the class DeviceMesh")
        family = as_tensor(layout.meshes(ranks.tolist()), dtype=int32).reshape(-1, *sizes)
        strides = [axis.stride[-1] if axis.stride else 1 for axis in layout.axes]
        places = [(dim,) for dim in range(len(sizes))] if root is None else layout
        self._set(state["_device_type"], family, strides, names, root, None, places, state["_rank"])
        self._flatten_mapping = dict(state["_flatten_mapping"])

    # ---- Groups

    def _place(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified when "
                    "device_mesh.ndim > 1. `get_all_groups()` returns the groups of all dimensions."
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
        """The group of the ranks along a dimension that this process is in.

        Raises: RuntimeError if the mesh has no groups, or several and no dimension is given; KeyError for an unknown name; IndexError if
        this process is not in the mesh.
        """
        if isinstance(mesh_dim, str) and mesh_dim in self._get_root_mesh()._flatten_mapping:
            return self._get_root_mesh()._flatten_mapping[mesh_dim].get_group()
        place, groups = self._place(mesh_dim), self.get_all_groups()
        if self._coordinate is None:
            raise IndexError(
                f"get_group: rank {get_rank()} is not in {self}, which has the ranks {self._mesh.tolist()}"
            )
        return groups[place]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The group of each dimension. Raises: RuntimeError if the mesh was made without groups."""
        if len(self._groups) != self.ndim:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return list(self._groups)

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:
        """A mesh whose dimensions have these groups.

        Raises: ValueError unless `mesh` has a dimension for each group of a list, and for a single group its ranks in order; if a list comes
        without `mesh` or `mesh_dim_names`.
        """
        if isinstance(group, list | tuple):
            if not group:
                raise ValueError("Expects at least one ProcessGroup to be passed")
            for value, name in ((mesh, "mesh"), (mesh_dim_names, "mesh_dim_names")):
                if value is None:
                    raise ValueError(f"Must pass {name} if passing multiple ProcessGroups")
        else:
            ranks = get_process_group_ranks(group)
            if mesh is not None and as_tensor(mesh).tolist() != ranks:
                raise ValueError(
                    f"Invalid mesh {as_tensor(mesh).tolist()} for ProcessGroup with ranks {ranks}"
                )
            group, mesh = [group], ranks
        found = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if found.ndim != len(group):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got "
                f"mesh {found.mesh.tolist()} and {len(group)} ProcessGroups"
            )
        found._made_groups = list(group)
        return found

    # ---- Parts

    def _get_root_mesh(self) -> DeviceMesh:
        """The mesh that this one was taken from."""
        return self._root_mesh or self

    def _part(
        self,
        family: Tensor,
        strides: Sequence[int],
        names: Sequence[str] | None,
        groups: list[ProcessGroup],
        places: Sequence[tuple[int, ...]],
    ) -> DeviceMesh:
        part = DeviceMesh.__new__(DeviceMesh)
        root = self._get_root_mesh()
        return part._set(self._device_type, family, strides, names, root, groups, places, self._rank)

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh with the named dimensions that this process is in.

        The names of a mesh that was not taken from another one include those of the flattened dimensions that `_flatten` has made of it.

        Raises: RuntimeError for a mesh without names, and for dimensions that overlap; KeyError for unknown names, and for dimensions in another order than
        in the mesh.
        """
        if self._mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._mesh_dim_names:
            return self
        root = self._get_root_mesh()
        flat = root._flatten_mapping if self is root else {}
        if wrong := [name for name in names if name not in (*self._mesh_dim_names, *flat)]:
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified: there is no {wrong[0]!r}. Valid mesh_dim_names are "
                f"{[*self._mesh_dim_names, *flat]}."
            )
        if len(names) == 1 and names[0] in flat:
            return flat[names[0]]
        # (the mesh that has the dimension, its place there) for each name
        homes = [
            (self, self._mesh_dim_names.index(name)) if name in self._mesh_dim_names else (flat[name], 0)
            for name in names
        ]
        places = [home._places[place] for home, place in homes]
        self._check_order(names, places)
        inner = [place for each in places for place in each]
        outer = [place for place in range(root.ndim) if place not in inner]
        sizes = [home.shape[place] for home, place in homes]
        family = root._family.permute(0, *[1 + place for place in (*outer, *inner)]).reshape(-1, *sizes)
        strides = [home._strides[place] for home, place in homes]
        return self._part(family, strides, names, [home._groups[place] for home, place in homes], places)

    def _check_order(self, names: Sequence[str], places: Sequence[tuple[int, ...]]) -> None:
        """Raises: RuntimeError if dimensions overlap, KeyError if they are in another order than those of the root mesh; size 1 has no order."""
        sizes = self._get_root_mesh().shape
        found = [place for each in places for place in each if sizes[place] > 1]
        if len(set(found)) < len(found):
            raise RuntimeError(f"Slicing overlapping dim_names {tuple(names)} is not allowed.")
        if found != sorted(found):
            raise KeyError(
                f"Invalid mesh_dim_names {tuple(names)} specified. Mesh dim indices should be in ascending order."
            )

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """The mesh with one dimension, which the mesh that it was taken from then knows by name.

        Raises: ValueError if that mesh has another dimension of this name.
        """
        if self._mesh_dim_names is None:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._mesh_dim_names)
        if self._mesh_dim_names == (name,):
            return self
        root = self._get_root_mesh()
        if name in (root._mesh_dim_names or ()):
            raise ValueError(
                f"_flatten: {name} already exists for submesh of the {root}. Give another mesh_dim_name."
            )
        places = tuple(place for each in self._places for place in each)
        if (before := root._flatten_mapping.get(name)) is not None:
            if before._places == (places,):
                return before
            raise ValueError(
                f"Flatten mesh with mesh_dim_name {name} has been created before, Please specify another valid mesh_dim_name."
            )
        family = self._family.flatten(1)
        stride = next(
            (stride for stride, size in zip(reversed(self._strides), reversed(self.shape)) if size > 1), 1
        )
        flat = self._part(family, (stride,), (name,), [_groups_along(family, 0)], [places])
        root._flatten_mapping[name] = flat
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
        groups = [*self._groups[:place], *made, *self._groups[place + 1 :]]
        places = [*self._places[:place], *[self._places[place]] * len(made), *self._places[place + 1 :]]
        return self._part(family, strides, names, groups, places)

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
