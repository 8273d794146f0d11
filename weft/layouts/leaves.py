"""Presents functions of sparse tensors as functions of the values, for `gradcheck`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.layout import sparse_bsc, sparse_bsr, strided
from ..core.tensor import Tensor
from .parts import parts_of, with_values


def of_values(function: Callable, inputs: tuple, masked: bool) -> tuple[Callable, tuple]:
    """The function and its inputs with plain tensors, the values, in place of the sparse tensors that require gradients.

    masked: the values are those of the entries. Otherwise they are all elements, those without an entry included.
    Sparse results become dense.
    """
    templates = [_template(each, masked) if _varies(each) else None for each in inputs]
    leaves = tuple(
        each if template is None else parts_of(template)[-1].clone().requires_grad_()
        for each, template in zip(inputs, templates)
    )

    @functools.wraps(function)
    def changed(*values: Any) -> Any:
        arguments = [
            value if template is None else with_values(template, value)
            for value, template in zip(values, templates)
        ]
        result = function(*arguments)
        return tuple(map(_dense, result)) if isinstance(result, (tuple, list)) else _dense(result)

    return changed, leaves


def _varies(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout is not strided and value.requires_grad


def _template(x: Tensor, masked: bool) -> Tensor:
    """The tensor, or one with the same elements that has an entry for each of them."""
    x = x.detach()
    if masked:
        return x
    blocksize = None
    if x.layout in (sparse_bsr, sparse_bsc):
        blocksize = tuple(parts_of(x)[-1].shape[-2 - x.dense_dim() :][:2])
    options = {"dense_dim": x.dense_dim()} if x.dense_dim() else {}
    everything = x.new_ones(x.shape, layout=strided).to_sparse(
        layout=x.layout, blocksize=blocksize, **options
    )
    return x.to_dense().sparse_mask(everything)


def _dense(value: Any) -> Any:
    return value.to_dense() if isinstance(value, Tensor) and value.layout is not strided else value
