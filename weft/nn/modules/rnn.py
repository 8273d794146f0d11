"""Defines recurrent layers: RNN, LSTM and GRU for sequences, and their cells."""

from __future__ import annotations

import math
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from ...autograd.parameter import Parameter
from ...core.autocast import state as autocast
from ...core.dtype import DType
from ...core.tensor import Tensor
from ...core.warn import user_level
from ...ops.creation.creation import empty, zeros
from ...ops.nn import recurrent
from .. import init
from ..module import Module
from ..utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_FUNCTIONS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "RNN_TANH": recurrent.rnn_tanh,
    "RNN_RELU": recurrent.rnn_relu,
    "LSTM": recurrent.lstm,
    "GRU": recurrent.gru,
}
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}


class RecurrentLayers(Module):
    """What layers of floats and of quantized weights share: states, checks, packed sequences and printing.

    A subclass says how an input is checked (`_check_input`), and how it is computed (`_run`).
    """

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int = 0

    def _check_input(self, input: Tensor, packed: bool = False) -> None:
        raise NotImplementedError

    def _run(self, input: tuple[Tensor, ...], state: tuple[Tensor, ...], last: tuple) -> tuple[Tensor, ...]:
        """Return the output and the final states. input: the tensor, or those of a packed sequence; last: `batch_first` unless packed."""
        raise NotImplementedError

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        self._check_input(input)
        batched = input.dim() == 3
        if hx is None:
            batch = (input.size(0) if self.batch_first else input.size(1)) if batched else 1
            state = self._zeros(batch, input)
        else:
            state = self._states(hx)
            self._check_ndim(state, batched)
            state = state if batched else tuple(each.unsqueeze(1) for each in state)
        sequence = input if batched else input.unsqueeze(0 if self.batch_first else 1)
        self._check_state(state, sequence.size(0) if self.batch_first else sequence.size(1))
        output, *final = self._run((sequence,), state, (self.batch_first,))
        if not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            final = [each.squeeze(1) for each in final]
        return output, self._as_given(final)

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, sorted_indices, unsorted_indices = input
        self._check_input(data, packed=True)
        batch = int(batch_sizes[0])
        if hx is None:
            state = self._zeros(batch, data)
        else:
            state = tuple(_permuted(each, sorted_indices) for each in self._states(hx))
        self._check_state(state, batch)
        output, *final = self._run((data, batch_sizes), state, ())
        packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return packed, self._as_given([_permuted(each, unsorted_indices) for each in final])

    # ---- States ----------------------------------------------------------------------------------------------------

    def _states(self, hx: Any) -> tuple[Tensor, ...]:
        """Return the state as a tuple.

        Raises: RuntimeError unless the state is a tensor, or two tensors for an LSTM.
        """
        state = tuple(hx) if self.mode == "LSTM" and isinstance(hx, (Tensor, tuple, list)) else (hx,)
        if len(state) != (2 if self.mode == "LSTM" else 1) or not all(
            isinstance(each, Tensor) for each in state
        ):
            wanted = "a pair of tensors, (h, c)" if self.mode == "LSTM" else "a tensor"
            raise RuntimeError(
                f"{self._get_name()} expects {wanted} as its hidden state, not {type(hx).__name__}"
            )
        return state

    def _as_given(self, state: list[Tensor]) -> Any:
        return tuple(state) if self.mode == "LSTM" else state[0]

    def _sizes(self, batch: int) -> list[tuple[int, int, int]]:
        """Return the shapes of the states; those of an LSTM are (h, c), where h may be projected."""
        layers = self.num_layers * (2 if self.bidirectional else 1)
        hidden = (layers, batch, self.proj_size or self.hidden_size)
        return [hidden, (layers, batch, self.hidden_size)] if self.mode == "LSTM" else [hidden]

    def _zeros(self, batch: int, like: Tensor) -> tuple[Tensor, ...]:
        return tuple(zeros(size, dtype=like.dtype, device=like.device) for size in self._sizes(batch))

    # ---- Checks ----------------------------------------------------------------------------------------------------

    def _check_ndim(self, state: tuple[Tensor, ...], batched: bool) -> None:
        wanted = 3 if batched else 2
        if all(each.dim() == wanted for each in state):
            return
        kind = "batched 3-D" if batched else "unbatched 2-D"
        if self.mode == "LSTM":
            found = ", ".join(f"{each.dim()}-D" for each in state)
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {wanted}-D but got ({found}) tensors"
            )
        raise RuntimeError(
            f"For {kind} input, hx should also be {wanted}-D but got {state[0].dim()}-D tensor"
        )

    def _check_state(self, state: tuple[Tensor, ...], batch: int) -> None:
        for i, (each, size) in enumerate(zip(state, self._sizes(batch))):
            if each.shape != size:
                name = f"hidden[{i}]" if self.mode == "LSTM" else "hidden"
                raise RuntimeError(f"Expected {name} size {size}, got {list(each.shape)}")

    # ---- PyTorch's names for them, which subclasses call or override -----------------------------------------------

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise unless the input has a dtype, a number of dims and features that fit; `batch_sizes`: it is packed."""
        self._check_input(input, packed=batch_sizes is not None)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the hidden state for an input, which is packed if there are `batch_sizes`."""
        if batch_sizes is not None:
            return self._sizes(int(batch_sizes[0]))[0]
        return self._sizes(input.size(0) if self.batch_first else input.size(1))[0]

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise RuntimeError unless a state has this shape."""
        if hx.shape != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Check the input and the state of a call."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Return a state with its batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def extra_repr(self) -> str:
        facts = [
            f"{self.input_size}, {self.hidden_size}",
            f"proj_size={self.proj_size}" if self.proj_size else "",
            f"num_layers={self.num_layers}" if self.num_layers != 1 else "",
            f"bias={self.bias}" if self.bias is not True else "",
            f"batch_first={self.batch_first}" if self.batch_first is not False else "",
            f"dropout={self.dropout}" if self.dropout else "",
            f"bidirectional={self.bidirectional}" if self.bidirectional is not False else "",
        ]
        return ", ".join(filter(None, facts))


class RNNBase(RecurrentLayers):
    """The base of recurrent layers, whose parameters are `weight_ih_l0`, ..., `bias_hh_l1_reverse`."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(value, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
        _check_sizes(input_size, hidden_size, num_layers, proj_size)
        _check_dropout(dropout, num_layers)
        if mode not in _FUNCTIONS:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        rows = _GATES[mode] * hidden_size
        kept = proj_size or hidden_size
        for layer in range(num_layers):
            features = kept * (2 if bidirectional else 1) if layer else input_size
            for way in ("", "_reverse") if bidirectional else ("",):
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, features),
                    "weight_hh": (rows, kept),
                }
                if bias:
                    shapes.update(bias_ih=(rows,), bias_hh=(rows,))
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = [f"{name}_l{layer}{way}" for name in shapes]
                for name, shape in zip(names, shapes.values()):
                    self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(names)
        self.reset_parameters()

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Return the parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    # Libraries that replace weights (weight drop, weight norm) read these properties, which return the attributes.

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor]) -> None:
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            if getattr(self, name, None) is not weight:
                self._parameters.pop(name, None)
                setattr(self, name, weight)

    @property
    def _flat_weight_refs(self) -> list[Any]:
        return [weakref.ref(each) for each in self._flat_weights]

    def flatten_parameters(self) -> None:
        """Do nothing, because weft does not need the parameters in one block."""

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _run(self, input: tuple[Tensor, ...], state: tuple[Tensor, ...], last: tuple) -> tuple[Tensor, ...]:
        return _FUNCTIONS[self.mode](
            *input,
            state if self.mode == "LSTM" else state[0],
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            *last,
        )

    def _check_input(self, input: Tensor, packed: bool = False) -> None:
        if not isinstance(input, Tensor):
            raise TypeError(
                f"{self._get_name()}: expected a tensor or a packed sequence, not {type(input).__name__}"
            )
        if not packed and input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        own = self.weight_ih_l0.dtype
        if input.dtype is not own and not autocast.enabled:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({own}). "
                f"Convert input: input.to({own}), or convert model: model.to({input.dtype})"
            )
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}\n"
                f"{self}: input {list(input.shape)}"
            )


