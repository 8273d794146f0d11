"""fully_shard: the parameters of a module lie on several processes, and are whole only while the module computes.

A parameter is a DTensor that is cut. Before the forward pass of its module all processes gather it, and the module finds the whole tensor under the
parameter's name. After the pass the memory of the whole is freed. Before the backward pass it is filled again. The step from parts
to the whole is recorded, and its derivative adds the gradients of all processes up and gives each its part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...autograd.function import Function
from ...autograd.parameter import Parameter
from ...core.dtype import DType
from ...core.grad_mode import mode
from ...core.names import set_name
from ...core.pytree import tree_leaves, tree_map
from ...core.tensor import Tensor
from ...nn.module import Module
from .._world import get_world_size, is_initialized
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from ..tensor._redistribute import redistributed
from ..tensor._rules import everywhere
from ..tensor._storage import wrap

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of the whole parameters, of gradients that are added up, and of outputs; whether inputs are converted, too."""

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parts of parameters stay on their device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts of parameters stay in the memory of the CPU, as all of weft's groups of processes have them."""

    pin_memory: bool = True


class UnshardHandle:
    """What `unshard(async_op=True)` returns. The parameters are whole already."""

    def wait(self) -> None:
        """Return at once."""


class _Cut:
    """A parameter that is cut, and the modules that have it under a name."""

    def __init__(self, parameter: Any):
        self.parameter = parameter
        self.owners: list[tuple[Module, str]] = []

    def whole(self, dtype: DType | None) -> Tensor:
        """The whole tensor, gathered now."""
        storage, sizes = self.parameter._storage, self.parameter.shape
        local = storage.local if dtype is None else storage.local.to(dtype)
        found = redistributed(local, sizes, storage.mesh, storage.placements, everywhere(storage.mesh))
        return found.clone() if found._storage is storage.local._storage else found

    def part_of_gradient(self, gradient: Tensor, dtype: DType | None) -> Any:
        """The part of this process of the average over all processes."""
        storage, spec = self.parameter._storage, self.parameter.spec
        given = gradient if dtype is None else gradient.to(dtype)
        places = storage.placements
        average = (Partial("avg"),) * len(places)
        local = redistributed(given, spec.shape, storage.mesh, average, places)
        return wrap(local.to(spec.dtype), spec, storage.mesh, places)


class _Pass:
    """The whole parameters of one forward pass, until its backward pass has used them."""

    def __init__(self, state: _State):
        self.state = state
        self.wholes: list[Tensor] = []
        self.is_freed = False

    def free(self) -> None:
        """Give the memory back, and keep the storages, which steps of the graph refer to."""
        for each in self.wholes:
            storage = each._storage
            storage.nbytes_ = 0
            storage._move(storage.device.backend.allocate(0))
        self.is_freed = True

    def fill(self) -> None:
        """Gather the parameters again."""
        if not self.is_freed:
            return
        for cut, each in zip(self.state.cuts, self.wholes, strict=True):
            storage, version = each._storage, each._storage.version
            storage._move(storage.device.backend.allocate(each.spec.nbytes))
            storage.nbytes_ = each.spec.nbytes
            each.copy_(cut.whole(self.state.policy.param_dtype))
            storage.version = version  # the values are those that were saved
        self.is_freed = False


class _Gather(Function):
    """From the parts of parameters to the whole ones."""

    @staticmethod
    def forward(ctx: Any, now: _Pass, *parameters: Any) -> Any:
        ctx.now = now
        ctx.set_materialize_grads(False)
        found = tuple([cut.whole(now.state.policy.param_dtype) for cut in now.state.cuts])
        now.wholes = [each.detach() for each in found]
        ctx.mark_non_differentiable(
            *[whole for whole, each in zip(found, parameters, strict=True) if not each.requires_grad]
        )
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        state, wanted = ctx.now.state, ctx.needs_input_grad[1:]
        ctx.now.wholes = []
        found = state.reduced(gradients, wanted)
        return None, *found


