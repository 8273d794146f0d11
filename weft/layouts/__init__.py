"""Tensors that are not elements in strided memory: sparse, quantized, nested and named ones.

A layout is a folder here. It says what its tensors hold, and its rules (`core/layout_calls.py`) say what the public functions do
with them. `parts.py` is common to the layouts that hold several plain tensors.

The public functions that make such tensors exist when weft is imported; the folder is loaded by their first call.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from ..core.layout import jagged, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ..core.names import ROOT
from ..core.public import public
from ..core.registry import add_member
from ..core.tensor import Tensor
from ..ops.creation import creation

# Module of a layout -> the public functions and the methods that it defines.
_FUNCTIONS = {
    "named.methods": "align_tensors",
    "nested.creation": "nested.nested_tensor nested.as_nested_tensor nested.nested_tensor_from_jagged nested.narrow nested.masked_select "
    "nested.to_padded_tensor _nested_view_from_buffer",
    "quantized.creation": "quantize_per_tensor quantize_per_tensor_dynamic quantize_per_channel _empty_affine_quantized "
    "_empty_per_channel_affine_quantized empty_quantized _make_per_tensor_quantized_tensor _make_per_channel_quantized_tensor "
    "choose_qparams_optimized",
    "quantized.functions": "quantized_batch_norm quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d",
    "quantized.recurrent": "quantized_lstm quantized_gru",
    "sparse.functions": "sparse.mm sparse.addmm sparse.sampled_addmm sparse.sum sparse.softmax sparse.log_softmax sparse.spdiags sparse.spsolve",
    "sparse.creation": "sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor",
    "sparse.validation": "_validate_sparse_coo_tensor_args _validate_sparse_compressed_tensor_args _validate_sparse_csr_tensor_args "
    "_validate_sparse_csc_tensor_args _validate_sparse_bsr_tensor_args _validate_sparse_bsc_tensor_args",
}
_METHODS = {
    "named.methods": "rename rename_ refine_names align_to align_as has_names",
    "sparse.conversion": "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc sparse_mask",
}

FUNCTIONS_OF_LAYOUTS = frozenset(" ".join((*_FUNCTIONS.values(), *_METHODS.values())).split())


def _loading(module: str, name: str) -> Callable:
    @functools.cache
    def found() -> Callable:
        member: Callable = getattr(importlib.import_module(f"{ROOT}.layouts.{module}"), name)
        return member

    def function(*args: Any, **kwargs: Any) -> Any:
        return found()(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function


for _form, _table in (("function", _FUNCTIONS), ("method", _METHODS)):
    for _module, _names in _table.items():
        for _name in _names.split():
            public(_form, name=_name, checks=False, asks=True)(_loading(_module, _name.rpartition(".")[2]))


def _names_of(self: Tensor) -> tuple[str | None, ...]:
    """Return the names of the dims, None for a dim without one."""
    return getattr(self.spec, "names", None) or (None,) * self.dim()


class _OfJagged:
    """A method that only jagged tensors have: programs recognise them by `hasattr(x, "offsets")`. Others may have an attribute of its name."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, tensor: Any, owner: type) -> Any:
        if tensor is None or tensor.layout is not jagged:
            raise AttributeError(f"'{owner.__name__}' object has no attribute '{self.name}'")
        return functools.partial(_loading("nested.access", self.name), tensor)


for _name in ("offsets", "lengths"):
    add_member(_name, _OfJagged(_name))
add_member("names", property(_names_of, _loading("named.methods", "set_names")))
creation.naming.function = _loading("named.methods", "with_names")
for _layout in (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc):
    creation.other_layouts[_layout] = _loading("sparse.creation", "empty_sparse")
