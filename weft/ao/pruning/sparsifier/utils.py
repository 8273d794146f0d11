"""The mask of a weight, and the names of modules and tensors of a model."""

from __future__ import annotations

from typing import Any

from ....core.tensor import Tensor
from ....nn import Module
from ....nn.utils.parametrize import is_parametrized, type_before_parametrizations


class FakeSparsity(Module):
    """A parametrization: the product of a mask and a tensor. A state_dict does not hold the mask.

    Whoever changes the mask writes into it, or exchanges its `data`, because others hold the mask, too.
    """

    mask: Tensor

    def __init__(self, mask: Tensor):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        if self.mask.shape != x.shape:
            raise AssertionError(f"mask shape ({self.mask.shape}) must match x shape ({x.shape})")
        return self.mask * x

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """An empty dict."""
        return {}


def module_contains_param(module: Module, parametrization: type[Module]) -> bool:
    """Whether a tensor of the module has a parametrization of this class."""
    if not is_parametrized(module):
        return False
    lists: Any = module.parametrizations
    return any(isinstance(each, parametrization) for found in lists.values() for each in found)


def swap_module(mod: Module, mapping: dict) -> Module:
    """What `from_dense` of the class in the mapping makes of a module, with its hooks; other modules as they are."""
    kind = type_before_parametrizations(mod)
    if kind not in mapping:
        return mod
    made = mapping[kind].from_dense(mod)
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        made.register_forward_hook(hook)
    devices = {each.device for each in (*mod.parameters(), *mod.buffers())}
    if len(devices) > 1:
        raise AssertionError(f"swap_module only works with modules on one device, but got devices {devices}")
    return made.to(devices.pop()) if devices else made


def module_to_fqn(model: Module, module: Module, prefix: str = "") -> str | None:
    """The name of a module in a model, after the prefix; None if the model does not hold it."""
    if module is model:
        return ""
    names = {id(each): name for name, each in model.named_modules()}
    return prefix + names[id(module)] if id(module) in names else None


def fqn_to_module(model: Module | None, path: str) -> Any:
    """The module or the tensor of a name with dots; None if there is none."""
    found: Any = model
    for name in path.split(".") if path else ():
        found = getattr(found, name, None)
    return found


def get_arg_info_from_tensor_fqn(model: Module, tensor_fqn: str) -> dict[str, Any]:
    """The module that holds a tensor, its name, the name of the tensor in it, and the whole name.

    >>> import weft as torch
    >>> get_arg_info_from_tensor_fqn(torch.nn.Sequential(torch.nn.Linear(2, 2)), "0.weight")["module_fqn"]
    '0'
    """
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    module = fqn_to_module(model, module_fqn)
    return {"module_fqn": module_fqn, "module": module, "tensor_name": tensor_name, "tensor_fqn": tensor_fqn}
