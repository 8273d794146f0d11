"""Sparse tensors in files, pickles, copies and shared memory. The content of a file is untrusted."""

from __future__ import annotations

import copy
from typing import Any

from ...core.layout import Layout, sparse_coo
from ...core.tensor import Tensor
from ...ops.tensor.pickling import attributes
from ..parts import is_plain, parts_of
from .compressed import FORMATS, compressed
from .compression import Compressed
from .coo import coo, is_coalesced
from .invariants import check_compressed, check_coo, check_readable, wanted
from .rules import SPARSE

rule = SPARSE.rule


def state_of(x: Tensor) -> tuple[Layout, tuple]:
    """What PyTorch's files say of a sparse tensor: its layout, and its parts, its size and, for COO, whether it is coalesced."""
    parts = (*parts_of(x), x.shape)
    return x.layout, (*parts, is_coalesced(x)) if x.layout is sparse_coo else parts


def rebuilt_tensor(layout: Layout, state: tuple) -> Tensor:
    """The tensor that `state_of` describes. Old files do not say whether it is coalesced.

    `torch.sparse.check_sparse_tensor_invariants` decides whether the entries of a row may be in any order.
    Raises: TypeError for other types, RuntimeError for parts with which reading would leave the memory of the tensor.
    """
    if layout is not sparse_coo and layout not in FORMATS:
        raise TypeError(f"expected a sparse layout, got {layout}")
    count = 2 if layout is sparse_coo else 3
    parts, rest = state[:count], state[count:]
    if len(rest) not in ((1, 2) if layout is sparse_coo else (1,)) or not all(map(is_plain, parts)):
        raise TypeError(f"the state of a {layout} tensor has {count} dense tensors and its size")
    shape = tuple(int(size) for size in rest[0])
    if layout is sparse_coo:
        coalesced = len(rest) == 2 and rest[1] is True
        indices, values = (part.contiguous() for part in parts)
        check_coo(indices, values, shape, coalesced)
        return coo(indices, values, shape, coalesced)
    form = FORMATS[layout]
    found = Compressed(*(part.contiguous() for part in parts))
    check = check_compressed if wanted(None) else check_readable
    check(*found, shape, form.by_rows, form.blocks)
    return compressed(found, shape, layout)


@rule("__reduce_ex__")
def _reduce(self: Tensor, protocol: Any) -> tuple:
    return _unpickled, (*state_of(self), self.requires_grad, attributes(self))


def _unpickled(layout: Layout, state: tuple, requires_grad: bool, own: dict[str, Any]) -> Tensor:
    result: Any = rebuilt_tensor(layout, state)
    result.__dict__.update(own)
    return result.requires_grad_() if requires_grad else result


@rule("__deepcopy__")
def _deepcopy(self: Tensor, memo: dict) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment"
        )
    if id(self) not in memo:
        layout, state = state_of(self)
        state = copy.deepcopy(state, memo)
        result: Any = _unpickled(layout, state, self.requires_grad, {})
        memo[id(self)] = result
        result.__dict__.update(copy.deepcopy(attributes(self), memo))
        if self.grad is not None:
            # Do not use the setter, because the gradient may be dense.
            result._grad = copy.deepcopy(self.grad, memo)
    return memo[id(self)]
