"""What nested tensors tell of themselves, and how they are copied and pickled."""

from __future__ import annotations

import copy
from typing import Any

from ...core.dtype import int64
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...ops.tensor.printing import tensor_repr
from ..parts import bare, parts_of, values_of
from .ragged_size import RaggedSize
from .rules import NESTED
from .tensors import (
    Piece,
    components,
    contiguous,
    detach,
    dim_of,
    is_contiguous,
    is_jagged,
    is_nested,
    jagged,
    lengths_of,
    like,
    offsets_of,
    pieces_of,
    ragged_dim_of,
    ragged_size_of,
    strided,
)

rule = NESTED.rule
tensor = FUNCTIONS["tensor"]


# ---- Sizes --------------------------------------------------------------------------------------------------------------


@rule("size")
def size(self: Tensor, dim: int | None = None) -> Any:
    if dim is None:
        return self.shape
    dim = dim_of(dim, self.dim(), "size")
    found = self.shape[dim]
    if isinstance(found, RaggedSize) and not is_jagged(self):
        raise RuntimeError(
            f"Given dimension {dim} is irregular and does not have a size. Read the sizes of the components: [each.shape for each in "
            "x.unbind()]"
        )
    return found


@rule("__len__")
def length(self: Tensor) -> int:
    return self.shape[0]


@rule("stride")
def stride(self: Tensor, dim: int | None = None) -> Any:
    if not is_jagged(self):
        raise RuntimeError(
            "a strided nested tensor has no strides: each component, x.unbind()[k], has its own"
        )
    own = parts_of(self)[-1].stride()
    steps = (ragged_size_of(self) * own[ragged_dim_of(self) - 1], *own)
    return steps if dim is None else steps[dim_of(dim, self.dim(), "stride")]


@rule("is_contiguous")
def _is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    return is_contiguous(self)


@rule("contiguous")
def _contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    return contiguous(input)


def _of_pieces(self: Tensor, field: str) -> Tensor:
    if is_jagged(self):
        raise NotImplementedError(f"aten._nested_tensor_{field}: a jagged tensor has offsets() and lengths()")
    return tensor([getattr(each, field) for each in pieces_of(self)], dtype=int64)


@rule("_nested_tensor_size")
def _nested_tensor_size(self: Tensor) -> Tensor:
    return _of_pieces(self, "size")


@rule("_nested_tensor_strides")
def _nested_tensor_strides(self: Tensor) -> Tensor:
    return _of_pieces(self, "stride")


@rule("_nested_tensor_storage_offsets")
def _nested_tensor_storage_offsets(self: Tensor) -> Tensor:
    return _of_pieces(self, "offset")


# ---- Parts --------------------------------------------------------------------------------------------------------------


@rule("values")
def values(self: Tensor) -> Tensor:
    return values_of(self)


def offsets(self: Tensor) -> Tensor:
    """Where the components of a jagged tensor begin in the ragged dim of the values, and where the last one ends."""
    return offsets_of(self)


def lengths(self: Tensor) -> Tensor | None:
    """The lengths of the components; None if each ends where the next begins."""
    return lengths_of(self)


@rule("unbind")
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    if dim not in (0, -input.dim()):
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0, got dimension {dim} instead")
    return tuple(components(input))


@rule("__iter__")
def _iter(self: Tensor) -> Any:
    return iter(components(self))


@rule("data_ptr", "const_data_ptr")
def data_ptr(self: Tensor) -> int:
    return parts_of(self)[-1].data_ptr()


@rule("storage_offset")
def storage_offset(self: Tensor) -> int:
    return parts_of(self)[-1].storage_offset()


@rule("untyped_storage")
def untyped_storage(self: Tensor) -> Any:
    return parts_of(self)[-1].untyped_storage()


@rule("storage", "_typed_storage")
def storage(self: Tensor) -> Any:
    return parts_of(self)[-1].storage()


@rule(
    "to_sparse",
    "to_sparse_coo",
    "to_sparse_csr",
    "to_sparse_csc",
    "to_sparse_bsr",
    "to_sparse_bsc",
    "to_mkldnn",
)
def to_sparse(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    raise NotImplementedError(
        "to_sparse is not implemented for nested tensors: write x.to_padded_tensor(0.0).to_sparse() to leave out the padding"
    )


@rule("resize_", "resize_as_", "set_")
def resize(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    raise NotImplementedError(
        "resize_ is not implemented for nested tensors: make another one of the parts that it is to have"
    )


@rule("tolist", "numpy", "__array__", "item")
def numbers(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        "a nested tensor is no array, because its components have different sizes: write [each.tolist() for each in x.unbind()]"
    )


# ---- Copies ---------------------------------------------------------------------------------------------------------------


rule("detach", "data")(detach)


@rule("clone")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    found = values_of(input).clone()
    return like(input, found) if is_jagged(input) else strided(found, pieces_of(input))


@rule("__deepcopy__")
def deepcopy(self: Tensor, memo: dict) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment"
        )
    parts = tuple(copy.deepcopy(bare(part), memo) for part in parts_of(self))
    rebuild, (_, *rest) = reduce(self, 2)
    memo[id(self)] = result = rebuild(parts, *rest)
    return result


@rule("__reduce_ex__")
def reduce(self: Tensor, protocol: Any) -> tuple:
    parts = tuple(map(bare, parts_of(self)))
    if is_jagged(self):
        return rebuild_jagged, (parts, ragged_dim_of(self), self.requires_grad)
    return rebuild_strided, (parts, [tuple(each) for each in pieces_of(self)], self.requires_grad)


def rebuild_jagged(parts: tuple[Tensor, ...], ragged_dim: int, requires_grad: bool) -> Tensor:
    lengths = parts[1] if len(parts) == 3 else None
    result = jagged(parts[-1], parts[0], lengths, ragged_dim)
    return result.requires_grad_() if requires_grad else result


def rebuild_strided(parts: tuple[Tensor, ...], pieces: list[tuple], requires_grad: bool) -> Tensor:
    result = strided(parts[0], [Piece(*each) for each in pieces])
    return result.requires_grad_() if requires_grad else result


# ---- Comparison -----------------------------------------------------------------------------------------------------------


def _comparing(name: str) -> None:
    function = FUNCTIONS[name]

    def compare(input: Tensor, other: Tensor, *args: Any, **kwargs: Any) -> bool:
        """Whether the components of both are equal, or close to each other."""
        if not is_nested(input) or not is_nested(other) or input.layout is not other.layout:
            raise RuntimeError(f"{name}: compare two nested tensors of one layout, or their components")
        pairs = list(zip(components(input), components(other)))
        if len(input) != len(other) or any(a.shape != b.shape for a, b in pairs):
            return False
        return all(function(a, b, *args, **kwargs) for a, b in pairs)

    rule(name)(compare)


_comparing("equal")
_comparing("allclose")


# ---- Printing -------------------------------------------------------------------------------------------------------------


@rule("__repr__")
def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    if not is_jagged(self):
        return tensor_repr(self, tensor_contents=tensor_contents)
    history = ", requires_grad=True" if self.requires_grad else ""
    if self.grad_fn is not None:
        history = f", grad_fn={self.grad_fn}"
    return f"NestedTensor(size={tuple(self.shape)}, offsets={offsets_of(self)}{history}, contiguous={is_contiguous(self)})"
