"""Joins tensors into one: cat, stack and their relatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core import view_rules as rules
from ...core.arguments import integer
from ...core.derivative import Derivative
from ...core.layout import MemoryFormat, contiguous_format, preserve_format, strides_for, suggested_format
from ...core.promotion import common_dtype
from ...core.public import public
from ...core.size import shape
from ...core.spec import Spec, contiguous_spec, make_spec
from ...core.tensor import Tensor, wrap_dim
from ...families.rearrange import Piece, Rearrange, check_tensors
from ..creation.creation import new
from ..tensor.node_names import with_node_name
from ..views.reshaping import atleast_1d, atleast_2d, atleast_3d, reshape
from ..views.views import SELECT, SLICE
from .copying import formatted_spec
from .filling import fill_


def _is_legacy_empty(spec: Spec) -> bool:
    """Whether `cat` ignores the tensor: it ignores tensors of shape (0,) next to tensors of any shape."""
    return spec.shape == (0,)


def _cat_result(specs: Sequence[Spec], dim: int) -> Spec:
    for position, spec in enumerate(specs):
        if not spec.shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    _check_devices(specs)
    dtype = common_dtype(specs)
    counted = [(position, spec) for position, spec in enumerate(specs) if not _is_legacy_empty(spec)]
    if not counted:
        return contiguous_spec((0,), dtype, specs[0].device)
    first = counted[0][1]
    dim = wrap_dim(dim, first.ndim)
    for position, spec in counted:
        _check_sizes(first, spec, dim, position)
    sizes = list(first.shape)
    sizes[dim] = sum(spec.shape[dim] for _, spec in counted)
    return make_spec(shape(sizes), strides_for(sizes, common_format(specs)), dtype, first.device)


def common_format(specs: Sequence[Spec]) -> MemoryFormat:
    formats = {suggested_format(resolved(own)) for own in specs}
    return formats.pop() if len(formats) == 1 else contiguous_format


def resolved(spec: Spec) -> Spec:
    """PyTorch makes up for pending conjugations and negations first, in a copy that has its own strides."""
    return formatted_spec(spec, preserve_format, spec.dtype, spec.device) if spec.conj or spec.neg else spec


def _check_devices(specs: Sequence[Spec]) -> None:
    for own in specs:
        if own.device is not specs[0].device:
            raise RuntimeError(
                f"Tensor on device {own.device} is not on the expected device {specs[0].device}!"
            )


def _check_sizes(first: Spec, spec: Spec, dim: int, position: int) -> None:
    if spec.ndim != first.ndim:
        raise RuntimeError(
            f"Tensors must have same number of dimensions: got {first.ndim} and {spec.ndim}\n"
            f"cat: shapes {list(first.shape)} and {list(spec.shape)}"
        )
    for each, (expected, size) in enumerate(zip(first.shape, spec.shape, strict=True)):
        if each != dim and expected != size:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected size {expected} but got size {size} "
                f"for tensor number {position} in the list.\ncat: shapes {list(first.shape)} and {list(spec.shape)}"
            )


def _cat_pieces(result: Spec, specs: Sequence[Spec], dim: int) -> Iterator[Piece]:
    dim = wrap_dim(dim, result.ndim)
    at = 0
    for position, spec in enumerate(specs):
        if not _is_legacy_empty(spec):
            end = at + spec.shape[dim]
            yield Piece(position, spec, 0, *rules.slice(result, dim, at, end, 1))
            at = end


def _stack_result(specs: Sequence[Spec], dim: int) -> Spec:
    first = specs[0]
    for position, spec in enumerate(specs):
        if spec.shape != first.shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first.shape)} at entry 0 and "
                f"{list(spec.shape)} at entry {position}"
            )
    _check_devices(specs)
    dim = wrap_dim(dim, first.ndim + 1)
    sizes = (*first.shape[:dim], len(specs), *first.shape[dim:])
    if dim == first.ndim:
        return contiguous_spec(sizes, common_dtype(specs), first.device)
    # PyTorch joins along `dim`, then takes that apart: so images keep their memory format.
    return rules.view(_cat_result(specs, dim), sizes)[0]


def _stack_pieces(result: Spec, specs: Sequence[Spec], dim: int) -> Iterator[Piece]:
    target, first = rules.select(result, dim, 0)
    for position, own in enumerate(specs):
        yield Piece(position, own, 0, target, first + position * result.stride[dim])


def _cat_back(ct, out, *inputs, specs, static, wanted):
    at, cotangents = 0, []
    for spec, needed in zip(specs, wanted, strict=True):
        if _is_legacy_empty(spec):  # these may have been joined along any dim
            cotangents.append(ct.new_zeros((0,)) if needed else None)
            continue
        dim = wrap_dim(static[0], ct.spec.ndim)
        end = at + spec.shape[dim]
        cotangents.append(SLICE(ct, dim, at, end, 1) if needed else None)
        at = end
    return cotangents


def _stack_back(ct, out, *inputs, static, wanted):
    return [SELECT(ct, static[0], position) if needed else None for position, needed in enumerate(wanted)]


CAT = Rearrange("cat", _cat_result, _cat_pieces, Derivative(joint=_cat_back))
STACK = Rearrange("stack", _stack_result, _stack_pieces, Derivative(joint=_stack_back))


def _tensor_list(tensors: Any, name: str) -> Sequence[Tensor]:
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}\n"
            f"Write {name}([a, b]), with a list around the tensors"
        )
    return tensors


@public("function", "concat", "concatenate", checks=False, autocast="widen")
def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The tensors one behind the other along a dimension; their other sizes must be equal.

    >>> import weft as torch
    >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
    tensor([1, 2, 3])
    """
    if type(tensors) is not list:
        tensors = _tensor_list(tensors, "cat")
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    dim = integer(dim, "cat", "dim")
    return CAT(tensors, dim) if out is None else CAT.into(out, tensors, dim)


