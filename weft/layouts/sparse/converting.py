"""Sparse tensors in another dtype or on another device, and copies into them."""

from __future__ import annotations

from typing import Any

from ...core.dtype import LEGACY_NAMES, DType
from ...core.layout import sparse_coo
from ...core.recording import tape
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...families.custom_vjp import custom_vjp
from ...ops.assembly.copying import parse_to
from ...ops.creation.legacy import type_of
from ..parts import is_plain, parts_of, values_of
from .access import with_parts
from .compressed import TITLES, blocksize_of
from .coo import sparse_dim_of
from .resizing import check_growth
from .rules import SPARSE, write

rule = SPARSE.rule
zeros_like = FUNCTIONS["zeros_like"]


@rule("to")
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor itself if nothing changes and no copy is asked for."""
    device, dtype, copy, memory_format = parse_to(args, kwargs)
    if is_plain(self):  # the tensor whose dtype and device it gets is sparse
        return self.to(device=device, dtype=dtype, copy=copy, memory_format=memory_format)
    device, dtype = device or self.device, dtype or self.dtype
    if not copy and dtype is self.dtype and device is self.device:
        return self
    return _converted(self, dtype, device)


@custom_vjp(
    lambda ct, out, x, dtype, device, *, specs: ct.to(device=specs[0].device, dtype=specs[0].dtype), inputs=1
)
def _converted(x: Tensor, dtype: DType, device: Any) -> Tensor:
    structure = [part.to(device, copy=True) for part in parts_of(x)[:-1]]
    return with_parts(x, structure, values_of(x).to(device, dtype, copy=True))


@rule("type")
def type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the legacy class, which only COO tensors have; with `dtype`, the name of a class or a class, a conversion."""
    if isinstance(dtype, DType):
        return to(self, dtype)
    if dtype is not None:
        name = dtype if isinstance(dtype, str) else f"torch.{dtype.__name__}"
        return type_of(self, name.replace("torch.sparse.", "torch."))
    if self.layout is not sparse_coo:
        raise RuntimeError(f"type: a {self.layout} tensor has no legacy class: read x.layout and x.dtype")
    place = "" if self.device.type == "cpu" else f"{self.device.type}."
    return f"torch.{place}sparse.{LEGACY_NAMES[self.dtype]}Tensor"


# ---- Copies ------------------------------------------------------------------------------------------------------------


@custom_vjp(
    lambda ct, out, target, source: zeros_like(ct),
    lambda ct, out, target, source, *, specs: ct.to(specs[1].dtype),
)
def _copied(target: Tensor, source: Tensor) -> Tensor:
    return _converted(source, target.dtype, target.device)


@rule("copy_")
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Let the tensor hold the entries of another one of its layout, in its own dtype.

    Raises: RuntimeError if the layouts differ; for COO tensors with entries if a size shrinks; for others if the numbers of entries differ.
    """
    tape.check_write(self)
    if is_plain(self) or not isinstance(src, Tensor) or (is_plain(src) and self.layout is sparse_coo):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented: write x.to_dense() or x.to_sparse()"
        )
    _check_copy(self, src)
    result = _copied(self, src)
    if self.layout is sparse_coo:
        write(result, self)
        return self
    for part, new in zip(parts_of(self), parts_of(result)):
        part.copy_(new)
    if result._autograd is not None:
        self._autograd = result._autograd
    return self


def _check_copy(self: Tensor, src: Tensor) -> None:
    if self.layout is not src.layout:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different layouts is not supported. self layout is "
            f"{TITLES.get(self.layout, self.layout)} and src layout is {TITLES.get(src.layout, src.layout)}: write "
            "x.to_dense() or x.to_sparse(layout=)"
        )
    if self.layout is sparse_coo:
        if self._nnz():
            sparse_dim = sparse_dim_of(src)
            check_growth(self, tuple(src.shape), sparse_dim, src.dim() - sparse_dim)
        return
    counts = self._nnz(), src._nnz()
    if counts[0] != counts[1]:
        raise RuntimeError(
            "torch.copy_: only sparse compressed tensors with the same number of specified elements are supported, "
            f"but {TITLES[self.layout]} tensors have {counts[0]} and {counts[1]}"
        )
    if self.shape != src.shape:
        raise RuntimeError(
            "torch.copy_: expected shapes of self and src to match along dimensions, but got "
            f"{list(self.shape)} and {list(src.shape)}"
        )
    if blocksize_of(self) != blocksize_of(src):
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different block sizes is not supported. self block size is "
            f"{blocksize_of(self)} and src block size is {blocksize_of(src)}"
        )
