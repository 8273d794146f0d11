"""Computes arithmetic of sparse tensors with sparse tensors, dense tensors and numbers."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from ...core.arguments import wrong_type
from ...core.layout import sparse_coo
from ...core.promotion import promote_types
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...families.calls import check_alpha
from ...families.custom_vjp import custom_vjp
from ..parts import is_plain, values_of, with_values
from . import compression, coordinates
from .accumulation import add_entries_
from .compressed import batch_dim_of, blocksize_of, compressed_parts, format_of
from .conversion import coalesce, to_dense
from .coo import coo, indices_of, is_coalesced, sparse_dim_of
from .pairs import Entries, aligned, entries_of, union_of, with_entries
from .rules import SPARSE, have_same_indices, write
from .unary import on_values, summed

rule = SPARSE.rule
broadcast_shapes, cat, ones = FUNCTIONS["broadcast_shapes"], FUNCTIONS["cat"], FUNCTIONS["ones"]


def _in_place(compute: Callable, keeps_memory: bool = False) -> Callable:
    """The form of a function that writes its result, which must have the shape of the target, into the first operand.

    keeps_memory: as in `write`.
    """

    def compute_in_place(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result = compute(*SPARSE.operands((input, *args)), **kwargs)
        if result.shape != input.shape:
            raise RuntimeError(
                f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(result.shape)}"
            )
        result = to_dense(result) if is_plain(input) and not is_plain(result) else result
        write(result, input, keeps_memory)
        return input

    return compute_in_place


def is_number(value: Any) -> bool:
    """Whether it is a number, or a dense tensor without dims."""
    return not isinstance(value, Tensor) or is_plain(value) and not value.dim()


# ---- Sums --------------------------------------------------------------------------------------------------------------


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The sum; of a dense and a sparse tensor it is dense.

    Raises: RuntimeError if the shapes differ, and for a number, because a number would be added to the zeros, too.
    """
    for each in (input, other):
        if not isinstance(each, Tensor | Number):
            raise wrong_type(each, "add", "other", "Tensor", 2)
    if not isinstance(input, Tensor) or not isinstance(other, Tensor) or input.shape != other.shape:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same size, but self has size {_size(input)} while other has size "
            f"{_size(other)}: write x.to_dense() to add with broadcasting"
        )
    check_alpha(alpha, "add", input, other)
    if is_plain(input) or is_plain(other):
        return _dense_sum(input, other, alpha)
    return _sparse_sum(*aligned(input, other, "add"), alpha)


def _size(value: Any) -> list[int]:
    return list(value.shape) if isinstance(value, Tensor) else []


def _times(ct: Tensor, alpha: Any) -> Tensor:
    return ct if alpha == 1 else ct * (alpha.conjugate() if isinstance(alpha, complex) else alpha)


@custom_vjp(
    lambda ct, out, input, other, alpha: ct, lambda ct, out, input, other, alpha: _times(ct, alpha), inputs=2
)
def _dense_sum(input: Tensor, other: Tensor, alpha: Any) -> Tensor:
    input, other = (each if is_plain(each) else to_dense(each) for each in (input, other))
    return input.add(other, alpha=alpha)


@custom_vjp(
    lambda ct, out, left, right, alpha: ct, lambda ct, out, left, right, alpha: _times(ct, alpha), inputs=2
)
def _sparse_sum(left: Tensor, right: Tensor, alpha: Any) -> Tensor:
    dtype = promote_types(left.dtype, right.dtype)
    left_values, right_values = values_of(left).to(dtype), values_of(right).to(dtype)
    if left.layout is not sparse_coo and have_same_indices(left, right):
        return with_values(left, left_values.add(right_values, alpha=alpha))
    if alpha != 1:
        right_values = right_values * alpha
    if left.layout is sparse_coo:
        if not (left_values.is_contiguous() and right_values.is_contiguous()):
            return _joined(left, left_values, right, right_values)
        entries = (indices_of(left), left_values), (indices_of(right), right_values)
        indices, values = coordinates.union(*entries, left.shape[: sparse_dim_of(left)])
        return coo(indices, values, left.shape, is_coalesced(left) and is_coalesced(right))
    keys, left_values, right_values = union_of(
        with_values(left, left_values), with_values(right, right_values)
    )
    return with_entries(left, Entries(keys, left_values + right_values))


