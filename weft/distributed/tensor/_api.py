"""DTensor: a tensor that lies on the processes of a mesh. One process has all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autograd.parameter import Parameter
from ...core.layout import contiguous_format
from ...core.names import set_name
from ...core.overrides import DisableTorchFunctionSubclass, disabled
from ...core.size import Size
from ...core.tensor import Tensor
from ...nn.module import Module
from ...ops.creation import creation, random
from .._collectives import broadcast
from ..device_mesh import DeviceMesh, _mesh_resources
from ._transitions import from_replica, to_replica
from .placement_types import Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "distribute_tensor",
    "distribute_module",
    "ones",
    "empty",
    "full",
    "rand",
    "randn",
    "zeros",
]


class DTensor(Tensor):
    """A tensor of all processes of a mesh, of which this one has a part. Operations on DTensors give DTensors.

    An operation works on the parts where `_rules.py` has a rule for it; otherwise all processes compute the whole result from whole
    operands. The object is the part with other attributes: `shape` and the like tell of the whole tensor.

    >>> import weft as torch
    >>> from weft.distributed.tensor import Shard, distribute_tensor
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = distribute_tensor(torch.ones(2), dist.init_device_mesh("cpu", (1,)), [Shard(0)])
    >>> (x + 1).to_local(), isinstance(x, dist.tensor.DTensor), isinstance(torch.ones(1), dist.tensor.DTensor)
    (tensor([2., 2.]), True, False)
    >>> dist.destroy_process_group()
    """

    # Objects are of the subclass in _dispatch.py. It is defined when the first DTensor is made, because every call of a
    # function is slower once a class with a `__torch_function__` of its own exists, and most programs only ask
    # isinstance(x, DTensor).
    __torch_function__ = disabled

    _device_mesh: DeviceMesh
    _placements: tuple[Placement, ...]
    _shape: Size

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of processes."""
        return self._device_mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """For each dimension of the mesh how the tensor lies along it."""
        return self._placements

    @property
    def _local_tensor(self) -> Tensor:
        with DisableTorchFunctionSubclass():
            return self.detach().as_subclass(Tensor)

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
        grad_placements: Any = None,
    ) -> DTensor:
        """The DTensor of which this process has the part `local_tensor`.

        shape: of the whole; without it all processes must have parts of one size.
        """
        mesh, places = _checked(local_tensor, device_mesh, placements)
        whole = list(local_tensor.shape)
        for size, place in zip(mesh.shape, places):
            if isinstance(place, Shard):
                whole[place.dim] *= size
        return wrapped(
            local_tensor.view_as(local_tensor), mesh, places, Size(whole if shape is None else shape)
        )

    def to_local(self, *, grad_placements: Any = None) -> Tensor:
        """The part of this process."""
        with DisableTorchFunctionSubclass():
            return self.as_subclass(Tensor)

    def full_tensor(self, *, grad_placements: Any = None) -> Tensor:
        """The whole tensor."""
        return redistributed(self, [Replicate()] * self._device_mesh.ndim)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """The same tensor with other placements. Raises: NotImplementedError for another mesh."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if any(place.is_partial() for place in placements):
            raise RuntimeError(
                "Can not redistribute to Partial, redistributing to Partial is for internal use only!"
            )
        mesh, places = _checked(self, device_mesh or self._device_mesh, placements)
        if mesh != self._device_mesh:
            raise NotImplementedError("DTensor.redistribute to another device mesh")
        return wrapped(redistributed(self, places), mesh, places, self._shape)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        with DisableTorchFunctionSubclass():
            local = self._local_tensor
            return f"DTensor(local_tensor={local}, device_mesh={self._device_mesh}, placements={self._placements})"


def redistributed(tensor: DTensor, placements: Sequence[Placement]) -> Tensor:
    """The part of this process if `tensor` had these placements. Gradients flow through."""
    local, mesh = tensor.to_local(), tensor._device_mesh
    now, then = list(tensor._placements), list(placements)
    changed = _changed(now, then)
    shape = list(tensor._shape)
    with DisableTorchFunctionSubclass():
        for dim in reversed(changed):
            place = now[dim]
            size = _size_before(shape, mesh, now, dim) if isinstance(place, Shard) else 0
            local = to_replica(local, place, mesh.get_group(dim), size)
        for dim in changed:
            local = from_replica(local, then[dim], mesh.get_group(dim))
    return local


def _changed(now: Sequence[Placement], then: Sequence[Placement]) -> list[int]:
    """The dimensions of a mesh whose placements have to change.

    A tensor that is cut along one of its dimensions by several of the mesh is cut by the first of them first. So the later ones change, too.
    """
    found: list[int] = []
    for dim, pair in enumerate(zip(now, then)):
        cut = {each.dim for each in pair if isinstance(each, Shard)}
        earlier = {each.dim for k in found for each in (now[k], then[k]) if isinstance(each, Shard)}
        if pair[0] != pair[1] or cut & earlier:
            found.append(dim)
    return found


def _size_before(
    shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], mesh_dim: int
) -> int:
    """The size of the dimension that `mesh_dim` cuts, after the mesh's earlier dimensions have cut it."""
    place = placements[mesh_dim]
    assert isinstance(place, Shard)
    size = shape[place.dim]
    for dim in range(mesh_dim):
        if placements[dim] == place:
            group = mesh.get_group(dim)
            size = Shard.local_shard_size_and_offset(size, group.size(), group.rank())[0]
    return size


