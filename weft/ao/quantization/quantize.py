"""From a model of floats to a model of quantized layers: observers are put in (`prepare`), data passes, layers are exchanged (`convert`)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from inspect import signature
from typing import Any

from ... import nn
from ...core.dtype import DType, float16, qint8, quint4x2, quint8
from ...core.warn import user_level
from ...nn import Dropout, Module, Sequential
from ...nn.utils.parametrize import type_before_parametrizations
from ..nn import quantizable, quantized
from ..nn.intrinsic.modules.fused import _FusedModule
from ..nn.layers import activation_is_memoryless
from ..nn.quantized import FloatFunctional, QFunctional
from .observer import ActivationPostProcess
from .qconfig import (
    QConfig,
    check_qconfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from .quantization_mappings import (
    fixed_post_process,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
    no_observer_set,
)
from .stubs import DeQuantStub, QuantWrapper
from .utils import get_qparam_dict, has_no_children_ignoring_parametrizations


def propagate_qconfig_(
    module: Module, qconfig_dict: dict | None = None, prepare_custom_config_dict: Any = None
) -> None:
    """Give each module the QConfig of the module that holds it, unless it has one, or its name or type has one in the dict.

    prepare_custom_config_dict: the names and the classes of children of the module that get none, as
    "non_traceable_module_name" and "non_traceable_module_class".
    """
    custom = prepare_custom_config_dict or {}
    _propagate(module, qconfig_dict or {}, None, "", custom)


def _propagate(module: Any, given: dict, inherited: Any, prefix: str, custom: dict) -> None:
    own = given.get(type_before_parametrizations(module), inherited)
    own = getattr(module, "qconfig", given.get(prefix, own))
    check_qconfig(own, module)
    module.qconfig = own
    names, classes = (custom.get(f"non_traceable_module_{part}", ()) for part in ("name", "class"))
    for name, child in module.named_children():
        if name not in names and type(child) not in classes:
            _propagate(child, given, own, f"{prefix}.{name}" if prefix else name, {})


# ---- Observers -----------------------------------------------------------------------------------------------------------


def _observe(module: Any, inputs: Any, output: Any) -> Any:
    return module.activation_post_process(output)


def _observe_input(module: Any, inputs: Any) -> Any:
    return module.activation_post_process(inputs[0])


def _is_configured(module: Any) -> bool:
    return getattr(module, "qconfig", None) is not None


def _add_observer(module: Any, make: Callable | None = None) -> None:
    """Observe the result of a module, or its input if the observer forgets all tensors but the last."""
    if not _is_configured(module) or isinstance(module, DeQuantStub):
        return
    made = (make or module.qconfig.activation)()
    device = _device(module)
    module.add_module("activation_post_process", made if device is None else made.to(device))
    if activation_is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observe_input, prepend=True)
    else:
        module.register_forward_hook(_observe, prepend=True)


def _get_observer_dict(mod: Module, target_dict: dict[str, Any], prefix: str = "") -> None:
    """Put the observers of results of a model into a dict, by their names, to look for where numbers go wrong."""
    for name, module in mod.named_modules(prefix=prefix):
        if hasattr(module, "activation_post_process"):
            target_dict[f"{name}.activation_post_process".lstrip(".")] = module.activation_post_process


def _device(module: Module) -> Any:
    """The device of the parameters and buffers; None if there are none.

    Raises: AssertionError if there are several.
    """
    found = {each.device for each in (*module.parameters(), *module.buffers()) if each.device.type != "meta"}
    if len(found) > 1:
        raise AssertionError(f"quantization only works with modules on one device, but got devices {found}")
    return next(iter(found), None)


def _add_observers(module: Any, observed: set, whole: set, custom: dict) -> None:
    """Add observers to the layers in a module.

    observed: the classes of layers without children. whole: the classes of layers whose children are not observed.
    custom: the classes that `from_float` of other classes takes the place of.
    """
    for name, child in module.named_children():
        kind = type_before_parametrizations(child)
        if kind is Dropout:
            continue
        if issubclass(kind, (FloatFunctional, QFunctional)):
            if _is_configured(child):
                child.activation_post_process = child.qconfig.activation()
        elif isinstance(child, _FusedModule) or kind in whole:
            _add_observer(child)
        elif (make := fixed_post_process(child)) is not None:
            _add_observer(child, make)
        elif kind in custom and _is_configured(child):
            setattr(module, name, custom[kind].from_float(child))
            if custom[kind] not in no_observer_set():
                _add_observer(getattr(module, name))
        else:
            _add_observers(child, observed, whole, custom)
    is_layer = has_no_children_ignoring_parametrizations(module) or hasattr(module, "weight_fake_quant")
    if is_layer and not isinstance(module, Sequential) and type_before_parametrizations(module) in observed:
        _add_observer(module)


def get_default_custom_config_dict() -> dict[str, dict]:
    """Which classes of layers `prepare` puts in the places of others, and `convert` in the places of those."""
    return {
        "float_to_observed_custom_module_class": {
            nn.LSTM: quantizable.LSTM,
            nn.MultiheadAttention: quantizable.MultiheadAttention,
        },
        "observed_to_quantized_custom_module_class": {
            quantizable.LSTM: quantized.LSTM,
            quantizable.MultiheadAttention: quantized.MultiheadAttention,
        },
    }


# ---- The steps -----------------------------------------------------------------------------------------------------------


def prepare(
    model: Module, inplace: bool = False, allow_list: Any = None, observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: Any = None,
) -> Module:  # fmt: skip
    """A copy of the model with an observer behind each layer that will be quantized, as its `qconfig` says.

    allow_list: the classes of layers that are observed. observer_non_leaf_module_list: classes of modules that are
    observed as a whole. prepare_custom_config_dict: its entry "float_to_observed_custom_module_class" says which
    classes take the place of others.
    """
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(each, "qconfig", None) for each in model.modules()):
        warnings.warn(
            "prepare: no module of the model has a qconfig: set model.qconfig = get_default_qconfig()",
            stacklevel=user_level(),
        )
    observed = get_default_qconfig_propagation_list() if allow_list is None else set(allow_list)
    custom = (
        get_default_custom_config_dict() if prepare_custom_config_dict is None else prepare_custom_config_dict
    )
    mapping = custom.get("float_to_observed_custom_module_class", {})
    _add_observers(model, observed, set(observer_non_leaf_module_list or ()), mapping)
    return model


def prepare_qat(model: Module, mapping: dict | None = None, inplace: bool = False) -> Module:
    """A copy of the model, in training mode, whose weights and results are rounded as their `qconfig` says.

    mapping: the classes with rounded weights, by the classes of floats.
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode: call model.train() first")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    return prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)


