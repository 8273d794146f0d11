"""Computes products of vectors and matrices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ...core.autocast import open_contexts
from ...core.batched import fresh
from ...core.checking import check_tensor, sizes
from ...core.dtype import INTEGER, LEGACY_NAMES, bool_, compute_type, cpp_name
from ...core.entry import declined, entry, in_front_of
from ...core.limits import check_number
from ...core.outputs import copy_values, resize, write_out
from ...core.promotion import common_dtype
from ...core.public import inplace, public, show_out
from ...core.recording import check_recorded_write, needs_recording, tape, unrecorded
from ...core.registry import add_member
from ...core.spec import Spec
from ...core.tensor import Tensor, wrap_dim
from ...core.warn import user_level
from ...families.calls import check_factor
from ...families.custom_vjp import CustomVjp, custom_vjp
from ...families.product import Product
from ..assembly.joining import stack
from ..elementwise.arithmetic import mul
from ..views.complex_views import conj
from ..views.views import T, owned


def _shapes(name: str, a: Spec, b: Spec) -> str:
    return f"\n{name}: {list(a.shape)} {a.dtype} @ {list(b.shape)} {b.dtype}"


# ---- What each product accepts ---------------------------------------------------------------------------------------


def _check_mm(a: Spec, b: Spec) -> None:
    for matrix, name in ((a, "self"), (b, "mat2")):
        if len(matrix.shape) != 2:
            raise RuntimeError(f"{name} must be a matrix{_shapes('mm', a, b)}")
    _check_matrices(a, b)


def _check_matrices(a: Spec, b: Spec) -> None:
    if a.shape[-1] != b.shape[-2]:
        rows = math.prod(a.shape[:-1])
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
            f"{_shapes('matmul', a, b)}: the last size of the first must equal the second-last size of the second"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {cpp_name(a.dtype)} != {cpp_name(b.dtype)}"
            f"{_shapes('matmul', a, b)}"
        )


def _check_bmm(a: Spec, b: Spec) -> None:
    for matrix, name in ((a, "batch1"), (b, "batch2")):
        if len(matrix.shape) != 3:
            raise RuntimeError(f"{name} must be a 3D tensor{_shapes('bmm', a, b)}")
    expected, sizes = [a.shape[0], a.shape[2]], list(b.shape[:2])
    if expected != sizes:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got: {sizes}."
            f"{_shapes('bmm', a, b)}"
        )
    _check_stack(a, b)


def _check_stack(a: Spec, b: Spec) -> None:
    """Raises what PyTorch's product of stacks raises: it looks for a kernel before it compares the dtypes."""
    if a.dtype is bool_ and b.dtype is not bool_:
        raise NotImplementedError(f"\"bmm\" not implemented for 'Bool'{_shapes('bmm', a, b)}")
    _check_scalar_type(a, b)


def _check_scalar_type(a: Spec, b: Spec) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(f"expected scalar type {LEGACY_NAMES[a.dtype]} but found {LEGACY_NAMES[b.dtype]}")


def _check_mv(a: Spec, b: Spec) -> None:
    if not a.shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if len(a.shape) != 2 or len(b.shape) != 1:
        dims = f"{len(b.shape)}, {len(a.shape)}, {len(b.shape)}"
        raise RuntimeError(f"vector + matrix @ vector expected, got {dims}{_shapes('mv', a, b)}")
    _check_vector(a, b)


def _check_vector(a: Spec, b: Spec) -> None:
    if a.shape[-1] != b.shape[0]:
        rows = math.prod(a.shape[:-1])
        raise RuntimeError(
            f"size mismatch, got input ({rows}), mat ({rows}x{a.shape[-1]}), vec ({b.shape[0]}){_shapes('mv', a, b)}"
        )
    if a.dtype is not b.dtype:
        dtypes = ", ".join(LEGACY_NAMES[dtype] for dtype in (b.dtype, a.dtype))
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {dtypes}, and {LEGACY_NAMES[b.dtype]}"
            f"{_shapes('mv', a, b)}"
        )


