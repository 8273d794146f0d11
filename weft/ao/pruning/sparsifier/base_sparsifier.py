"""BaseSparsifier: gives weights of a model masks, and changes the masks at each step."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import defaultdict
from typing import Any

from ....core.grad_mode import no_grad
from ....nn import Linear, Module
from ....nn.utils.parametrize import (
    register_parametrization,
    remove_parametrizations,
    type_before_parametrizations,
)
from ....ops.creation.creation import ones, ones_like
from .utils import (
    FakeSparsity,
    get_arg_info_from_tensor_fqn,
    module_contains_param,
    module_to_fqn,
    swap_module,
)

SUPPORTED_MODULES = {Linear}
KEYS_NOT_IN_STATE_DICT = ["module", "module_fqn", "tensor_name"]


class BaseSparsifier(ABC):
    """The base of sparsifiers, which define `update_mask(module, tensor_name, **settings)`.

    defaults: the settings of tensors for which `prepare` gets no others.
    """

    model: Any
    # The calls of `step`, which schedulers count.
    _step_count = 0
    enable_mask_update = True

    def __init__(self, defaults: dict[str, Any] | None = None):
        self.defaults = defaults or {}
        self.state: dict[str, dict] = defaultdict(dict)
        self.groups: list[dict[str, Any]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "groups": self.groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __repr__(self) -> str:
        text = ""
        for i, group in enumerate(self.groups):
            text += f"\n\tGroup {i}\n\t    module: {group['module']}\n"
            text += "".join(f"\t    {key}: {group[key]}\n" for key in sorted(group) if key != "module")
        return f"{type(self).__name__} ({text})"

    def state_dict(self) -> dict[str, Any]:
        """The masks, and the settings of each tensor."""
        groups = [
            {key: value for key, value in group.items() if key not in KEYS_NOT_IN_STATE_DICT}
            for group in self.groups
        ]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> None:
        """Take the masks and settings, and give tensors without a mask one. The model is the one of `prepare`."""
        groups = copy.deepcopy(state_dict["groups"])
        for name, state in state_dict["state"].items():
            info = get_arg_info_from_tensor_fqn(self.model, name)
            module, tensor_name = info["module"], info["tensor_name"]
            if strict and module is None:
                raise RuntimeError(f"Error loading {name} into the model")
            if not module_contains_param(module, FakeSparsity):
                mask = FakeSparsity(ones(getattr(module, tensor_name).shape))
                register_parametrization(module, tensor_name, mask)
            if state.get("mask") is not None:
                found = (
                    each for each in module.parametrizations[tensor_name] if isinstance(each, FakeSparsity)
                )
                next(found).mask = state["mask"]
            for group in groups:
                if group["tensor_fqn"] == name:
                    group.update(info)
        self.__setstate__({"state": state_dict["state"], "groups": groups})

    def make_config_from_model(self, model: Module, SUPPORTED_MODULES: set = SUPPORTED_MODULES) -> None:
        """Set `config` to the weights of all layers of these classes."""
        self.config = []
        stack = [model]
        while stack:
            for child in stack.pop().children():
                if type(child) in SUPPORTED_MODULES:
                    self.config.append({"tensor_fqn": f"{module_to_fqn(model, child)}.weight"})
                else:
                    stack.append(child)

    def prepare(self, model: Module, config: list[dict[str, Any]] | None) -> None:
        """Give weights of a model masks of ones.

        config: a dict for each tensor, with its name as "tensor_fqn", and settings. None stands for the weights of all
        linear layers.
        Raises: AssertionError for a dict without a name, and for a module that does not agree with the name.
        """
        self.model = model
        if config is None:
            self.make_config_from_model(model)
        else:
            self.config = config
        for given in self.config:
            if not isinstance(given, dict):
                raise AssertionError(
                    "config elements should be dicts: [{'tensor_fqn': 'foo.bar.weight'}, ...]"
                )
            group = {**copy.deepcopy(self.defaults), **given}
            if group.get("tensor_fqn") is None:
                raise AssertionError("tensor_fqn is a required argument in the sparsity config")
            info = get_arg_info_from_tensor_fqn(model, group["tensor_fqn"].removeprefix("."))
            for key, value in info.items():
                if key != "tensor_fqn" and group.get(key, value) != value:
                    raise AssertionError(
                        f"Given both `{key}` and `tensor_fqn` in the config, they must agree"
                    )
            self.groups.append({**group, **info})
        self._prepare()

    def _prepare(self, *args: Any, **kwargs: Any) -> None:
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group.get("mask", ones_like(getattr(module, name)).detach())
            self.state[group["tensor_fqn"]]["mask"] = mask
            register_parametrization(module, name, group.get("parametrization", FakeSparsity)(mask))

    def squash_mask(
        self,
        params_to_keep: Any = None,
        params_to_keep_per_layer: dict | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Remove the masks, and leave the weights as they are with them.

        params_to_keep: the settings that each module keeps, in its attribute `sparse_params`. params_to_keep_per_layer: those of
        single modules, by their names.
        """
        for group in self.groups:
            remove_parametrizations(group["module"], group["tensor_name"], leave_parametrized=True)
            of_layer = (params_to_keep_per_layer or {}).get(group["module_fqn"], ())
            kept = {key: group[key] for key in (*(params_to_keep or ()), *(of_layer or ()))}
            if kept:
                group["module"].sparse_params = kept

    def convert(
        self, module: Module, mapping: dict | None = None, inplace: bool = False,
        parameterization: type[Module] = FakeSparsity,
    ) -> Module:  # fmt: skip
        """A copy of a model in which `from_dense` of the classes in the mapping has made layers of those with masks."""
        if mapping is None:
            raise NotImplementedError(
                "BaseSparsifier.convert: give a mapping from classes of layers to others"
            )
        module = module if inplace else copy.deepcopy(module)
        for name, child in list(module.named_children()):
            is_masked = module_contains_param(child, parameterization)
            if is_masked and type_before_parametrizations(child) in mapping:
                module._modules[name] = swap_module(child, mapping)
            else:
                self.convert(child, mapping, inplace=True, parameterization=parameterization)
        return module

    def step(self, use_path: bool = True) -> None:
        """Choose the masks anew."""
        self._step_count += 1
        if self.enable_mask_update:
            with no_grad():
                for group in self.groups:
                    self.update_mask(**group)

    @abstractmethod
    def update_mask(self, module: Module, tensor_name: str, **kwargs: Any) -> None:
        """Write the mask of one tensor."""