def _joined(left: Tensor, left_values: Tensor, right: Tensor, right_values: Tensor) -> Tensor:
    """The entries of one COO tensor after those of the other. So PyTorch adds values with strides, such as the gradient of a sum."""
    indices = cat((indices_of(left), indices_of(right)), 1)
    result = coo(indices, cat((left_values, right_values)), left.shape, False)
    return coalesce(result) if indices.shape[1] > left.numel() else result


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    if all(
        isinstance(each, Tensor) and not each.is_floating_point() and each.dtype.category == 0
        for each in (input, other)
    ):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        )
    if isinstance(alpha, bool):  # which a minus makes an integer
        check_alpha(alpha, "sub", input, other)
    return add(input, other, alpha=-alpha)


@rule("rsub")
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    return sub(other, input, alpha=alpha)


# ---- Products ----------------------------------------------------------------------------------------------------------


def mul(input: Any, other: Any) -> Tensor:
    """The product with a number, or with a tensor, which is broadcast; it has entries where the sparse operand has them."""
    if not isinstance(input, Tensor) or is_plain(input):
        input, other = other, input
    if isinstance(other, Tensor) and not is_plain(other):
        if not other.dim():
            other = to_dense(other)
        elif not input.dim():
            input, other = other, to_dense(input)
        elif input.shape != other.shape and _differ_in_dense_dims(input, other):
            shape = broadcast_shapes(input.shape, other.shape)
            input, other = input.expand(shape), other.expand(shape)
    return _product(input, other)


def _differ_in_dense_dims(left: Tensor, right: Tensor) -> bool:
    """Whether two COO tensors have the same sparse dims and as many dense ones, so that their values broadcast."""
    if not left.layout is right.layout is sparse_coo or left.dim() != right.dim():
        return False
    n = sparse_dim_of(left)
    return n == sparse_dim_of(right) and left.shape[:n] == right.shape[:n]