def _check_dot(a: Spec, b: Spec) -> None:
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise RuntimeError(
            f"1D tensors expected, but got {len(a.shape)}D and {len(b.shape)}D tensors{_shapes('dot', a, b)}"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found "
            f"{LEGACY_NAMES[a.dtype]} and {LEGACY_NAMES[b.dtype]}"
        )
    n, m = a.shape[0], b.shape[0]
    if n != m:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, "
            f"but got {n} and {m} elements respectively"
        )


def _check_matmul(a: Spec, b: Spec) -> None:
    left, right = len(a.shape), len(b.shape)
    if not left or not right:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D"
        )
    if left == right == 1:
        _check_dot(a, b)
    elif right == 1:
        _check_vector(a, b)
    elif left > 2 and right > 2 and a.shape[-1] != b.shape[-2]:
        batch = math.prod(a.shape[:-2])
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {[batch, a.shape[-1]]} but got: "
            f"{[batch, b.shape[-2]]}.{_shapes('matmul', a, b)}"
        )
    elif left > 1 and right > 2 and a.shape[-1] == b.shape[-2]:
        _check_stack(a, b)
    else:
        _check_matrices(a, b)


# ---- Derivatives: of a @ b, the cotangents of a and b are ct @ b.mH and a.mH @ ct --------------------------------------
# (Giles 2008, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation", 2.2.2)
# The gradients have the memory order of a and b, so that the gradient of a transposed weight is contiguous.


def _by_columns(spec: Spec) -> bool:
    return spec.stride[-2] == 1 and spec.stride[-1] == spec.shape[-2] > 1


def _mm_left(ct, out, a, b, *, specs):
    if _by_columns(specs[0]):
        return T(MM(conj(b), T(ct)))
    return MM(ct, conj(T(b)))


def _mm_right(ct, out, a, b, *, specs):
    if _by_columns(specs[1]):
        return T(MM(T(ct), conj(a)))
    return MM(conj(T(a)), ct)


def _is_single(spec: Spec) -> bool:
    """Whether there is one matrix, even if its shape has leading dims of size 1."""
    return math.prod(spec.shape[:-2]) == 1


def rows_of(matrices: Tensor) -> Tensor:
    """Return the rows of all matrices of a stack as those of one."""
    shape = matrices.spec.shape
    if len(shape) == 2:
        return matrices
    *sizes, last = shape
    return matrices.reshape(math.prod(sizes), last)


def _stack_left(ct, out, a, b, *, specs):
    left, right = specs
    if len(right.shape) == 1:
        return ct.unsqueeze(-1) * conj(b)
    if len(left.shape) == 1:
        ct = ct.unsqueeze(-2)
    if len(left.shape) == 1 or _is_single(left) and not _is_single(right):
        # Sum over the batch and the rows in one product, instead of adding up a stack of products.
        return MM(T(rows_of(ct.mT)), conj(rows_of(b.mT))).reshape(left.shape)
    return MATMUL(ct, b.mH)


def _stack_right(ct, out, a, b, *, specs):
    left, right = specs
    if len(left.shape) == 1:
        return conj(a).unsqueeze(-1) * ct.unsqueeze(-2)
    if len(right.shape) == 1:
        return MV(conj(T(rows_of(a))), ct.reshape(-1))
    if _is_single(right) and not _is_single(left):
        if _by_columns(right):
            return T(MM(T(rows_of(ct)), conj(rows_of(a)))).reshape(right.shape)
        return MM(conj(T(rows_of(a))), rows_of(ct)).reshape(right.shape)
    return MATMUL(a.mH, ct)


def _times_right(ct, out, a, b):
    return ct * conj(b)


def _times_left(ct, out, a, b):
    return ct * conj(a)


def _mv_left(ct, out, a, b):
    return outer(ct, conj(b))


