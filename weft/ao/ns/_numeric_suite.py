"""Weights and results of a quantized model beside those of the model of floats, layer by layer, to find where precision is lost.

Three comparisons have the form {name: {"float": ..., "quantized": ...}}:
`compare_weights` of two state_dicts, `compare_model_stub` of layers that get the same input, and
`compare_model_outputs` of the layers of two models that get the same input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...core.dtype import quint8
from ...core.tensor import Tensor
from ...nn import LSTM, Module
from ..nn import quantized
from ..nn.quantized import dynamic
from ..quantization.qconfig import QConfig
from ..quantization.quantization_mappings import get_default_compare_output_module_list
from ..quantization.quantize import prepare

# Layers that hold others and are observed all the same.
NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST = {dynamic.Linear, quantized.Linear, dynamic.LSTM, LSTM}


# ---- Weights ---------------------------------------------------------------------------------------------------------


def compare_weights(
    float_dict: dict[str, Any], quantized_dict: dict[str, Any]
) -> dict[str, dict[str, Tensor]]:
    """The weights of two state_dicts, by their names in that of the quantized model.

    Of a layer of an LSTM it is the weight of the hidden state.
    """
    pairs = ((name, _pair(float_dict, name, value)) for name, value in quantized_dict.items())
    return {name: pair for name, pair in pairs if pair is not None}


def _pair(float_dict: dict[str, Any], name: str, value: Any) -> dict[str, Tensor] | None:
    module, _, last = name.rpartition(".")
    if last == "param":
        owner, _, layer = module.partition("._all_weight_values.")
        found = float_dict.get(f"{owner}.weight_hh_l{layer}")
        value = None if found is None else value.__getstate__()[0][4][1].__getstate__()[0][0]
    elif last == "_packed_params":
        found, value = _float_weight(float_dict, module.removesuffix("_packed_params").rstrip(".")), value[0]
    else:
        found = _float_weight(float_dict, module) if last == "weight" else None
    return None if found is None else {"float": found, "quantized": value}


def _float_weight(float_dict: dict[str, Any], module: str) -> Any:
    """The weight of a layer, or of the first part of layers that are fused."""
    for name in ("weight", "0.weight"):
        if (found := float_dict.get(f"{module}.{name}".lstrip("."))) is not None:
            return found
    return None


# ---- Loggers ---------------------------------------------------------------------------------------------------------


class Logger(Module):
    """The base of modules that note what they get in `stats`."""

    def __init__(self) -> None:
        super().__init__()
        self.stats: dict[str, list[Any]] = {}
        self.dtype = quint8

    def forward(self, x: Any) -> Any:
        """Note `x`."""


class ShadowLogger(Logger):
    """Notes results of a quantized layer and of the layer of floats; of several results the first."""

    def __init__(self) -> None:
        super().__init__()
        self.stats["float"], self.stats["quantized"] = [], []

    def forward(self, x: Any, y: Any) -> None:  # type: ignore[override]
        """Note the result `x` of the quantized layer and `y` of the layer of floats."""
        for name, value in (("quantized", x), ("float", y)):
            self.stats[name].append((value[0] if isinstance(value, (tuple, list)) else value).detach())


class OutputLogger(Logger):
    """Notes the results of a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stats["tensor_val"] = []

    def forward(self, x: Any) -> Any:
        """Note `x`, and return it."""
        self.stats["tensor_val"].append(x)
        return x


def get_logger_dict(mod: Module, prefix: str = "") -> dict[str, dict]:
    """What the loggers of a model have noted, by the names of the modules that hold them."""
    found: dict[str, dict] = {}
    for name, module in mod.named_modules(prefix=prefix):
        logger = next((child for child in module.children() if isinstance(child, Logger)), None)
        if logger is not None:
            found[f"{name}.stats".lstrip(".")] = logger.stats
    return found


# ---- Layers that get the same input --------------------------------------------------------------------------------------