class _State:
    """What `fully_shard` knows of a module."""

    def __init__(
        self, module: Module, mesh: DeviceMesh, reshards: bool, policy: MixedPrecisionPolicy, cuts: list[_Cut]
    ):
        self.module, self.mesh, self.reshards, self.policy, self.cuts = module, mesh, reshards, policy, cuts
        self.syncs = True  # whether backward passes send gradients
        self.pending: list[Tensor | None] = [None] * len(cuts)  # gradients that were not sent yet
        self.current: _Pass | None = None

    def unshard(self) -> None:
        """Let the modules find whole parameters."""
        if self.current is not None:
            return
        self.current = now = _Pass(self)
        wholes = _Gather.apply(now, *[cut.parameter for cut in self.cuts]) if self.cuts else ()
        for cut, whole in zip(self.cuts, wholes, strict=True):
            for module, name in cut.owners:
                module.__dict__[name] = whole  # which Python finds before the parameter

    def reshard(self) -> _Pass | None:
        """Let the modules find their parts again. The pass that ends."""
        now, self.current = self.current, None
        for cut in self.cuts:
            for module, name in cut.owners:
                module.__dict__.pop(name, None)
        return now

    def reduced(self, gradients: Iterable[Tensor | None], wanted: Iterable[bool]) -> list[Any]:
        """The gradients of the parts; None while gradients are only collected."""
        found: list[Any] = []
        for place, (cut, gradient, is_wanted) in enumerate(zip(self.cuts, gradients, wanted, strict=True)):
            before = self.pending[place]
            if before is not None:
                gradient = before if gradient is None else before + gradient
            if not self.syncs:
                self.pending[place], gradient = gradient, None
                found.append(None)
                continue
            self.pending[place] = None
            if not is_wanted:
                found.append(None)
                continue
            if gradient is None:  # the other processes may have one
                gradient = cut.parameter._storage.local.new_zeros(cut.parameter.shape)
            found.append(cut.part_of_gradient(gradient, self.policy.reduce_dtype))
        return found

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def before(self, module: Module, args: Any, kwargs: Any) -> Any:
        self.unshard()
        dtype = self.policy.param_dtype
        if dtype is None or not self.policy.cast_forward_inputs:
            return args, kwargs
        return tree_map(lambda value: _converted(value, dtype), (args, kwargs))

    def after(self, module: Module, args: Any, output: Any) -> Any:
        if self.policy.output_dtype is not None:
            output = tree_map(lambda value: _converted(value, self.policy.output_dtype), output)
        now = self.reshard()
        if now is not None and self.reshards and mode.enabled:
            self._free_until_backward(now, output)
        return output

    def _free_until_backward(self, now: _Pass, output: Any) -> None:
        results = [each for each in tree_leaves(output) if isinstance(each, Tensor) and each.requires_grad]
        shared = {each._storage for each in tree_leaves(output) if isinstance(each, Tensor)}
        if any(each._storage in shared for each in now.wholes):
            return  # the module returns a parameter
        now.free()
        for each in results:
            each.register_hook(lambda gradient: now.fill())


def _converted(value: Any, dtype: Any) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


class FSDPModule:
    """What `fully_shard` adds to the class of a module."""

    _fsdp_state: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An object of the class that was sharded, which is not sharded itself."""
        return cls.__mro__[2](*args, **kwargs)

    def _states(self, recurse: bool) -> list[Any]:
        modules: Any = self.modules() if recurse else (self,)  # type: ignore[attr-defined]
        return [each.__dict__["_fsdp_state"] for each in modules if isinstance(each, FSDPModule)]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of this module, until `reshard` or the end of the next forward pass."""
        self._fsdp_state.unshard()
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Let the module have the parts of its parameters only."""
        self._fsdp_state.reshard()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backward passes send gradients. While they do not, each process adds up its own whole gradients."""
        for each in self._states(recurse):
            each.syncs = requires_gradient_sync

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether the memory of whole parameters is freed between the forward and the backward pass."""
        for each in self._states(recurse):
            each.reshards = reshard_after_forward

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Do nothing: each backward pass is complete when it ends."""

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """Do nothing: parameters are gathered when a module needs them."""

    def set_modules_to_backward_prefetch(self, modules: list[Any]) -> None:
        """Do nothing: parameters are gathered when a module needs them."""


_classes: dict[type, type] = {}