def _mv_right(ct, out, a, b):
    return MV(conj(T(a)), ct)


def _bmm_left(ct, out, a, b):
    return BMM(ct, b.mH)


def _bmm_right(ct, out, a, b):
    return BMM(a.mH, ct)


def _recorded(a: Spec, b: Spec) -> Product:
    """Which product `a @ b` is for autograd."""
    return {(1, 1): DOT, (2, 1): MV, (2, 2): MM, (1, 2): _ROW}.get((len(a.shape), len(b.shape)), _STACK)


MM = Product("mm", _check_mm, "addmm_impl_cpu_", (_mm_left, _mm_right))
BMM = Product("bmm", _check_bmm, "bmm", (_bmm_left, _bmm_right))
MV = Product("mv", _check_mv, "addmv_impl_cpu", (_mv_left, _mv_right))
DOT = Product("dot", _check_dot, "dot", (_times_right, _times_left))
MATMUL = Product("matmul", _check_matmul, "addmm_impl_cpu_", step=_recorded)
# The products of steps that add a tensor to the product before it is rounded.
WIDE_MATMUL = Product("matmul", _check_matmul, "addmm_impl_cpu_", wide=True)
# PyTorch names the node of matmul after the last step of its composition, which depends on the ranks.
_ROW = Product(
    "squeeze_row", _check_matmul, "addmm_impl_cpu_", (_stack_left, _stack_right), node_name="SqueezeBackward4"
)
_STACK = Product("unsafe_view", _check_matmul, "addmm_impl_cpu_", (_stack_left, _stack_right))


def check_tensors(name: str, **arguments: Any) -> None:
    """Raises: TypeError, naming the argument, if one of the arguments is not a tensor."""
    for position, (argument, value) in enumerate(arguments.items(), 1):
        check_tensor(value, name, argument, position)


# ---- Plain products --------------------------------------------------------------------------------------------------


@public("function method", "linalg.matmul", out=MATMUL.write_alone, autocast="lower")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of vectors, matrices, or stacks of matrices whose leading dims broadcast.

    Shapes: [..., n, k] @ [..., k, m] -> [..., n, m]; a vector [k] counts as a row on the left, a column on the
    right, and that dim is dropped from the result. Raises: RuntimeError if k or the dtypes differ.

    >>> import weft as torch
    >>> torch.matmul(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
    tensor([3., 7.])
    """
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        check_tensors("matmul", input=input, other=other)
    return MATMUL(input, other)


@public("function method", out=MM.write_alone, autocast="lower")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices: [n, k] @ [k, m] -> [n, m]."""
    if not isinstance(input, Tensor) or not isinstance(mat2, Tensor):
        check_tensors("mm", input=input, mat2=mat2)
    return MM(input, mat2)


@public("function method", out=BMM.write_alone, autocast="lower")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products of two stacks of matrices: [b, n, k] @ [b, k, m] -> [b, n, m]."""
    if not isinstance(input, Tensor) or not isinstance(mat2, Tensor):
        check_tensors("bmm", input=input, mat2=mat2)
    return BMM(input, mat2)


@public("function method", out=MV.write_alone)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix and a vector: [n, k] @ [k] -> [n]."""
    if not isinstance(input, Tensor) or not isinstance(vec, Tensor):
        check_tensors("mv", input=input, vec=vec)
    return MV(input, vec)


@public("function method", out=True)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return the sum of the products of two vectors' elements, without conjugation: [n], [n] -> []."""
    if not isinstance(input, Tensor) or not isinstance(tensor, Tensor):
        check_tensors("dot", input=input, tensor=tensor)
    return DOT(input, tensor)


@public("function method", out=True)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Compute the same as `dot`, with the first vector conjugated."""
    check_tensors("vdot", input=input, other=other)
    return _vdot(input, other)


@custom_vjp(lambda ct, out, a, b: conj(ct) * b, lambda ct, out, a, b: ct * a)
def _vdot(a: Tensor, b: Tensor) -> Tensor:
    return DOT(conj(a), b)


@public("function method", "ger", out=True)
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return all products of an element of one vector and one of the other: [n], [m] -> [n, m].

    >>> import weft as torch
    >>> torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4, 5]))
    tensor([[ 3,  4,  5],
            [ 6,  8, 10]])
    """
    check_tensors("outer", input=input, vec2=vec2)
    for vector, name in ((input, "self"), (vec2, "vec2")):
        if vector.dim() != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector.dim()}-D")
    return mul(input.unsqueeze(1), vec2)


