"""Defines the formulas of the kinds of recurrent cells.

A formula is an ordinary function of tensors. `recurrent_kernels.py` traces it, and makes one kernel of it and one of its
derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ...core.tensor import Tensor
from .linear import linear

State = tuple[Tensor, ...]  # (h,); for an LSTM (h, c)


class Kind(NamedTuple):
    """Describes a kind of cell."""

    name: str  # the name of the function of its layers, as in `torch.lstm`
    n_gates: int
    n_states: int
    # (projections of the input, projections of the hidden state), one for each gate -> the pre-activations
    join: Callable[[Sequence[Any], Sequence[Any]], list]
    n_joined: int
    update: Callable[[Sequence[Any], Sequence[Any]], tuple]  # (pre-activations, state) -> next state
    node_name: str  # the name of the last node in PyTorch's composition


def _sums(projected: Sequence[Any], recurrent: Sequence[Any]) -> list:
    return [a + b for a, b in zip(projected, recurrent, strict=True)]


def _sums_but_new(projected: Sequence[Any], recurrent: Sequence[Any]) -> list:
    # The reset gate multiplies the projection of the hidden state, with its bias, so the two parts of "new" stay apart.
    return [*_sums(projected[:2], recurrent[:2]), projected[2], recurrent[2]]


def _tanh(joined: Sequence[Any], state: Sequence[Any]) -> tuple:
    return (joined[0].tanh(),)


def _relu(joined: Sequence[Any], state: Sequence[Any]) -> tuple:
    return (joined[0].relu(),)


def _lstm(joined: Sequence[Any], state: Sequence[Any]) -> tuple:
    enter, forget, new, leave = joined
    cell = forget.sigmoid() * state[1] + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * cell.tanh(), cell


def _gru(joined: Sequence[Any], state: Sequence[Any]) -> tuple:
    reset, update, new, recurrent_new = joined
    new = (new + reset.sigmoid() * recurrent_new).tanh()
    return (new + update.sigmoid() * (state[0] - new),)


TANH = Kind("rnn_tanh", 1, 1, _sums, 1, _tanh, "TanhBackward0")
RELU = Kind("rnn_relu", 1, 1, _sums, 1, _relu, "ReluBackward0")
GRU = Kind("gru", 3, 1, _sums_but_new, 4, _gru, "AddBackward0")
LSTM = Kind("lstm", 4, 2, _sums, 4, _lstm, "MulBackward0")


class Weights(NamedTuple):
    """Holds the weights of one layer in one direction."""

    inputs: Tensor  # [gates * hidden, features]
    hidden: Tensor  # [gates * hidden, hidden or its projection]
    inputs_bias: Tensor | None = None
    hidden_bias: Tensor | None = None
    projection: Tensor | None = None

    def of_input(self, input: Tensor) -> Tensor:
        """Return the projections of the input, one for each gate side by side."""
        return linear(input, self.inputs, self.inputs_bias)

    def of_hidden(self, hidden: Tensor) -> Tensor:
        """Return the same of the hidden state."""
        return linear(hidden, self.hidden, self.hidden_bias)


class Projections(Protocol):
    """What a layer that is composed of ops needs of its weights: `Weights`, or quantized ones (`layouts/quantized/recurrent.py`)."""

    @property
    def projection(self) -> Tensor | None: ...

    def of_input(self, input: Tensor) -> Tensor: ...

    def of_hidden(self, hidden: Tensor) -> Tensor: ...
