"""PyTorch's kernels by their own names, `torch._softmax` and the like, which libraries and exported programs call.

Each function calls another public function, with the arguments in the kernel's order.

>>> import weft as torch
>>> torch._shape_as_tensor(torch.ones(2, 3))
tensor([2, 3])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core import dtype as dt
from ...core.device import are_interchangeable
from ...core.dtype import DType, float16, float32, int32, int64
from ...core.limits import finfo
from ...core.names import named
from ...core.public import public
from ...core.registry import FUNCTIONS, add_function
from ...core.tensor import Tensor, wrap_dim
from ..creation.creation import empty
from ..linalg.byte_product import byte_product, takes_bytes

_F = FUNCTIONS  # looked up when called: some functions are defined after this file


def _functional(name: str) -> Callable:
    return FUNCTIONS[f"nn.functional.{name}"]


# ---- softmax ---------------------------------------------------------------------------------------------------------


def _converted(name: str, input: Tensor, half_to_float: bool) -> Tensor:
    """The input in the dtype of the result. A tensor without memory may ask for what GPUs do: float32 from half precision."""
    if half_to_float and input.spec.device.backend.has_memory:
        raise RuntimeError(f"{name} with half to float conversion is not supported on CPU")
    return input.to(float32) if half_to_float else input


@public("function", out=True)
def _softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Compute `softmax(input, dim)`."""
    return _F["softmax"](_converted("softmax", input, half_to_float), dim)


@public("function", out=True)
def _log_softmax(input: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """Compute `log_softmax(input, dim)`."""
    return _F["log_softmax"](_converted("log_softmax", input, half_to_float), dim)


@public("function")
def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType) -> Tensor:
    """Return the gradient of the input of softmax, from that of its output."""
    return ((grad_output - (grad_output * output).sum(dim, keepdim=True)) * output).to(input_dtype)


@public("function", out=True)
def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType) -> Tensor:
    """Return the gradient of the input of log_softmax, from that of its output."""
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)


@public("function")
def _safe_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """`softmax`, with zeros instead of NaN where all elements are minus infinity."""
    masked = (input == -math.inf).all(dim, keepdim=True)
    return _F["where"](masked, 0.0, _F["softmax"](input, dim, dtype=dtype))