@public("function method", out=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The products summed over the last dims: [..., k], [___, k] -> [..., ___]; a 0-dim tensor just multiplies."""
    check_tensors("inner", input=input, other=other)
    if not input.dim() or not other.dim():
        return mul(input, other)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    return tensordot(input, other, dims=([-1], [-1]))


@public("function", out=True, autocast="lower")
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Return the products summed over pairs of dims; the other dims of `a`, then those of `b`, remain.

    dims: the number of last dims of `a` paired with as many first dims of `b`, or two lists of dims.

    >>> import weft as torch
    >>> torch.tensordot(torch.ones(3, 4, 5), torch.ones(4, 3, 2), dims=([1, 0], [0, 1])).shape
    torch.Size([5, 2])
    """
    check_tensors("tensordot", a=a, b=b)
    a_dims, b_dims = _paired_dims(a, b, dims)
    if a.spec.dtype is not b.spec.dtype:
        raise RuntimeError(f"both inputs should have same dtype (tensordot: {a.dtype} and {b.dtype})")
    for i, j in zip(a_dims, b_dims, strict=True):
        if a.shape[i] == 1 != b.shape[j]:
            b = b.sum(j, keepdim=True, dtype=b.dtype)
        elif b.shape[j] == 1 != a.shape[i]:
            a = a.sum(i, keepdim=True, dtype=a.dtype)
        elif a.shape[i] != b.shape[j]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i - a.dim()} and "
                f"second has size {b.shape[j]} in dim {j}\ntensordot: shapes {list(a.shape)} and {list(b.shape)}"
            )
    a_free = [d for d in range(a.dim()) if d not in a_dims]
    b_free = [d for d in range(b.dim()) if d not in b_dims]
    shape = [a.shape[d] for d in a_free] + [b.shape[d] for d in b_free]
    terms = math.prod(a.shape[d] for d in a_dims)
    left = a.permute((*a_free, *a_dims)).reshape(math.prod(a.shape[d] for d in a_free), terms)
    right = b.permute((*b_dims, *b_free)).reshape(terms, math.prod(b.shape[d] for d in b_free))
    return mm(left, right).reshape(shape)


def _paired_dims(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(a.dim() - dims, a.dim())), list(range(dims))
    if isinstance(dims, (tuple, list)) and len(dims) != 2:
        raise ValueError(f"tensordot expects a pair of lists of dims, but got {len(dims)} of them: {dims}")
    if not isinstance(dims, (tuple, list)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, but "
            f"got dims={dims}"
        )
    firsts, seconds = (sizes(side, "tensordot", "dims") for side in dims)
    if len(firsts) != len(seconds):
        raise RuntimeError("both dimension lists should have same length")
    dims_of_both = [wrap_dim(d, a.dim()) for d in firsts], [wrap_dim(d, b.dim()) for d in seconds]
    for side in dims_of_both:
        if len(set(side)) != len(side):
            raise RuntimeError(
                f"dim {next(d for d in side if side.count(d) > 1)} appears multiple times in the list of dims"
            )
    return dims_of_both