def convert(
    module: Module, mapping: dict | None = None, inplace: bool = False, remove_qconfig: bool = True,
    is_reference: bool = False, convert_custom_config_dict: Any = None, use_precomputed_fake_quant: bool = False,
) -> Module:  # fmt: skip
    """A copy of a model whose observed layers are quantized ones.

    mapping: the quantized classes, by the classes of observed layers. convert_custom_config_dict: its entry
    "observed_to_quantized_custom_module_class" says which classes take the place of others by `from_observed`.
    is_reference: the observed layers become layers of floats with rounded weights (`torch.ao.nn.quantized.reference`).
    use_precomputed_fake_quant: the weights of layers with rounded weights are not observed once more.
    """
    if mapping is None:
        mapping = (
            get_default_static_quant_reference_module_mappings()
            if is_reference
            else get_default_static_quant_module_mappings()
        )
    given = (
        get_default_custom_config_dict() if convert_custom_config_dict is None else convert_custom_config_dict
    )
    custom = given.get("observed_to_quantized_custom_module_class", {})
    module = module if inplace else copy.deepcopy(module)
    _exchange(
        module,
        mapping,
        custom,
        use_precomputed_fake_quant,
    )
    if remove_qconfig:
        for each in module.modules():
            _forget_workflow(each)
    return module


