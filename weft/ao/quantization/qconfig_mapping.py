"""QConfigMapping: which modules, functions and methods get which QConfig."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ... import nn
from ...core.registry import FUNCTIONS
from ...nn import functional as F
from .fake_quantize import FixedQParamsFakeQuantize, default_weight_fake_quant
from .observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from .qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)

# Layers, functions and methods whose results have a range that is known beforehand.
_FIXED_RANGES: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    (
        default_fixed_qparams_range_0to1_observer,
        (
            nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_",
            nn.Sigmoid, FUNCTIONS["sigmoid"], "sigmoid", "sigmoid_", nn.Softmax,
        ),
    ),
    (default_fixed_qparams_range_neg1to1_observer, (nn.Tanh, FUNCTIONS["tanh"], "tanh", "tanh_")),
)  # fmt: skip
_TRANSPOSED = (
    nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
    F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d,
)  # fmt: skip


class QConfigMapping:
    """QConfigs of modules, functions and methods. Of several that fit, the one that is set by the last of these methods counts.

    `set_global`, `set_object_type`, `set_module_name_regex`, `set_module_name`, `set_module_name_object_type_order`.

    >>> import weft as torch
    >>> ao = torch.ao.quantization
    >>> mapping = ao.QConfigMapping().set_global(ao.default_qconfig).set_module_name("head", None)
    >>> mapping.to_dict()["module_name"]
    [('head', None)]
    """

    def __init__(self) -> None:
        self.global_qconfig: QConfig | None = None
        self.object_type_qconfigs: OrderedDict[Callable | str, QConfig | None] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, QConfig | None] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, QConfig | None] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[
            tuple[str, Callable, int], QConfig | None
        ] = OrderedDict()

    def set_global(self, global_qconfig: QConfig | None) -> QConfigMapping:
        """Set the QConfig of all that has no other."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Callable | str, qconfig: QConfig | None) -> QConfigMapping:
        """Set the QConfig of a class of modules, of a function, or of the name of a method."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: QConfig | None) -> QConfigMapping:
        """Set the QConfig of the modules whose names match; of several expressions the first one counts."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: QConfig | None) -> QConfigMapping:
        """Set the QConfig of one module."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Callable, index: int, qconfig: QConfig | None
    ) -> QConfigMapping:
        """Set the QConfig of a call in one module: the one with this index among those of the type."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for name, value in vars(self).items():
            lines.append(f" {name}")
            is_filled = isinstance(value, OrderedDict) and value
            lines += [f"  {key}: {each}" for key, each in value.items()] if is_filled else [f"  {value}"]
        return "\n".join(lines) + "\n)"

    def to_dict(self) -> dict[str, Any]:
        """The QConfigs in lists of tuples, by the names of the methods that set them without "set_"; "" for the global one."""
        orders = self.module_name_object_type_order_qconfigs
        return {
            "": self.global_qconfig,
            "object_type": [*self.object_type_qconfigs.items()],
            "module_name_regex": [*self.module_name_regex_qconfigs.items()],
            "module_name": [*self.module_name_qconfigs.items()],
            "module_name_object_type_order": [(*key, value) for key, value in orders.items()],
        }

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """The mapping of a dict such as `to_dict` makes, which may lack entries."""
        made = cls()
        if "" in qconfig_dict:
            made.set_global(qconfig_dict[""])
        for name in ("object_type", "module_name_regex", "module_name", "module_name_object_type_order"):
            for given in qconfig_dict.get(name, ()):
                getattr(made, f"set_{name}")(*given)
        return made


def _default_mapping(
    qconfig: QConfig, default_weight: Any, rounding: Callable, backend: str
) -> QConfigMapping:
    """rounding: makes a constructor of what notes the results of layers from a constructor of observers."""
    mapping = QConfigMapping().set_global(qconfig)
    mapping.set_object_type("reshape", default_reuse_input_qconfig)
    # A transposed convolution of fbgemm has one scale of its whole weight.
    has_one_scale = backend in ("fbgemm", "x86")
    transposed = QConfig(qconfig.activation, default_weight) if has_one_scale else qconfig
    for each in _TRANSPOSED:
        mapping.set_object_type(each, transposed)
    unquantized_weight = QConfig(qconfig.activation, default_placeholder_observer)
    for normalization in (F.layer_norm, nn.LayerNorm):
        mapping.set_object_type(normalization, unquantized_weight)
    mapping.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    for observer, types in _FIXED_RANGES:
        fixed = QConfig(rounding(observer), default_weight)
        for each in types:
            mapping.set_object_type(each, fixed)
    return mapping


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """The mapping for quantization after training."""
    qconfig = get_default_qconfig(backend, version)
    return _default_mapping(qconfig, default_weight_observer, lambda observer: observer, backend)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """The mapping for training with rounded numbers."""

    def rounding(observer: Any) -> Any:
        return FixedQParamsFakeQuantize.with_args(observer=observer)

    return _default_mapping(
        get_default_qat_qconfig(backend, version), default_weight_fake_quant, rounding, backend
    )


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, Any]:
    """`get_default_qconfig_mapping` as a dict."""
    return get_default_qconfig_mapping(backend, version).to_dict()


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict[str, Any]:
    """`get_default_qat_qconfig_mapping` as a dict."""
    return get_default_qat_qconfig_mapping(backend, version).to_dict()
