"""Tensors that are not elements in strided memory: sparse, quantized, nested and named ones.

A layout is a folder here. It says what its tensors hold, and its rules (`core/layout_calls.py`) say what the public functions do
with them. `parts.py` is common to the layouts that hold several plain tensors.

The public functions that make such tensors exist when weft is imported; the folder is loaded by their first call.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ..core.names import ROOT
from ..core.public import public

# Module of a layout -> the public functions and the methods that it defines.
_FUNCTIONS = {
    "sparse.creation": "sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor",
}
_METHODS = {
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