@public("function method", out=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return every element of `input` times all of `other`: [n, m], [p, q] -> [n * p, m * q], for any number of dims.

    >>> import weft as torch
    >>> torch.kron(torch.eye(2), torch.ones(1, 2))
    tensor([[1., 1., 0., 0.],
            [0., 0., 1., 1.]])
    """
    check_tensors("kron", input=input, other=other)
    ndim = max(input.dim(), other.dim())
    a, b = ((1,) * (ndim - t.dim()) + tuple(t.shape) for t in (input, other))
    left = input.reshape([size for n in a for size in (n, 1)])
    right = other.reshape([size for n in b for size in (1, n)])
    return owned(mul(left, right).reshape([n * p for n, p in zip(a, b, strict=True)]))


@public("function", autocast="lower")
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of matrices in the cheapest order. Deprecated: use `linalg.multi_dot`."""
    from .linalg import multi_dot

    warnings.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters.",
        UserWarning,
        stacklevel=user_level(),
    )
    if len(matrices) == 1 and isinstance(matrices[0], (tuple, list)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    if any(matrix.dim() != 2 for matrix in matrices):
        raise RuntimeError(
            f"Tensor dimension is {next(m.dim() for m in matrices if m.dim() != 2)}, expected 2 instead."
        )
    if len(matrices) > 1:
        return multi_dot(matrices, out=out)
    return matrices[0] if out is None else write_out(out, matrices[0], "chain_matmul")


# ---- Products added to something -------------------------------------------------------------------------------------


def added(input: Tensor, beta: Any, alpha: Any, operands: Sequence[Tensor], product: Callable) -> Tensor:
    """beta * input + alpha * product(*operands), with `input` broadcast; beta 0 ignores its values, NaN included.

    The narrow floats stay wide until the end. For use within a step: the product is overwritten.
    """
    dtype = operands[0].spec.dtype
    wide = compute_type(dtype)
    for number in (beta, alpha):
        if number != 1:
            check_number(number, wide)
    if wide is not dtype:
        operands, input = [operand.to(wide) for operand in operands], input.to(wide)
    if dtype.category <= INTEGER:
        kind = bool if dtype is bool_ else int
        beta, alpha = kind(beta), kind(alpha)
    result = fresh(product(*operands))
    if alpha != 1:
        result.mul_(alpha)
    if input.spec.shape != result.spec.shape[-1:]:  # a bias needs no check
        input = input.expand(result.spec.shape)
    if beta == 1:
        result.add_(input)
    elif beta != 0:
        result.add_(input, alpha=beta)
    return result if wide is dtype else result.to(dtype)


def scaled(ct: Tensor, factor: Any) -> Tensor:
    """The cotangent of what was multiplied by a number."""
    return ct if factor == 1 else ct * (factor.conjugate() if isinstance(factor, complex) else factor)


def _input_rule(ct, out, input, beta, alpha, a, b):
    return scaled(ct, beta)


def added_step(name: str, product: Callable, left: Callable, right: Callable) -> CustomVjp:
    """`added` as a step (input, beta, alpha, a, b); `left` and `right` are the rules of the product."""

    def function(input: Tensor, beta: Any, alpha: Any, a: Tensor, b: Tensor) -> Tensor:
        return added(input, beta, alpha, (a, b), product)

    def left_rule(ct, out, input, beta, alpha, a, b, *, specs):
        return scaled(left(ct, None, None, b, specs=specs[3:]), alpha)

    def right_rule(ct, out, input, beta, alpha, a, b, *, specs):
        return scaled(right(ct, None, a, None, specs=specs[3:]), alpha)

    function.__name__ = name
    return CustomVjp(function, _input_rule, None, None, left_rule, right_rule)


def check_same(input: Tensor, message: str, *others: Tensor) -> None:
    for other in others:
        if other.spec.dtype is not input.spec.dtype:
            raise RuntimeError(message.format(*(LEGACY_NAMES[t.spec.dtype] for t in (input, *others))))


_ADDMM = added_step("addmm", MM, _mm_left, _mm_right)
_ADDMV = added_step(
    "addmv",
    MV,
    lambda ct, out, a, b, *, specs: outer(ct, conj(b)),
    lambda ct, out, a, b, *, specs: MV(conj(T(a)), ct),
)
_ADDR = added_step(
    "addr",
    outer,
    lambda ct, out, a, b, *, specs: MV(ct, conj(b)),
    lambda ct, out, a, b, *, specs: MV(T(ct), conj(a)),
)
_BADDBMM = added_step(
    "baddbmm",
    BMM,
    lambda ct, out, a, b, *, specs: BMM(ct, b.mH),
    lambda ct, out, a, b, *, specs: BMM(a.mH, ct),
)


@public("function method inplace", out=True, autocast="lower")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2), with `input` broadcast to the product; beta 0 ignores its values.

    >>> import weft as torch
    >>> torch.addmm(torch.ones(2), torch.eye(2), torch.eye(2), alpha=3)
    tensor([[4., 1.],
            [1., 4.]])
    """
    check_tensors("addmm", input=input, mat1=mat1, mat2=mat2)
    for matrix, name in ((mat1, "mat1"), (mat2, "mat2")):
        if matrix.dim() != 2:
            raise RuntimeError(f"{name} must be a matrix, got {matrix.dim()}-D tensor")
    _check_matrices(mat1.spec, mat2.spec)
    check_same(input, "self and mat2 must have the same dtype, but got {0} and {2}", mat1, mat2)
    return _ADDMM(input, beta, alpha, mat1, mat2)


@public("function method inplace", out=True)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Compute beta * input + alpha * (mat @ vec)."""
    check_tensors("addmv", input=input, mat=mat, vec=vec)
    if mat.dim() != 2 or vec.dim() != 1 or input.dim() > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.dim()}, {mat.dim()}, {vec.dim()}")
    rows, columns = mat.shape
    if columns != vec.shape[0] or input.numel() not in (1, rows):
        raise RuntimeError(
            f"size mismatch, got input ({input.numel()}), mat ({rows}x{columns}), vec ({vec.shape[0]})"
        )
    check_same(input, "addmv input tensors must have the same dtype, but got {0}, {1}, and {2}", mat, vec)
    return _ADDMV(input, beta, alpha, mat, vec)


