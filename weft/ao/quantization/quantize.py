"""From a model of floats to a model of quantized layers: observers are put in (`prepare`), data passes, layers are exchanged (`convert`)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ...compat.missing import module_getattr
from ...core.dtype import DType, float16, qint8
from ...nn import Module
from ..nn.intrinsic.modules.fused import _FusedModule
from ..nn.quantized import FloatFunctional
from .qconfig import default_dynamic_qconfig, float16_dynamic_qconfig
from .quantization_mappings import (
    DYNAMIC_IN_PYTORCH,
    get_default_dynamic_quant_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
)
from .stubs import DeQuantStub, QuantWrapper


def propagate_qconfig_(
    module: Module, qconfig_dict: dict | None = None, prepare_custom_config_dict: Any = None
) -> None:
    """Give each module the QConfig of the module that holds it, unless it has one, or its name or type has one in the dict."""
    _propagate(module, qconfig_dict or {}, None, "")


def _propagate(module: Any, given: dict, inherited: Any, prefix: str) -> None:
    own = given.get(type(module), inherited)
    own = given.get(prefix, getattr(module, "qconfig", own))
    module.qconfig = own
    for name, child in module.named_children():
        _propagate(child, given, own, f"{prefix}.{name}" if prefix else name)


def _observe(module: Any, inputs: Any, output: Any) -> Any:
    return module.activation_post_process(output)


def _add_observers(module: Any, observed: set) -> None:
    for child in module.children():
        qconfig = getattr(child, "qconfig", None)
        if isinstance(child, FloatFunctional):
            if qconfig is not None:
                child.activation_post_process = qconfig.activation()
        elif isinstance(child, _FusedModule) or not child._modules:
            wanted = isinstance(child, _FusedModule) or type(child) in observed
            if qconfig is not None and wanted and not isinstance(child, DeQuantStub):
                child.add_module("activation_post_process", qconfig.activation())
                child.register_forward_hook(_observe, prepend=True)
        else:
            _add_observers(child, observed)


def prepare(
    model: Module, inplace: bool = False, allow_list: Any = None, observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: Any = None,
) -> Module:  # fmt: skip
    """A copy of the model with an observer behind each layer that will be quantized, as its `qconfig` says."""
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(each, "qconfig", None) for each in model.modules()):
        raise RuntimeError(
            "prepare: no module of the model has a qconfig: set model.qconfig = get_default_qconfig()"
        )
    _add_observers(model, set(allow_list or get_default_qconfig_propagation_list()))
    return model


def convert(
    module: Module, mapping: dict | None = None, inplace: bool = False, remove_qconfig: bool = True,
    is_reference: bool = False, convert_custom_config_dict: Any = None, use_precomputed_fake_quant: bool = False,
) -> Module:  # fmt: skip
    """A copy of a model whose observed layers are quantized ones."""
    if is_reference:
        raise NotImplementedError("convert: weft has no reference layers: leave is_reference out")
    module = module if inplace else copy.deepcopy(module)
    _exchange(module, get_default_static_quant_module_mappings() if mapping is None else mapping)
    if remove_qconfig:
        for each in module.modules():
            if "qconfig" in vars(each):
                del each.qconfig
    return module


def _exchange(module: Module, mapping: dict) -> None:
    for name, child in list(module.named_children()):
        if not isinstance(child, _FusedModule):
            _exchange(child, mapping)
        module._modules[name] = swap_module(child, mapping)


def swap_module(
    mod: Any, mapping: dict, custom_module_class_mapping: Any = None, use_precomputed_fake_quant: bool = False
) -> Any:
    """The quantized layer for a layer that was observed; other modules as they are."""
    if getattr(mod, "qconfig", None) is None or type(mod) not in mapping:
        return mod
    made = mapping[type(mod)].from_float(mod)
    made.train(mod.training)
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observe:
            made.register_forward_hook(hook)
    return made


def quantize(
    model: Module, run_fn: Callable, run_args: Any, mapping: dict | None = None, inplace: bool = False
) -> Module:
    """`prepare`, `run_fn(model, *run_args)`, `convert`."""
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_dynamic(
    model: Module,
    qconfig_spec: Any = None,
    dtype: DType = qint8,
    mapping: dict | None = None,
    inplace: bool = False,
) -> Module:
    """A copy of the model whose linear layers have quantized weights, and quantize their input when they are called.

    qconfig_spec: the types or names of the layers, or a dict from them to their QConfigs; all linear layers by default.
    """
    mapping = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    if dtype not in (qint8, float16):
        raise ValueError(
            f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please"
        )
    qconfig = default_dynamic_qconfig if dtype is qint8 else float16_dynamic_qconfig
    if qconfig_spec is None:
        qconfig_spec = {*mapping, *DYNAMIC_IN_PYTORCH}
    if not isinstance(qconfig_spec, dict):
        qconfig_spec = dict.fromkeys(qconfig_spec, qconfig)
    for name, each in model.named_modules():
        if isinstance(each, DYNAMIC_IN_PYTORCH) and type(each) in qconfig_spec and type(each) not in mapping:
            raise NotImplementedError(
                f"quantize_dynamic: weft quantizes no {type(each).__name__} yet, which is {name!r}: write qconfig_spec={{torch.nn.Linear}}"
            )
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, mapping, inplace=True)


def add_quant_dequant(module: Module) -> Module:
    """The model with each observed layer between a QuantStub and a DeQuantStub."""
    observed = get_default_qconfig_propagation_list()
    if not module._modules and getattr(module, "qconfig", None) and type(module) in observed:
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


__getattr__ = module_getattr(__name__)