def _conjugate(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.conj_physical() if value.is_complex() else value
    return value.conjugate()


def _other_cotangent(ct: Tensor, out: Any, x: Tensor, other: Any) -> Tensor:
    """The cotangent of the other operand, which may have been broadcast."""
    product = ct * _conjugate(x)
    if is_plain(product):
        return product
    if not other.dim():
        return values_of(product).sum()
    if is_plain(other) and (other.shape != product.shape or product.layout is not sparse_coo):
        return to_dense(product)
    return product


def _own_cotangent(ct: Tensor, out: Any, x: Tensor, other: Any) -> Tensor:
    product = ct * _conjugate(other)
    return product if is_plain(product) or product.shape == x.shape else to_dense(product)


@custom_vjp(_own_cotangent, _other_cotangent)
def _product(x: Tensor, other: Any) -> Tensor:
    if is_number(other):
        return on_values(x, lambda values: values * other)
    if is_plain(other):
        return _masked_product(x, other)
    left, right = aligned(x, other, "mul")
    if left.layout is sparse_coo:
        a, b = ((indices_of(each), values_of(each), is_coalesced(each)) for each in (left, right))
        indices, values, flag = coordinates.product(a, b, left.shape[: sparse_dim_of(left)])
        return coo(indices, values, left.shape, flag)
    if have_same_indices(left, right):
        return with_values(left, values_of(left) * values_of(right))
    (left_keys, left_values), (right_keys, right_values) = entries_of(left), entries_of(right)
    own, others = coordinates.intersection(left_keys, right_keys)
    values = left_values.index_select(0, own) * right_values.index_select(0, others)
    return with_entries(left, Entries(left_keys.index_select(0, own), values))


def _masked_product(x: Tensor, other: Tensor) -> Tensor:
    shape = broadcast_shapes(x.shape, other.shape)
    if shape != x.shape:
        x = summed(summed(x).expand(shape))
    return on_values(x, lambda values: values * at_entries(other, x))


def at_entries(dense: Tensor, x: Tensor) -> Tensor:
    """The elements of a dense tensor, which broadcasts to the shape of x, at the entries of x; they broadcast to its values."""
    dense = dense.reshape((1,) * (x.dim() - dense.dim()) + tuple(dense.shape))
    values = values_of(x)
    if x.layout is sparse_coo:
        sparse_dim = sparse_dim_of(x)
        return _at(dense, indices_of(x), sparse_dim)
    outer, inner, _ = compressed_parts(x)
    batch_dim = batch_dim_of(x)
    blocks = blocksize_of(x)
    entries = values.shape[: batch_dim + (3 if blocks else 1)]
    parts = compression.Compressed(outer, inner, ones(entries, device=values.device))
    indices, _ = compression.to_coordinates(parts, format_of(x).by_rows, blocks)
    found = _at(dense, indices, batch_dim + 2)
    return found.view(*entries, *found.shape[1:])


def _at(dense: Tensor, indices: Tensor, sparse_dim: int) -> Tensor:
    sizes = dense.shape[:sparse_dim]
    if 1 in sizes:  # such a dim is broadcast, so its only element serves all indices
        varies = indices.new_tensor([size != 1 for size in sizes])
        indices = indices * varies.unsqueeze(1)
    return coordinates.taken(dense, indices, sizes)


# ---- Quotients and powers ------------------------------------------------------------------------------------------------


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """The quotient by a number. Raises: RuntimeError for other divisors, because most quotients would be 0 / 0."""
    _check_divisor(other, "division")
    if rounding_mode is not None:
        return on_values(summed(input), FUNCTIONS["div"], other, rounding_mode=rounding_mode)
    return _quotient(input, other)


def _check_divisor(divisor: Any, name: str) -> None:
    if not is_number(divisor):
        got = f"shape {list(divisor.shape)} for divisor" if divisor.dim() else "a sparse divisor"
        raise RuntimeError(f"Sparse {name} requires a scalar or zero-dim dense tensor divisor (got {got})")


def _divisor_cotangent(ct: Tensor, out: Any, input: Tensor, divisor: Any) -> Tensor:
    product = ct * _conjugate(input)
    total = product.sum() if is_plain(product) else values_of(product).sum()
    return -total / _conjugate(divisor * divisor)


@custom_vjp(lambda ct, out, input, divisor: ct / _conjugate(divisor), _divisor_cotangent)
def _quotient(input: Tensor, divisor: Any) -> Tensor:
    return on_values(input, lambda values: values / divisor)


@rule("true_divide")
def true_divide(input: Any, other: Any) -> Tensor:
    return div(input, other)


def floor_divide(input: Any, other: Any) -> Tensor:
    _check_divisor(other, "floor division")
    return on_values(summed(input), FUNCTIONS["floor_divide"], other)


def pow(input: Any, exponent: Any) -> Tensor:
    """The power of the values. Raises: RuntimeError for exponent 0, because the zeros would become ones."""
    if not is_number(exponent) or not isinstance(input, Tensor) or is_plain(input):
        raise SPARSE.missing("pow")
    if not isinstance(exponent, Tensor) and exponent == 0:
        raise RuntimeError(
            "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense"
        )
    return on_values(summed(input), FUNCTIONS["pow"], exponent)


def _remainder(name: str) -> Callable:
    def compute(input: Any, other: Any) -> Tensor:
        _check_divisor(other, name)
        return on_values(summed(input), FUNCTIONS[name], other)

    return compute


def add_(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    return add_entries_(input, other, alpha) if is_plain(input) else _in_place(add)(input, other, alpha=alpha)


def sub_(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    return add_(input, other, alpha=-alpha)


rule("add")(add)
rule("add_")(add_)
rule("sub")(sub)
rule("sub_")(sub_)
for _name, _function in {
    "mul": mul, "div": div, "floor_divide": floor_divide, "pow": pow,
    "remainder": _remainder("remainder"), "fmod": _remainder("fmod"),
}.items():  # fmt: skip
    rule(_name)(_function)
    rule(f"{_name}_")(_in_place(_function, keeps_memory=_name != "mul"))