@public("function method inplace", out=True)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Compute beta * input + alpha * outer(vec1, vec2), in the common dtype."""
    check_tensors("addr", input=input, vec1=vec1, vec2=vec2)
    for vector, name in ((vec1, "vec1"), (vec2, "vec2")):
        if vector.dim() != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.dim()}-D")
    dtype = common_dtype((input.spec, vec1.spec, vec2.spec))
    for factor, name in ((beta, "beta"), (alpha, "alpha")):
        check_factor(factor, name, dtype)
    return _ADDR(input, beta, alpha, vec1.to(dtype), vec2.to(dtype))


@public("function method inplace", out=True, autocast="lower")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Compute beta * input + alpha * bmm(batch1, batch2)."""
    check_tensors("baddbmm", input=input, batch1=batch1, batch2=batch2)
    # PyTorch makes the sizes of the result first.
    if not len(batch1.spec.shape) == len(batch2.spec.shape) == 3:
        input.expand(batch1.size(0), batch1.size(1), batch2.size(2))
    if not input.spec.dtype is batch1.spec.dtype is batch2.spec.dtype:
        dtypes = [cpp_name(t.spec.dtype) for t in (input, batch1, batch2)]
        raise RuntimeError(
            "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}".format(*dtypes)
        )
    _check_bmm(batch1.spec, batch2.spec)
    return _BADDBMM(input, beta, alpha, batch1, batch2)