@public("function")
def _masked_softmax(
    input: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    """`softmax` along `dim` (the last, unless given) of the elements that `mask`, a bool tensor, does not hide."""
    return _F["softmax"](input.masked_fill(mask.expand(input.shape), -math.inf), -1 if dim is None else dim)


# ---- Sizes and conversions -------------------------------------------------------------------------------------------


@public("function")
def _shape_as_tensor(input: Tensor) -> Tensor:
    """Return the shape as a tensor of int64."""
    return _F["tensor"](list(input.shape), dtype=int64)


@public("function")
def _reshape_from_tensor(input: Tensor, shape: Tensor) -> Tensor:
    """`reshape` to sizes that a tensor holds."""
    return input.reshape(shape.tolist())


@public("function")
def _dim_arange(like: Tensor, dim: int) -> Tensor:
    """Return 0, 1, ... up to the size of `dim`."""
    return _F["arange"](like.size(dim), device=like.device)


def _cast(name: str, dtype: DType) -> None:
    @public("function", name=f"_cast_{name}", words={"dtype": dtype})
    def cast(input: Tensor, non_blocking: bool = False) -> Tensor:
        """Compute `input.to({dtype})`."""
        return input.to(dtype)


for _kind in (dt.uint8, dt.int8, dt.float64, float32, float16, int32, int64, dt.int16):
    _cast(dt.LEGACY_NAMES[_kind], _kind)


@public("function", name="_to_cpu")
def to_cpu(tensors: Any) -> tuple[Tensor, ...]:
    """Return the tensors on the CPU."""
    return tuple(each.cpu() for each in tensors)


# ---- Elementwise -----------------------------------------------------------------------------------------------------


@public("function", out=True)
def _add_relu(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """Compute relu(input + alpha * other)."""
    return _F["relu"](_F["add"](input, other, alpha=alpha))


@public("function")
def _add_relu_(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """`_add_relu`, in place."""
    return input.add_(other, alpha=alpha).relu_()


@public("function method", out=True)
def _addmm_activation(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False
) -> Tensor:
    """Compute relu, or gelu, of `addmm`."""
    result = _F["addmm"](input, mat1, mat2, beta=beta, alpha=alpha)
    return _functional("gelu")(result) if use_gelu else _F["relu"](result)


@public("function method")
def _conj_physical(input: Tensor) -> Tensor:
    """Compute `conj_physical`."""
    return _F["conj_physical"](input)


@public("function", out=True)
def _conj_copy(input: Tensor) -> Tensor:
    """Return the conjugates in new memory."""
    return input.conj().resolve_conj().clone()


@public("function", out=True)
def _neg_view_copy(input: Tensor) -> Tensor:
    """Return the negatives in new memory."""
    return input.neg()


@public("function")
def _prelu_kernel(input: Tensor, weight: Tensor) -> Tensor:
    """input where it is positive, else weight * input; `weight` broadcasts."""
    return _F["where"](input > 0, input, weight * input)


@public("function")
def _saturate_weight_to_fp16(weight: Tensor) -> Tensor:
    """Return the values, clamped to the range of float16."""
    return weight.clamp(-65504, 65504)


@public("function")
def _test_serialization_subcmul(input: Tensor, other: Tensor, alpha: Any = 1) -> Tensor:
    """Compute input - alpha * other."""
    return input - alpha * other


# ---- Questions -------------------------------------------------------------------------------------------------------


@public("function method")
def _is_all_true(input: Tensor) -> Tensor:
    """Whether all elements of a bool tensor are True."""
    return input.all()


@public("function method")
def _is_any_true(input: Tensor) -> Tensor:
    """Whether an element of a bool tensor is True."""
    return input.any()


@public("function")
def _debug_has_internal_overlap(input: Tensor) -> int:
    """0 if no two elements share memory, 1 if some do, 2 if it is not easy to say."""
    if input.spec.repeats:
        return 1
    return 0 if input.is_contiguous() or input.numel() == input.spec.span else 2


@public("function")
def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether `input.data = from_` is possible: between tensors of one kind of device, or of the CPU and accelerators."""
    return are_interchangeable(input.device, from_.device)


def _always(name: str, answer: Any) -> None:
    @named(name, answer=answer)
    def function(*args: Any, **kwargs: Any) -> Any:
        """{answer}: weft does not have it."""
        return answer

    add_function(name, function)


for _name in (
    "_nnpack_available", "_use_cudnn_ctc_loss", "_use_miopen_ctc_loss", "_use_cudnn_rnn_flatten_weight",
    "_running_with_deploy", "_is_device_backend_autoload_enabled", "_is_functional_tensor", "_cufft_get_plan_cache_size",
):  # fmt: skip
    _always(_name, False)


# ---- Reductions and joins --------------------------------------------------------------------------------------------


@public("function")
def _aminmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Return the smallest and the largest elements, as a plain tuple."""
    return tuple(_F["aminmax"](input, dim=dim, keepdim=keepdim))


@public("function", out=True)
def _logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Compute `logcumsumexp`."""
    return _F["logcumsumexp"](input, dim)


@public("function", out=True)
def _stack(tensors: Any, dim: int = 0) -> Tensor:
    """Compute `stack`."""
    return _F["stack"](tensors, dim)


@public("function", out=True)
def _chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Tensor:
    """Split each tensor into chunks along `dim`, padded with zeros to one size; join the flattened k-th chunks."""
    dim = wrap_dim(dim, tensors[0].dim())
    if any(each.shape[:dim] != tensors[0].shape[:dim] for each in tensors):
        raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    rows = []
    for each in tensors:
        step = -(-each.size(dim) // num_chunks)
        missing = step * num_chunks - each.size(dim)
        padded = _functional("pad")(each, (0, 0) * (each.dim() - 1 - dim) + (0, missing)) if missing else each
        rows.append(padded.reshape((*padded.shape[:dim], num_chunks, -1)))
    return _F["cat"](rows, dim + 1)


@public("function", out=True)
def _compute_linear_combination(input: Tensor, coefficients: Tensor) -> Tensor:
    """Return the sums of the first dim of `input` with each row of coefficients as weights."""
    return _F["tensordot"](coefficients.to(input.dtype), input, 1)


@public("function")
def _unique2(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, ...]:
    """`unique` with three results; a result that the flags do not ask for is empty."""
    values, inverse, counts = _F["unique"](input, sorted, True, True)
    none = empty(0, dtype=int64, device=input.device)
    return values, inverse if return_inverse else none, counts if return_counts else none


@public("function")
def _unique(input: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, ...]:
    """`unique` with two results; the second is empty if it is not wanted."""
    return _unique2(input, sorted, return_inverse)[:2]


# ---- Indices ---------------------------------------------------------------------------------------------------------


@public("function")
def _unsafe_index(input: Tensor, indices: Any) -> Tensor:
    """`input[indices]`, where None stands for a whole dim. weft checks the indices all the same."""
    return input[tuple(slice(None) if each is None else each for each in indices)]


@public("function")
def _unsafe_index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Compute `index_put` in a copy."""
    return _F["index_put"](input, tuple(indices), values, accumulate)


@public("function")
def _unsafe_masked_index(input: Tensor, mask: Tensor, indices: Any, fill: Any) -> Tensor:
    """`input[indices]` where `mask` is true, `fill` elsewhere, where indices may be out of range."""
    # No index is in range, and one element of each indexed dim has the shape of the result.
    if not input.numel():
        indexed = [k < len(indices) and indices[k] is not None for k in range(input.dim())]
        sizes = [1 if each else size for each, size in zip(indexed, input.shape)]
        return _unsafe_index(input.new_full(sizes, fill), _within(indices, sizes))
    return _unsafe_index(input, _within(indices, input.shape)).masked_fill(~mask, fill)


@public("function")
def _unsafe_masked_index_put_accumulate(input: Tensor, mask: Tensor, indices: Any, values: Tensor) -> Tensor:
    """A copy of `input` with `values` added at the indices where `mask` is true; elsewhere indices may be out of range."""
    if not input.numel():
        return input.clone()
    return _unsafe_index_put(input, _within(indices, input.shape), values.masked_fill(~mask, 0), True)


def _within(indices: Any, sizes: Any) -> tuple[Tensor | None, ...]:
    """The indices with those that are out of range moved to the nearest end of their dim."""
    return tuple(
        None if each is None else each.clamp(-size, size - 1)
        for each, size in zip(indices, sizes, strict=False)
    )


@public("function")
def _index_put_impl_(
    input: Tensor, indices: Any, values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    """Compute `index_put_`."""
    return input.index_put_(tuple(indices), values, accumulate)


@public("function", out=True)
def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Row numbers in ascending order as the places at which rows begin."""
    ends = _F["bincount"](input, minlength=size).cumsum(0)
    return _functional("pad")(ends, (1, 0)).to(int32 if out_int32 else int64)


@public("function", out=True)
def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The places at which rows begin, as row and column numbers."""
    rows = _F["repeat_interleave"](crow_indices.diff())
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return _F["stack"](pair).to(int32 if out_int32 else int64)


# ---- Products and decompositions -------------------------------------------------------------------------------------


@public("function", out=True)
def _int_mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of matrices of int8, in int32: on NVIDIA's GPUs from compute capability 8.0 on, by tensor cores."""
    for each in (input, mat2):
        if each.dtype is not dt.int8 or each.dim() != 2:
            raise RuntimeError(
                f"_int_mm: expected matrices of int8, got {each.dtype} of shape {list(each.shape)}"
            )
    if input.shape[1] == mat2.shape[0] and takes_bytes(input, mat2):
        return byte_product(input, mat2, int32)
    return _F["mm"](input.to(int32), mat2.to(int32))


@public("function")
def _euclidean_dist(x1: Tensor, x2: Tensor) -> Tensor:
    """Compute `cdist` of the Euclidean norm, by a product of matrices."""
    return _F["cdist"](x1, x2, 2.0, "use_mm_for_euclid_dist")


@public("function")
def _trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Any,
    expand2: Any,
    expand3: Any,
    sumdim: Any,
    unroll_dim: int = 1,
) -> Tensor:
    """The sum over `sumdim` of the product of three tensors, which first get dims of size 1 at the places `expand`."""
    product: Any = 1
    for tensor, places in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for place in sorted(places):
            tensor = tensor.unsqueeze(place)
        product = tensor * product
    return product.sum(tuple(sumdim)) if sumdim else product


@public("function")
def _convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, benchmark: bool, deterministic: bool, cudnn_enabled: bool, allow_tf32: bool = False,
) -> Tensor:  # fmt: skip
    """`convolution`; the last switches are for cuDNN."""
    return _F["convolution"](
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


@public("function")
def _convolution_mode(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: str, dilation: Any, groups: int
) -> Tensor:
    """Return the convolution with padding "same" or "valid"."""
    convolve = _functional(f"conv{input.dim() - 2}d")
    return convolve(input, weight, bias, stride, padding, dilation, groups)


# ---- Norms, attention, sequences -------------------------------------------------------------------------------------


@public("function")
def _native_batch_norm_legit(input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any) -> Any:
    """`native_batch_norm`; the running mean and variance may be left out."""
    statistics = rest if len(rest) == 5 else (None, None, *rest)
    return _F["native_batch_norm"](input, weight, bias, *statistics)


@public("function")
def _native_batch_norm_legit_no_training(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> Any:
    """Compute `native_batch_norm` with the running mean and variance."""
    result = _F["native_batch_norm"](input, weight, bias, running_mean, running_var, False, momentum, eps)
    return result[0], input.new_empty(0), input.new_empty(0)


@public("function")
def _batch_norm_impl_index(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """Return `native_batch_norm`, an empty tensor for cuDNN, and 0: the number of the kernel."""
    result = _F["native_batch_norm"](input, weight, bias, running_mean, running_var, training, momentum, eps)
    return (*result, empty(0, dtype=dt.uint8, device=input.device), 0)


@public("function")
def _fused_rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    """`rms_norm`, and the reciprocal of the root that it divides by."""
    dims = tuple(range(-len(normalized_shape), 0))
    small = finfo(input.dtype).eps if eps is None else eps
    scale = (input.pow(2).mean(dims, keepdim=True) + small).rsqrt()
    return _F["rms_norm"](input, normalized_shape, weight, eps), scale


@public("function")
def _scaled_dot_product_attention_math(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Tensor | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """Attention and the weights that it gives to the values; `attn_mask` is added to the scores."""
    if enable_gqa:
        key, value = (each.repeat_interleave(query.size(-3) // each.size(-3), -3) for each in (key, value))
    factor = math.sqrt(query.size(-1) ** -0.5 if scale is None else scale)
    scores = (query * factor) @ (key.transpose(-2, -1) * factor)  # PyTorch's order, which avoids overflow
    if is_causal:
        hidden = _F["ones"](scores.shape[-2:], dtype=dt.bool_, device=scores.device).tril().logical_not()
        scores = scores.masked_fill(hidden, -math.inf)
    if attn_mask is not None:
        scores = scores + attn_mask
    weights = _safe_softmax(scores, -1)
    used = _F["dropout"](weights, dropout_p, True) if dropout_p else weights
    return used @ value, weights


@public("function")
def _fused_sdp_choice(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> int:
    """The number of the kernel that attention uses: 1 for blocks (flash attention), 0 with all weights in memory, as for dropout."""
    return 0 if dropout_p else 1


@public("function")
def _pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """The elements of padded sequences, time by time, and how many sequences there are at each time."""
    if batch_first:
        input = input.transpose(0, 1)
    sizes = lengths.tolist()
    if sorted(sizes, reverse=True) != sizes:
        raise RuntimeError("Expected `lengths` to be sorted in decreasing order: pass enforce_sorted=False")
    counts = [sum(length > time for length in sizes) for time in range(sizes[0])]
    return _F["cat"]([input[time, :count] for time, count in enumerate(counts)]), _F["tensor"](counts)


@public("function")
def _pad_packed_sequence(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: float, total_length: int
) -> tuple[Tensor, Tensor]:
    """Return the inverse of `_pack_padded_sequence`: padded sequences and their lengths."""
    counts = batch_sizes.tolist()
    steps = max(len(counts), total_length)
    result = data.new_full((steps, counts[0], *data.shape[1:]), padding_value)
    rows = []
    for piece in data.split(counts):
        missing = counts[0] - piece.size(0)
        rows.append(
            _F["cat"]((piece, piece.new_full((missing, *piece.shape[1:]), padding_value)))
            if missing
            else piece
        )
    padded = _F["stack"](rows)
    if steps > len(counts):
        padded = _F["cat"]((padded, result[len(counts) :]))
    lengths = _F["tensor"]([sum(count > place for count in counts) for place in range(counts[0])])
    return padded.transpose(0, 1) if batch_first else padded, lengths


@public("function")
def _transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> tuple[Tensor, ...]:
    """Add the bias, part into query, key and value by heads, and scale the query."""
    batch, length, width = qkv.shape
    size = width // 3 // num_heads
    parts = (qkv + qkv_bias).view(batch, length, 3, num_heads, size).permute(2, 0, 3, 1, 4).contiguous()
    return parts[0] * (1 / math.sqrt(size)), parts[1], parts[2]


# ---- Scaling of gradients --------------------------------------------------------------------------------------------


@public("function")
def _amp_foreach_non_finite_check_and_unscale_(self: Any, found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiply tensors by `inv_scale`, in place; `found_inf` becomes 1 if an element is not finite."""
    for each in self:
        if not each.isfinite().all():
            found_inf.fill_(1)
        each.mul_(inv_scale.reshape(()).to(each.dtype))


@public("function")
def _amp_update_scale_(
    input: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Return the next scale: smaller after an overflow, larger after `growth_interval` steps without one."""
    if found_inf.item():
        input.mul_(scale_backoff_factor)
        growth_tracker.zero_()
        return input
    if growth_tracker.item() + 1 == growth_interval:
        grown = input * scale_growth_factor
        if grown.isfinite().all():
            input.copy_(grown)
        growth_tracker.zero_()
        return input
    growth_tracker.add_(1)
    return input


for _name in ("adaptive_avg_pool2d", "adaptive_avg_pool3d"):
    add_function(f"_{_name}", FUNCTIONS[f"nn.functional.{_name}"])
