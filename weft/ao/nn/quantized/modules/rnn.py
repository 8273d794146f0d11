"""LSTM of quantized tensors, whose steps were observed one by one."""

from __future__ import annotations

from typing import Any

from ...quantizable.modules.rnn import LSTM as QuantizableLSTM
from .utils import converted

__all__ = ["LSTM"]


class LSTM(QuantizableLSTM):
    """Layers of long short-term memory: quantized input, states and output. `convert` makes them."""

    _FLOAT_MODULE = QuantizableLSTM

    def _get_name(self) -> str:
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *args: Any, **kwargs: Any) -> Any:
        """Not of layers of floats, which `prepare` observes first."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed LSTM module. Please, see the examples on quantizable LSTMs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The quantized layers of observed ones."""
        return converted(cls, other)
