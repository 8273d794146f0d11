"""`torch.distributed.checkpoint.state_dict`: state dicts of models and optimizers by the names of parameters.

Wrappers such as DistributedDataParallel leave no trace in the names, and the state of an optimizer is named after its
parameter and not numbered. So a checkpoint fits other wrappers and other orders of parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...autograd import no_grad
from ...core.tensor import Tensor
from ...nn.module import Module
from ...ops.creation.creation import empty, zeros_like
from ...optim import Optimizer
from .. import _collectives
from .._objects import broadcast_object_list
from .._world import get_rank, is_initialized
from ..tensor import DTensor, distribute_tensor

__all__ = [
    "FQNS_T",
    "PrimitiveType",
    "ValueType",
    "DictValueType",
    "ListDictValueType",
    "OptimizerStateType",
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

FQNS_T = set[str]
PrimitiveType = Tensor | int | float | str
ValueType = PrimitiveType | list[PrimitiveType] | tuple[PrimitiveType] | dict[str, Any]
DictValueType = dict[str, ValueType]
ListDictValueType = list[DictValueType]
OptimizerStateType = dict[str, DictValueType | ListDictValueType]

# Attributes under which wrappers keep their module.
_WRAPPERS = ("_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module")


@dataclass
class StateDictOptions:
    """How state dicts are made and taken over.

    `full_state_dict`: whole tensors in the place of DTensors; with `cpu_offload` only the first process gets them, and others nothing. `broadcast_from_rank0`: the
    others take over what the first process has. `ignore_frozen_params` leaves out parameters that require no gradient; `strict` refuses names that do not fit.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _name(model: Module, path: str) -> str:
    """A path within a model without the attributes of wrappers."""
    parts = []
    owner: Any = model
    for part in path.split("."):
        if part in _WRAPPERS or (part == "module" and _is_parallel(owner)):
            owner = getattr(owner, part, None)
            continue
        parts.append(part)
        owner = getattr(owner, part, None)
    return ".".join(parts)


def _is_parallel(module: Any) -> bool:
    from ...nn.parallel import DataParallel
    from ..data_parallel import DistributedDataParallel

    return isinstance(module, DataParallel | DistributedDataParallel)


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The parameters and buffers of a model, of some submodules if they are given.

    >>> import weft as torch
    >>> from weft.distributed.checkpoint.state_dict import get_model_state_dict
    >>> list(get_model_state_dict(torch.nn.DataParallel(torch.nn.Linear(2, 1))))
    ['weight', 'bias']
    """
    options = options or StateDictOptions()
    state = {_name(model, path): value for path, value in model.state_dict().items()}
    if options.ignore_frozen_params:
        for path, parameter in model.named_parameters(remove_duplicate=False):
            if not parameter.requires_grad:
                state.pop(_name(model, path), None)
    if submodules:
        state = _of_submodules(model, state, submodules, options.keep_submodule_prefixes)
    return _asked_for(state, options)


def _asked_for(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """A state dict as options want it."""
    if options.full_state_dict:
        state = _whole(state)
        if options.cpu_offload and is_initialized() and get_rank():
            return {}
    return _on_cpu(state) if options.cpu_offload else state


def _whole(state: Any) -> Any:
    """A state dict with whole tensors in the place of DTensors."""
    if isinstance(state, dict):
        return {name: _whole(each) for name, each in state.items()}
    return state.full_tensor() if isinstance(state, DTensor) else state


def _divided(given: Mapping[str, Any], like: Mapping[str, Any], from_first: bool) -> dict[str, Any]:
    """Whole tensors laid out as those of `like` are. from_first: process 0 has them all, and others need not have any."""
    found: dict[str, Any] = dict(given)
    for name, own in like.items():
        value: Any = given.get(name)
        if not isinstance(own, Tensor) or isinstance(value, DTensor) or value is None and not from_first:
            continue
        if from_first and not (is_initialized() and get_rank() == 0):
            value = empty(own.shape, dtype=own.dtype)
        if isinstance(own, DTensor):
            source = 0 if from_first else None
            found[name] = distribute_tensor(value, own.device_mesh, own.placements, src_data_rank=source)
        elif from_first and is_initialized():
            found[name] = value.detach().clone().contiguous()
            _collectives.broadcast(found[name], 0)
    return found


def _of_submodules(
    model: Module, state: dict[str, Any], submodules: set[Module], keep_prefixes: bool
) -> dict[str, Any]:
    chosen = {}
    for path, module in model.named_modules():
        if module not in submodules:
            continue
        prefix = f"{_name(model, path)}."
        for name, value in state.items():
            if name.startswith(prefix):
                chosen[name if keep_prefixes else name.removeprefix(prefix)] = value
    return chosen


def set_model_state_dict(
    model: Module, model_state_dict: Mapping[Any, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load what `get_model_state_dict` gave; the names that were missing and those that were not expected.

    The keys may be submodules, and the values their state dicts. A model on meta takes the given tensors, because it has no memory to copy to.
    """
    options = options or StateDictOptions()
    given = _by_full_names(model, model_state_dict)
    own = model.state_dict()
    paths = {_name(model, path): path for path in own}
    if options.full_state_dict or options.broadcast_from_rank0:
        given = _divided(
            given, {_name(model, path): each for path, each in own.items()}, options.broadcast_from_rank0
        )
    state = {paths.get(name, name): value for name, value in given.items()}
    has_no_memory = any(isinstance(each, Tensor) and each.is_meta for each in own.values())
    return model.load_state_dict(state, strict=options.strict, assign=has_no_memory)