def _dequantized(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(map(_dequantized, value))
    return value.dequantize() if isinstance(value, Tensor) and value.is_quantized else value


class Shadow(Module):
    """A quantized layer that runs the layer of floats, too, on the dequantized input, and gives both results to a logger."""

    def __init__(self, q_module: Module, float_module: Module, logger_cls: Callable[[], Logger]) -> None:
        super().__init__()
        self.orig_module, self.shadow_module = q_module, float_module
        self.dequant = quantized.DeQuantize()
        self.logger: Any = logger_cls()

    def _both(self, method: str, *args: Any) -> Any:
        output = getattr(self.orig_module, method)(*args)
        self.logger(output, getattr(self.shadow_module, method)(*_dequantized(args)))
        return output

    def forward(self, *x: Any) -> Any:
        """The result of the quantized layer."""
        return self._both("__call__", *x)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`add` of the quantized layer."""
        return self._both("add", x, y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """`add_scalar` of the quantized layer."""
        return self._both("add_scalar", x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """`mul` of the quantized layer."""
        return self._both("mul", x, y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """`mul_scalar` of the quantized layer."""
        return self._both("mul_scalar", x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """`cat` of the quantized layer."""
        return self._both("cat", x, dim)

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """`add_relu` of the quantized layer."""
        return self._both("add_relu", x, y)


def prepare_model_with_stubs(
    float_module: Module, q_module: Module, module_swap_list: Iterable[type], logger_cls: Callable
) -> None:
    """Put a `Shadow` in the place of each quantized layer whose layer of floats has one of the classes."""
    classes, floats = set(module_swap_list), dict(float_module.named_children())
    for name, module in list(q_module.named_children()):
        known = floats.get(name)
        if known is None:
            continue
        if type(known) not in classes:
            prepare_model_with_stubs(known, module, classes, logger_cls)
        elif [*map(type, module.modules())] != [*map(type, known.modules())]:
            setattr(q_module, name, Shadow(module, known, logger_cls))


def compare_model_stub(
    float_model: Module, q_model: Module, module_swap_list: Iterable[type], *data: Any, logger_cls: Callable = ShadowLogger
) -> dict[str, dict]:  # fmt: skip
    """The results of layers of the classes when the quantized model gets `data`: both layers get its input."""
    prepare_model_with_stubs(float_model, q_model, module_swap_list, logger_cls)
    q_model(*data)
    return get_logger_dict(q_model)


# ---- Models that get the same input --------------------------------------------------------------------------------------


def get_matching_activations(float_module: Module, q_module: Module) -> dict[str, dict[str, Tensor]]:
    """What the loggers of layers of the same name have noted. Fused layers have the name of the module that holds them."""
    floats, found = get_logger_dict(float_module), {}
    for name, stats in get_logger_dict(q_module).items():
        module = name.rpartition(".")[0]
        matching = [
            each for each in floats if module in (each.rpartition(".")[0], ".".join(each.split(".")[:-2]))
        ]
        if stats["tensor_val"] and matching:
            found[name] = {"float": floats[max(matching)]["tensor_val"], "quantized": stats["tensor_val"]}
    return found


def prepare_model_outputs(
    float_module: Module, q_module: Module, logger_cls: Any = OutputLogger, allow_list: Any = None
) -> None:
    """Put a logger behind each layer of both models whose class is in the list, by default those that can be quantized."""
    observed = get_default_compare_output_module_list() if allow_list is None else allow_list
    for module, whole in ((float_module, None), (q_module, NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST)):
        module.qconfig = QConfig(activation=logger_cls, weight=None)  # type: ignore[assignment]
        prepare(module, True, observed, whole, {})


def compare_model_outputs(
    float_model: Module, q_model: Module, *data: Any, logger_cls: Any = OutputLogger, allow_list: Any = None
) -> dict[str, dict[str, Tensor]]:
    """The results of the layers of both models, each of which gets `data`."""
    prepare_model_outputs(float_model, q_model, logger_cls, allow_list)
    float_model(*data)
    q_model(*data)
    return get_matching_activations(float_model, q_model)
