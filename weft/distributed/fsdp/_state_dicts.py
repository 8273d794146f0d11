"""State dicts of FullyShardedDataParallel: names without wrappers, and whole tensors or parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...core.tensor import Tensor
from ...nn.module import Module
from ...optim import Optimizer
from .._objects import broadcast_object_list
from .._world import get_rank
from ..checkpoint.state_dict import _divided, _names_by_group, _numbered, _whole
from ..tensor import DTensor, distribute_tensor
from ._parameters import Cut
from .api import StateDictSettings, StateDictType

WRAPPED = "_fsdp_wrapped_module"
PREFIX = f"{WRAPPED}."


def _own(module: Any) -> Iterator[tuple[str, Cut]]:
    """The parameters that this wrapper cuts, with their names within what it wraps."""
    paths = {each: path for path, each in module._fsdp_wrapped_module.named_modules()}
    for cut in module._fsdp_state.cuts:
        for owner, name in cut.owners:
            yield f"{paths[owner]}.{name}".replace(PREFIX, "").removeprefix("."), cut


def as_saved(module: Any, state: dict[str, Any], prefix: str, settings: StateDictSettings) -> None:
    """Rename what the wrapped module has put into a state dict, and give its parameters the wanted form."""
    inner = prefix + PREFIX
    for name in [name for name in state if name.startswith(inner)]:
        state[prefix + name.removeprefix(inner)] = state.pop(name)
    kind, config = settings.state_dict_type, settings.state_dict_config
    for name, _ in _own(module):
        value = state.get(prefix + name)
        if isinstance(value, DTensor) and kind is not StateDictType.SHARDED_STATE_DICT:
            is_full = kind is StateDictType.FULL_STATE_DICT
            state[prefix + name] = (value.full_tensor() if is_full else value.to_local()).detach()
    if getattr(config, "rank0_only", False) and get_rank() and module.check_is_root():
        state.clear()


def as_loaded(module: Any, state: dict[str, Any], prefix: str, settings: StateDictSettings) -> None:
    """Rename the entries of a state dict for the wrapped module, and divide whole tensors."""
    cuts = dict(_own(module))
    for name in [name for name in state if name.startswith(prefix)]:
        own, value = name.removeprefix(prefix), state.pop(name)
        if own in cuts and isinstance(value, Tensor) and not isinstance(value, DTensor):
            parameter = cuts[own].parameter
            mesh, places = parameter.device_mesh, parameter.placements
            if settings.state_dict_type is StateDictType.LOCAL_STATE_DICT:
                value = DTensor.from_local(
                    value, mesh, places, shape=parameter.shape, stride=parameter.stride()
                )
            else:
                value = distribute_tensor(value.detach(), mesh, places, src_data_rank=None)
        state[f"{prefix}{PREFIX}{own}"] = value


# ---- Optimizers -------------------------------------------------------------------------------------------------------


def of_optimizer(
    model: Module,
    optimizer: Optimizer,
    saved: Mapping[str, Any] | None,
    kind: StateDictType,
    first_only: bool,
) -> dict[str, Any]:
    """The state of an optimizer by the names of parameters."""
    saved = optimizer.state_dict() if saved is None else saved
    by_group = _names_by_group(model, optimizer)
    names = [name for group in by_group for name in group]
    states = {names[number]: state for number, state in saved["state"].items()}
    if kind is StateDictType.FULL_STATE_DICT:
        states = {
            name: {key: each.clone() if isinstance(each, Tensor) else each for key, each in state.items()}
            for name, state in _whole(states).items()
        }
        if first_only and get_rank():
            return {}
    elif kind is StateDictType.LOCAL_STATE_DICT:
        states = {
            name: {key: each.to_local() if isinstance(each, DTensor) else each for key, each in state.items()}
            for name, state in states.items()
        }
    groups = [{**group, "params": own} for group, own in zip(saved["param_groups"], by_group, strict=True)]
    return {"state": states, "param_groups": groups}


def to_load(
    model: Module, optimizer: Optimizer, given: Mapping[str, Any], from_first: bool
) -> dict[str, Any]:
    """What `optimizer.load_state_dict` takes. from_first: only process 0 has the states."""
    if from_first:
        box = [given if get_rank() == 0 else None]
        broadcast_object_list(box, 0)
        given = box[0]  # type: ignore[assignment]
    states = {}
    for group, names in zip(optimizer.param_groups, _names_by_group(model, optimizer), strict=True):
        for parameter, name in zip(group["params"], names, strict=True):
            own = given["state"].get(name)
            if own is not None:
                like = {
                    key: parameter
                    for key, value in own.items()
                    if isinstance(value, Tensor) and value.shape == parameter.shape
                }
                states[name] = _divided(own, like, False)
    return _numbered(model, optimizer, {"state": states, "param_groups": given["param_groups"]})