def wrapped(local: Tensor, mesh: DeviceMesh, placements: tuple[Placement, ...], shape: Size) -> DTensor:
    """`local` as a part of a DTensor; gradients flow through."""
    from ._dispatch import dtensor_class  # that class is defined when it is first needed

    with DisableTorchFunctionSubclass():
        made = local.as_subclass(dtensor_class())
    made._device_mesh, made._placements, made._shape = mesh, placements, shape
    return made


def _checked(
    tensor: Tensor, mesh: DeviceMesh | None, placements: Sequence[Placement] | None
) -> tuple[DeviceMesh, tuple[Placement, ...]]:
    """The mesh and placements, with what is left out filled in and dimensions counted from the front."""
    mesh = mesh or _mesh_resources.get_current_mesh()
    chosen = [Replicate() for _ in range(mesh.ndim)] if placements is None else list(placements)
    if len(chosen) != mesh.ndim:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(chosen)}, and device_mesh.ndim: {mesh.ndim}."
        )
    front = (Shard(p.dim % tensor.dim()) if isinstance(p, Shard) and p.dim < 0 else p for p in chosen)
    return mesh, tuple(front)


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Distribute a tensor over a mesh; the DTensor has memory of its own. Raises: RuntimeError for a non-leaf.

    src_data_rank: the rank of each dimension of the mesh whose values count; None takes those of each process.
    """
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!"
        )
    mesh, places = _checked(tensor, device_mesh, placements)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to {mesh}.")
        if tensor.placements != places:
            raise ValueError(f"Cannot distribute a DTensor with placements {tensor.placements} to {places}.")
        return tensor
    local = tensor.detach().clone(memory_format=contiguous_format).as_subclass(Tensor)
    for group, place in zip(mesh.get_all_groups(), places):
        if src_data_rank is not None and group.size() > 1:
            broadcast(local, group=group, group_src=src_data_rank)
        local = from_replica(local, place, group)
    made = wrapped(local, mesh, places, tensor.shape)
    return made.requires_grad_(tensor.requires_grad)


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Module, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Module:
    """Make DTensors of the parameters and buffers of a module.

    `partition_fn(name, submodule, mesh)` does so for some; the others become replicated. `input_fn` and `output_fn`
    change what the module gets and gives.
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, mesh)
        for key, parameter in list(each._parameters.items()):
            if parameter is not None and not isinstance(parameter, DTensor):
                replica = Parameter(
                    distribute_tensor(parameter.data, mesh), requires_grad=parameter.requires_grad
                )
                each.register_parameter(key, replica)
        for key, buffer in list(each._buffers.items()):
            if buffer is not None and not isinstance(buffer, DTensor):
                each._buffers[key] = distribute_tensor(buffer, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda owner, inputs: input_fn(owner, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda owner, inputs, outputs: output_fn(owner, outputs, mesh))
    return module


def _distributed(
    whole: Tensor, mesh: DeviceMesh | None, placements: Sequence[Placement] | None, requires_grad: bool
) -> DTensor:
    """A tensor that every process has made, as a DTensor. Random numbers are those of the first process."""
    return distribute_tensor(whole, mesh, placements).requires_grad_(requires_grad)


def _factory(function: Callable, summary: str) -> Callable[..., DTensor]:
    """The function that makes a DTensor as `function` makes a tensor."""

    def make(
        *size: Any,
        dtype: Any = None,
        layout: Any = None,
        requires_grad: bool = False,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        return _distributed(function(*size, dtype=dtype), device_mesh, placements, requires_grad)

    make.__doc__ = summary
    set_name(make, __name__.rpartition(".")[0], function.__name__)
    return make


ones = _factory(creation.ones, "A DTensor of ones.")
zeros = _factory(creation.zeros, "A DTensor of zeros.")
empty = _factory(creation.empty, "A DTensor with any values.")
rand = _factory(random.rand, "A DTensor of random numbers between 0 and 1.")
randn = _factory(random.randn, "A DTensor of normally distributed random numbers.")


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """A DTensor of one value."""

    return _distributed(creation.full(size, fill_value, dtype=dtype), device_mesh, placements, requires_grad)


for _value in (DTensor, distribute_tensor, distribute_module, full):
    set_name(_value, __name__.rpartition(".")[0], _value.__name__)