def _by_full_names(model: Module, state: Mapping[Any, Any]) -> dict[str, Any]:
    if not state or not isinstance(next(iter(state)), Module):
        return dict(state)
    prefixes = {module: _name(model, path) for path, module in model.named_modules()}
    return {
        f"{prefixes[module]}.{name}".removeprefix("."): value
        for module, part in state.items()
        for name, value in part.items()
    }


# ---- Optimizers -------------------------------------------------------------------------------------------------


def _listed(optimizers: Optimizer | Iterable[Optimizer]) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _parameter_names(model: Module) -> dict[int, str]:
    return {id(each): _name(model, path) for path, each in model.named_parameters()}


def _names_by_group(model: Module, optimizer: Optimizer) -> list[list[str]]:
    """The names of the parameters of each group."""
    names = _parameter_names(model)
    return [[names[id(each)] for each in group["params"]] for group in optimizer.param_groups]


def _init_optim_state(optimizer: Optimizer) -> None:
    """Let an optimizer make its state, by a step with gradients of zero that changes no parameter.

    An optimizer with a state, or one whose parameters have gradients, is left alone.
    """
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    if optimizer.state or any(each.grad is not None for each in parameters):
        return
    for each in parameters:
        if each.requires_grad:
            each.grad = zeros_like(each)
    rates = [group["lr"] for group in optimizer.param_groups if "lr" in group]
    for group in optimizer.param_groups:
        if "lr" in group:
            group["lr"] = zeros_like(group["lr"]) if isinstance(group["lr"], Tensor) else 0.0
    with no_grad():
        optimizer.step(closure=None)
    for group, rate in zip((group for group in optimizer.param_groups if "lr" in group), rates):
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The states of optimizers by the names of parameters; with `flatten_optimizer_state_dict` without nesting."""
    options = options or StateDictOptions()
    states: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _listed(optimizers):
        _init_optim_state(optimizer)
        by_group = _names_by_group(model, optimizer)
        names = [name for group in by_group for name in group]
        saved = optimizer.state_dict()
        states |= {names[number]: state for number, state in saved["state"].items()}
        groups += [{**group, "params": own} for group, own in zip(saved["param_groups"], by_group)]
    if submodules:
        states, groups = _only_of_submodules(model, states, groups, submodules)
    if options.full_state_dict:
        states = _whole(states)
        if options.cpu_offload and is_initialized() and get_rank():
            return {}
    if options.cpu_offload:
        states = {name: _on_cpu(state) for name, state in states.items()}
    result = {"state": states, "param_groups": groups}
    return _flattened(result) if options.flatten_optimizer_state_dict else result


def _on_cpu(state: dict[str, Any]) -> dict[str, Any]:
    return {key: value.cpu() if isinstance(value, Tensor) else value for key, value in state.items()}


def _only_of_submodules(
    model: Module, states: dict[str, Any], groups: list[dict[str, Any]], submodules: set[Module]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    prefixes = tuple(
        f"{_name(model, path)}." for path, module in model.named_modules() if module in submodules
    )
    groups = [
        {**group, "params": [name for name in group["params"] if name.startswith(prefixes)]}
        for group in groups
    ]
    return {name: state for name, state in states.items() if name.startswith(prefixes)}, groups


def _flattened(nested: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, state in nested["state"].items():
        flat |= {f"state.{name}.{key}": value for key, value in state.items()}
    for group in nested["param_groups"]:
        for name in group["params"]:
            flat |= {f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"}
    return flat


def _unflattened(model: Module, optimizer: Optimizer, flat: Mapping[str, Any]) -> dict[str, Any]:
    """The nested state dict of an optimizer that has its state already."""
    states: dict[str, Any] = {}
    groups = []
    for group, names in zip(optimizer.param_groups, _names_by_group(model, optimizer)):
        for parameter, name in zip(group["params"], names):
            states[name] = {key: flat[f"state.{name}.{key}"] for key in optimizer.state.get(parameter, ())}
        settings = (
            {key: flat[f"param_groups.{names[0]}.{key}"] for key in group if key != "params"} if names else {}
        )
        groups.append({**settings, "params": names})
    return {"state": states, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: Mapping[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load what `get_optimizer_state_dict` gave."""
    options = options or StateDictOptions()
    for optimizer in _listed(optimizers):
        _init_optim_state(optimizer)
        given: Mapping[str, Any] = optim_state_dict
        if given and "param_groups" not in given:
            given = _unflattened(model, optimizer, given)
        if options.broadcast_from_rank0 and not options.full_state_dict:
            raise NotImplementedError(
                "set_optimizer_state_dict(broadcast_from_rank0=True): set full_state_dict=True as well"
            )
        if given or options.broadcast_from_rank0:
            given = _divided_states(model, optimizer, given, options)
        if given:
            optimizer.load_state_dict(_numbered(model, optimizer, given))