def _permuted(state: Tensor, indices: Tensor | None) -> Tensor:
    return state if indices is None else state.index_select(1, indices)


def _check_sizes(input_size: int, hidden_size: Any, num_layers: int, proj_size: int) -> None:
    if not isinstance(hidden_size, int):
        raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if not isinstance(value, int):
            raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


def _check_dropout(dropout: Any, num_layers: int) -> None:
    if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=user_level(),
        )


class RNN(RNNBase):
    """Computes h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh), or relu, in `num_layers` layers.

    Shapes: input [L, N, input_size], [N, L, input_size] if batch_first, [L, input_size], or a PackedSequence; hx
    [num_layers * directions, N, hidden_size] -> output [L, N, directions * hidden_size], and hx after the last step.
    dropout: between layers.

    >>> import weft as torch
    >>> rnn = torch.nn.RNN(10, 20, 2)
    >>> output, h = rnn(torch.randn(5, 3, 10))
    >>> output.shape, h.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: DType | None = None,
        *,
        proj_size: int = 0,
    ) -> None:
        _refuse_projection(proj_size)
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(
            mode,
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            0,
            device,
            dtype,
        )
        self.nonlinearity = nonlinearity


def _refuse_projection(proj_size: int) -> None:
    if proj_size:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class LSTM(RNNBase):
    """Is a long short-term memory. Source: Hochreiter and Schmidhuber 1997.

    Shapes: as `RNN`, with states (h, c); with proj_size, h has that size.

    >>> import weft as torch
    >>> lstm = torch.nn.LSTM(10, 20, 2, batch_first=True, bidirectional=True)
    >>> output, (h, c) = lstm(torch.randn(3, 5, 10))
    >>> output.shape, c.shape
    (torch.Size([3, 5, 40]), torch.Size([4, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of the state c for an input, which is packed if there are `batch_sizes`."""
        layers, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return layers, batch, self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Check the input and the two states of a call."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """Return the two states with their batch in another order."""
        return hx if permutation is None else tuple(each.index_select(1, permutation) for each in hx)


class GRU(RNNBase):
    """Has gated recurrent units. Source: Cho et al. 2014. Shapes: as `RNN`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        _refuse_projection(proj_size)
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )


# ---- Cells ---------------------------------------------------------------------------------------------------------


class RecurrentCell(Module):
    """What cells of floats and of quantized weights share: checks and printing."""

    input_size: int
    hidden_size: int
    bias: bool

    def extra_repr(self) -> str:
        facts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            facts.append(f"bias={self.bias}")
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            facts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(facts)

    def _prepared(self, input: Tensor, states: tuple[Tensor, ...] | None, count: int) -> tuple[Tensor, ...]:
        """Return the input and `count` states with a batch dim; the states are zeros unless the caller gives them.

        Raises: ValueError for a wrong number of dims, RuntimeError for wrong sizes.
        """
        name = self._get_name()
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}\n{self}"
            )
        if states is None:
            start = zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            return input, *[start] * count
        for i, state in enumerate(states):
            if state.dim() not in (1, 2):
                which = f"hx[{i}]" if count > 1 else "hidden"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {state.dim()}D instead")
        if not batched:
            states = tuple(state.unsqueeze(0) for state in states)
        for i, state in enumerate(states):
            if input.size(0) != state.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{i} batch size {state.size(0)}"
                )
            if state.dim() != 2 or state.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {state.size(1)}, expected {self.hidden_size}"
                )
        return input, *states


