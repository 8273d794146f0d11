"""QConfig: how the results and the weights of a module are observed."""

from __future__ import annotations

import warnings
from collections import namedtuple
from typing import Any

from ...core.dtype import float16, float32, qint8
from ...core.warn import user_level
from ...nn import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Identity, Module
from ..nn.layers import activation_is_memoryless as _activation_is_memoryless  # noqa: F401 (PyTorch's place)
from .fake_quantize import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from .observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    _PartialWrapper,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)


def _check_constructors(*given: Any) -> None:
    if any(isinstance(each, Module) for each in given):
        raise ValueError(
            "QConfig received an observer: give its class, or MyObserver.with_args(...) for other arguments"
        )


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Constructors of the observers of results and of weights."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        _check_constructors(activation, weight)
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """Constructors of observers. PyTorch has deprecated the class: use QConfig."""

    __slots__ = ()

    def __new__(cls, activation: Any = Identity, weight: Any = Identity) -> QConfigDynamic:
        warnings.warn(
            "`QConfigDynamic` is deprecated, please use `QConfig` instead",
            FutureWarning,
            stacklevel=user_level(),
        )
        _check_constructors(weight)
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None

default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
per_channel_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_per_channel_weight_observer)
_FLOAT16 = PlaceholderObserver.with_args(dtype=float16)
float16_dynamic_qconfig = QConfig(PlaceholderObserver.with_args(dtype=float16, is_dynamic=True), _FLOAT16)
float16_static_qconfig = QConfig(_FLOAT16, _FLOAT16)
float_qparams_weight_only_qconfig = QConfig(default_placeholder_observer, default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit = QConfig(
    default_placeholder_observer, default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_qat_qconfig_v2 = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig = QConfig(Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, Identity)
default_reuse_input_qconfig = QConfig(default_reuse_input_observer, NoopObserver)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)
_UNOBSERVED = NoopObserver.with_args(dtype=float32)
default_embedding_qat_qconfig = QConfig(_UNOBSERVED, default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(_UNOBSERVED, default_embedding_fake_quant_4bit)
# XNNPACK's scales have a lower bound.
_SIGNED = HistogramObserver.with_args(dtype=qint8, reduce_range=False, eps=2**-12)
default_symmetric_qnnpack_qconfig = QConfig(_SIGNED, weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    _SIGNED, per_channel_weight_observer_range_neg_127_to_127
)
_ROUNDED_SIGNED = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=qint8,
    reduce_range=False,
    eps=2**-12,
)
default_symmetric_qnnpack_qat_qconfig = QConfig(_ROUNDED_SIGNED, fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _ROUNDED_SIGNED, fused_per_channel_wt_fake_quant_range_neg_127_to_127
)


def _check_backend(backend: str, version: int, versions: tuple[int, ...]) -> None:
    backends = ["fbgemm", "x86", "qnnpack", "onednn"]
    if backend not in backends:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {backends}")
    if version not in versions:
        raise AssertionError(f"Version number: {version} is not supported. It must be one of {[*versions]}")


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The QConfig for quantization after training: 7 bits of the activations for fbgemm and x86, 8 for the others."""
    _check_backend(backend, version, (0,))
    activation = HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86"))
    is_whole = backend == "qnnpack"
    return QConfig(activation, default_weight_observer if is_whole else default_per_channel_weight_observer)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """The QConfig for training with rounded numbers. Version 1 observes and rounds in one step."""
    _check_backend(backend, version, (0, 1))
    settings: dict[str, Any] = {"observer": MovingAverageMinMaxObserver, "quant_min": 0, "quant_max": 255}
    if backend != "onednn":
        settings["reduce_range"] = backend != "qnnpack"
    whole, rows = (
        (default_fused_wt_fake_quant, default_fused_per_channel_wt_fake_quant)
        if version == 1
        else (default_weight_fake_quant, default_per_channel_weight_fake_quant)
    )
    rounding = FusedMovingAvgObsFakeQuantize if version == 1 else FakeQuantize
    return QConfig(rounding.with_args(**settings), whole if backend == "qnnpack" else rows)


# ---- What the workflow asks of QConfigs ----------------------------------------------------------------------------------


def check_qconfig(qconfig: Any, module: Module) -> None:
    """Raise AssertionError for a transposed convolution whose weight would have a scale for each channel."""
    is_transposed = isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
    if not is_transposed or qconfig is None or qconfig.weight is None:
        return
    if isinstance(qconfig.weight(), (PerChannelMinMaxObserver, MovingAveragePerChannelMinMaxObserver)):
        raise AssertionError("Per channel weight observer is not supported yet for ConvTranspose{n}d.")


def _same(first: Any, second: Any) -> bool:
    """Whether two constructors of observers make equal ones."""
    if not (isinstance(first, _PartialWrapper) and isinstance(second, _PartialWrapper)):
        return first == second
    given, other = dict(first.p.keywords), dict(second.p.keywords)
    if (
        "observer" in given
        and "observer" in other
        and not _same(given.pop("observer"), other.pop("observer"))
    ):
        return False
    return (first.p.func, first.p.args, given) == (second.p.func, second.p.args, other)


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Whether two QConfigs make equal observers.

    >>> import weft as torch
    >>> make = torch.ao.quantization.get_default_qat_qconfig
    >>> qconfig_equals(make("x86"), make("fbgemm")), qconfig_equals(make("x86"), make("qnnpack"))
    (True, False)
    """
    if not (isinstance(q1, tuple) and isinstance(q2, tuple)):
        return q1 == q2
    return all(_same(first, second) for first, second in zip(q1, q2, strict=True))
