"""Recurrent networks with quantized weights, whose inputs and states are quantized when they are used.

PyTorch quantizes the input of all steps at once, and the hidden state at each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.tensor import Tensor
from ...ops.nn.recurrent import layers, network, state_of
from ...ops.nn.recurrent_cells import GRU, LSTM, RELU, TANH, Kind
from ...ops.nn.recurrent_layer import advance, composed
from .operators import operator
from .packed import LinearPackedParams, LinearPackedParamsFp16
from .script_object import ScriptObject


class CellParams(ScriptObject):
    """Holds the prepared weights of a layer in one direction, both int8 or both float16, each with its bias.

    reduce_range: whether the input is quantized to 7 bits, where weights are int8.
    """

    _script_name = "__torch__.torch.classes.rnn.CellParamsBase"
    projection = None

    def __init__(
        self,
        inputs: Any,
        hidden: Any,
        input_bias: Any = None,
        hidden_bias: Any = None,
        reduce_range: bool = True,
    ):
        kinds = {type(inputs), type(hidden)}
        if len(kinds) != 1 or not kinds <= {LinearPackedParams, LinearPackedParamsFp16}:
            raise RuntimeError(
                "a quantized recurrent layer has two weights from torch.ops.quantized.linear_prepack, or two from linear_prepack_fp16, not "
                f"{type(inputs).__name__} and {type(hidden).__name__}"
            )
        self.inputs, self.hidden, self.reduce_range = inputs, hidden, reduce_range
        # PyTorch's files have the biases of int8 weights twice.
        self.biases = [input_bias, hidden_bias] if kinds == {LinearPackedParams} else []

    def __deepcopy__(self, memo: dict) -> CellParams:
        return self  # because nothing changes it

    def _state(self) -> tuple:
        weights = [self.inputs, self.hidden]
        if isinstance(self.inputs, LinearPackedParamsFp16):
            return "quantized_fp16", [], [], [], weights
        return "quantized_dynamic", self.biases, [], [int(self.reduce_range)], weights

    def of_input(self, input: Tensor) -> Tensor:
        """Return the projections of the input, one for each gate side by side."""
        return self.inputs.dynamic(input, self.reduce_range)

    def of_hidden(self, hidden: Tensor) -> Tensor:
        """Return the same of the hidden state."""
        return self.hidden.dynamic(hidden, self.reduce_range)


@operator(
    "make_quantized_cell_params_dynamic(Linear w_ih, Linear w_hh, Tensor bias_ih, Tensor bias_hh, bool reduce_range=False) -> Cell"
)
def make_quantized_cell_params_dynamic(
    w_ih: Any, w_hh: Any, bias_ih: Any, bias_hh: Any, reduce_range: bool = False
) -> CellParams:
    return CellParams(w_ih, w_hh, bias_ih, bias_hh, reduce_range)


@operator("make_quantized_cell_params_fp16(Linear w_ih, Linear w_hh) -> Cell")
def make_quantized_cell_params_fp16(w_ih: Any, w_hh: Any) -> CellParams:
    return CellParams(w_ih, w_hh)


# ---- Layers ----------------------------------------------------------------------------------------------------------


def _layers(
    kind: Kind, input: Tensor, sizes: tuple[int, ...], hx: Any, params: Sequence[Any], has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    wanted = num_layers * (2 if bidirectional else 1)
    if len(params) != wanted or not all(isinstance(each, CellParams) for each in params):
        raise RuntimeError(
            f"quantized_{kind.name}: expected {wanted} objects from torch.ops.quantized.make_quantized_cell_params_dynamic, one for each layer "
            f"and direction, but got {[type(each).__name__ for each in params]}"
        )
    return layers(kind, input, sizes, state_of(kind, hx), params, dropout, train, bidirectional, composed)


_networks = {kind.name: network(kind, f"quantized_{kind.name}", _layers, _layers) for kind in (LSTM, GRU)}
quantized_gru = _networks["gru"]


def quantized_lstm(
    *args: Any, dtype: Any = None, use_dynamic: bool = False, **kwargs: Any
) -> tuple[Tensor, ...]:
    """Layers of LSTM over sequences: the output of the last layer, then the final states. The weights say their dtype themselves."""
    return _networks["lstm"](*args, **kwargs)


# ---- Cells -----------------------------------------------------------------------------------------------------------


def _cell(kind: Kind, input: Tensor, hx: Any, w_ih: Any, w_hh: Any) -> Any:
    weights = CellParams(w_ih, w_hh)
    found = advance(kind, weights.of_input(input), state_of(kind, hx), weights)
    return found if kind.n_states > 1 else found[0]


_WEIGHTS = "Linear w_ih, Linear w_hh, Tensor {0}_ih, Tensor {0}_hh"


@operator(
    f"quantized_lstm_cell_dynamic(Tensor input, Tensor[] hx, {_WEIGHTS.format('bias')}) -> (Tensor, Tensor)"
)
def quantized_lstm_cell_dynamic(
    input: Tensor, hx: Any, w_ih: Any, w_hh: Any, bias_ih: Any, bias_hh: Any
) -> Any:
    """The biases are those of the prepared weights."""
    return _cell(LSTM, input, hx, w_ih, w_hh)


def _cell_operator(name: str, kind: Kind) -> None:
    @operator(f"quantized_{name}_cell_dynamic(Tensor input, Tensor hx, {_WEIGHTS.format('b')}) -> Tensor")
    def step(input: Tensor, hx: Tensor, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Tensor:
        return _cell(kind, input, hx, w_ih, w_hh)


for _name, _kind in (("gru", GRU), ("rnn_tanh", TANH), ("rnn_relu", RELU)):
    _cell_operator(_name, _kind)
