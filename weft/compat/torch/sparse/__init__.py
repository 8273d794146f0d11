"""Functions of sparse tensors, `torch.sparse`."""

from __future__ import annotations

from weft.core.names import name_public
from weft.core.registry import namespace
from weft.layouts.checks import check_sparse_tensor_invariants as check_sparse_tensor_invariants

from .gradcheck import as_sparse_gradcheck as as_sparse_gradcheck
from .legacy import CLASSES as _CLASSES

globals().update(namespace("sparse"))
globals().update(_CLASSES)
name_public(__name__)
