"""Forms that neither the signature at run time (`*args`) nor the schemas of the operator have."""

from __future__ import annotations

from .forms import Text

_TO = "non_blocking: _bool = False, copy: _bool = False, *, memory_format: MemoryFormat | None = None"
_DEVICE = "Device | str | _int | None"

_OPTIONS = f"dtype: DType | None = None, device: {_DEVICE} = None, pin_memory: _bool = False, requires_grad: _bool = False"
_SPARSE = f"{_OPTIONS}, check_invariants: _bool | None = None"
_ENTRIES = f"values: Any, size: Sequence[_int] | None = None, *, {_SPARSE}"

# Public function, or method -> its forms. {input} is the tensor, which methods call `self`.
_FORMS: dict[str, list[Text]] = {
    "tensor": [Text(f"(data: Any, *, {_OPTIONS}, names: Any = None) -> Tensor")],
    "sparse_coo_tensor": [Text(f"(indices: Any, {_ENTRIES}, is_coalesced: _bool | None = None) -> Tensor")],
    "sparse_csr_tensor": [Text(f"(crow_indices: Any, col_indices: Any, {_ENTRIES}) -> Tensor")],
    "sparse_csc_tensor": [Text(f"(ccol_indices: Any, row_indices: Any, {_ENTRIES}) -> Tensor")],
    "sparse_bsr_tensor": [Text(f"(crow_indices: Any, col_indices: Any, {_ENTRIES}) -> Tensor")],
    "sparse_bsc_tensor": [Text(f"(ccol_indices: Any, row_indices: Any, {_ENTRIES}) -> Tensor")],
    "as_subclass": [Text("(self, cls: type[Any]) -> Any")],
    "nonzero": [
        Text("({input}, *, as_tuple: Literal[False] = False, out: Tensor | None = None) -> Tensor"),
        Text("({input}, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]"),
    ],
    "to": [Text(f"(self, device: {_DEVICE} = None, dtype: DType | None = None, {_TO}) -> Tensor")],
    "einsum": [
        Text("(equation: str, *operands: Tensor) -> Tensor"),
        Text("(equation: str, operands: Sequence[Tensor]) -> Tensor"),
        Text("(operand: Tensor, sublist: Sequence[Any], *others: Tensor | Sequence[Any]) -> Tensor"),
    ],
}


def forms(name: str, tensor: str) -> list[Text]:
    """The forms of a function whose first parameter is written as `tensor`; [] for most functions."""
    return [Text(form.replace("{input}", tensor)) for form in _FORMS.get(name, ())]
