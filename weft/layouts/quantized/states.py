"""States of prepared weights in PyTorch's files, and the objects that have them. The content of a file is untrusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.tensor import Tensor
from .packed import ConvPackedParams, EmbeddingPackedParams, LinearPackedParams, LinearPackedParamsFp16
from .recurrent import CellParams
from .script_object import ScriptObject
from .tensors import is_quantized


def restored(content: Any) -> ScriptObject:
    """Return the object of a pair (state, name of the class in PyTorch).

    Raises: TypeError, ValueError and RuntimeError for others.
    """
    state, name = _pair(content)
    if name not in _CLASSES:
        raise RuntimeError(
            f"the file has an object of the class {name[:100]!r}, which weft does not have: {', '.join(_CLASSES)}"
        )
    return _CLASSES[name](*_sequence(state, "state"))


def _linear(weight: Any, bias: Any) -> ScriptObject:
    weight, bias = _tensor(weight), _tensor_or_none(bias)
    return LinearPackedParams(weight, bias) if is_quantized(weight) else LinearPackedParamsFp16(weight, bias)


def _conv(version: Any, tensors: Any, biases: Any) -> ScriptObject:
    if version != "2":
        raise RuntimeError(
            "weft reads convolutions of version 2: load the file with PyTorch and save it again"
        )
    numbers, weight = map(_tensor, _sequence(tensors, "tensors"))
    (bias,) = _sequence(biases, "biases")
    dims, *rest = numbers.tolist()
    if not all(type(each) is int for each in rest) or dims not in (2, 3) or len(rest) != 4 * dims + 2:
        raise ValueError(f"the state of a convolution has {len(rest)} numbers for {dims} dims")
    stride, padding, dilation, output_padding = (
        rest[start : start + dims] for start in range(0, 4 * dims, dims)
    )
    if weight.dim() != dims + 2:
        raise ValueError(f"the weight of a convolution of {dims} dims has {weight.dim()} dims")
    geometry = stride, padding, output_padding, dilation
    return ConvPackedParams(weight, _tensor_or_none(bias), *geometry, rest[-2], bool(rest[-1] & 1))


def _embedding(version: Any, tensors: Any, doubles: Any, longs: Any) -> ScriptObject:
    (weight,) = _sequence(tensors, "tensors")
    return EmbeddingPackedParams(_tensor(weight))


def _cell(kind: Any, tensors: Any, doubles: Any, longs: Any, packed: Any) -> ScriptObject:
    inputs, hidden = _sequence(packed, "weights")
    if kind == "quantized_dynamic":
        input_bias, hidden_bias = _sequence(tensors, "biases")
        (is_reduced,) = _sequence(longs, "flags")
        return CellParams(inputs, hidden, _tensor(input_bias), _tensor(hidden_bias), bool(is_reduced))
    if kind == "quantized_fp16":
        return CellParams(inputs, hidden)
    raise RuntimeError(
        f"the file has a recurrent cell of the kind {kind!r}, and weft has quantized_dynamic and quantized_fp16"
    )


_CLASSES: dict[str, Callable[..., ScriptObject]] = {
    "__torch__.torch.classes.quantized.LinearPackedParamsBase": _linear,
    "__torch__.torch.classes.quantized.Conv2dPackedParamsBase": _conv,
    "__torch__.torch.classes.quantized.Conv3dPackedParamsBase": _conv,
    "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase": _embedding,
    "__torch__.torch.classes.rnn.CellParamsBase": _cell,
}


# ---- Parts of states -------------------------------------------------------------------------------------------------


def _pair(content: Any) -> tuple[Any, str]:
    if not isinstance(content, tuple) or len(content) != 2 or not isinstance(content[1], str):
        raise TypeError("a ScriptObject is restored from a pair (state, name of its class)")
    return content


def _sequence(value: Any, what: str) -> Any:
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"the {what} of a ScriptObject must be a tuple or a list, not {type(value).__name__}")
    return value


def _tensor(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"the state of a ScriptObject holds tensors, not a {type(value).__name__}")
    return value


def _tensor_or_none(value: Any) -> Tensor | None:
    return None if value is None else _tensor(value)