def _forget_workflow(module: Any) -> None:
    """Remove the QConfig and the observer of a module that stays as it is."""
    if "qconfig" in vars(module):
        del module.qconfig
    if isinstance(getattr(module, "activation_post_process", None), ActivationPostProcess):
        del module.activation_post_process
    for hooks, own in ((module._forward_hooks, _observe), (module._forward_pre_hooks, _observe_input)):
        for handle in [handle for handle, hook in hooks.items() if hook is own]:
            del hooks[handle]


def _exchange(module: Module, mapping: dict, custom: dict, use_precomputed_fake_quant: bool) -> None:
    for name, child in list(module.named_children()):
        if not isinstance(child, _FusedModule) and type_before_parametrizations(child) not in custom:
            _exchange(child, mapping, custom, use_precomputed_fake_quant)
        module._modules[name] = swap_module(child, mapping, custom, use_precomputed_fake_quant)


def swap_module(
    mod: Any, mapping: dict, custom_module_class_mapping: Any = None, use_precomputed_fake_quant: bool = False
) -> Any:
    """The layer of the class that the mapping gives; modules without one, or without a QConfig, as they are."""
    if not _is_configured(mod):
        return mod
    kind = type_before_parametrizations(mod)
    if kind in (custom_module_class_mapping or {}):
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping and getattr(mapping[kind], "_IS_REFERENCE", False):
        observer = mod.qconfig.weight()
        observer(mod.weight)
        made = mapping[kind].from_float(mod, get_qparam_dict(observer))
    elif kind in mapping:
        make = mapping[kind].from_float
        keyword = "use_precomputed_fake_quant"
        given = {keyword: use_precomputed_fake_quant} if keyword in signature(make).parameters else {}
        made = make(mod, **given)
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observe:
            made.register_forward_hook(hook)
    device = _device(mod)
    return made if device is None else made.to(device)


def quantize(
    model: Module, run_fn: Callable, run_args: Any, mapping: dict | None = None, inplace: bool = False
) -> Module:
    """`prepare`, `run_fn(model, *run_args)`, `convert`."""
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


_WITH_PRODUCTS = (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
# The QConfig of each dtype of weights, and the layers that have them unless the caller names others.
_BY_DTYPE: dict[DType, tuple[QConfig, tuple]] = {
    qint8: (default_dynamic_qconfig, _WITH_PRODUCTS),
    float16: (float16_dynamic_qconfig, _WITH_PRODUCTS),
    quint8: (float_qparams_weight_only_qconfig, (nn.EmbeddingBag, nn.Embedding)),
    quint4x2: (float_qparams_weight_only_qconfig_4bit, (nn.EmbeddingBag,)),
}


def quantize_dynamic(
    model: Module,
    qconfig_spec: Any = None,
    dtype: DType = qint8,
    mapping: dict | None = None,
    inplace: bool = False,
) -> Module:
    """A copy of the model whose layers have quantized weights, and quantize their input when they are called.

    qconfig_spec: the types or names of the layers, or a dict from them to their QConfigs. By default all linear and recurrent layers
    for qint8 and float16, and embeddings for quint8 and quint4x2.
    """
    if not isinstance(qconfig_spec, dict):
        if dtype not in _BY_DTYPE:
            error = ValueError if qconfig_spec is None else RuntimeError
            raise error(
                f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please"
            )
        qconfig, layers = _BY_DTYPE[dtype]
        qconfig_spec = dict.fromkeys(qconfig_spec or layers, qconfig)
    mapping = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, mapping, inplace=True)


def quantize_qat(model: Module, run_fn: Callable, run_args: Any, inplace: bool = False) -> Module:
    """`prepare_qat`, `run_fn(model, *run_args)`, which trains, `convert`."""
    model = model if inplace else copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


def add_quant_dequant(module: Module) -> Module:
    """The model with each layer that has a QConfig between a QuantStub and a DeQuantStub."""
    if has_no_children_ignoring_parametrizations(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module
