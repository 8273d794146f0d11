"""FullyShardedDataParallel: a wrapper that cuts the parameters of a model, by the same means as `fully_shard`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

from ...autograd.parameter import Parameter
from ...core.dtype import float32
from ...core.grad_mode import no_grad
from ...core.names import set_name
from ...core.pytree import tree_map
from ...core.tensor import Tensor
from ...nn.containers import ModuleDict, ModuleList
from ...nn.module import Module
from ...nn.utils.clip_grad import clip_grads_with_norm_, get_total_norm
from ...ops.creation.creation import as_device
from ...ops.creation.from_data import tensor
from ...optim import Optimizer
from .._coalesced import broadcast_coalesced
from .._lower_precision import converted
from .._world import get_world_size
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor import DTensor, Replicate, Shard, distribute_tensor
from ._communication import HookedReduceScatter
from ._fully_shard import MixedPrecisionPolicy, State, cut_parameters
from ._state_dicts import PREFIX, as_loaded, as_saved, of_optimizer, to_load
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from .wrap import _or_policy, _Policy, _recursive_wrap, _wrap, _wrap_module_cls_individually

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

_CONFIGS: dict[StateDictType, tuple[type[StateDictConfig], type[OptimStateDictConfig]]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}
_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
_KEEPS_WHOLE = (
    ShardingStrategy.SHARD_GRAD_OP,
    ShardingStrategy._HYBRID_SHARD_ZERO2,
    ShardingStrategy.NO_SHARD,
)


class OptimStateKeyType(Enum):
    """What the keys of an optimizer's state dict are."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


