"""Recurrent networks: cells, and layers of them over sequences.

Parameters are a flat list, in the order of the layers: for each layer and direction the weights of the input and of the hidden state,
their biases, and in an LSTM with projection the weight of the projection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.arguments import wrong_type
from ...core.autocast import casting
from ...core.checking import checked
from ...core.dtype import bfloat16, float32
from ...core.names import named
from ...core.plans import PlanCache
from ...core.public import public
from ...core.spec import Spec
from ...core.tensor import Tensor, own_dim
from ..assembly.joining import cat, stack
from .dropout import dropped
from .recurrent_cells import GRU, LSTM, RELU, TANH, Kind, State, Weights
from .recurrent_layer import layer

# ---- Layers --------------------------------------------------------------------------------------------------------


def layers(
    kind: Kind,
    input: Tensor,
    sizes: tuple[int, ...],
    initial: State,
    weights: Sequence[Any],
    dropout_p: float,
    train: bool,
    bidirectional: bool,
    layer: Callable[..., tuple[Tensor, ...]] = layer,
) -> tuple[Tensor, ...]:
    """The output and the final states. weights: of each layer and direction. layer: computes one of them, as in `recurrent_layer.py`.

    Shapes: states [num_layers * directions, N, hidden].
    """
    if len(weights) == 1:
        return layer(kind, sizes, False, input, weights[0], initial)
    states: list[State] = []
    while len(states) < len(weights):
        if dropout_p and train and states:
            input = dropped(input, dropout_p, train=True)
        outputs = []
        for reverse in (False, True) if bidirectional else (False,):
            index = len(states)
            own = tuple([each[index] for each in initial])
            output, *state = layer(kind, sizes, reverse, input, weights[index], own)
            outputs.append(output)
            states.append(tuple(state))
        input = cat(outputs, -1) if bidirectional else outputs[0]
    return input, *[stack(parts) for parts in zip(*states)]


def _layers(
    kind: Kind,
    input: Tensor,
    sizes: tuple[int, ...],
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout_p: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    """Return the output and the final states, by a flat list of parameters."""
    initial = state_of(kind, hx)
    for each in params:
        if not isinstance(each, Tensor):
            raise wrong_type(each, kind.name, "params", "tuple of Tensors")
    weights = _by_direction(params, has_biases, num_layers * (2 if bidirectional else 1))
    return layers(kind, input, sizes, initial, weights, dropout_p, train, bidirectional)


# Under autocast, PyTorch's LSTM of sequences counts as one product. Elsewhere each product chooses its dtype.
_lowered_layers = casting(_layers, "lower")


def _layers_of_sequences(kind: Kind, input: Tensor, sizes: Any, hx: Any, params: Any, *rest: Any) -> Any:
    _, num_layers, _, _, bidirectional = rest
    n_params = len(params) // (num_layers * (2 if bidirectional else 1))
    compute = _lowered_layers if _is_whole(kind, input, n_params) else _layers
    return compute(kind, input, sizes, hx, params, *rest)


def _is_whole(kind: Kind, input: Tensor, n_params: int) -> bool:
    """Whether PyTorch has a kernel for a layer with `n_params` parameters; for projections it has none."""
    return kind is LSTM and n_params in (2, 4) and input.dtype in (float32, bfloat16)


def state_of(kind: Kind, hx: Any) -> State:
    """`hx` is a tensor; for an LSTM it is a pair of tensors.

    Raises: TypeError for no tensor, or none where a pair belongs; RuntimeError for another number of them.
    """
    if kind.n_states > 1 and isinstance(hx, Tensor):
        raise wrong_type(hx, kind.name, "hx", "tuple of Tensors")
    state = tuple(hx) if kind.n_states > 1 and isinstance(hx, (tuple, list)) else (hx,)
    for each in state:
        if not isinstance(each, Tensor):
            raise wrong_type(each, kind.name, "hx", "Tensor")
    if len(state) != kind.n_states:
        raise RuntimeError(
            f"{kind.name} expects {('one hidden state', 'two hidden states')[kind.n_states - 1]}"
        )
    return state


def _by_direction(params: Sequence[Tensor], has_biases: bool, count: int) -> list[Weights]:
    each = len(params) // count
    if each * count != len(params) or each not in ((4, 5) if has_biases else (2, 3)):
        raise RuntimeError(
            f"got an incorrect number of RNN parameters: {len(params)} for {count} layers and directions"
        )
    found = []
    for start in range(0, each * count, each):
        inputs, hidden, *rest = params[start : start + each]
        biases = rest[:2] if has_biases else (None, None)
        projection = rest[2 if has_biases else 0 :]
        found.append(Weights(inputs, hidden, *biases, *projection))
    return found


def network(
    kind: Kind,
    name: str,
    compute: Callable[..., tuple[Tensor, ...]],
    compute_packed: Callable[..., tuple[Tensor, ...]],
) -> Callable[..., tuple[Tensor, ...]]:
    """Return the function `name` of a kind: (input, hx, ...), or of packed sequences (data, batch_sizes, hx, ...).

    compute, compute_packed: (kind, input, sizes of the steps, hx, params, ...), for sequences of which the steps are the first dim.
    """

    def over_sequences(
        input: Tensor,
        hx: Any,
        params: Sequence[Any],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        input = input.transpose(0, 1) if batch_first else input
        n_steps, batch, *_ = input.shape
        if n_steps == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        rest = (params, has_biases, num_layers, dropout, train, bidirectional)
        output, *final = compute(kind, input, (batch,) * n_steps, hx, *rest)
        return output.transpose(0, 1) if batch_first else output, *final

    def over_packed(
        data: Tensor,
        batch_sizes: Tensor,
        hx: Any,
        params: Sequence[Any],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
    ) -> tuple[Tensor, ...]:
        rest = (params, has_biases, num_layers, dropout, train, bidirectional)
        return compute_packed(kind, data, tuple(batch_sizes.tolist()), hx, *rest)

    over_sequences, over_packed = checked(over_sequences, name), checked(over_packed, name)

    @named(name)
    def function(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """Return layers of {name} over sequences: the output of the last layer, then the final states."""
        # The third argument is the parameters; for packed sequences it is the state.
        packed = "batch_sizes" in kwargs or len(args) > 3 and not isinstance(args[3], bool)
        return over_packed(*args, **kwargs) if packed else over_sequences(*args, **kwargs)

    return function


rnn_tanh, rnn_relu, gru, lstm = (
    public("function", asks=True)(network(kind, kind.name, _layers_of_sequences, _layers))
    for kind in (TANH, RELU, GRU, LSTM)
)


# ---- Cells ---------------------------------------------------------------------------------------------------------


@PlanCache
def _cell_checked(gates: int, input: Spec, w_ih: Spec, w_hh: Spec, *states: Spec) -> bool:
    """Raises: RuntimeError for sizes that do not fit, IndexError for operands without the dims that sizes are asked of."""
    for each in (w_ih, w_hh, input, *states):
        own_dim(1, each.ndim, "rnn_cell")
    if input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(
            f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}"
        )
    for k, state in enumerate(states):
        if state.shape[0] != input.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{k} batch size {state.shape[0]}"
            )
        if state.shape[1] != w_hh.shape[1]:
            raise RuntimeError(
                f"hidden{k} has inconsistent hidden_size: got {state.shape[1]}, expected {w_hh.shape[1]}"
            )
    rows = gates * w_hh.shape[1]
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if weight.shape[0] != rows:
            raise RuntimeError(
                f"{name} first dim must be {gates} * hidden_size = {rows}, but got {weight.shape[0]}"
            )
    return True


def _cell(kind: Kind, doc: str) -> Callable[..., Any]:
    """Return the function of one step of a kind."""

    @public("function", name=f"{kind.name}_cell", words={"doc": doc})
    def function(
        input: Tensor,
        hx: Any,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Any:
        weights, state = Weights(w_ih, w_hh, b_ih, b_hh), state_of(kind, hx)
        _cell_checked[kind.n_gates, input.spec, w_ih.spec, w_hh.spec, *(each.spec for each in state)]
        hidden, _, *rest = layer(kind, (input.size(0),), False, input, weights, state)
        return (hidden, *rest) if rest else hidden

    return function


_SHAPES = "Shapes: [N, features], [N, hidden] -> [N, hidden]."
rnn_tanh_cell = _cell(TANH, f"tanh(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh). {_SHAPES}")
rnn_relu_cell = _cell(RELU, f"relu(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh). {_SHAPES}")
gru_cell = _cell(GRU, f"One step of a gated recurrent unit. {_SHAPES} Source: Cho et al. 2014.")
lstm_cell = _cell(
    LSTM,
    "One step of a long short-term memory, of a state (hidden, cell): the next state. "
    "Source: Hochreiter and Schmidhuber 1997.",
)
