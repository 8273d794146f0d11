"""Recurrent layers of floats with quantized weights."""

from __future__ import annotations

from typing import Any

from ...... import nn
from ......core.dtype import float16, qint8
from ......core.registry import FUNCTIONS
from ......core.tensor import Tensor
from ......library.namespaces import ops
from ......nn.modules.rnn import RecurrentCell, RecurrentLayers, _check_dropout, _permuted
from ......nn.utils.rnn import PackedSequence
from ......ops.creation.random import randn
from ...modules.utils import StateEntries, observed_weight

_GATES = {"LSTM": 4, "GRU": 3}
__all__ = [
    "GRU", "GRUCell", "LSTM", "LSTMCell", "PackedParameter", "RNNBase", "RNNCell", "RNNCellBase", "apply_permutation",
    "pack_weight_bias",
]  # fmt: skip


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The tensor with its batch in another order."""
    return tensor.index_select(dim, permutation)


def pack_weight_bias(qweight: Tensor, bias: Tensor | None, dtype: Any) -> Any:
    """The prepared weight: of a qint8 tensor, or of floats that are stored as float16."""
    prepack = ops.quantized.linear_prepack if dtype is qint8 else ops.quantized.linear_prepack_fp16
    return prepack(qweight, bias)


def _cell_params(weights: list[Tensor], biases: list[Tensor | None], dtype: Any) -> Any:
    """The prepared weights of one layer in one direction: those of the input and of the hidden state."""
    packed = [pack_weight_bias(weight, bias, dtype) for weight, bias in zip(weights, biases, strict=True)]
    if dtype is float16:
        return ops.quantized.make_quantized_cell_params_fp16(*packed)
    # Half of the integers, as on processors whose sums of products have 16 bits: PyTorch's default.
    return ops.quantized.make_quantized_cell_params_dynamic(*packed, *biases, True)


def _new_weight(rows: int, columns: int, dtype: Any) -> Tensor:
    """A weight before another one is loaded, which is random as in PyTorch."""
    found = randn(rows, columns)
    return FUNCTIONS["quantize_per_tensor"](found, 0.1, 0, qint8) if dtype is qint8 else found


def _weight_observers(module: Any) -> tuple[Any, Any]:
    """The constructor of the observers of a layer's weights, and their dtype."""
    from ......ao.quantization.qconfig import default_dynamic_qconfig  # that module imports this one

    if not hasattr(module, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not module.bias:
        raise AssertionError("mod.bias must be True")
    observer_of = (module.qconfig and module.qconfig.weight) or default_dynamic_qconfig.weight
    dtype = observer_of().dtype
    if dtype not in (qint8, float16):
        raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {dtype}")
    return observer_of, dtype


def _parameters(module: Any, observer_of: Any, dtype: Any) -> dict[str, Tensor]:
    """The weights as `pack_weight_bias` takes them, and the biases. Each weight has an observer of its own."""
    found = {}
    for name, each in module.named_parameters():
        if name.startswith("weight"):
            each = observed_weight(each, observer_of()) if dtype is qint8 else each.detach().float()
        found[name] = each
    return found


class PackedParameter(StateEntries):
    """The prepared weights of one layer in one direction. A state_dict holds them as they are, as `param`."""

    def __init__(self, param: Any):
        super().__init__()
        self.param = param

    def _entries(self) -> dict[str, Any]:
        return {"param": self.param}

    def _set_entries(self, entries: dict[str, Any]) -> None:
        self.param = entries["param"]


# ---- Layers over sequences -------------------------------------------------------------------------------------------


class RNNBase(RecurrentLayers):
    """The base of layers over sequences: quantized weights, and floats that are quantized when the layer is called."""

    _FLOAT_MODULE: Any = nn.RNNBase
    _version = 2

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: Any = qint8,
    ):  # fmt: skip
        super().__init__()
        _check_dropout(dropout, num_layers)
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode, self.input_size, self.hidden_size, self.num_layers = (
            mode,
            input_size,
            hidden_size,
            num_layers,
        )
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.dtype, self.version = bidirectional, dtype, self._version
        self.training = False
        rows, directions = _GATES[mode] * hidden_size, 2 if bidirectional else 1
        made = []
        for layer in range(num_layers):
            features = directions * hidden_size if layer else input_size
            for _ in range(directions):
                weights = [_new_weight(rows, columns, dtype) for columns in (features, hidden_size)]
                made.append(PackedParameter(_cell_params(weights, [randn(rows), randn(rows)], dtype)))
        self._all_weight_values = nn.ModuleList(made)

    def _get_name(self) -> str:
        return "DynamicQuantizedRNN"

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def _check_input(self, input: Tensor, packed: bool = False) -> None:
        wanted = 2 if packed else 3
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _run(self, input: tuple[Tensor, ...], state: tuple[Tensor, ...], last: tuple) -> tuple[Tensor, ...]:
        function = FUNCTIONS[f"quantized_{self.mode.lower()}"]
        hx = state if self.mode == "LSTM" else state[0]
        weights = [each.param for each in self._all_weight_values]
        return function(
            *input,
            hx,
            weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            *last,
        )

    def forward_tensor(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Any]:
        """The output and the final states for a tensor."""
        return self.forward(input, hx)

    def forward_packed(self, input: PackedSequence, hx: Any = None) -> tuple[PackedSequence, Any]:
        """The output and the final states for a packed sequence."""
        return self.forward(input, hx)

    def forward_impl(
        self,
        input: Tensor,
        hx: Any,
        batch_sizes: Tensor | None,
        max_batch_size: int,
        sorted_indices: Tensor | None,
    ) -> tuple[Tensor, Any]:
        """The output and the final states, for a tensor or for the data of a packed sequence with its batch_sizes, in sorted order."""
        if hx is None:
            state = self._zeros(max_batch_size, input)
        else:
            state = tuple(_permuted(each, sorted_indices) for each in self._states(hx))
        self.check_forward_args(input, self._as_given(list(state)), batch_sizes)
        packed = batch_sizes is not None
        output, *final = self._run(
            (input, batch_sizes) if batch_sizes is not None else (input,),
            state,
            () if packed else (self.batch_first,),
        )
        return output, self._as_given(final)

    # ---- Weights -----------------------------------------------------------------------------------------------------

    def _places(self) -> list[str]:
        """The ends of the names of the weights of each layer and direction."""
        ways = ("", "_reverse") if self.bidirectional else ("",)
        return [f"l{layer}{way}" for layer in range(self.num_layers) for way in ways]

    def _weights_and_biases(self) -> dict[str, tuple[Tensor, Tensor | None]]:
        """By `ih_l0`, `hh_l0` and so on."""
        found = {}
        for place, each in zip(self._places(), self._all_weight_values, strict=True):
            found[f"ih_{place}"], found[f"hh_{place}"] = (
                each.param.inputs.unpack(),
                each.param.hidden.unpack(),
            )
        return found

    def get_weight(self) -> dict[str, Tensor]:
        """The quantized weights by their names in the layer of floats."""
        return {f"weight_{place}": weight for place, (weight, _) in self._weights_and_biases().items()}

    def get_bias(self) -> dict[str, Tensor | None]:
        """The biases by their names in the layer of floats."""
        return {f"bias_{place}": bias for place, (_, bias) in self._weights_and_biases().items()}

    def set_weight_bias(self, weight_bias_dict: dict[str, Tensor]) -> None:
        """Exchange the weights and biases. weight_bias_dict: by their names in the layer of floats."""
        made = []
        for place in self._places():
            weights = [weight_bias_dict[f"weight_{kind}_{place}"] for kind in ("ih", "hh")]
            biases = [weight_bias_dict[f"bias_{kind}_{place}"] for kind in ("ih", "hh")]
            made.append(PackedParameter(_cell_params(weights, biases, self.dtype)))  # type: ignore[arg-type]
        self._all_weight_values = nn.ModuleList(made)

    @classmethod
    def _like(cls, mod: Any, dtype: Any) -> Any:
        options = mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional
        return cls(mod.input_size, mod.hidden_size, *options, dtype=dtype)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a layer of floats, whose weights are quantized as its QConfig says."""
        if type(mod) not in (nn.LSTM, nn.GRU):
            raise AssertionError("nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU")
        observer_of, dtype = _weight_observers(mod)
        if mod.proj_size:
            raise NotImplementedError(
                "an LSTM with proj_size is not quantized, in PyTorch neither: leave proj_size out"
            )
        made = cls._like(mod, dtype)
        made.set_weight_bias(_parameters(mod, observer_of, dtype))
        return made

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """The layer of a reference layer."""
        made = cls._like(ref_mod, ref_mod.weight_ih_l0_dtype)
        made.set_weight_bias(ref_mod.get_quantized_weight_bias_dict())
        return made


class LSTM(RNNBase):
    """Layers of long short-term memory with quantized weights.

    >>> import weft as torch
    >>> torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.LSTM(3, 2, 2)))[0]
    DynamicQuantizedLSTM(3, 2, num_layers=2)
    """

    _FLOAT_MODULE = nn.LSTM

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("LSTM", *args, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedLSTM"

    get_expected_cell_size = nn.LSTM.get_expected_cell_size
    check_forward_args = nn.LSTM.check_forward_args
    permute_hidden = nn.LSTM.permute_hidden


class GRU(RNNBase):
    """Layers of gated recurrent units with quantized weights."""

    _FLOAT_MODULE = nn.GRU

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("GRU", *args, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedGRU"


# ---- Cells -----------------------------------------------------------------------------------------------------------


class RNNCellBase(StateEntries, RecurrentCell):
    """The base of cells: quantized weights, and floats that are quantized when the cell is called."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, num_chunks: int = 4, dtype: Any = qint8
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        rows = num_chunks * hidden_size
        weights = [_new_weight(rows, columns, dtype) for columns in (input_size, hidden_size)]
        self.bias_ih, self.bias_hh = [randn(rows) if bias else None for _ in range(2)]
        self._packed_weight_ih = pack_weight_bias(weights[0], self.bias_ih, dtype)
        self._packed_weight_hh = pack_weight_bias(weights[1], self.bias_hh, dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedRNNBase"

    def _step(self, name: str, input: Tensor, states: tuple[Tensor, ...] | None, count: int) -> list[Tensor]:
        """The states after a step, with the dims of the input."""
        batch, *given = self._prepared(input, states, count)
        call = getattr(ops.quantized, f"quantized_{name}_cell_dynamic")
        weights = self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh
        found = call(batch, given if count > 1 else given[0], *weights)
        found = found if count > 1 else [found]
        return [each if input.dim() == 2 else each.squeeze(0) for each in found]

    def check_forward_input(self, input: Tensor) -> None:
        """Raise RuntimeError unless the input has `input_size` features."""
        self._prepared(input, None, 1)

    def check_forward_hidden(self, input: Tensor, hx: Tensor, hidden_label: str = "") -> None:
        """Raise RuntimeError unless the state fits the input."""
        self._prepared(input, (hx,), 1)

    def get_weight(self) -> dict[str, Tensor]:
        """The quantized weights by their names in the cell of floats."""
        return {
            "weight_ih": self._packed_weight_ih.unpack()[0],
            "weight_hh": self._packed_weight_hh.unpack()[0],
        }

    def get_bias(self) -> dict[str, Tensor | None]:
        """The biases by their names in the cell of floats."""
        return {"bias_ih": self._packed_weight_ih.unpack()[1], "bias_hh": self._packed_weight_hh.unpack()[1]}

    def set_weight_bias(self, weight_bias_dict: dict[str, Tensor]) -> None:
        """Exchange the weights and biases. weight_bias_dict: by their names in the cell of floats."""
        found = weight_bias_dict
        # Plain attributes as in PyTorch, and no parameters, because the prepared weights hold the biases.
        self.bias_ih, self.bias_hh = (
            None if found[name] is None else found[name].detach() for name in ("bias_ih", "bias_hh")
        )
        self._packed_weight_ih = pack_weight_bias(found["weight_ih"], self.bias_ih, self.weight_dtype)
        self._packed_weight_hh = pack_weight_bias(found["weight_hh"], self.bias_hh, self.weight_dtype)

    def _entries(self) -> dict[str, Any]:
        return {"_packed_weight_ih": self._packed_weight_ih, "_packed_weight_hh": self._packed_weight_hh}

    def _set_entries(self, entries: dict[str, Any]) -> None:
        self._packed_weight_ih, self._packed_weight_hh = (
            entries["_packed_weight_ih"],
            entries["_packed_weight_hh"],
        )

    @classmethod
    def _like(cls, mod: Any, dtype: Any) -> Any:
        kind = {"nonlinearity": mod.nonlinearity} if hasattr(mod, "nonlinearity") else {}
        return cls(mod.input_size, mod.hidden_size, bias=mod.bias, dtype=dtype, **kind)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The cell of a cell of floats, whose weights are quantized as its QConfig says."""
        if type(mod) not in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
            raise AssertionError(
                "nn.quantized.dynamic.RNNCellBase.from_float only works for nn.LSTMCell, nn.GRUCell and nn.RNNCell"
            )
        observer_of, dtype = _weight_observers(mod)
        made = cls._like(mod, dtype)
        made.set_weight_bias(_parameters(mod, observer_of, dtype))
        return made

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """The cell of a reference cell."""
        made = cls._like(ref_mod, ref_mod.weight_ih_dtype)
        weights = {
            "weight_ih": ref_mod.get_quantized_weight_ih(),
            "weight_hh": ref_mod.get_quantized_weight_hh(),
        }
        made.set_weight_bias({**weights, "bias_ih": ref_mod.bias_ih, "bias_hh": ref_mod.bias_hh})
        return made


class RNNCell(RNNCellBase):
    """One step of an Elman network with quantized weights."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: Any = qint8,
    ):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    def _get_name(self) -> str:
        return "DynamicQuantizedRNNCell"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}", input, None if hx is None else (hx,), 1)[0]


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory with quantized weights."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, num_chunks=4, **kwargs)  # type: ignore[misc]  # PyTorch's signature

    def _get_name(self) -> str:
        return "DynamicQuantizedLSTMCell"

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        hidden, cell = self._step("lstm", input, None if hx is None else tuple(hx), 2)
        return hidden, cell


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit with quantized weights."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedGRUCell"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("gru", input, None if hx is None else (hx,), 1)[0]
