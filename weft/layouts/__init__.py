"""Tensors that are not elements in strided memory: sparse, quantized, nested and named ones.

A layout is a folder here. It says what its tensors hold, and its rules (`core/layout_calls.py`) say what the public functions do
with them. `parts.py` is common to the layouts that hold several plain tensors.

The public functions that make such tensors exist when weft is imported; the folder is loaded by their first call.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ..core.layout import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from ..core.names import ROOT
from ..core.public import public
from ..core.registry import add_member
from ..core.tensor import Tensor
from ..ops.creation import creation

# Module of a layout -> the public functions and the methods that it defines.
_FUNCTIONS = {
    "named.methods": "align_tensors",
    "quantized.creation": "quantize_per_tensor quantize_per_tensor_dynamic quantize_per_channel _empty_affine_quantized "
    "_empty_per_channel_affine_quantized empty_quantized _make_per_tensor_quantized_tensor _make_per_channel_quantized_tensor "
    "choose_qparams_optimized",
    "sparse.creation": "sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor",
}
_METHODS = {
    "named.methods": "rename rename_ refine_names align_to align_as has_names",
    "sparse.conversion": "to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc sparse_mask",
}


def _loading(module: str, name: str) -> Callable:
    def function(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(f"{ROOT}.layouts.{module}"), name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function


for _form, _table in (("function", _FUNCTIONS), ("method", _METHODS)):
    for _module, _names in _table.items():
        for _name in _names.split():
            public(_form, checks=False, asks=True)(_loading(_module, _name))


def _names_of(self: Tensor) -> tuple[str | None, ...]:
    """The names of the dims, None for a dim without one."""
    return getattr(self.spec, "names", None) or (None,) * self.dim()


add_member("names", property(_names_of, _loading("named.methods", "set_names")))
creation.naming.function = _loading("named.methods", "with_names")
for _layout in (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc):
    creation.other_layouts[_layout] = _loading("sparse.creation", "empty_sparse")
