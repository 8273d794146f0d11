"""The reference layers of recurrent layers and cells."""

from __future__ import annotations

from typing import Any

from ...... import nn
from ......core.tensor import Tensor
from .utils import DEFAULT, Rounded

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase", "get_quantized_weight"]


def get_quantized_weight(module: Any, wn: str) -> Tensor:
    """The weight `wn` of a reference layer as a quantized tensor."""
    return module._quantized(wn)


class _Recurrent(Rounded):
    _IS_REFERENCE = True

    def _weight_names(self) -> list[str]:
        return [name for name, _ in self.named_parameters(recurse=False) if name.startswith("weight")]

    def _init_weight_qparams_dict(self, given: dict[str, Any] | None, device: Any) -> None:
        names = self._weight_names()
        given = dict.fromkeys(names, DEFAULT) if given is None else given
        self.is_decomposed = given.get("is_decomposed", False)
        for name in names:
            self._set_parameters(name, given[name], device)

    def _take(self, other: Any) -> Any:
        """Take the parameters of a layer of floats."""
        for name, each in other.named_parameters(recurse=False):
            setattr(self, name, nn.Parameter(each.detach()))
        return self

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}(Reference)"


# ---- Cells -----------------------------------------------------------------------------------------------------------


class RNNCellBase(_Recurrent, nn.RNNCellBase):
    """The base of cells of floats with rounded weights."""

    _float: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None,
        weight_qparams_dict: dict[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, num_chunks, device, dtype)
        if weight_qparams_dict is not None and len(weight_qparams_dict) != 3:
            raise AssertionError(
                f"Expected length for weight_qparams_dict to be 3 for {self._get_name()}, but got {len(weight_qparams_dict)}: the keys are "
                "weight_ih, weight_hh and is_decomposed"
            )
        self._init_weight_qparams_dict(weight_qparams_dict, device)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        return self._computed(self._float, ("weight_ih", "weight_hh"), input, hx)

    def get_quantized_weight_ih(self) -> Tensor:
        """The weight of the input as a quantized tensor."""
        return self._quantized("weight_ih")

    def get_quantized_weight_hh(self) -> Tensor:
        """The weight of the hidden state as a quantized tensor."""
        return self._quantized("weight_hh")

    def get_weight_ih(self) -> Tensor:
        """The rounded weight of the input."""
        return self._rounded("weight_ih")

    def get_weight_hh(self) -> Tensor:
        """The rounded weight of the hidden state."""
        return self._rounded("weight_hh")


class RNNCell(RNNCellBase):
    """One step of an Elman network with rounded weights."""

    _float = nn.RNNCell

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
        dtype: Any = None, weight_qparams_dict: dict[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype, weight_qparams_dict)
        self.nonlinearity = nonlinearity

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: dict[str, Any] | None) -> Any:
        """The reference cell of a cell of floats, with the parameters of its weights."""
        options = mod.bias, mod.nonlinearity
        made = cls(mod.input_size, mod.hidden_size, *options, weight_qparams_dict=weight_qparams_dict)
        return made._take(mod)


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory with rounded weights."""

    _float = nn.LSTMCell

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None,
        weight_qparams_dict: dict[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 4, device, dtype, weight_qparams_dict)

    @classmethod
    def from_float(
        cls, mod: Any, weight_qparams_dict: dict[str, Any] | None, use_precomputed_fake_quant: bool = False
    ) -> Any:
        """The reference cell of a cell of floats, with the parameters of its weights."""
        made = cls(mod.input_size, mod.hidden_size, mod.bias, weight_qparams_dict=weight_qparams_dict)
        return made._take(mod)


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit with rounded weights."""

    _float = nn.GRUCell

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None,
        weight_qparams_dict: dict[str, Any] | None = None,
    ):  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 3, device, dtype, weight_qparams_dict)

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: dict[str, Any] | None) -> Any:
        """The reference cell of a cell of floats, with the parameters of its weights."""
        made = cls(mod.input_size, mod.hidden_size, mod.bias, weight_qparams_dict=weight_qparams_dict)
        return made._take(mod)


# ---- Layers over sequences -------------------------------------------------------------------------------------------


class RNNBase(_Recurrent, nn.RNNBase):
    """The base of layers over sequences of floats with rounded weights."""

    _float: Any = nn.RNNBase

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None,
        weight_qparams_dict: dict[str, Any] | None = None,
    ):  # fmt: skip
        options = num_layers, bias, batch_first, dropout, bidirectional, proj_size
        super().__init__(mode, input_size, hidden_size, *options, device, dtype)
        self._init_weight_qparams_dict(weight_qparams_dict, device)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._computed(self._float, tuple(self._weight_names()), input, hx)

    def get_flat_weights(self) -> list[Tensor]:
        """The rounded weights and the biases, in the order of the layer of floats."""
        weights = set(self._weight_names())
        return [
            self._rounded(name) if name in weights else getattr(self, name)
            for name in self._flat_weights_names
        ]

    def get_quantized_weight_bias_dict(self) -> dict[str, Tensor]:
        """The weights as quantized tensors, and the biases, by their names."""
        weights = set(self._weight_names())
        return {
            name: self._quantized(name) if name in weights else getattr(self, name)
            for name in self._flat_weights_names
        }

    @classmethod
    def from_float(cls, mod: Any, weight_qparams_dict: dict[str, Any] | None) -> Any:
        """The reference layer of a layer of floats, with the parameters of its weights."""
        options = mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional
        made = cls(mod.input_size, mod.hidden_size, *options, weight_qparams_dict=weight_qparams_dict)  # type: ignore[arg-type, call-arg]
        return made._take(mod)


class LSTM(RNNBase):
    """Layers of long short-term memory with rounded weights."""

    _float = nn.LSTM

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("LSTM", *args, **kwargs)

    get_expected_cell_size = nn.LSTM.get_expected_cell_size
    check_forward_args = nn.LSTM.check_forward_args
    permute_hidden = nn.LSTM.permute_hidden


class GRU(RNNBase):
    """Layers of gated recurrent units with rounded weights."""

    _float = nn.GRU

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("GRU", *args, **kwargs)
