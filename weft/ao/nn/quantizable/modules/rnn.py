"""LSTM in steps that are observed and quantized one by one.

`prepare` makes these layers of those of floats, and `convert` makes `torch.ao.nn.quantized.LSTM` of them.
"""

from __future__ import annotations

from typing import Any

from ..... import nn
from .....core.dtype import quint8
from .....core.registry import FUNCTIONS
from .....core.tensor import Tensor
from .....nn import functional as F
from .....nn.modules.rnn import _check_dropout
from .....ops.assembly.joining import cat, stack
from .....ops.creation.creation import zeros

__all__ = ["LSTM", "LSTMCell"]
_GATES = ("input", "forget", "cell", "output")


def _quantized_zeros(scale: float, zero_point: int, dtype: Any, *sizes: int) -> Tensor:
    return FUNCTIONS["quantize_per_tensor"](zeros(*sizes), scale, zero_point, dtype)


class LSTMCell(nn.Module):
    """One step of a long short-term memory of floats or of quantized tensors.

    split_gates: whether each gate has weights, and so scales, of its own.
    """

    _FLOAT_MODULE: Any = nn.LSTMCell

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, device: Any = None, dtype: Any = None, *,
        split_gates: bool = False,
    ):  # fmt: skip
        from ...quantized.modules.functional_modules import (
            FloatFunctional,
        )  # that package imports this module

        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.split_gates = (
            input_dim,
            hidden_dim,
            bias,
            split_gates,
        )
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.igates: Any
        self.hgates: Any
        self.gates: Any
        if split_gates:
            self.igates, self.hgates = (
                nn.ModuleDict({name: nn.Linear(size, hidden_dim, **options) for name in _GATES})
                for size in (input_dim, hidden_dim)
            )
            self.gates = nn.ModuleDict({name: FloatFunctional() for name in _GATES})
        else:
            self.igates, self.hgates = (
                nn.Linear(size, 4 * hidden_dim, **options) for size in (input_dim, hidden_dim)
            )
            self.gates = FloatFunctional()
        self.input_gate, self.forget_gate, self.cell_gate = nn.Sigmoid(), nn.Sigmoid(), nn.Tanh()
        self.output_gate = nn.Sigmoid()
        self.fgate_cx, self.igate_cgate = FloatFunctional(), FloatFunctional()
        self.fgate_cx_igate_cgate, self.ogate_cy = FloatFunctional(), FloatFunctional()
        self.initial_hidden_state_qparams: tuple[float, int] = (1.0, 0)
        self.initial_cell_state_qparams: tuple[float, int] = (1.0, 0)
        self.hidden_state_dtype, self.cell_state_dtype = quint8, quint8

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Tensor]:
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        if self.split_gates:
            sums = [self.gates[name].add(self.igates[name](x), self.hgates[name](hx)) for name in _GATES]
        else:
            sums = self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        enter, forget, new, leave = (
            gate(each)
            for gate, each in zip(
                (self.input_gate, self.forget_gate, self.cell_gate, self.output_gate), sums, strict=True
            )
        )
        kept, added = self.fgate_cx.mul(forget, cx), self.igate_cgate.mul(enter, new)
        cy = self.fgate_cx_igate_cgate.add(kept, added)
        return self.ogate_cy.mul(leave, cy.tanh()), cy

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> tuple[Tensor, Tensor]:
        """States of zeros."""
        sizes = batch_size, self.hidden_size
        if not is_quantized:
            return zeros(*sizes), zeros(*sizes)
        return (
            _quantized_zeros(*self.initial_hidden_state_qparams, self.hidden_state_dtype, *sizes),
            _quantized_zeros(*self.initial_cell_state_qparams, self.cell_state_dtype, *sizes),
        )

    def _get_name(self) -> str:
        return "QuantizableLSTMCell"

    def _weights(self) -> list[tuple[Any, slice]]:
        """The linear layers of the input, then those of the hidden state, and which rows of the whole weight each has."""
        if not self.split_gates:
            return [(each, slice(None)) for each in (self.igates, self.hgates)]
        size = self.hidden_size
        rows = [slice(start * size, (start + 1) * size) for start in range(4)]
        return [
            (each[name], own)
            for each in (self.igates, self.hgates)
            for name, own in zip(_GATES, rows, strict=True)
        ]

    @classmethod
    def from_params(
        cls,
        wi: Tensor,
        wh: Tensor,
        bi: Tensor | None = None,
        bh: Tensor | None = None,
        split_gates: bool = False,
    ) -> LSTMCell:
        """The cell with these weights and biases of the input and of the hidden state.

        Raises: AssertionError if there is one bias only.
        """
        if (bi is None) != (bh is None):
            raise AssertionError("bi and bh must both be None or both have values")
        made = cls(wi.shape[1], wh.shape[1], bias=bi is not None, split_gates=split_gates)
        layers = made._weights()
        for place, (layer, rows) in enumerate(layers):
            weight, bias = (wi, bi) if place < len(layers) // 2 else (wh, bh)
            layer.weight = nn.Parameter(weight.detach()[rows])
            if bias is not None:
                layer.bias = nn.Parameter(bias.detach()[rows])
        return made

    @classmethod
    def from_float(
        cls, other: Any, use_precomputed_fake_quant: bool = False, split_gates: bool = False
    ) -> LSTMCell:
        """The cell of a cell of floats that has a QConfig."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls.from_params(other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh, split_gates)
        made.qconfig = other.qconfig
        for layer, _ in made._weights():
            layer.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """The steps of one layer in one direction."""

    def __init__(self, cell: LSTMCell):
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Any]:
        outputs = []
        for step in x.unbind(0):
            hidden = self.cell(step, hidden)
            outputs.append(hidden[0])
        return stack(outputs, 0), hidden


class _LSTMLayer(nn.Module):
    """One layer in one or both directions. Shapes: [L, N, features], states [directions, N, hidden], or without that dim for one."""

    def __init__(self, forward_cell: LSTMCell, backward_cell: LSTMCell | None = None):
        super().__init__()
        self.bidirectional = backward_cell is not None
        self.layer_fw = _LSTMSingleLayer(forward_cell)
        if backward_cell is not None:
            self.layer_bw = _LSTMSingleLayer(backward_cell)

    def forward(self, x: Tensor, hidden: Any) -> tuple[Tensor, Any]:
        if not self.bidirectional:
            return self.layer_fw(x, hidden)
        first, second = (tuple(each[way] for each in hidden) for way in (0, 1))
        output, state = self.layer_fw(x, first)
        backward, backward_state = self.layer_bw(x.flip(0), second)
        states = tuple(stack([one, other], 0) for one, other in zip(state, backward_state, strict=True))
        return cat([output, backward.flip(0)], -1), states


class LSTM(nn.Module):
    """Layers of long short-term memory of floats or of quantized tensors. Shapes and states are those of `torch.nn.LSTM`."""

    _FLOAT_MODULE: Any = nn.LSTM

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None, *,
        split_gates: bool = False,
    ):  # fmt: skip
        super().__init__()
        _check_dropout(dropout, num_layers)
        self.input_size, self.hidden_size, self.num_layers, self.bias = (
            input_size,
            hidden_size,
            num_layers,
            bias,
        )
        self.batch_first, self.dropout, self.bidirectional = batch_first, float(dropout), bidirectional
        directions = 2 if bidirectional else 1
        made = []
        for layer in range(num_layers):
            features = directions * hidden_size if layer else input_size
            cells = [
                LSTMCell(features, hidden_size, bias, device, dtype, split_gates=split_gates)
                for _ in range(directions)
            ]
            made.append(_LSTMLayer(*cells))
        self.layers = nn.ModuleList(made)

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        x = x.transpose(0, 1) if self.batch_first else x
        finals = []
        for number, (layer, state) in enumerate(zip(self.layers, self._states(x, hidden), strict=True)):
            x, final = layer(x, state)
            finals.append(final)
            if self.dropout and self.training and number < self.num_layers - 1:
                x = F.dropout(x, self.dropout)
        output = x.transpose(0, 1) if self.batch_first else x
        h, c = (stack(parts, 0).reshape(-1, *parts[0].shape[-2:]) for parts in zip(*finals, strict=True))
        return output, (h, c)

    def _states(self, x: Tensor, hidden: Any) -> list[Any]:
        """The first states of each layer."""
        directions, batch = 2 if self.bidirectional else 1, x.shape[1]
        sizes = (directions, batch, self.hidden_size) if self.bidirectional else (batch, self.hidden_size)
        if hidden is None:
            start = _quantized_zeros(1.0, 0, x.dtype, *sizes) if x.is_quantized else zeros(*sizes)
            return [(start, start)] * self.num_layers
        h, c = (each.reshape(self.num_layers, *sizes) for each in hidden)
        return list(zip(h.unbind(0), c.unbind(0), strict=True))

    def _get_name(self) -> str:
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other: Any, qconfig: Any = None, split_gates: bool = False) -> Any:
        """The observed layers of layers of floats, which have a QConfig or get this one."""
        from ....quantization.quantize import prepare, prepare_qat  # that module imports this one

        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("other must have qconfig or qconfig must be provided")
        options = other.num_layers, other.bias, other.batch_first, other.dropout, other.bidirectional
        made = cls(other.input_size, other.hidden_size, *options, split_gates=split_gates)
        made.qconfig = getattr(other, "qconfig", qconfig)
        for number in range(other.num_layers):
            cells = [
                LSTMCell.from_params(**_parameters(other, f"l{number}{way}"), split_gates=split_gates)
                for way in (("", "_reverse") if other.bidirectional else ("",))
            ]
            made.layers[number] = _LSTMLayer(*cells)
        made.train(other.training)
        return prepare_qat(made, inplace=True) if other.training else prepare(made, inplace=True)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Not of this class: `torch.ao.nn.quantized.LSTM.from_observed` makes the quantized layers."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-quantizable LSTM module. Please, see the examples on quantizable LSTMs."
        )


def _parameters(lstm: Any, place: str) -> dict[str, Any]:
    """The weights and biases of one layer and direction, by their names in `LSTMCell.from_params`."""
    names = {"wi": "weight_ih", "wh": "weight_hh", "bi": "bias_ih", "bh": "bias_hh"}
    return {short: getattr(lstm, f"{name}_{place}", None) for short, name in names.items()}
