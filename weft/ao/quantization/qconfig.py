"""QConfig: how the results and the weights of a module are observed."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from ...compat.missing import module_getattr
from ...core.dtype import float16
from .fake_quantize import (
    FakeQuantize,
    default_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
)
from .observer import (
    HistogramObserver,
    MovingAverageMinMaxObserver,
    PlaceholderObserver,
    default_dynamic_quant_observer,
    default_observer,
    default_per_channel_weight_observer,
    default_weight_observer,
)


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Constructors of the observers of results and of weights."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        return super().__new__(cls, activation, weight)


default_qconfig = QConfig(default_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
per_channel_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_per_channel_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=float16),
)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The QConfig for quantization after training: 7 bits of the activations for fbgemm and x86, 8 for the others."""
    if backend in ("fbgemm", "x86"):
        return QConfig(HistogramObserver.with_args(reduce_range=True), default_per_channel_weight_observer)
    if backend == "qnnpack":
        return QConfig(HistogramObserver.with_args(reduce_range=False), default_weight_observer)
    if backend == "onednn":
        return QConfig(HistogramObserver.with_args(reduce_range=False), default_per_channel_weight_observer)
    raise AssertionError(
        f"backend: {backend} not supported. Backend must be one of ['fbgemm', 'x86', 'qnnpack', 'onednn']"
    )


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """The QConfig for training with rounded numbers."""
    if backend not in ("fbgemm", "x86", "qnnpack", "onednn"):
        raise AssertionError(
            f"backend: {backend} not supported. Backend must be one of ['fbgemm', 'x86', 'qnnpack', 'onednn']"
        )
    reduced = backend in ("fbgemm", "x86")
    activation = FakeQuantize.with_args(
        observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, reduce_range=reduced
    )
    return QConfig(
        activation,
        default_weight_fake_quant if backend == "qnnpack" else default_per_channel_weight_fake_quant,
    )


__getattr__ = module_getattr(__name__)