def _divided_states(
    model: Module, optimizer: Optimizer, given: Mapping[str, Any], options: StateDictOptions
) -> Mapping[str, Any]:
    """A state dict with whole tensors laid out as those of the optimizer are."""
    if not options.full_state_dict:
        return given
    from_first, groups = options.broadcast_from_rank0, given.get("param_groups")
    if from_first and is_initialized():
        shared = [groups]
        broadcast_object_list(shared, 0)
        groups = shared[0]
    states = {}
    for group, names in zip(optimizer.param_groups, _names_by_group(model, optimizer)):
        for parameter, name in zip(group["params"], names):
            own = optimizer.state.get(parameter, {})
            states[name] = _divided(given.get("state", {}).get(name, {}), own, from_first)
    return {"state": states, "param_groups": groups}


def _numbered(model: Module, optimizer: Optimizer, given: Mapping[str, Any]) -> dict[str, Any]:
    """The state dict of an optimizer itself, which has numbers for names."""
    states: dict[int, Any] = {}
    groups = []
    number = 0
    for group, names in zip(optimizer.state_dict()["param_groups"], _names_by_group(model, optimizer)):
        for name in names:
            if name in given["state"]:
                states[number] = given["state"][name]
            number += 1
        saved = next((each for each in given["param_groups"] if set(names) & set(each["params"])), group)
        groups.append({**saved, "params": group["params"]})
    return {"state": states, "param_groups": groups}


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state dicts of a model and of its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: Mapping[Any, Any],
    optim_state_dict: Mapping[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Load what `get_state_dict` gave; the names of the model that were missing and those that were not expected."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
