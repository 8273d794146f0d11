"""DTensor: a tensor that lies on the processes of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autograd.parameter import Parameter
from ...core.device import CPU, device
from ...core.layout import strided
from ...core.names import set_name
from ...core.overrides import DisableTorchFunctionSubclass, disabled
from ...core.spec import Spec, contiguous_spec, make_spec
from ...core.tensor import Tensor, is_whole, make
from ...core.tensor import empty as empty_tensor
from ...families.custom_vjp import custom_vjp
from ...nn.module import Module
from ...ops.creation import creation, random
from ...ops.tensor.pickling import attributes
from ...serialization import rebuild
from ...serialization.allowed import add_globals_of_weft
from .. import _collectives
from .._mesh_layout import _FlatLayout, _MeshLayout
from ..device_mesh import DeviceMesh, _mesh_resources
from ._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
from ._redistribute import redistributed, sent
from ._rules import as_distributed, everywhere, local_as
from ._storage import Placements, ShardedStorage, local_sizes, strides_like, wrap
from .placement_types import Partial, Placement, Replicate, Shard, _NormPartial, _StridedShard, is_cut

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

    Its shape is that of the whole. `placements` says for each dimension of the mesh what a process has: a piece (`Shard`), all
    (`Replicate`), or a summand (`Partial`).

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

    _storage: ShardedStorage

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of processes."""
        return self._storage.mesh

    @property
    def placements(self) -> Placements:
        """For each dimension of the mesh how the tensor lies along it."""
        return self._storage.placements

    @property
    def _local_tensor(self) -> Tensor:
        return self._storage.local

    def __copy__(self) -> DTensor:
        """Another DTensor of the same part."""
        made: Any = self.detach()
        return made.requires_grad_(self.requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """The part of this process, and the mesh without its groups, as in PyTorch's files."""
        spec = self.spec
        size, stride = tuple(spec.shape), tuple(spec.stride)
        arguments = (DTensor, spec.dtype, size, stride, 0, strided, spec.device, self.requires_grad)
        meta = TensorMeta(spec.shape, stride, spec.dtype)
        slots = {  # of PyTorch's class
            "_local_tensor": self._storage.local.detach(),
            "_spec": DTensorSpec(self.device_mesh, self.placements, meta),
        }
        state_and_slots = attributes(self) or None, slots
        return rebuild.rebuild_from_type, (
            rebuild.rebuild_wrapper_subclass,
            DTensor,
            arguments,
            state_and_slots,
        )

    @staticmethod
    def _from_file(spec: Spec, requires_grad: bool) -> Tensor:
        """A DTensor that lies nowhere yet, because its state says where."""
        nothing = ShardedStorage(empty_tensor(spec.like(device=device("meta"))), spec, None, ())
        return make(nothing, 0, spec).requires_grad_(requires_grad)

    def __setstate__(self, state: Any) -> None:
        """Raises: TypeError or ValueError for a state that is none of this DTensor, whose part would exceed its memory."""
        own_attributes, slots = state
        local, own = slots.get("_local_tensor"), slots.get("_spec")
        if not isinstance(own, DTensorSpec) or not isinstance(local, Tensor) or not is_whole(local):
            raise TypeError("the state of a DTensor has a plain tensor and a DTensorSpec")
        whole, mesh = own.whole(local.spec), own.mesh
        if whole is not self.spec or local.spec.dtype is not whole.dtype:
            raise ValueError(f"the state of a DTensor is of {whole}, but the tensor of {self.spec}")
        _check_part(local, whole, mesh, own.placements)
        storage = self._storage
        storage.local, storage.mesh, storage.placements = local, mesh, own.placements
        rebuild.with_state(self, own_attributes)

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The attribute with the tensor that this one wraps, and what else `__tensor_unflatten__` needs."""
        return ["_local_tensor"], (self.spec, self.device_mesh, self.placements, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(
        inner_tensors: dict[str, Tensor], flatten_spec: Any, outer_size: Any, outer_stride: Any
    ) -> DTensor:
        """A DTensor of another part, with the size and stride of the whole."""
        spec, mesh, places, requires_grad = flatten_spec
        whole = make_spec(tuple(outer_size), tuple(outer_stride), spec.dtype, spec.device)
        made: Any = wrap(inner_tensors["_local_tensor"], whole, mesh, places)
        return made.requires_grad_(requires_grad)

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """The DTensor of which this process has the part `local_tensor`. Gradients flow back to it.

        shape, stride: those of the whole; without them all parts are taken to be of the same size. run_check: parts that should be
        the same on several processes become those of the first one. grad_placements: how the gradient comes back; without them as
        the tensor lies, but whole where that consists of summands.

        Raises: ValueError for a part that a tensor of this shape with these placements does not have on this process.
        """
        mesh, places = _checked(local_tensor, device_mesh, placements)
        if run_check:
            _same_everywhere(local_tensor, mesh, places)
        sizes = _whole_sizes(local_tensor.shape, mesh, places) if shape is None else shape
        steps = strides_like(sizes, local_tensor.spec) if stride is None else stride
        whole = local_tensor.spec
        whole = make_spec(tuple(sizes), tuple(steps), whole.dtype, whole.device, whole.conj, whole.neg)
        if shape is not None and mesh.get_coordinate() is not None:
            _check_part(local_tensor, whole, mesh, places)
        return _from_local(local_tensor, whole, mesh, places, without_sums(grad_placements or places))

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The part of this process; a sum that is outstanding is not added up.

        grad_placements: how the gradient of the part lies; without them as the tensor does.
        """
        back = tuple(grad_placements or without_sums(self.placements))
        return _to_local(self, self.spec, self.device_mesh, back)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor, on each process. All processes of the mesh must call this."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """The same tensor with other placements. All processes of the mesh must call this.

        Raises: RuntimeError for Partial() placements, NotImplementedError for another mesh.
        """
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        mesh, places = _checked(self, device_mesh or self.device_mesh, placements)
        if any(new.is_partial() and new != old for new, old in zip(places, self.placements, strict=True)):
            raise RuntimeError(
                "Can not redistribute to Partial, redistributing to Partial is for internal use only!"
            )
        if mesh != self.device_mesh:
            raise NotImplementedError(
                f"redistribute(): from {self.device_mesh} to another mesh, {mesh}; call full_tensor() and distribute_tensor()"
            )
        source = self if forward_dtype is None else self.to(forward_dtype)
        return _redistribute(source, mesh, places, without_sums(self.placements))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        with DisableTorchFunctionSubclass():
            return f"DTensor(local_tensor={self._shown()}, device_mesh={self.device_mesh}, placements={self.placements})"

    def _shown(self) -> Tensor:
        local = self._storage.local.detach()
        return local.requires_grad_() if self._autograd is not None and local.is_floating_point() else local


def _check_part(local: Tensor, whole: Spec, mesh: DeviceMesh, placements: Placements) -> None:
    """Raises: ValueError for a part of other sizes than this process has of `whole`: views would read outside of its memory."""
    expected = None if mesh.get_coordinate() is None else local_sizes(whole.shape, mesh, placements)
    if local.spec.shape != expected:
        has = "no part" if expected is None else f"a part of shape {list(expected)}"
        raise ValueError(
            f"a part of shape {list(local.shape)} is given, but of a tensor of shape {list(whole.shape)} with the placements "
            f"{placements} on {mesh} this process has {has}"
        )


def without_sums(placements: Sequence[Placement]) -> Placements:
    return tuple([Replicate() if each.is_partial() else each for each in placements])


def _whole_sizes(sizes: Sequence[int], mesh: DeviceMesh, placements: Placements) -> list[int]:
    """The sizes of the whole, if all parts have these sizes."""
    found = list(sizes)
    for mesh_dim, place in enumerate(placements):
        if is_cut(place):
            found[place.dim] *= mesh.size(mesh_dim)
    return found


def _same_everywhere(local: Tensor, mesh: DeviceMesh, placements: Placements) -> None:
    for mesh_dim, place in enumerate(placements):
        if place.is_replicate():
            _collectives.broadcast(local.detach(), group=mesh.get_group(mesh_dim), group_src=0)


# ---- Steps between parts and DTensors, which autograd records --------------------------------------------------------------


def _part_of_cotangent(
    ct: Tensor, out: Any, local: Any, whole: Spec, mesh: DeviceMesh, places: Any, back: Placements
) -> Tensor:
    laid_out = _redistribute(as_distributed(ct, mesh), mesh, back, back)
    return _to_local(laid_out, whole, mesh, back)


@custom_vjp(_part_of_cotangent, inputs=1)
def _from_local(local: Tensor, whole: Spec, mesh: DeviceMesh, places: Placements, back: Placements) -> Any:
    return wrap(local.detach(), whole, mesh, places)


@custom_vjp(lambda ct, out, x, whole, mesh, back: _from_local(ct, whole, mesh, back, back), inputs=1)
def _to_local(x: Any, whole: Spec, mesh: DeviceMesh, back: Placements) -> Tensor:
    local = x._storage.local
    return make(local._storage, local._byte_offset, local.spec)


def _laid_out_cotangent(
    ct: Tensor, out: Any, x: Any, mesh: DeviceMesh, places: Placements, back: Placements
) -> Any:
    return _redistribute(as_distributed(ct, mesh), mesh, back, without_sums(places))


@custom_vjp(_laid_out_cotangent, inputs=1)
def _redistribute(x: Any, mesh: DeviceMesh, places: Placements, back: Placements) -> Any:
    return wrap(local_as(x, mesh, places), x.spec, mesh, places)


def _checked(
    tensor: Tensor, mesh: DeviceMesh | None, placements: Sequence[Placement] | None
) -> tuple[DeviceMesh, Placements]:
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
    """Distribute a tensor over a mesh; the DTensor has memory of its own. All processes of the mesh must call this.

    The values are those of the first process of each group. src_data_rank=None: those of each process itself, so that nothing is sent.
    Raises: RuntimeError for a non-leaf.
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
    local = tensor.detach().as_subclass(Tensor)
    if src_data_rank is None or tensor.is_meta:  # a meta tensor has no values to send
        local = redistributed(local, local.shape, mesh, everywhere(mesh), places)
    else:
        for mesh_dim, place in enumerate(places):
            local = sent(local, place, mesh.get_group(mesh_dim), src_data_rank)
    if local._storage is tensor._storage:
        local = local.clone()
    spec = tensor.spec
    whole = make_spec(spec.shape, strides_like(spec.shape, spec), spec.dtype, spec.device)
    made: Any = wrap(local, whole, mesh, places)
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


def _factory(function: Callable, summary: str, is_random: bool = False) -> Callable[..., DTensor]:
    """The function that makes a DTensor as `function` makes a tensor."""

    def make(
        *size: Any,
        dtype: Any = None,
        layout: Any = None,
        requires_grad: bool = False,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        return _made(size, function, is_random, dtype, requires_grad, device_mesh, placements)

    make.__doc__ = summary
    set_name(make, __name__.rpartition(".")[0], function.__name__)
    return make


def _made(
    size: tuple,
    function: Callable,
    is_random: bool,
    dtype: Any,
    requires_grad: bool,
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
) -> Any:
    """A DTensor. Random numbers are drawn for the whole on each process, so that they are the same on any mesh."""
    sizes = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    on_meta = creation.empty(sizes, dtype=dtype, device="meta")
    mesh, places = _checked(on_meta, device_mesh, placements)
    whole = contiguous_spec(on_meta.spec.shape, on_meta.spec.dtype, CPU)
    drawn = function(sizes if is_random else local_sizes(sizes, mesh, places), dtype=dtype)
    local = redistributed(drawn, sizes, mesh, everywhere(mesh), places) if is_random else drawn
    made: Any = wrap(local, whole, mesh, places)
    return made.requires_grad_(requires_grad)


ones = _factory(creation.ones, "A DTensor of ones.")
zeros = _factory(creation.zeros, "A DTensor of zeros.")
empty = _factory(creation.empty, "A DTensor with any values.")
rand = _factory(
    random.rand, "A DTensor of random numbers between 0 and 1, the same on any mesh.", is_random=True
)
randn = _factory(
    random.randn, "A DTensor of normally distributed random numbers, the same on any mesh.", is_random=True
)


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

    def fill(sizes: Any, dtype: Any) -> Tensor:
        return creation.full(tuple(sizes), fill_value, dtype=dtype)

    wanted = dtype or creation.full((), fill_value).dtype
    return _made(
        tuple(size) if isinstance(size, (tuple, list)) else (size,),
        fill,
        False,
        wanted,
        requires_grad,
        device_mesh,
        placements,
    )


for _value in (DTensor, distribute_tensor, distribute_module, full):
    set_name(_value, __name__.rpartition(".")[0], _value.__name__)

# What files of DTensors contain.
add_globals_of_weft([_FlatLayout, _MeshLayout, DeviceMesh, DTensorSpec, TensorMeta, ShardOrderEntry, DTensor])
add_globals_of_weft([Partial, Replicate, Shard, _StridedShard, _NormPartial])