@public("function", checks=False, autocast="widen")
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of equal shape along a new dimension.

    >>> import weft as torch
    >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], 1)
    tensor([[1, 3],
            [2, 4]])
    """
    if type(tensors) is not list:
        tensors = _tensor_list(tensors, "stack")
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    dim = integer(dim, "stack", "dim")
    return STACK(tensors, dim) if out is None else STACK.into(out, tensors, dim)


def _stacker(name: str, arrange: Callable[[Tensor], Tensor], dim: int, text: str, *aliases: str) -> None:
    def stacker(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
        tensors = _tensor_list(tensors, name)
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        check_tensors(tensors)
        arranged = [arrange(tensor) for tensor in tensors]
        return cat(arranged, min(dim, arranged[0].spec.ndim - 1), out=out)

    stacker.__doc__ = text
    public("function", *aliases, name=name)(stacker)


def _as_column(input: Tensor) -> Tensor:
    return reshape(input, (input.spec.numel, 1)) if input.spec.ndim <= 1 else input


_stacker(
    "hstack", atleast_1d, 1, "The tensors side by side: along dimension 1, or 0 if that is all they have."
)
_stacker("vstack", atleast_2d, 0, "The tensors below each other; one dimension counts as a row.", "row_stack")
_stacker("dstack", atleast_3d, 2, "The tensors behind each other, along dimension 2.")
_stacker("column_stack", _as_column, 1, "The tensors side by side; one dimension counts as a column.")


@public("function")
def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with the given matrices on its diagonal and zeros elsewhere; fewer dimensions count as one row.

    >>> import weft as torch
    >>> torch.block_diag(torch.tensor([[1, 2]]), torch.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    check_tensors(tensors)
    for position, tensor in enumerate(tensors):
        if tensor.spec.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{position} has {tensor.spec.ndim} dimensions"
            )
    if not tensors:
        return new((1, 0), None, None)
    dtype, where = common_dtype([tensor.spec for tensor in tensors]), tensors[0].spec.device
    blocks = [atleast_2d(tensor).to(dtype) for tensor in tensors]
    widths = [block.spec.shape[1] for block in blocks]
    rows = []
    for position, block in enumerate(blocks):
        height = block.spec.shape[0]
        before, after = sum(widths[:position]), sum(widths[position + 1 :])
        left, right = (fill_(new((height, width), dtype, where), 0) for width in (before, after))
        rows.append(cat([left, block, right], 1))
    return with_node_name(cat(rows, 0), "BlockDiagBackward0")
