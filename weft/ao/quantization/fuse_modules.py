"""Joins neighbouring layers of a model into one: Conv + BatchNorm, Conv + ReLU, Linear + ReLU, and others."""

from __future__ import annotations

import copy
from typing import Any

from ... import nn
from ...nn.utils.parametrize import type_before_parametrizations
from .fuser_method_mappings import fuse_conv_bn as fuse_conv_bn  # PyTorch's module has them as well
from .fuser_method_mappings import fuse_conv_bn_relu as fuse_conv_bn_relu
from .fuser_method_mappings import get_fuser_method
from .utils import getattr_from_fqn


def fuse_known_modules(
    mod_list: list, is_qat: bool = False, additional_fuser_method_mapping: Any = None
) -> list:
    """The fused layer, and an Identity for each of the others.

    The fused layer gets the forward pre-hooks of the first layer and the forward hooks of the last one.
    Raises: AssertionError for layers that are not fused.
    """
    first, *rest = mod_list
    kinds = tuple(type_before_parametrizations(each) for each in mod_list)
    fused = get_fuser_method(kinds, additional_fuser_method_mapping)(is_qat, *mod_list)
    for hook in first._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    first._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        fused.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    return [fused, *(nn.Identity().train(first.training) for _ in rest)]


def _fuse(
    model: Any, modules_to_fuse: Any, is_qat: bool, inplace: bool, fuser_func: Any, custom: dict | None
) -> Any:
    model = model if inplace else copy.deepcopy(model)
    additional = (custom or {}).get("additional_fuser_method_mapping", {})
    is_one = all(isinstance(each, str) for each in modules_to_fuse)
    for names in [modules_to_fuse] if is_one else modules_to_fuse:
        made = fuser_func([getattr_from_fqn(model, name) for name in names], is_qat, additional)
        for name, each in zip(names, made, strict=True):
            path, _, last = name.rpartition(".")
            setattr(model.get_submodule(path), last, each)
    return model


def fuse_modules(
    model: Any, modules_to_fuse: Any, inplace: bool = False, fuser_func: Any = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Any:  # fmt: skip
    """A copy of the model with these layers fused. modules_to_fuse: a list of names, or several.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).eval()
    >>> torch.ao.quantization.fuse_modules(model, ["0", "1"])
    Sequential(
      (0): LinearReLU(
        (0): Linear(in_features=3, out_features=2, bias=True)
        (1): ReLU()
      )
      (1): Identity()
    )
    """
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Any, modules_to_fuse: Any, inplace: bool = False, fuser_func: Any = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Any:  # fmt: skip
    """`fuse_modules` for a model that will be trained: layers stay as they are, and are held together.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Conv1d(3, 2, 1), torch.nn.BatchNorm1d(2))
    >>> type(torch.ao.quantization.fuse_modules_qat(model, ["0", "1"])[0]).__name__
    'ConvBn1d'
    """
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
