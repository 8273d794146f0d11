"""What quantized layers share: weights that are observed and quantized, and the parameters of results."""

from __future__ import annotations

from typing import Any, ClassVar

from .....core.dtype import QUANTIZED, float32, qint8, qint32, quint8
from .....core.limits import iinfo
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....nn import Module, Sequential
from .....nn.utils.parametrize import type_before_parametrizations
from .....ops.creation.from_data import tensor


class StateEntries(Module):
    """The base of modules whose state_dict has entries that are neither parameters nor buffers."""

    def _entries(self) -> dict[str, Any]:
        """The values that the state_dict gets, by their names."""
        raise NotImplementedError

    def _set_entries(self, entries: dict[str, Any]) -> None:
        """Take the values of a state_dict that has all entries."""
        raise NotImplementedError

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, value in self._entries().items():
            destination[prefix + name] = value

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list,
        *rest: Any,
    ) -> None:
        names = list(self._entries())
        absent = [prefix + name for name in names if prefix + name not in state_dict]
        missing_keys += absent
        if not absent:
            self._set_entries({name: state_dict.pop(prefix + name) for name in names})
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, *rest)


class QuantizedResult(StateEntries):
    """The base of modules whose results are quantized with the numbers `scale` and `zero_point`."""

    scale: float
    zero_point: int

    def _set_parameters(self, scale: Any, zero_point: Any) -> None:
        self.scale, self.zero_point = float(scale), int(zero_point)

    def _entries(self) -> dict[str, Any]:
        return {"scale": tensor(self.scale), "zero_point": tensor(self.zero_point)}

    def _set_entries(self, entries: dict[str, Any]) -> None:
        self._set_parameters(entries["scale"], entries["zero_point"])


class WeightedQuantizedModule(QuantizedResult):
    """The base of layers with quantized weights."""

    # The layers that `from_float` takes.
    _FLOAT_MODULE: ClassVar[type[Module] | tuple[type[Module], ...]] = ()

    @classmethod
    def _observed(cls, mod: Any, use_precomputed_fake_quant: bool) -> tuple[Any, Tensor, Tensor | None]:
        """The layer of floats, its quantized weight, and its bias.

        mod: an observed layer, layers that are quantized as one, or a layer for quantization-aware training, whose
        batch normalization is folded into the weight before.
        Raises: AssertionError for other layers, layers without a QConfig, and other weights than those of qint8.
        """
        is_trained = hasattr(mod, "weight_fake_quant")
        kind = type_before_parametrizations(mod)
        accepted = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, tuple) else (cls._FLOAT_MODULE,)
        if not is_trained and kind not in accepted:
            names = ", ".join(each.__name__ for each in accepted)
            raise AssertionError(
                f"nnq.{cls.__name__}.from_float only works for {names}, but got: {kind.__name__}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        layer = mod if is_trained or not isinstance(mod, Sequential) else mod[0]
        weight, bias = mod.folded() if hasattr(mod, "folded") else (layer.weight, layer.bias)
        observer = mod.weight_fake_quant if is_trained else layer.qconfig.weight()
        if observer.dtype is not qint8:
            raise AssertionError(f"Weight observer must have dtype torch.qint8, got {observer.dtype}")
        if use_precomputed_fake_quant:
            return layer, _quantize_weight(weight, observer), bias
        return layer, observed_weight(weight, observer), bias

    @classmethod
    def from_reference(cls, ref_module: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """The layer of a reference layer, which says how its weight is quantized, with the parameters of the result."""
        raise NotImplementedError(f"{cls.__name__}.from_reference")


def _quantize_weight(float_wt: Tensor, observer: Any) -> Tensor:
    """The weight with the scales and the zero points that an observer has chosen."""
    scale, zero_point = observer.calculate_qparams()
    weight = float_wt.detach().to(float32)
    if str(observer.qscheme).startswith("torch.per_tensor"):
        given: tuple = float(scale), int(zero_point)
        return _clamped(
            FUNCTIONS["quantize_per_tensor"](weight, *given, observer.dtype), observer, "tensor", *given
        )
    if not zero_point.is_floating_point():
        scale, zero_point = scale.double(), zero_point.long()
    given = scale, zero_point, observer.ch_axis
    return _clamped(
        FUNCTIONS["quantize_per_channel"](weight, *given, observer.dtype), observer, "channel", *given
    )


def _clamped(weight: Tensor, observer: Any, kind: str, *given: Any) -> Tensor:
    """The weight without integers outside of the observer's. Their averages may not contain all of the weight."""
    bounds = getattr(observer, "quant_min", None), getattr(observer, "quant_max", None)
    stored = iinfo(QUANTIZED[weight.dtype])
    if None in bounds or bounds == (stored.min, stored.max) or weight.dtype not in (qint8, quint8, qint32):
        return weight
    return FUNCTIONS[f"_make_per_{kind}_quantized_tensor"](weight.int_repr().clamp(*bounds), *given)


def observed_weight(weight: Tensor, observer: Any) -> Tensor:
    """The quantized weight. An observer that has seen nothing notes the weight first."""
    observer(weight)
    return _quantize_weight(weight, observer)


def result_parameters(module: Any) -> tuple[float, int]:
    """The scale and the zero point for the results of a module that was observed."""
    scale, zero_point = module.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


def converted(cls: Any, observed: Any) -> Any:
    """The layer of class `cls` of an observed one whose parts are converted.

    Raises: AssertionError for a layer of another class than `cls` is made of.
    """
    from ....quantization.quantize import convert  # that module imports this one

    if not isinstance(observed, cls._FLOAT_MODULE):
        raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(observed)}")
    made = convert(observed, inplace=False, remove_qconfig=True)
    made.__class__ = cls
    return made