@public("function method", out=True, autocast="lower")
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Compute beta * input + alpha * the sum of bmm(batch1, batch2) over the batch."""
    check_tensors("addbmm", input=input, batch1=batch1, batch2=batch2)
    if not len(batch1.spec.shape) == len(batch2.spec.shape) == 3:  # as in baddbmm
        input.expand(batch1.size(1), batch2.size(2))
    _check_bmm(batch1.spec, batch2.spec)
    check_same(input, "self and mat2 must have the same dtype, but got {0} and {2}", batch1, batch2)
    return _ADDBMM(input, beta, alpha, batch1, batch2)


_addbmm_in_shape = inplace(addbmm, "addbmm")


@public("method", name="addbmm_")
def addbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`addbmm` in place. As in PyTorch, and unlike in `addmm_`, a tensor that is broadcast grows to the result."""
    if not (isinstance(batch1, Tensor) and isinstance(batch2, Tensor) and batch1.dim() == batch2.dim() == 3):
        return _addbmm_in_shape(self, batch1, batch2, beta=beta, alpha=alpha)
    if self.shape == (batch1.size(1), batch2.size(2)):
        return _addbmm_in_shape(self, batch1, batch2, beta=beta, alpha=alpha)
    check_recorded_write(self)
    result = addbmm(self, batch1, batch2, beta=beta, alpha=alpha)
    with unrecorded():
        resize(self, result.spec)
        copy_values(self, result)
    if needs_recording((result,)):
        tape.take_grad_fn_of(self, result)
    return self


def _summed_bmm(batch1: Tensor, batch2: Tensor) -> Tensor:
    """The sum over the batch is more terms of one product: [b, n, k], [b, k, m] -> [n, b * k] @ [b * k, m]."""
    batch, rows, terms = batch1.shape
    left = batch1.transpose(0, 1).reshape(rows, batch * terms)
    return MM(left, batch2.reshape(batch * terms, batch2.shape[2]))


# All matrices of the batch get the same cotangent, because the op adds them up.
_ADDBMM = added_step(
    "addbmm",
    _summed_bmm,
    lambda ct, out, a, b, *, specs: MATMUL(ct, b.mH),
    lambda ct, out, a, b, *, specs: MATMUL(a.mH, ct),
)


# ---- Cross products --------------------------------------------------------------------------------------------------


@public("function method", out=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross products of vectors that lie along `dim`, by default the first dim of size 3."""
    check_tensors("cross", input=input, other=other)
    if dim is None:
        shape = input.shape
        if 3 not in shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = shape.index(3)
    return linalg_cross(input, other, dim=dim)


@public("function", name="linalg.cross", out=True)
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross products of vectors of size 3 that lie along `dim`; the other dims broadcast."""
    check_tensors("linalg.cross", input=input, other=other)
    if input.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    first, second = (tensor.shape[wrap_dim(dim, tensor.dim())] for tensor in (input, other))
    if first != 3 or second != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {first} and {second}"
        )
    if input.spec.dtype is bool_:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    _check_scalar_type(input.spec, other.spec)
    return _linalg_cross(input, other, dim)


@custom_vjp(
    lambda ct, out, a, b, dim: linalg_cross(conj(b), ct, dim=dim),
    lambda ct, out, a, b, dim: linalg_cross(ct, conj(a), dim=dim),
)
def _linalg_cross(input: Tensor, other: Tensor, dim: int) -> Tensor:
    x, y, z = (input.select(dim, i) for i in range(3))
    u, v, w = (other.select(dim, i) for i in range(3))
    return stack((y * w - z * v, z * u - x * w, x * v - y * u), dim)


# ---- The operator ----------------------------------------------------------------------------------------------------


def _product(self: Tensor, other: Any) -> Tensor:
    return matmul(self, other) if isinstance(other, Tensor) else declined(other)


_product_entry = entry(_product, is_operator=True)


@in_front_of(_product_entry)
def __matmul__(self: Tensor, other: Any) -> Tensor:
    if type(other) is Tensor and not open_contexts:
        return MATMUL(self, other)
    return _product_entry(self, other)


def __rmatmul__(self: Tensor, other: Any) -> Tensor:
    return matmul(other, self) if isinstance(other, Tensor) else declined(other)


add_member("__matmul__", __matmul__)
add_member("__rmatmul__", entry(__rmatmul__, is_operator=True))


show_out("tensordot")