class RNNCellBase(RecurrentCell):
    """Serves as the base of cells, with the parameters of one step."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        factory = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(empty((rows, input_size), **factory))
        self.weight_hh = Parameter(empty((rows, hidden_size), **factory))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(rows, **factory)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _parameters_of_step(self) -> tuple[Tensor | None, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh


class RNNCell(RNNCellBase):
    """Computes one step of `RNN`. Shapes: [N, input_size], [N, hidden_size] -> [N, hidden_size]; N may be absent."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        step = recurrent.rnn_tanh_cell if self.nonlinearity == "tanh" else recurrent.rnn_relu_cell
        batch, state = self._prepared(input, None if hx is None else (hx,), 1)
        found = step(batch, state, *self._parameters_of_step())
        return found if input.dim() == 2 else found.squeeze(0)


class LSTMCell(RNNCellBase):
    """Computes one step of `LSTM`. Shapes: [N, input_size], 2 * [N, hidden_size] -> 2 * [N, hidden_size]; N is optional."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        batch, *states = self._prepared(input, None if hx is None else tuple(hx), 2)
        hidden, cell = recurrent.lstm_cell(batch, states, *self._parameters_of_step())
        return (hidden, cell) if input.dim() == 2 else (hidden.squeeze(0), cell.squeeze(0))


class GRUCell(RNNCellBase):
    """Computes one step of `GRU`. Shapes: [N, input_size], [N, hidden_size] -> [N, hidden_size]; N may be absent."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        batch, state = self._prepared(input, None if hx is None else (hx,), 1)
        found = recurrent.gru_cell(batch, state, *self._parameters_of_step())
        return found if input.dim() == 2 else found.squeeze(0)