def _sharded_class(cls: type) -> type:
    if cls not in _classes:
        _classes[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__})
    return _classes[cls]


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Parameter], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy = MixedPrecisionPolicy(),  # noqa: B008 (immutable)
    offload_policy: OffloadPolicy = OffloadPolicy(),  # noqa: B008 (without state)
    ignored_params: set[Parameter] | None = None,
    dp_mesh_dims: Any = None,
) -> Any:
    """Cut the parameters of a module among processes, in place, and return it. Apply it to inner modules first, then to the whole model.

    Parameters that an inner module shards stay with it. Make the optimizer afterwards: it updates the parts.

    mesh: one dimension, or two, of which the first has copies. reshard_after_forward: whether the memory of whole parameters is freed between the
    forward and the backward pass; without it for all modules but the outermost. shard_placement_fn: along which dim a parameter is cut, 0 without it.

    >>> import weft as torch
    >>> from weft.distributed.fsdp import fully_shard
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    >>> for layer in model:
    ...     _ = fully_shard(layer)
    >>> model = fully_shard(model)
    >>> type(model).__name__, model[0].weight.placements, model(torch.ones(3, 4)).shape
    ('FSDPSequential', (Shard(dim=0),), torch.Size([3, 2]))
    >>> dist.destroy_process_group()
    """
    if isinstance(module, (list, tuple)):
        for each in module:
            fully_shard(each, mesh=mesh, reshard_after_forward=reshard_after_forward, shard_placement_fn=shard_placement_fn,
                        mp_policy=mp_policy, offload_policy=offload_policy, ignored_params=ignored_params)  # fmt: skip
        return module
    if isinstance(module, FSDPModule):
        raise ValueError(f"fully_shard() was applied to this {type(module).__name__} before")
    if type(module).forward is Module.forward:
        raise ValueError(f"fully_shard does not support containers that do not implement forward: {module}")
    if dp_mesh_dims is not None:
        raise NotImplementedError("fully_shard(dp_mesh_dims=): give a mesh of one or two dimensions")
    if mesh is None:
        mesh = init_device_mesh("cpu", (get_world_size() if is_initialized() else 1,))
    if mesh.ndim > 2:
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    cuts = _cut(module, mesh, shard_placement_fn or (lambda parameter: None), ignored_params or set())
    is_outer = any(isinstance(each, FSDPModule) for each in module.modules())
    reshards = not is_outer if reshard_after_forward is None else bool(reshard_after_forward)
    state = _State(module, mesh, reshards, mp_policy, cuts)
    module.__dict__["_fsdp_state"] = state
    module.__class__ = _sharded_class(type(module))
    module.register_forward_pre_hook(state.before, prepend=True, with_kwargs=True)
    module.register_forward_hook(state.after)
    return module


def _cut(
    module: Module,
    mesh: DeviceMesh,
    chosen: Callable[[Parameter], Shard | None],
    ignored: set[Parameter],
) -> list[_Cut]:
    """Cut the parameters that no inner module has cut."""
    found: dict[Parameter, _Cut] = {}
    for owner in _own_modules(module):
        for name, parameter in owner._parameters.items():
            if parameter is None or parameter in ignored or isinstance(parameter, DTensor):
                continue
            if parameter not in found:
                place = chosen(parameter) or Shard(0)
                places = [place] if mesh.ndim == 1 else [Replicate(), place]
                cut = distribute_tensor(parameter.detach(), mesh, places, src_data_rank=None)
                found[parameter] = _Cut(Parameter(cut, requires_grad=parameter.requires_grad))
            found[parameter].owners.append((owner, name))
    for each in found.values():
        for owner, name in each.owners:
            owner._parameters[name] = each.parameter
    return list(found.values())


def _own_modules(module: Module) -> Iterable[Module]:
    """The module and its submodules, without those that are sharded themselves and what is within them."""
    yield module
    for child in module.children():
        if not isinstance(child, FSDPModule):
            yield from _own_modules(child)


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method gather the parameters as `forward` does. For modules that are not sharded nothing happens."""
    if not isinstance(module, FSDPModule):
        return
    method, state = getattr(module, method_name), module._fsdp_state

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before(module, args, kwargs)
        return state.after(module, args, method(*args, **kwargs))

    module.__dict__[method_name] = wrapped


for _value in (CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, UnshardHandle, fully_shard):
    set_name(_value, __name__.rpartition(".")[0], _value.__name__)
