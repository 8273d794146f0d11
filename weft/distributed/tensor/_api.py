"""DTensor: a tensor that lies on the processes of a mesh. One process has all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autograd.parameter import Parameter
from ...core.names import set_name
from ...core.overrides import DisableTorchFunctionSubclass, disabled
from ...core.tensor import Tensor
from ...nn.module import Module
from ...ops.creation import creation, random
from ..device_mesh import DeviceMesh, _mesh_resources
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

    The mesh has one process, so the part is the whole, and a result's placements say little: they are those of the
    first operand if the sizes are equal, else Replicate().

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
        """The DTensor of which this process has the part `local_tensor`."""
        mesh, places = _checked(local_tensor, device_mesh, placements)
        return wrapped(local_tensor, mesh, places)

    def to_local(self, *, grad_placements: Any = None) -> Tensor:
        """The part of this process."""
        with DisableTorchFunctionSubclass():
            return self.as_subclass(Tensor)

    def full_tensor(self, *, grad_placements: Any = None) -> Tensor:
        """The whole tensor."""
        return self.to_local()

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """The same tensor with other placements."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if any(place.is_partial() for place in placements):
            raise RuntimeError(
                "Can not redistribute to Partial, redistributing to Partial is for internal use only!"
            )
        mesh, places = _checked(self, device_mesh or self._device_mesh, placements)
        return wrapped(self.to_local(), mesh, places)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        with DisableTorchFunctionSubclass():
            local = self._local_tensor
            return f"DTensor(local_tensor={local}, device_mesh={self._device_mesh}, placements={self._placements})"


def wrapped(local: Tensor, mesh: DeviceMesh, placements: tuple[Placement, ...]) -> DTensor:
    """`local` as a DTensor; gradients flow through."""
    from ._dispatch import dtensor_class  # that class is defined when it is first needed

    with DisableTorchFunctionSubclass():
        made = local.as_subclass(dtensor_class())
    made._device_mesh, made._placements = mesh, placements
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
    """Distribute a tensor over a mesh; the DTensor has memory of its own. Raises: RuntimeError for a non-leaf."""
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
    made = wrapped(tensor.detach().clone().as_subclass(Tensor), mesh, places)
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
        made = function(*size, dtype=dtype)
        mesh, places = _checked(made, device_mesh, placements)
        return wrapped(made, mesh, places).requires_grad_(requires_grad)

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

    made = creation.full(size, fill_value, dtype=dtype)
    mesh, places = _checked(made, device_mesh, placements)
    return wrapped(made, mesh, places).requires_grad_(requires_grad)


for _value in (DTensor, distribute_tensor, distribute_module, full):
    set_name(_value, __name__.rpartition(".")[0], _value.__name__)
