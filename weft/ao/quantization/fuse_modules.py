"""Joins neighbouring layers of a model into one: Conv + BatchNorm, Conv + ReLU, Linear + ReLU, and all three."""

from __future__ import annotations

import copy
from typing import Any

from ... import nn
from ...compat.missing import module_getattr
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ..nn import intrinsic

_CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_WITH_RELU: dict[Any, Any] = {
    nn.Linear: intrinsic.LinearReLU,
    nn.Conv1d: intrinsic.ConvReLU1d,
    nn.Conv2d: intrinsic.ConvReLU2d,
    nn.Conv3d: intrinsic.ConvReLU3d,
}


def fuse_known_modules(
    mod_list: list, is_qat: bool = False, additional_fuser_method_mapping: Any = None
) -> list:
    """The fused layer, and an Identity for each of the others.

    Raises: NotImplementedError for layers that are not fused.
    """
    first, *rest = mod_list
    fused = first
    for each in rest:
        if isinstance(each, _BATCH_NORM) and type(fused) in (*_CONV, nn.Linear):
            if fused.training:
                raise NotImplementedError(
                    "fuse_modules: a BatchNorm is fused in eval mode: call model.eval() before"
                )
            fuse = fuse_linear_bn_eval if type(fused) is nn.Linear else fuse_conv_bn_eval
            fused = fuse(fused, each)
        elif type(each) is nn.ReLU and type(fused) in _WITH_RELU:
            fused = _WITH_RELU[type(fused)](fused, each)
        else:
            raise NotImplementedError(f"Cannot fuse modules: {tuple(type(each) for each in mod_list)}")
    for hook in first._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    fused.training = first.training
    return [fused, *(nn.Identity() for _ in rest)]


def _parent(model: Any, name: str) -> tuple[Any, str]:
    path, _, last = name.rpartition(".")
    return model.get_submodule(path), last


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
    model = model if inplace else copy.deepcopy(model)
    several = modules_to_fuse if not isinstance(modules_to_fuse[0], str) else [modules_to_fuse]
    for names in several:
        made = fuser_func([model.get_submodule(name) for name in names])
        for name, each in zip(names, made, strict=True):
            parent, last = _parent(model, name)
            setattr(parent, last, each)
    return model


__getattr__ = module_getattr(__name__)
