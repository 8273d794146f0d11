"""Operators of PyTorch that have no public function of their own name and arguments, as functions of weft's."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtype import bool_, uint8
from ...core.layout import contiguous_format
from ...core.registry import FUNCTIONS as PUBLIC
from ...core.registry import namespace
from ...core.tensor import Tensor

# Operator -> function, which is given the arguments of the schema.
FUNCTIONS: dict[str, Callable] = {}
# Operator and overload -> function, where an overload is different from the others.
OVERLOADS: dict[str, Callable] = {}
# Arguments that schemas call otherwise than weft's functions.
RENAMED: dict[str, str] = {"indices": "index", "size": "shape"}
REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}


@functools.cache
def functional() -> dict[str, Callable]:
    """The functions of `torch.nn.functional`."""
    from ... import nn

    return {**vars(nn.functional), **namespace("nn.functional")}


def own(*names: str) -> Callable[[Callable], Callable]:
    """A decorator: the function is the operator of each of these names; with a dot, one overload of it."""

    def decorate(function: Callable) -> Callable:
        function.takes_schema_arguments = True  # type: ignore[attr-defined]
        for name in names:
            (OVERLOADS if "." in name else FUNCTIONS)[name] = function
        return function

    return decorate


def own_rows(table: dict[str, Callable]) -> None:
    """State operators that are one expression each. A key may have several names."""
    for names, function in table.items():
        own(*names.split())(function)


# ---- Views and copies ----------------------------------------------------------------------------------------------------


own_rows(
    {
        "_unsafe_view": lambda self, size: self.reshape(size),
        "alias": lambda self: self.view_as(self),
        "lift lift_fresh": lambda self: self,
        "lift_fresh_copy": lambda self: self.clone(),
        "copy": lambda self, src, non_blocking=False: PUBLIC["empty_like"](self).copy_(src),
        "zero": lambda self: PUBLIC["zeros_like"](self),
        "_local_scalar_dense": lambda self: self.item(),
        "sym_size.int": lambda self, dim: self.shape[dim],
        "sym_stride.int": lambda self, dim: self.stride(dim),
        "sym_size": lambda self: list(self.shape),
        "sym_stride": lambda self: list(self.stride()),
        "sym_numel": lambda self: self.numel(),
        "sym_storage_offset": lambda self: self.storage_offset(),
    }
)


@own("_reshape_alias")
def _reshape_alias(self: Tensor, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    return self.as_strided(size, stride)


@own("_reshape_alias_copy")
def _reshape_alias_copy(self: Tensor, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    return _reshape_alias(self, size, stride).clone(memory_format=contiguous_format)


@own("slice")
def _slice(
    self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    return self[(slice(None),) * (dim % self.ndim) + (slice(start, end, step),)]


@own("_to_copy")
def _to_copy(
    self: Tensor, *, memory_format: Any = None, non_blocking: bool = False, **options: Any
) -> Tensor:
    wanted = {name: options[name] for name in ("dtype", "device") if options.get(name) is not None}
    if memory_format is not None:
        wanted["memory_format"] = memory_format
    return self.to(**wanted, copy=True) if wanted else self.clone()


@own("_efficientzerotensor")
def _efficientzerotensor(size: Sequence[int], **options: Any) -> Tensor:
    return PUBLIC["zeros"](size, dtype=options.get("dtype"), device=options.get("device"))


@own("_new_zeros_with_same_feature_meta")
def _new_zeros_with_same_feature_meta(self: Tensor, other: Tensor, *, self_num_batch_dims: int = 0) -> Tensor:
    """Zeros for a tangent of `other`: its strides and room for its whole storage, for each index of the first dims of `self`."""
    batch = self.shape[:self_num_batch_dims]
    room = other.untyped_storage().nbytes() // other.element_size()
    outer = [room * math.prod(batch[dim + 1 :]) for dim in range(len(batch))]
    zeros = other.new_zeros(room * math.prod(batch))
    return zeros.as_strided((*batch, *other.shape), (*outer, *other.stride()), other.storage_offset())


# ---- Indexing ------------------------------------------------------------------------------------------------------------


def _key(indices: Sequence[Tensor | None]) -> tuple:
    return tuple(slice(None) if each is None else each for each in indices)


own_rows(
    {
        "index _unsafe_index": lambda self, indices: self[_key(indices)],
        "block_diag": lambda tensors: PUBLIC["block_diag"](*tensors),
    }
)


@own("index_put", "_unsafe_index_put")
def _index_put(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    if all(each is not None for each in indices):
        return PUBLIC["index_put"](self, tuple(indices), values, accumulate)
    places = PUBLIC["arange"](self.numel(), device=self.device).reshape(self.shape)[_key(indices)]
    flat = PUBLIC["index_put"](
        self.reshape(-1), (places.reshape(-1),), values.expand(places.shape).reshape(-1), accumulate
    )
    return flat.reshape(self.shape)


@own("index_put_", "_index_put_impl_")
def _index_put_(
    self: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:
    if all(each is not None for each in indices):
        return self.index_put_(tuple(indices), values, accumulate)  # type: ignore[arg-type]  # none is None
    return self.copy_(_index_put(self, indices, values, accumulate))


@own("_unsafe_masked_index")
def _unsafe_masked_index(self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], fill: Any) -> Tensor:
    return self[_key(_inside(self, indices))].masked_fill(~mask, fill)


@own("_unsafe_masked_index_put_accumulate")
def _unsafe_masked_index_put_accumulate(
    self: Tensor, mask: Tensor, indices: Sequence[Tensor | None], values: Tensor
) -> Tensor:
    if not self.numel():
        return self.clone()
    return _index_put(self, _inside(self, indices), values.masked_fill(~mask, 0), True)


def _inside(tensor: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The indices with those that are out of range moved to the nearest end of their dim."""
    return [
        None if each is None else each.clamp(-tensor.shape[dim], tensor.shape[dim] - 1)
        for dim, each in enumerate(indices)
    ]


