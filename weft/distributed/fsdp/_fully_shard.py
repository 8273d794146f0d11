"""fully_shard: the parameters of a module lie on several processes, and are whole only while the module computes.

A parameter is a DTensor that is cut. Before the forward pass of its module all processes gather it, and the module finds the whole tensor under the
parameter's name. After the pass the memory of the whole is freed. Before the backward pass it is filled again. The step from parts
to the whole is recorded, and its derivative adds the gradients of all processes up and gives each its part. Gradients of one module are added up while the
backward pass computes those of the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from weakref import ref

from ...autograd.current_pass import ExecutionEngine, adds_to_leaves, owe
from ...autograd.function import Function
from ...autograd.hooks import running
from ...autograd.parameter import Parameter
from ...core.dtype import DType
from ...core.grad_mode import mode
from ...core.names import set_name
from ...core.pytree import tree_leaves, tree_map
from ...core.tensor import Tensor
from ...nn.module import Module
from .._extended_class import extended
from .._lower_precision import converted
from .._world import get_world_size, is_initialized
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor import DTensor, Placement, Shard
from ._communication import Communication
from ._fsdp_module import FSDPModule
from ._parameters import Averaging, Cut, Gathering, Kept

__all__ = [
    "CPUOffloadPolicy",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
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


def _nothing() -> None:
    """Stand for a weak reference to nothing."""


class Pass:
    """The whole parameters of one forward pass, until its backward pass has used them."""

    def __init__(self, state: State):
        self.state = state
        self.wholes: list[Tensor] = []
        self.versions: list[int] = []  # of the parameters, when they were gathered
        self.is_freed = False
        self.coming: Gathering | None = None
        self.before: Any = _nothing  # a reference to the pass that ended before this one, whose backward pass comes after that of this one

    def free(self) -> None:
        """Give the memory back, and keep the storages, which steps of the graph refer to."""
        for each in self.wholes:
            storage = each._storage
            storage.nbytes_ = 0
            storage._move(storage.device.backend.allocate(0))
        self.is_freed = True

    def begin(self) -> None:
        """Begin to gather the parameters again."""
        if self.is_freed and self.wholes and self.coming is None:
            self.coming = self.state.gathering(async_op=True)

    def fill(self) -> None:
        """Gather the parameters again, and begin to gather those of the pass that comes next."""
        if not self.is_freed:
            return
        coming, self.coming = self.coming or self.state.gathering(), None
        for whole, each in zip(coming.wait(), self.wholes, strict=True):
            storage, version = each._storage, each._storage.version
            storage._move(storage.device.backend.allocate(each.spec.nbytes))
            storage.nbytes_ = each.spec.nbytes
            each.copy_(whole)
            storage.version = version  # the values are those that were saved
        self.is_freed = False
        following = self.state.backward_prefetch
        for each in [self.before] if following is None else [state.last for state in following]:
            now = each()
            if now is not None:
                now.begin()


class _Gather(Function):
    """From the parts of parameters to the whole ones."""

    @staticmethod
    def forward(ctx: Any, now: Pass, coming: Gathering, *parameters: Any) -> Any:
        ctx.now = now
        ctx.set_materialize_grads(False)
        found = tuple(coming.wait())
        now.wholes, now.versions = [each.detach() for each in found], coming.versions
        ctx.mark_non_differentiable(
            *[whole for whole, each in zip(found, parameters, strict=True) if not each.requires_grad]
        )
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        state, wanted = ctx.now.state, ctx.needs_input_grad[2:]
        if not state.reshards_after_backward and ctx.now.wholes:
            state.coming = Kept(state.cuts, ctx.now.versions, ctx.now.wholes)
        ctx.now.wholes = []
        later = adds_to_leaves()
        average, places = state.averaging(gradients, wanted, async_op=later)
        parts: list[Any] = [None] * len(wanted)
        if average is not None and later:
            _Unfinished.of_this_pass().take(average, state.communication.in_flight)
        elif average is not None:
            for place, part in zip(places, average.wait(), strict=True):
                parts[place] = part
        return None, None, *parts


class _Unfinished:
    """The averages of a backward pass that are on their way while the pass goes on: by default one, so that gradients of few modules are in memory."""

    def __init__(self) -> None:
        self.begun: deque[tuple[Averaging, list[Callable[[Any], None]]]] = deque()

    @classmethod
    def of_this_pass(cls) -> _Unfinished:
        """The one of the backward pass that runs in this thread, at whose end it is finished."""
        found = next((each for each in running.now.callbacks if isinstance(each, cls)), None)
        if found is None:
            found = cls()
            ExecutionEngine().queue_callback(found)
        return found

    def take(self, average: Averaging, in_flight: int) -> None:
        """Go on with one more average, after the oldest ones are finished: so many may be on their way."""
        while len(self.begun) >= in_flight:
            self._finish_oldest()
        self.begun.append((average, [owe(cut.parameter) for cut in average.cuts]))

    def __call__(self) -> None:
        while self.begun:
            self._finish_oldest()

    def _finish_oldest(self) -> None:
        average, takers = self.begun.popleft()
        for give, part in zip(takers, average.wait(), strict=True):
            give(part)


class State:
    """What is known of a module whose parameters are cut."""

    inside = 0  # how many modules are computing, one within the other
    latest: Any = (
        _nothing  # a reference to the pass that ended last, in this forward pass of the outermost module
    )

    def __init__(
        self, module: Module, mesh: DeviceMesh, reshards: bool, policy: MixedPrecisionPolicy, cuts: list[Cut]
    ):
        self.module, self.mesh, self.reshards, self.policy, self.cuts = module, mesh, reshards, policy, cuts
        self.communication = Communication()
        self.is_inner = False  # whether the module is within another one that is sharded
        self.fills_before_backward = True
        self.reshards_after_backward = True
        self.syncs = True  # whether backward passes send gradients
        self.pending: list[Tensor | None] = [None] * len(cuts)  # gradients that were not sent yet
        self.current: Pass | None = None
        self.last: Any = _nothing  # a reference to the pass that began last
        self.coming: Gathering | Kept | None = None
        self.forward_prefetch: list[State] = []
        self.backward_prefetch: list[State] | None = (
            None  # None: the modules in the order of the backward pass
        )

    def gathering(self, async_op: bool = False) -> Gathering:
        for cut in self.cuts:
            cut.renew()
        return Gathering(self.cuts, self.policy.param_dtype, async_op, self.communication)

    def begin(self) -> None:
        """Begin to gather the parameters."""
        if self.current is None and self.coming is None:
            self.coming = self.gathering(async_op=True)

    def unshard(self) -> None:
        """Let the modules find whole parameters."""
        if self.current is not None:
            return
        self.current = now = Pass(self)
        self.last = ref(now)
        coming, self.coming = self.coming, None
        if coming is not None and not coming.is_current:  # an optimizer has changed the parameters meanwhile
            coming.wait()
            coming = None
        if not self.cuts:
            return
        wholes = _Gather.apply(now, coming or self.gathering(), *[cut.parameter for cut in self.cuts])
        for cut, whole in zip(self.cuts, wholes, strict=True):
            used = cut.as_used(whole)
            for module, name in cut.owners:
                module.__dict__[name] = used  # which Python finds before the parameter

    def reshard(self) -> Pass | None:
        """Let the modules find their parts again. The pass that ends."""
        now, self.current = self.current, None
        for cut in self.cuts:
            for module, name in cut.owners:
                module.__dict__.pop(name, None)
        return now

    def forget(self) -> None:
        """Forget the pass that an error has ended, with its gradients."""
        self.reshard()
        self.drop_gathered()
        self.pending = [None] * len(self.cuts)
        self.communication.partial.clear()

    def drop_gathered(self) -> None:
        """Forget parameters that were gathered for the next pass, after all of them have come."""
        if self.coming is not None:
            self.coming.wait()
            self.coming = None

    def averaging(
        self, gradients: Iterable[Tensor | None], wanted: Iterable[bool], async_op: bool
    ) -> tuple[Averaging | None, list[int]]:
        """Begin to average the gradients, of the parameters in these places; nothing while gradients are only collected."""
        sent: dict[int, Tensor] = {}
        for place, (cut, gradient, is_wanted) in enumerate(zip(self.cuts, gradients, wanted, strict=True)):
            before = self.pending[place]
            if before is not None:
                gradient = before if gradient is None else before + gradient
            self.pending[place] = None if self.syncs else gradient
            if self.syncs and is_wanted:  # also if this process has no gradient, because others may have one
                sent[place] = cut.local.new_zeros(cut.spec.shape) if gradient is None else gradient
        if not sent:
            return None, []
        cuts = [self.cuts[place] for place in sent]
        dtype, rows = self.policy.reduce_dtype, list(sent.values())
        return Averaging(cuts, rows, dtype, async_op, self.communication), list(sent)

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def before(self, module: Module, args: Any, kwargs: Any) -> Any:
        if not State.inside:
            State.latest = _nothing
        State.inside += 1
        self.unshard()
        for each in self.forward_prefetch:
            each.begin()
        dtype = self.policy.param_dtype
        if dtype is None or not self.policy.cast_forward_inputs:
            return args, kwargs
        return tree_map(lambda value: converted(value, dtype), (args, kwargs))

    def after(self, module: Module, args: Any, output: Any) -> Any:
        if self.policy.output_dtype is not None:
            output = tree_map(lambda value: converted(value, self.policy.output_dtype), output)
        State.inside -= 1
        now = self.reshard()
        if now is not None and mode.enabled:
            now.before, State.latest = State.latest, ref(now)
        if now is not None and self.reshards and self.reshards_after_backward and mode.enabled:
            self._free_until_backward(now, output)
        return output

    def _free_until_backward(self, now: Pass, output: Any) -> None:
        results = [each for each in tree_leaves(output) if isinstance(each, Tensor) and each.requires_grad]
        shared = {each._storage for each in tree_leaves(output) if isinstance(each, Tensor)}
        if any(each._storage in shared for each in now.wholes):
            return  # the module returns a parameter
        if not self.fills_before_backward:
            now.wholes = []  # what no operation has saved for its backward pass is free now
            return
        now.free()
        for each in results:
            each.register_hook(lambda gradient: now.fill())


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
    cuts = cut_parameters(
        module, mesh, shard_placement_fn or (lambda parameter: None), ignored_params or set()
    )
    inner = [each._fsdp_state for each in module.modules() if isinstance(each, FSDPModule)]
    for each in inner:
        each.is_inner = True
    reshards = not inner if reshard_after_forward is None else bool(reshard_after_forward)
    state = State(module, mesh, reshards, mp_policy, cuts)
    module.__dict__["_fsdp_state"] = state
    module.__class__ = extended(type(module), FSDPModule)
    module.register_forward_pre_hook(state.before, prepend=True, with_kwargs=True)
    module.register_forward_hook(state.after)
    return module


def cut_parameters(
    module: Module, mesh: DeviceMesh, chosen: Callable[[Parameter], Placement | None], ignored: set[Parameter]
) -> list[Cut]:
    """Cut the parameters that no inner module has cut."""
    found: dict[Parameter, Cut] = {}
    for owner in _own_modules(module):
        for name, parameter in owner._parameters.items():
            if parameter is None or parameter in ignored or _lies_on(parameter, mesh):
                continue
            if not parameter.dim():
                raise ValueError(
                    f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel equal to 1."
                )
            if parameter not in found:
                found[parameter] = Cut(parameter, mesh, chosen(parameter) or Shard(0))
            found[parameter].owners.append((owner, name))
    for each in found.values():
        for owner, name in each.owners:
            owner._parameters[name] = each.parameter
    return list(found.values())


def _lies_on(parameter: Any, mesh: DeviceMesh) -> bool:
    """Whether a parameter was cut along this mesh before."""
    if not isinstance(parameter, DTensor):
        return False
    own, names = parameter.device_mesh, set(mesh.mesh_dim_names or ())
    return own == mesh or bool(names) and names <= set(own.mesh_dim_names or ())


def _own_modules(module: Module) -> Iterable[Module]:
    """The module and its submodules, without those that are sharded themselves and what is within them."""
    yield module
    for child in module.children():
        if "_fsdp_state" not in child.__dict__:
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


for _value in (CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard):
    set_name(_value, __name__.rpartition(".")[0], _value.__name__)