class FullyShardedDataParallel(Module):
    """A model whose parameters lie in parts on the processes, and are whole only while their module computes.

    The parts are DTensors, one for each parameter, as with `use_orig_params=True`: `parameters()` has no flat parameters. Make the optimizer afterwards.

    Args:
        module: The model. `model.module` gives it back, and other attributes of the wrapper are those of the model.
        process_group: The processes; without it all. device_mesh does the same; with two dimensions the first one has copies.
        sharding_strategy: FULL_SHARD without it. With SHARD_GRAD_OP parameters stay whole until the backward pass, and with NO_SHARD always.
        auto_wrap_policy: Which submodules get a wrapper of their own (`weft.distributed.fsdp.wrap`); only one of them has whole parameters at a time.
        mixed_precision: The dtypes of computation, of gradients that are sent, and of buffers.
        ignored_modules, ignored_states: What stays as it is.
        param_init_fn: Gives memory and values to a module whose parameters are on the device "meta".
        sync_module_states: Whether all processes begin with the values of the first one.
        forward_prefetch: Whether the parameters of the next module are gathered in advance in the forward pass, too.
        device_id, cpu_offload, limit_all_gathers, use_orig_params, backward_prefetch: Parameters always lie in the memory of the CPU, under their own names. The
            next module's are gathered in advance in the backward pass unless `backward_prefetch` is None.

    >>> import weft as torch
    >>> from weft.distributed.fsdp import FullyShardedDataParallel as FSDP
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = FSDP(torch.nn.Linear(4, 2))
    >>> model(torch.ones(3, 4)).shape, list(model.state_dict())
    (torch.Size([3, 2]), ['weight', 'bias'])
    >>> dist.destroy_process_group()
    """

    _fsdp_state: State

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], None] | None = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: DeviceMesh | None = None,
    ):
        super().__init__()
        _check(module, mixed_precision, device_id)
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        mesh = _mesh_of(process_group, device_mesh, strategy)
        modules, ignored = _ignored(ignored_modules, ignored_states)
        if param_init_fn is not None:
            for each in module.modules():
                if any(own.is_meta for own in each.parameters(recurse=False)):
                    param_init_fn(each)
        if sync_module_states:
            states = [
                each.detach() for each in (*module.parameters(), *module.buffers()) if each not in ignored
            ]
            for dim in range(mesh.ndim):
                broadcast_coalesced(mesh.get_group(dim), [each for each in states if type(each) is Tensor], 0)
        if auto_wrap_policy is not None:
            options = {
                "process_group": process_group,
                "sharding_strategy": sharding_strategy,
                "backward_prefetch": backward_prefetch,
                "mixed_precision": mixed_precision,
                "forward_prefetch": forward_prefetch,
                "device_mesh": device_mesh,
                "ignored_states": ignored,
            }
            _wrap_submodules(module, auto_wrap_policy, mixed_precision, modules, ignored, options)
        place = Replicate() if strategy is ShardingStrategy.NO_SHARD else Shard(0)
        self._fsdp_wrapped_module = module
        cuts = cut_parameters(module, mesh, lambda parameter: place, ignored)
        state = State(self, mesh, strategy not in _KEEPS_WHOLE, _policy(mixed_precision), cuts)
        if backward_prefetch is None:
            state.backward_prefetch = []
        self.__dict__["_fsdp_state"] = state
        self.sharding_strategy, self.mixed_precision = strategy, mixed_precision
        self._is_root: bool | None = None  # not known before the first forward pass
        self._prefetches, self._summoned = forward_prefetch, False
        self._settings = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )
        self._register_state_dict_hook(
            lambda module, state, prefix, metadata: as_saved(module, state, prefix, module._settings)
        )
        self._register_load_state_dict_pre_hook(
            lambda module, state, prefix, *rest: as_loaded(module, state, prefix, module._settings),
            with_module=True,
        )

    # ---- The model ----------------------------------------------------------------------------------------------------

    @property
    def module(self) -> Module:
        """The wrapped module."""
        inner = self._modules["_fsdp_wrapped_module"]
        assert inner is not None
        return inner

    def __getattr__(self, name: str) -> Any:
        """An attribute of the wrapper, or else of the wrapped module."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_fsdp_wrapped_module":
                raise
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self.module[key]  # type: ignore[index]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the wrapped module."""
        if self._is_root is None:
            self._begin()
        state = self._fsdp_state
        args, kwargs = state.before(self, args, kwargs)
        try:
            output = self._fsdp_wrapped_module(*args, **kwargs)
        except BaseException:
            state.after(self, args, None)
            raise
        return state.after(self, args, output)

    def _begin(self) -> None:
        """Find out in the first forward pass which wrapper is the outermost one."""
        self._is_root = State.inside == 0
        if not self._is_root:
            return
        wrappers = self.fsdp_modules(self)
        for each in wrappers:
            each._is_root = each is self
            own = each.mixed_precision
            if own is not None and own.cast_root_forward_inputs and each is self:
                each._fsdp_state.policy = dataclasses.replace(
                    each._fsdp_state.policy, cast_forward_inputs=True
                )
            if own is not None and own.buffer_dtype is not None:
                for module in each._own_modules():
                    for name, buffer in module._buffers.items():
                        module._buffers[name] = converted(buffer, own.buffer_dtype)
        for each, following in zip(wrappers, wrappers[1:], strict=False):
            if each._prefetches:
                each._fsdp_state.forward_prefetch = [following._fsdp_state]

    def _own_modules(self) -> list[Module]:
        """The modules that no inner wrapper wraps."""
        inner = {module for each in self.fsdp_modules(self)[1:] for module in each.modules()}
        return [each for each in self.modules() if each not in inner]

    def check_is_root(self) -> bool:
        """Whether this is the outermost wrapper; before the first forward pass, whether it may be."""
        return self._is_root is not False

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrappers in a model, itself included."""
        found = [each for each in module.modules() if isinstance(each, FullyShardedDataParallel)]
        return [each for each in found if each.check_is_root()] if root_only else found

    def apply(self, fn: Callable[[Module], None]) -> FullyShardedDataParallel:
        """Call a function with each module, which has whole parameters meanwhile."""
        with self.summon_full_params(self):
            return super().apply(fn)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """Names and parameters; within `summon_full_params` the names have no trace of wrappers."""
        for name, each in super().named_parameters(*args, **kwargs):
            yield name.replace(PREFIX, "") if self._summoned else name, each

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """Names and buffers; within `summon_full_params` the names have no trace of wrappers."""
        for name, each in super().named_buffers(*args, **kwargs):
            yield name.replace(PREFIX, "") if self._summoned else name, each

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """A region in which modules have whole parameters, on all processes. All of them must enter it.

        recurse: in all wrappers. writeback: what the region writes into parameters stays, on each process in its part. with_grads: gradients are whole, too.
        Raises: NotImplementedError with rank0_only and writeback, which would make processes disagree.
        """
        if rank0_only and writeback:
            raise NotImplementedError(
                "summon_full_params(rank0_only=True, writeback=True): set writeback=False, because other processes do not see the changes"
            )
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        wrappers = wrappers if recurse else wrappers[:1]
        cuts = [cut for each in wrappers for cut in each._fsdp_state.cuts]
        wholes = [_whole_parameter(cut.parameter, with_grads) for cut in cuts]
        for cut, whole in zip(cuts, wholes, strict=True):
            cut.is_summoned = True
            for owner, name in cut.owners:
                owner._parameters[name] = whole
        for each in wrappers:
            each._summoned = True
        try:
            yield
        finally:
            for each in wrappers:
                each._summoned = False
            for cut, whole in zip(cuts, wholes, strict=True):
                cut.is_summoned = False
                for owner, name in cut.owners:
                    owner._parameters[name] = cut.parameter
                if writeback:
                    _take(cut.parameter, whole, with_grads)

    # ---- Training -----------------------------------------------------------------------------------------------------

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A region in which backward passes send nothing: each process adds up its own gradients until a backward pass outside."""
        states = [each._fsdp_state for each in self.fsdp_modules(self)]
        before = [each.syncs for each in states]
        for each in states:
            each.syncs = False
        try:
            yield
        finally:
            for each, syncs in zip(states, before, strict=True):
                each.syncs = syncs

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients of all parameters together so that their norm is at most `max_norm`; the norm before. All processes must call this."""
        given: Any = [each for each in self.parameters() if each.grad is not None]
        kinds = [[each for each in given if isinstance(each, DTensor) is is_cut] for is_cut in (True, False)]
        norms = [get_total_norm([each.grad for each in own], norm_type) for own in kinds if own]
        plain = [each.full_tensor() if isinstance(each, DTensor) else each for each in norms]
        total = get_total_norm(plain, norm_type) if plain else tensor(0.0)
        for own in kinds:
            if own:
                clip_grads_with_norm_(own, max_norm, _like(total, own[0]))
        return total

    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """Let `hook(state, gradients, part)` average the gradients of each wrapper, which lie in a row, and fill the row `part` of this process.

        With NO_SHARD it is `hook(state, gradients)`, which changes them in place.

        Raises: AssertionError for an inner wrapper, a hybrid strategy or a second hook; ValueError for an object that cannot be called.
        """
        if not self.check_is_root():
            raise AssertionError("register_comm_hook can only be called on a root instance.")
        for each in self.fsdp_modules(self):
            communication = each._fsdp_state.communication
            if each.sharding_strategy in _HYBRID:
                raise AssertionError(
                    f"Communication hook is not supported for hybrid strategies: {each.sharding_strategy}"
                )
            if isinstance(communication.reduce_scatter, HookedReduceScatter):
                raise AssertionError("A communication hook is already registered")
            if not callable(hook):
                raise ValueError(f"The communication hook must be callable but got {hook}")
            communication.use_hook(hook, state)

    # ---- State dicts --------------------------------------------------------------------------------------------------

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Choose what state dicts of the wrappers in a model have: whole tensors, DTensors, or the parts of this process. The settings before."""
        of_model, of_optimizer = _CONFIGS[state_dict_type]
        settings = StateDictSettings(
            state_dict_type, state_dict_config or of_model(), optim_state_dict_config or of_optimizer()
        )
        for config, wanted in (
            (settings.state_dict_config, of_model),
            (settings.optim_state_dict_config, of_optimizer),
        ):
            if type(config) is not wanted:
                raise RuntimeError(f"Expected state_dict_config of type {wanted} but got {type(config)}")
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        if not wrappers:
            raise ValueError(f"there is no FullyShardedDataParallel in this {type(module).__name__}")
        before = wrappers[0]._settings
        for each in wrappers:
            each._settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What `set_state_dict_type` has chosen."""
        return FullyShardedDataParallel.fsdp_modules(module)[0]._settings

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """A region with the choice of `set_state_dict_type`."""
        own = FullyShardedDataParallel
        before = own.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            own.set_state_dict_type(
                module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config
            )

    @staticmethod
    def optim_state_dict(
        model: Module, optim: Optimizer, optim_state_dict: Mapping[str, Any] | None = None, group: Any = None
    ) -> dict[str, Any]:
        """The state of an optimizer by the names of parameters, in the form that `set_state_dict_type` chooses. All processes must call this."""
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        first_only = getattr(settings.optim_state_dict_config, "rank0_only", False)
        return of_optimizer(model, optim, optim_state_dict, settings.state_dict_type, first_only)

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Optimizer,
        optim_state_dict: Mapping[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """What `optim.load_state_dict` takes, from what `optim_state_dict` gave. load_directly: loads it, too."""
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        from_first = getattr(settings.optim_state_dict_config, "rank0_only", False)
        found = to_load(model, optim, optim_state_dict, from_first)
        if load_directly:
            optim.load_state_dict(found)
        return found

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Optimizer, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """The state of an optimizer by the names of parameters, with whole tensors; on the first process only with `rank0_only`."""
        return of_optimizer(model, optim, None, StateDictType.FULL_STATE_DICT, rank0_only)

    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Optimizer, group: Any = None) -> dict[str, Any]:
        """The state of an optimizer by the names of parameters, with DTensors."""
        return of_optimizer(model, optim, None, StateDictType.SHARDED_STATE_DICT, False)

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: Mapping[str, Any], model: Module, optim_input: Any = None, optim: Any = None
    ) -> dict[str, Any]:
        """What `optim.load_state_dict` takes, from a whole state that all processes have."""
        return to_load(model, _given(optim), full_optim_state_dict, False)

    flatten_sharded_optim_state_dict = staticmethod(
        lambda sharded_optim_state_dict, model, optim: to_load(model, optim, sharded_optim_state_dict, False)
    )

    @staticmethod
    def scatter_full_optim_state_dict(
        full_optim_state_dict: Mapping[str, Any] | None,
        model: Module,
        optim_input: Any = None,
        optim: Any = None,
        group: Any = None,
    ) -> dict[str, Any]:
        """What `optim.load_state_dict` takes, from a whole state that the first process has."""
        return to_load(model, _given(optim), full_optim_state_dict or {}, True)

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: Mapping[str, Any],
        optim_state_key_type: OptimStateKeyType,
        model: Module,
        optim_input: Any = None,
        optim: Any = None,
    ) -> dict[str, Any]:
        """The state dict of a model without wrappers with names for numbers, or numbers for names."""
        names = [name for name, _ in model.named_parameters()]
        numbers: dict[Any, Any] = {name: number for number, name in enumerate(names)}
        if optim_state_key_type is OptimStateKeyType.PARAM_NAME:
            numbers = dict(enumerate(names))
        return {
            "state": {numbers[key]: value for key, value in optim_state_dict["state"].items()},
            "param_groups": [
                {**group, "params": sorted([numbers[key] for key in group["params"]])}
                for group in optim_state_dict["param_groups"]
            ],
        }


# ---- Options ----------------------------------------------------------------------------------------------------------------


def _check(module: Module, mixed_precision: MixedPrecision | None, device_id: Any) -> None:
    if isinstance(module, FullyShardedDataParallel):
        raise ValueError("FullyShardedDataParallel was applied to this module before")
    if isinstance(module, (ModuleList, ModuleDict)):
        raise NotImplementedError(
            f"FullyShardedDataParallel({type(module).__name__}): wrap the layers in it, because it has no forward()"
        )
    if mixed_precision is not None and mixed_precision.keep_low_precision_grads:
        raise NotImplementedError(
            "MixedPrecision(keep_low_precision_grads=True): gradients have the dtype of the parameters"
        )
    if device_id is not None and as_device(device_id).type != "cpu":
        raise NotImplementedError(
            f"FullyShardedDataParallel(device_id={device_id!r}): the processes exchange memory of the CPU; leave device_id out"
        )


def _mesh_of(group: Any, mesh: DeviceMesh | None, strategy: ShardingStrategy) -> DeviceMesh:
    if group is not None and mesh is not None:
        raise ValueError(
            "Cannot pass both process_group and device_mesh at the same time. Please just pass only one of them."
        )
    if mesh is None and isinstance(group, tuple):
        parts, copies = group
        ranks = tensor(range(parts.size() * copies.size())).reshape(copies.size(), parts.size())
        return DeviceMesh.from_group([copies, parts], "cpu", ranks)
    if mesh is None and group is not None:
        mesh = DeviceMesh.from_group(group, "cpu")
    if mesh is None and strategy in _HYBRID:
        return init_device_mesh("cpu", (1, get_world_size()))  # all processes of one machine
    mesh = mesh or init_device_mesh("cpu", (get_world_size(),))
    if (mesh.ndim == 2) != (strategy in _HYBRID):
        raise ValueError(
            f"{strategy} needs a mesh of {2 if strategy in _HYBRID else 1} dimensions, but got {mesh}"
        )
    return mesh


def _ignored(modules: Iterable[Module] | None, states: Iterable[Any] | None) -> tuple[set[Module], set[Any]]:
    """The modules and parameters that stay as they are."""
    given = list(states or ())
    chosen = [*(modules or ()), *[each for each in given if isinstance(each, Module)]]
    found = {each for module in chosen for each in module.parameters()}
    return set(chosen), found | {each for each in given if isinstance(each, Tensor)}


def _policy(given: MixedPrecision | None) -> MixedPrecisionPolicy:
    if given is None:
        return MixedPrecisionPolicy(cast_forward_inputs=False)
    return MixedPrecisionPolicy(
        given.param_dtype, given.reduce_dtype or given.param_dtype, None, given.cast_forward_inputs
    )


def _wrap_submodules(
    module: Module,
    policy: Any,
    mixed: MixedPrecision | None,
    modules: set[Module],
    ignored: set[Any],
    options: dict[str, Any],
) -> None:
    own = FullyShardedDataParallel
    wide = (
        tuple(mixed._module_classes_to_ignore) if mixed is not None and mixed.param_dtype is not None else ()
    )
    if isinstance(policy, _Policy):
        chosen = policy._run_policy(module, modules, options)
        chosen.pop(module, None)
        for each in module.modules():
            if wide and isinstance(each, wide):
                chosen[each] = {**options, "mixed_precision": None}
        _wrap_chosen(module, chosen)
    else:
        for each in module.modules():
            if wide and isinstance(each, wide):
                each._wrap_overrides = {"mixed_precision": None}  # type: ignore[assignment]
        if wide:
            always = functools.partial(_wrap_module_cls_individually, module_classes=wide)
            policy = functools.partial(_or_policy, policies=[policy, always])
        _recursive_wrap(module, policy, own, modules, ignored, only_wrap_children=True, **options)
    if wide:
        for wrapper in own.fsdp_modules(module):
            if isinstance(wrapper.module, wide):
                wrapper.module.register_forward_pre_hook(_widened)
                wrapper.module.register_forward_hook(
                    lambda layer, args, output: converted(output, mixed.param_dtype)  # type: ignore[union-attr]
                )


def _widened(layer: Module, args: Any) -> Any:
    return tree_map(lambda value: converted(value, float32), args)


def _wrap_chosen(module: Module, chosen: Mapping[Module, dict[str, Any]]) -> None:
    """Wrap chosen submodules, inner ones first."""
    for name, child in module.named_children():
        _wrap_chosen(child, chosen)
        if child in chosen:
            setattr(module, name, _wrap(child, FullyShardedDataParallel, **chosen[child]))


def _given(optim: Any) -> Any:
    if optim is None:
        raise NotImplementedError("the states of optimizers by `optim_input`: give the optimizer as `optim`")
    return optim


# ---- Whole parameters -------------------------------------------------------------------------------------------------------


@no_grad()
def _whole_parameter(parameter: Any, with_grads: bool) -> Parameter:
    whole = Parameter(parameter.full_tensor().clone(), requires_grad=parameter.requires_grad)
    if with_grads and parameter.grad is not None:
        whole.grad = parameter.grad.full_tensor()
    return whole


@no_grad()
def _take(parameter: Any, whole: Parameter, with_grads: bool) -> None:
    mesh, places = parameter.device_mesh, parameter.placements
    part: Any = distribute_tensor(whole.detach(), mesh, places, src_data_rank=None)
    parameter.copy_(part)
    if with_grads and whole.grad is not None:
        parameter.grad = distribute_tensor(whole.grad.detach(), mesh, places, src_data_rank=None)


def _like(total: Tensor, parameter: Any) -> Tensor:
    """The norm as gradients of this kind need it."""
    if not isinstance(parameter, DTensor):
        return total
    mesh = parameter.device_mesh
    return DTensor.from_local(total, mesh, [Replicate()] * mesh.ndim)


for _value in (FullyShardedDataParallel, OptimStateKeyType):
    set_name(_value, __name__, _value.__name__)
