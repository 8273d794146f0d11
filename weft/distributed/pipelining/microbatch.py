"""A batch is cut into microbatches, and their results are put together again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.pytree import tree_flatten, tree_leaves, tree_unflatten
from ...core.tensor import Tensor
from ...ops.assembly.joining import cat
from ...ops.views.splitting import tensor_split

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]

DEFAULT_CHUNK_DIM = 0


class TensorChunkSpec:
    """The dimension along which a tensor is cut into microbatches.

    >>> TensorChunkSpec.from_tuple((0, 1))[1].split_dim
    1
    """

    def __init__(self, split_dim: int):
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> tuple[TensorChunkSpec, ...]:
        """One for each argument."""
        return tuple(map(TensorChunkSpec, chunk_dims))

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """One for each named argument."""
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


class _Replicate:
    """The mark of a value that each microbatch gets as a whole, and that all results share."""


class _CustomReducer:
    """The mark of a result that is combined: `reduce_fn` is called with what there is so far, at first `init_value`, and the next."""

    def __init__(self, init_value: Any, reduce_fn: Callable[[Any, Any], Any]):
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _LossReducer(_CustomReducer):
    """The same for losses."""


def _is_spec(value: Any) -> bool:
    return isinstance(value, (TensorChunkSpec, _Replicate, _CustomReducer))


def _default_specs(value: Any) -> Any:
    leaves, structure = tree_flatten(value)
    specs = [
        TensorChunkSpec(DEFAULT_CHUNK_DIM) if isinstance(each, Tensor) else _Replicate() for each in leaves
    ]
    return tree_unflatten(specs, structure)


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
    kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
) -> tuple[list[tuple], list[dict]]:
    """Cut the arguments of a call into those of `chunks` calls, or of fewer if a tensor has fewer rows.

    Tensors are cut along their first dimension, if no TensorChunkSpec says otherwise. Other values go to each call.
    Returns the lists of positional and of named arguments.

    >>> import weft
    >>> args, kwargs = split_args_kwargs_into_chunks((weft.arange(4), "sum"), {}, 2)
    >>> args
    [(tensor([0, 1]), 'sum'), (tensor([2, 3]), 'sum')]
    """
    kwargs = kwargs or {}
    given = args, kwargs
    specs = (
        _default_specs(args) if args_chunk_spec is None else args_chunk_spec,
        _default_specs(kwargs) if kwargs_chunk_spec is None else kwargs_chunk_spec,
    )
    for values, wanted in ((dict(enumerate(args)), dict(enumerate(specs[0]))), (kwargs, specs[1])):
        assert values.keys() == wanted.keys(), (
            f"args_dict.keys() = {[*values]} args_chunk_spec.keys() = {[*wanted]}"
        )
    leaves, structure = tree_flatten(given)
    flat_specs = tree_leaves(specs, is_leaf=_is_spec)
    cut = [
        (value, spec.split_dim)
        for value, spec in zip(leaves, flat_specs, strict=True)
        if isinstance(spec, TensorChunkSpec) and isinstance(value, Tensor)
    ]
    count = min([chunks, *(value.size(dim) for value, dim in cut)])
    columns = [
        tensor_split(value, count, spec.split_dim)
        if isinstance(spec, TensorChunkSpec) and isinstance(value, Tensor)
        else [value] * count
        for value, spec in zip(leaves, flat_specs, strict=True)
    ]
    calls = [tree_unflatten([column[k] for column in columns], structure) for k in range(count)]
    return [call[0] for call in calls], [call[1] for call in calls]


def merge_chunks(chunks: list[Any], chunk_spec: Any) -> Any:
    """Put the results of microbatches together: tensors are joined along the dimension of their TensorChunkSpec, by default the first.

    Raises: TypeError if a value that is to be joined is no tensor; AssertionError if a value differs that all should share.

    >>> import weft
    >>> merge_chunks([weft.ones(1, 2), weft.zeros(1, 2)], None)
    tensor([[1., 1.],
            [0., 0.]])
    """
    first, structure = tree_flatten(chunks[0])
    specs = (
        [TensorChunkSpec(DEFAULT_CHUNK_DIM)] * len(first)
        if chunk_spec is None
        else tree_leaves(chunk_spec, is_leaf=lambda value: value is None or _is_spec(value))
    )
    rows = [tree_leaves(chunk) for chunk in chunks]
    merged = [_merged([row[k] for row in rows], spec) for k, spec in enumerate(specs)]
    return tree_unflatten(merged, structure)


def _merged(values: list[Any], spec: Any) -> Any:
    if isinstance(spec, TensorChunkSpec):
        return cat(values, spec.split_dim)
    if isinstance(spec, _CustomReducer):
        found = spec.init_value
        for value in values:
            found = spec.reduce_fn(found, value)
        return found
    for value in values[1:]:
        assert value == values[0], f"Expected {values[0]}, got {value}"
    return values[0]