@own("unique_consecutive")
def _unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple:
    values, inverse, counts = PUBLIC["unique_consecutive"](self, True, True, dim)
    nothing = PUBLIC["empty"](0, dtype=inverse.dtype)
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


@own("unique_dim")
def _unique_dim(
    self: Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple:
    return PUBLIC["unique"](self, sorted, True, True, dim)


@own("unique_dim_consecutive")
def _unique_dim_consecutive(
    self: Tensor, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> tuple:
    return PUBLIC["unique_consecutive"](self, True, True, dim)


# ---- Activations and losses ----------------------------------------------------------------------------------------------


@own("elu")
def _elu(self: Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Tensor:
    if scale == 1 and input_scale == 1:
        return functional()["elu"](self, alpha)
    return PUBLIC["where"](self > 0, self * scale, ((self * input_scale).exp() - 1) * (alpha * scale))


@own("elu_")
def _elu_(self: Tensor, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Tensor:
    return self.copy_(_elu(self, alpha, scale, input_scale))


def _in_place(name: str) -> None:
    @own(f"{name}_")
    def write(self: Tensor) -> Tensor:
        return self.copy_(functional()[name](self))


for _name in ("silu", "mish", "hardswish", "hardsigmoid", "relu6"):
    _in_place(_name)


@own("gelu_")
def _gelu_(self: Tensor, *, approximate: str = "none") -> Tensor:
    return self.copy_(functional()["gelu"](self, approximate=approximate))


own_rows(
    {
        "log_sigmoid": lambda self: functional()["logsigmoid"](self),
        "log_sigmoid_forward": lambda self: (functional()["logsigmoid"](self), (-self.detach().abs()).exp()),
    }
)


@own("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    loss = functional()["nll_loss"](
        self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction]
    )
    if reduction == 0 and target.ndim > 0:
        return loss, PUBLIC["zeros"]((), dtype=self.dtype, device=self.device)
    counted = target != ignore_index
    if weight is None:
        return loss, counted.sum().to(self.dtype)
    return loss, PUBLIC["where"](counted, weight.take(target.where(counted, 0)), 0).sum()


@own("cross_entropy_loss")
def _cross_entropy_loss(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    return functional()["cross_entropy"](
        self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction], label_smoothing=label_smoothing
    )  # fmt: skip


@own("nll_loss_nd", "nll_loss2d")
def _nll_loss_nd(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
) -> Tensor:
    return functional()["nll_loss"](
        self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction]
    )


# ---- Windows and pictures ------------------------------------------------------------------------------------------------


@own("adaptive_max_pool2d")
def _adaptive_max_pool2d(self: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    return functional()["adaptive_max_pool2d"](self, output_size, return_indices=True)


@own("adaptive_max_pool3d")
def _adaptive_max_pool3d(self: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    return functional()["adaptive_max_pool3d"](self, output_size, return_indices=True)


@own("max_unpool2d")
def _max_unpool2d(self: Tensor, indices: Tensor, output_size: Sequence[int]) -> Tensor:
    return _unpooled(self, indices, output_size, 2)


@own("max_unpool3d")
def _max_unpool3d(
    self: Tensor, indices: Tensor, output_size: Sequence[int], stride: Any, padding: Any
) -> Tensor:
    return _unpooled(self, indices, output_size, 3)


def _unpooled(self: Tensor, indices: Tensor, output_size: Sequence[int], dims: int) -> Tensor:
    outer = self.shape[: self.ndim - dims]
    count = 1
    for each in output_size:
        count *= each
    zeros = PUBLIC["zeros"]((*outer, count), dtype=self.dtype)
    filled = zeros.scatter(-1, indices.reshape(*outer, -1), self.reshape(*outer, -1))
    return filled.reshape(*outer, *output_size)


@own("im2col")
def _im2col(self: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Tensor:
    return functional()["unfold"](self, kernel_size, dilation, padding, stride)


@own("col2im")
def _col2im(
    self: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Tensor:
    return functional()["fold"](self, output_size, kernel_size, dilation, padding, stride)


def _padding(mode: str) -> Callable:
    def pad(self: Tensor, padding: Sequence[int]) -> Tensor:
        return functional()["pad"](self, list(padding), mode=mode)

    return pad


for _count in (1, 2, 3):
    own(f"reflection_pad{_count}d")(_padding("reflect"))
    own(f"replication_pad{_count}d")(_padding("replicate"))

# Operator -> mode and antialias of `interpolate`.
UPSAMPLING = {
    **{f"upsample_nearest{n}d": ("nearest", False) for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": ("nearest-exact", False) for n in (1, 2, 3)},
    "upsample_linear1d": ("linear", False), "upsample_bilinear2d": ("bilinear", False),
    "upsample_trilinear3d": ("trilinear", False), "upsample_bicubic2d": ("bicubic", False),
    "_upsample_bilinear2d_aa": ("bilinear", True), "_upsample_bicubic2d_aa": ("bicubic", True),
}  # fmt: skip


def upsampled(name: str, self: Tensor, output_size: Any, *options: Any) -> Tensor:
    """The operator `name` of an upsampling, with the options of its schema: align_corners, if it has them, and scales."""
    mode, antialias = UPSAMPLING[name]
    has_corners = not mode.startswith("nearest")
    corners = options[0] if has_corners and options else None
    scales = [each for each in (options[1:] if has_corners else options)]
    if len(scales) == 1 and isinstance(scales[0], (list, tuple)):  # the overload "vec"
        scales = list(scales[0])
    given: dict[str, Any] = {"size": None if output_size is None else list(output_size)}
    if scales and all(each is not None for each in scales):
        sizes = [int(size * scale) for size, scale in zip(self.shape[2:], scales, strict=False)]
        if output_size is None or sizes == list(output_size):
            given = {"scale_factor": list(scales), "recompute_scale_factor": False}
    return functional()["interpolate"](self, mode=mode, align_corners=corners, antialias=antialias, **given)


for _name in UPSAMPLING:
    own(_name)(functools.partial(upsampled, _name))


# ---- Fourier transforms, linear algebra, attention -----------------------------------------------------------------------

_NORMS = {True: ("backward", "ortho", "forward"), False: ("forward", "ortho", "backward")}


@own("_fft_c2c")
def _fft_c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    function = PUBLIC["fft.fftn" if forward else "fft.ifftn"]
    return function(self, dim=tuple(dim), norm=_NORMS[forward][normalization])


@own("_fft_r2c")
def _fft_r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    function = PUBLIC["fft.rfftn" if onesided else "fft.fftn"]
    return function(self, dim=tuple(dim), norm=_NORMS[True][normalization])


@own("_fft_c2r")
def _fft_c2r(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    sizes = [self.shape[each] for each in dim[:-1]] + [last_dim_size]
    return PUBLIC["fft.irfftn"](self, s=sizes, dim=tuple(dim), norm=_NORMS[False][normalization])


@own("_linalg_svd")
def _linalg_svd(
    A: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: Any = None
) -> tuple:
    if compute_uv:
        return tuple(PUBLIC["linalg.svd"](A, full_matrices))
    nothing = PUBLIC["empty"](0, dtype=A.dtype)
    return nothing, PUBLIC["linalg.svdvals"](A), nothing


@own("_linalg_eigh")
def _linalg_eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple:
    if compute_v:
        return tuple(PUBLIC["linalg.eigh"](A, UPLO))
    return PUBLIC["linalg.eigvalsh"](A, UPLO), PUBLIC["empty"](0, dtype=A.dtype)


@own("_linalg_check_errors")
def _linalg_check_errors(info: Tensor, api_name: str, *, is_matrix: bool) -> None:
    if info.any():
        from ...ops.linalg.lapack import LinAlgError

        raise LinAlgError(f"{api_name}: the decomposition failed: the matrix is singular or did not converge")


own_rows(
    {
        "_cdist_forward": lambda x1, x2, p, compute_mode: PUBLIC["cdist"](x1, x2, p),
        "_pdist_forward": lambda self, p=2.0: functional()["pdist"](self, p),
        "native_dropout_backward": lambda grad_output, mask, scale: grad_output * mask * scale,
    }
)


@own("_scaled_dot_product_flash_attention_for_cpu")
def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    result = functional()["scaled_dot_product_attention"](
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale
    )
    if query.device.type == "meta":
        return result, query.new_empty(query.shape[:-1])
    rows = max(1, _SCORES // max(1, query.shape[:-2].numel() * key.shape[-2]))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    sums = [
        _log_sums(query[..., start : start + rows, :], key, attn_mask, is_causal, scale, start)
        for start in range(0, query.shape[-2], rows)
    ]
    return result, PUBLIC["cat"](sums, -1) if sums else query.new_empty(query.shape[:-1])


_SCORES = (
    2**20
)  # elements that are in memory at once; all scores of long sequences are more than a computer has


def _log_sums(
    query: Tensor, key: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: float, start: int
) -> Tensor:
    """The logarithms of the sums of exponentials of the scores of some queries, of which the first is number `start`."""
    scores = query @ key.transpose(-2, -1) * scale
    rows, columns = scores.shape[-2:]
    if is_causal:
        allowed = PUBLIC["ones"]((rows, columns), dtype=bool_, device=scores.spec.device).tril(start)
        scores = scores.masked_fill(~allowed, float("-inf"))
    if attn_mask is not None:
        mask = attn_mask if attn_mask.shape[-2:-1] in ((), (1,)) else attn_mask[..., start : start + rows, :]
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype is bool_ else scores + mask
    return scores.logsumexp(-1)


@own("_batch_norm_with_update")
def _batch_norm_with_update(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    norm = PUBLIC["native_batch_norm"]
    result = norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *result, input.new_empty(0, dtype=uint8)  # room that cuDNN would need for the backward pass


from . import aten_backward, aten_sparse  # noqa: E402, F401  (they add the operators for gradients and those of sparse tensors)

# ---- Operators of other devices and layouts ------------------------------------------------------------------------------

# Classes that handle operators name these in tables when they are defined.
_ABSENT = {
    "its kernels are for CUDA; torch.nn.functional.scaled_dot_product_attention computes attention": (
        "_efficient_attention_forward",
        "_flash_attention_forward",
    ),
    "torch.Tensor.pin_memory copies to pinned memory": ("_pin_memory",),
    "weft has the derivative of torch.sparse.mm(reduce=...), and no operators of its steps": (
        "_sparse_mm_reduce_impl",
        "_sparse_mm_reduce_impl_backward",
    ),
}


def _absent(name: str, reason: str) -> Callable:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.ops.aten.{name}: {reason}")

    return function


for _reason, _names in _ABSENT.items():
    for _name in _names:
        own(_name)(_absent(_name, _reason))
