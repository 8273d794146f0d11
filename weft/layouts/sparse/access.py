"""What sparse tensors tell of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.layout import sparse_coo
from ...core.tensor import Tensor, make
from ..parts import bare, parts_of, values_of
from .compressed import FORMATS, TITLES, compressed, dense_dim_of
from .compression import Compressed
from .coo import coo, indices_of, is_coalesced, sparse_dim_of
from .rules import SPARSE

rule = SPARSE.rule


@rule("detach", "data")
def detach(self: Tensor) -> Tensor:
    """The same parts, outside of autograd. Another number of entries, or other sizes, of the one tensor do not change the other."""
    storage: Any = self._storage
    return make(storage.with_parts(storage.parts, storage.spec), 0, self.spec)


@rule("detach_")
def detach_(self: Tensor) -> Tensor:
    self._autograd = None
    return self


@rule("clone")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    *structure, _ = [bare(part.clone()) for part in parts_of(input)]
    return with_parts(input, structure, values_of(input).clone())


def with_parts(template: Tensor, structure: list[Tensor], values: Tensor) -> Tensor:
    """A tensor of the template's layout and shape with other indices and values; a coalesced template says that these are, too."""
    if template.layout is sparse_coo:
        return coo(structure[0], values, template.shape, is_coalesced(template))
    outer, inner = structure
    return compressed(Compressed(outer, inner, values), template.shape, template.layout)


# ---- Coordinates -------------------------------------------------------------------------------------------------------


@rule("_indices")
def _indices(self: Tensor) -> Tensor:
    _check_coo(self, "_indices")
    return indices_of(self)


@rule("_values")
def _values(self: Tensor) -> Tensor:
    _check_coo(self, "_values")
    return bare(parts_of(self)[-1])


@rule("is_coalesced")
def _is_coalesced(self: Tensor) -> bool:
    _check_coo(self, "is_coalesced")
    return is_coalesced(self)


@rule("_coalesced_")
def _coalesced_(self: Tensor, coalesced: bool) -> Tensor:
    _check_coo(self, "_coalesced_")
    storage: Any = self._storage
    storage.is_coalesced = coalesced
    return self


@rule("indices")
def indices(self: Tensor) -> Tensor:
    _check_coo(self, "indices")
    _check_coalesced(self, "indices")
    return bare(indices_of(self))


@rule("values")
def values(self: Tensor) -> Tensor:
    if self.layout is sparse_coo:
        _check_coalesced(self, "values")
    result = values_of(self)
    if self._autograd is not None:  # a write would be recorded for the view alone
        result._base = self
        result.__dict__["_unwritable"] = _UNWRITABLE
    return result


_UNWRITABLE = (
    "a view of a sparse Variable that requires grad is being used in an in-place operation, which autograd cannot record for the "
    "sparse tensor.\nWrite under torch.no_grad(), or make a new tensor of new values"
)


def _check_coo(self: Tensor, name: str) -> None:
    if self.layout is not sparse_coo:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {TITLES[self.layout]}")


def _check_coalesced(self: Tensor, name: str) -> None:
    if not is_coalesced(self):
        raise RuntimeError(
            f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first (or read Tensor._{name}())"
        )


# ---- Compressed layouts ---------------------------------------------------------------------------------------------


def _compressed_indices(name: str, position: int) -> Callable:
    kind = "row" if name in ("crow_indices", "col_indices") else "column"

    def method(self: Tensor) -> Tensor:
        form = FORMATS.get(self.layout)
        if form is None or name not in (form.outer, form.inner):
            title = TITLES.get(self.layout, "Sparse")
            raise RuntimeError(f"{name} expected sparse {kind} compressed tensor layout but got {title}")
        return bare(parts_of(self)[position])

    return method


for _name, _position in {"crow_indices": 0, "ccol_indices": 0, "col_indices": 1, "row_indices": 1}.items():
    rule(_name)(_compressed_indices(_name, _position))


# ---- All layouts ------------------------------------------------------------------------------------------------------


@rule("_nnz")
def nnz(self: Tensor) -> int:
    if self.layout is sparse_coo:
        return indices_of(self).shape[1]
    return parts_of(self)[1].shape[-1]


@rule("sparse_dim", "_dimI")
def sparse_dim(self: Tensor) -> int:
    return sparse_dim_of(self) if self.layout is sparse_coo else 2


@rule("dense_dim", "_dimV")
def dense_dim(self: Tensor) -> int:
    return self.dim() - sparse_dim_of(self) if self.layout is sparse_coo else dense_dim_of(self)


@rule("stride")
def stride(self: Tensor, dim: Any = None) -> Any:
    if self.layout is not sparse_coo:
        raise RuntimeError("Sparse CSR tensors do not have strides: neither does any other sparse layout")
    return (0,) * self.dim() if dim is None else 0


@rule("is_contiguous")
def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    if self.layout is not sparse_coo:
        raise RuntimeError("Sparse CSR tensors do not have is_contiguous: their elements have no strides")
    return False


@rule("contiguous")
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    raise RuntimeError(
        f"contiguous: a {input.layout} tensor has no strides; write x.coalesce() or x.to_dense()"
    )


@rule("storage", "untyped_storage", "_typed_storage")
def storage(self: Tensor) -> Any:
    raise NotImplementedError(
        "Cannot access storage of a sparse tensor: those of its indices and of its values can be read"
    )


@rule("data_ptr", "const_data_ptr")
def data_ptr(self: Tensor) -> int:
    raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage: this one is sparse")


@rule("storage_offset")
def storage_offset(self: Tensor) -> int:
    return 0


@rule("numpy", "__array__")
def numpy(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    raise TypeError(f"can't convert {self.layout} tensor to numpy. Use Tensor.to_dense() first.")


@rule("tolist")
def tolist(self: Tensor) -> Any:
    raise RuntimeError(
        "Cannot access data pointer of Tensor that doesn't have storage: write x.to_dense().tolist()"
    )
