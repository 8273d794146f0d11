"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._builder import Builder
from .base import translates

# The order of the gates in ONNX, as places in PyTorch's order.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _recurrent(kind: str, **attributes: Any) -> Callable[..., Any]:
    def translation(
        b: Builder, input: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
        bidirectional: bool, batch_first: bool,
    ) -> tuple:  # fmt: skip
        states = list(hx) if kind == "LSTM" else [hx]
        directions = 2 if bidirectional else 1
        per_layer = len(params) // num_layers // directions
        value = b.tensor(input)
        value = b.op("Transpose", value, perm=[1, 0, 2]) if batch_first else value
        ends: list[list[str]] = [[] for _ in states]
        for layer in range(num_layers):
            rows = [params[(layer * directions + d) * per_layer :][:per_layer] for d in range(directions)]
            inputs = [_stacked(b, [row[place] for row in rows], _GATES[kind]) for place in (0, 1)]
            bias = ""
            if has_biases:
                parts = [_stacked(b, [row[place] for row in rows], _GATES[kind]) for place in (2, 3)]
                bias = b.op("Concat", *parts, axis=1)
            first = b.axes(layer * directions)
            initial = [
                b.op("Slice", b.tensor(state), first, b.axes((layer + 1) * directions), b.axes(0))
                for state in states
            ]
            hidden = b.meta(rows[0][1]).shape[1]
            options = {**attributes, "linear_before_reset": 1} if kind == "GRU" else dict(attributes)
            if "activations" in options:
                options["activations"] = options["activations"] * directions
            outputs = b.op(kind, value, *inputs, bias, "", *initial, hidden_size=hidden, outputs=1 + len(states),
                           direction="bidirectional" if bidirectional else "forward", **options)  # fmt: skip
            # [time, directions, batch, hidden] -> [time, batch, directions * hidden]
            joined = b.op("Transpose", outputs[0], perm=[0, 2, 1, 3])
            value = b.op("Reshape", joined, b.constant([0, 0, directions * hidden], np.int64))
            for end, each in zip(ends, outputs[1:]):
                end.append(each)
        value = b.op("Transpose", value, perm=[1, 0, 2]) if batch_first else value
        return value, *(end[0] if len(end) == 1 else b.op("Concat", *end, axis=0) for end in ends)

    return translation


def _stacked(b: Builder, tensors: list[Any], order: tuple[int, ...]) -> str:
    """Parameters of both directions, with the gates in ONNX's order."""
    found = []
    for each in tensors:
        gates = (
            b.op("Split", b.tensor(each), axis=0, num_outputs=len(order), outputs=len(order))
            if len(order) > 1
            else None
        )
        name = b.tensor(each) if gates is None else b.op("Concat", *(gates[place] for place in order), axis=0)
        found.append(b.op("Unsqueeze", name, b.axes(0)))
    return found[0] if len(found) == 1 else b.op("Concat", *found, axis=0)


translates("lstm")(_recurrent("LSTM"))
translates("gru")(_recurrent("GRU"))
translates("rnn_tanh")(_recurrent("RNN", activations=["Tanh"]))
translates("rnn_relu")(_recurrent("RNN", activations=["Relu"]))


# ---- Cells ------------------------------------------------------------------------------------------------------------------


def _gates(
    b: Builder, input: Any, hidden: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any
) -> tuple[str, str]:
    """What the input and the state add to the gates."""
    found = []
    for value, weight, bias in ((input, w_ih, b_ih), (hidden, w_hh, b_hh)):
        product = b.op("MatMul", b.tensor(value), b.op("Transpose", b.tensor(weight), perm=[1, 0]))
        found.append(product if bias is None else b.op("Add", product, b.tensor(bias)))
    return found[0], found[1]


@translates("lstm_cell")
def lstm_cell(
    b: Builder, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
) -> tuple:
    hidden, cell = hx
    total = b.op("Add", *_gates(b, input, hidden, w_ih, w_hh, b_ih, b_hh))
    kept, forget, new, out = b.op("Split", total, axis=-1, num_outputs=4, outputs=4)
    remembered = b.op("Mul", b.op("Sigmoid", forget), b.tensor(cell))
    state = b.op("Add", remembered, b.op("Mul", b.op("Sigmoid", kept), b.op("Tanh", new)))
    return b.op("Mul", b.op("Sigmoid", out), b.op("Tanh", state)), state


@translates("gru_cell")
def gru_cell(
    b: Builder, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
) -> str:
    inner, outer = (b.op("Split", each, axis=-1, num_outputs=3, outputs=3)
                    for each in _gates(b, input, hx, w_ih, w_hh, b_ih, b_hh))  # fmt: skip
    reset = b.op("Sigmoid", b.op("Add", inner[0], outer[0]))
    update = b.op("Sigmoid", b.op("Add", inner[1], outer[1]))
    new = b.op("Tanh", b.op("Add", inner[2], b.op("Mul", reset, outer[2])))
    return b.op("Add", new, b.op("Mul", update, b.op("Sub", b.tensor(hx), new)))


def _rnn_cell(activation: str) -> Callable[..., str]:
    def translation(
        b: Builder, input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
    ) -> str:
        return b.op(activation, b.op("Add", *_gates(b, input, hx, w_ih, w_hh, b_ih, b_hh)))

    return translation


translates("rnn_tanh_cell")(_rnn_cell("Tanh"))
translates("rnn_relu_cell")(_rnn_cell("Relu"))
