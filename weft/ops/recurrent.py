"""Recurrent networks: cells, and layers of them over sequences.

A layer projects the inputs of all steps by one product, then goes through time with one product for each step.
Parameters come flat, as layers list them: for each layer and direction the weights of inputs and of the hidden state,
their biases, and in an LSTM with projection the weight of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any, NamedTuple

from ..core.op import public
from ..core.tensor import Tensor
from ..engine import scalar as s
from ..families.map import Map, keep
from .dropout import dropout
from .joining import cat, stack
from .linear import linear
from .matmul import addmm

# ---- One step ------------------------------------------------------------------------------------------------------

State = tuple[Tensor, ...]  # (h,), or of an LSTM (h, c)


class Weights(NamedTuple):
    """What one layer has for one direction."""

    inputs: Tensor  # [gates * hidden, features]
    hidden: Tensor  # [gates * hidden, hidden or its projection]
    inputs_bias: Tensor | None = None
    hidden_bias: Tensor | None = None
    projection: Tensor | None = None

    def project(self, input: Tensor, merge_biases: bool) -> Tensor:
        """What the inputs, of one step or of all, add to the gates."""
        bias = self.inputs_bias
        if merge_biases and bias is not None and self.hidden_bias is not None:
            bias = bias + self.hidden_bias
        return linear(input, self.inputs, bias)


class Kind(NamedTuple):
    """A kind of cell."""

    step: Callable[
        [Tensor, State, Tensor, Weights], State
    ]  # (projected inputs, state, hidden weight^T, weights)
    gates: int
    merge_biases: bool  # whether both biases may be added up beforehand


def _plain(activation: Callable[[Tensor], Tensor]) -> Kind:
    def step(projected: Tensor, state: State, transposed: Tensor, weights: Weights) -> State:
        return (activation(addmm(projected, state[0], transposed)),)

    return Kind(step, 1, True)


# What one step does with the gates, in few kernels.
# fmt: off
LSTM_CELL = Map("lstm_cell_state", keep, lambda forget, cell, enter, new: s.sigmoid(forget) * cell + s.sigmoid(enter) * s.tanh(new),
                derivative=(lambda ct, out, forget, cell, enter, new: ct * cell * forget.sigmoid() * (1 - forget.sigmoid()),
                            lambda ct, out, forget, cell, enter, new: ct * forget.sigmoid(),
                            lambda ct, out, forget, cell, enter, new: ct * new.tanh() * enter.sigmoid() * (1 - enter.sigmoid()),
                            lambda ct, out, forget, cell, enter, new: ct * enter.sigmoid() * (1 - new.tanh() * new.tanh())))
LSTM_HIDDEN = Map("lstm_hidden_state", keep, lambda leave, cell: s.sigmoid(leave) * s.tanh(cell),
                  derivative=(lambda ct, out, leave, cell: ct * out * (1 - leave.sigmoid()),
                              lambda ct, out, leave, cell: ct * leave.sigmoid() * (1 - cell.tanh() * cell.tanh())))
GRU_GATE = Map("gru_gate", keep, lambda a, b: s.sigmoid(a + b),
               derivative=(lambda ct, out, a, b: ct * out * (1 - out),
                           lambda ct, out, a, b: ct * out * (1 - out)))
GRU_NEW = Map("gru_new_state", keep, lambda a, reset, b: s.tanh(a + reset * b),
              derivative=(lambda ct, out, a, reset, b: ct * (1 - out * out),
                          lambda ct, out, a, reset, b: ct * (1 - out * out) * b,
                          lambda ct, out, a, reset, b: ct * (1 - out * out) * reset))
GRU_HIDDEN = Map("gru_hidden_state", keep, lambda new, update, old: new + update * (old - new),
                 derivative=(lambda ct, out, new, update, old: ct * (1 - update),
                             lambda ct, out, new, update, old: ct * (old - new),
                             lambda ct, out, new, update, old: ct * update))
# fmt: on


def _lstm_step(projected: Tensor, state: State, transposed: Tensor, weights: Weights) -> State:
    hidden, cell = state
    enter, forget, new, leave = addmm(projected, hidden, transposed).chunk(4, 1)
    cell = LSTM_CELL(forget, cell, enter, new)
    hidden = LSTM_HIDDEN(leave, cell)
    if weights.projection is not None:
        hidden = linear(hidden, weights.projection)
    return hidden, cell


def _gru_step(projected: Tensor, state: State, transposed: Tensor, weights: Weights) -> State:
    (hidden,) = state
    # The bias of the new state lies inside the product with the reset gate.
    bias = weights.hidden_bias
    own = hidden.mm(transposed) if bias is None else addmm(bias, hidden, transposed)
    (reset, update, new), (own_reset, own_update, own_new) = projected.chunk(3, 1), own.chunk(3, 1)
    new = GRU_NEW(new, GRU_GATE(reset, own_reset), own_new)
    return (GRU_HIDDEN(new, GRU_GATE(update, own_update), hidden),)


TANH, RELU = _plain(methodcaller("tanh")), _plain(methodcaller("relu"))
LSTM = Kind(_lstm_step, 4, True)
GRU = Kind(_gru_step, 3, False)


# ---- Through time --------------------------------------------------------------------------------------------------


def _sequence(
    kind: Kind, input: Tensor, state: State, weights: Weights, reverse: bool
) -> tuple[Tensor, State]:
    """One layer in one direction. Shapes: input [T, N, features] -> [T, N, hidden]."""
    steps = weights.project(input, kind.merge_biases).unbind(0)
    transposed = weights.hidden.t()
    outputs = []
    for projected in steps[::-1] if reverse else steps:
        state = kind.step(projected, state, transposed, weights)
        outputs.append(state[0])
    return stack(outputs[::-1] if reverse else outputs), state


def _packed(
    kind: Kind, data: Tensor, batch_sizes: list[int], state: State, weights: Weights, reverse: bool
) -> tuple[Tensor, State]:
    """The same for sequences of several lengths, the longest first: step t holds the first batch_sizes[t]."""
    steps = weights.project(data, kind.merge_biases).split(batch_sizes)
    walk = _packed_backwards if reverse else _packed_forwards
    outputs, state = walk(kind, steps, batch_sizes, state, weights)
    return cat(outputs), state


def _packed_forwards(
    kind: Kind, steps: Sequence[Tensor], batch_sizes: list[int], state: State, weights: Weights
) -> tuple[list[Tensor], State]:
    transposed = weights.hidden.t()
    outputs: list[Tensor] = []
    ended: list[State] = []
    for projected, size in zip(steps, batch_sizes):
        if size < state[0].size(0):
            ended.append(tuple(each[size:] for each in state))
            state = tuple(each[:size] for each in state)
        state = kind.step(projected, state, transposed, weights)
        outputs.append(state[0])
    ended.append(state)
    return outputs, tuple(cat(parts[::-1]) for parts in zip(*ended))


def _packed_backwards(
    kind: Kind, steps: Sequence[Tensor], batch_sizes: list[int], initial: State, weights: Weights
) -> tuple[list[Tensor], State]:
    transposed = weights.hidden.t()
    outputs = []
    state = tuple(each[:0] for each in initial)
    for projected, size in zip(reversed(steps), reversed(batch_sizes)):
        running = state[0].size(0)
        if size > running:  # these sequences end here, so they begin here
            state = tuple(cat((own, first[running:size])) for own, first in zip(state, initial))
        state = kind.step(projected, state, transposed, weights)
        outputs.append(state[0])
    return outputs[::-1], state


# ---- Layers --------------------------------------------------------------------------------------------------------


def _layers(
    kind: Kind,
    input: Tensor,
    batch_sizes: list[int] | None,
    initial: State,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout_p: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    """The output and the final states. Shapes: states [num_layers * directions, N, hidden]."""
    weights = _by_direction(params, has_biases, num_layers * (1 + bidirectional))
    states: list[State] = []
    for layer in range(num_layers):
        outputs = []
        for reverse in (False, True) if bidirectional else (False,):
            index = len(states)
            state = tuple([each[index] for each in initial])
            if batch_sizes is None:
                output, state = _sequence(kind, input, state, weights[index], reverse)
            else:
                output, state = _packed(kind, input, batch_sizes, state, weights[index], reverse)
            outputs.append(output)
            states.append(state)
        input = cat(outputs, -1) if bidirectional else outputs[0]
        if dropout_p and train and layer < num_layers - 1:
            input = dropout(input, dropout_p)
    return input, *[stack(parts) for parts in zip(*states)]


def _by_direction(params: Sequence[Tensor], has_biases: bool, count: int) -> list[Weights]:
    each = len(params) // count
    found = []
    for start in range(0, each * count, each):
        inputs, hidden, *rest = params[start : start + each]
        biases = rest[:2] if has_biases else (None, None)
        projection = rest[2 if has_biases else 0 :]
        found.append(Weights(inputs, hidden, *biases, *projection))
    return found


def _network(kind: Kind, name: str, states: int) -> Callable[..., tuple[Tensor, ...]]:
    """The function of a kind: (input, hx, ...), or of packed sequences (data, batch_sizes, hx, ...)."""

    def over_sequences(
        input: Tensor,
        hx: Any,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        input = input.transpose(0, 1) if batch_first else input
        initial = tuple(hx) if states > 1 else (hx,)
        rest = (params, has_biases, num_layers, dropout, train, bidirectional)
        output, *final = _layers(kind, input, None, initial, *rest)
        return output.transpose(0, 1) if batch_first else output, *final

    def over_packed(
        data: Tensor,
        batch_sizes: Tensor,
        hx: Any,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> tuple[Tensor, ...]:
        initial = tuple(hx) if states > 1 else (hx,)
        rest = (params, has_biases, num_layers, dropout, train, bidirectional)
        return _layers(kind, data, batch_sizes.tolist(), initial, *rest)

    def function(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        # The third argument is the parameters, or of packed sequences the state.
        packed = "batch_sizes" in kwargs or len(args) > 3 and not isinstance(args[3], bool)
        return over_packed(*args, **kwargs) if packed else over_sequences(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Layers of {name} over sequences: the output of the last layer, then the final states."
    )
    return public("function")(function)


rnn_tanh = _network(TANH, "rnn_tanh", 1)
rnn_relu = _network(RELU, "rnn_relu", 1)
gru = _network(GRU, "gru", 1)
lstm = _network(LSTM, "lstm", 2)


# ---- Cells ---------------------------------------------------------------------------------------------------------


def _cell(kind: Kind, input: Tensor, state: State, weights: Weights) -> State:
    projected = weights.project(input, kind.merge_biases)
    return kind.step(projected, state, weights.hidden.t(), weights)


@public("function")
def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """tanh(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh). Shapes: [N, features], [N, hidden] -> [N, hidden]."""
    return _cell(TANH, input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


@public("function")
def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """relu(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh). Shapes: [N, features], [N, hidden] -> [N, hidden]."""
    return _cell(RELU, input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


@public("function")
def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a gated recurrent unit. Shapes: [N, features], [N, hidden] -> [N, hidden]. Source: Cho et al. 2014."""
    return _cell(GRU, input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


@public("function")
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of a long short-term memory: the hidden state and the cell. Source: Hochreiter and Schmidhuber 1997."""
    hidden, cell = _cell(LSTM, input, tuple(hx), Weights(w_ih, w_hh, b_ih, b_hh))
    return hidden, cell
