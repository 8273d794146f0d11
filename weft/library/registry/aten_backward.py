"""Operators of PyTorch that compute gradients: `torch.ops.aten.gelu_backward` and the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autograd.tensor import require_grad
from ...core.batched import takes_part
from ...core.grad_mode import enable_grad, is_grad_enabled
from ...core.registry import FUNCTIONS as PUBLIC
from ...core.tensor import Tensor
from .aten_functions import FUNCTIONS as OWN
from .aten_functions import REDUCTIONS, UPSAMPLING, functional, own, own_rows, upsampled


def pull(function: Callable, cotangent: Any, *inputs: Tensor) -> tuple:
    """The gradients of `inputs`, for the gradient of `function(*inputs)`; for several results, one for each or None."""
    from ...autograd import grad

    several = not isinstance(cotangent, Tensor)
    given = [each for each in cotangent if each is not None] if several else [cotangent]
    recording = is_grad_enabled() and any(map(takes_part, (*inputs, *given)))
    with enable_grad():
        leaves = [
            _smooth(each.view_as(each) if recording and takes_part(each) else each.detach())
            for each in inputs
        ]
        result = function(*leaves)
        if several:
            pairs = [
                (x, ct) for x, ct in zip(result, cotangent, strict=True) if ct is not None and x.requires_grad
            ]
            result, cotangent = zip(*pairs, strict=True)
        return grad(result, leaves, cotangent, create_graph=recording, allow_unused=True)


def _smooth(x: Tensor) -> Tensor:
    """The tensor as one that requires grad. A sample within `vmap` may require grad only around it."""
    return x if x.requires_grad else require_grad(x)


def _of_first(name: str, function: Callable) -> None:
    """`name(grad_output, self, *options)` is the gradient of `function(self, *options)`."""

    @own(f"{name}_backward")
    def backward(grad_output: Tensor, self: Tensor, *options: Any, **named: Any) -> Tensor:
        return pull(lambda x: function(x, *options, **named), grad_output, self)[0]


def _named(name: str) -> Callable:
    return lambda *args, **kwargs: functional()[name](*args, **kwargs)


# ---- Activations ---------------------------------------------------------------------------------------------------------

for _name in (
    "gelu",
    "silu",
    "mish",
    "hardswish",
    "hardsigmoid",
    "hardshrink",
    "softshrink",
    "softplus",
    "hardtanh",
    "glu",
):
    _of_first(_name, _named(_name))
_of_first("logit", lambda x, eps=None: PUBLIC["logit"](x, eps))
_of_first("threshold", lambda x, threshold: functional()["threshold"](x, threshold, 0))
_of_first("leaky_relu", lambda x, slope, self_is_result=False: functional()["leaky_relu"](x, slope))
_of_first("log_sigmoid", lambda x, buffer=None: functional()["logsigmoid"](x))


own_rows(
    {
        "sigmoid_backward": lambda grad_output, output: grad_output * (output * (1 - output)).conj(),
        "tanh_backward": lambda grad_output, output: grad_output * (1 - output * output).conj(),
    }
)


@own("elu_backward")
def _elu_backward(
    grad_output: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Tensor
) -> Tensor:
    x = self_or_result
    negative = (
        (x + alpha * scale) * input_scale
        if is_result
        else (x * input_scale).exp() * (alpha * scale * input_scale)
    )
    return grad_output * PUBLIC["where"](x > 0, PUBLIC["full_like"](x, scale), negative)


@own("_prelu_kernel_backward")
def _prelu_kernel_backward(grad_output: Tensor, self: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    zero = PUBLIC["zeros_like"](self)
    return (
        PUBLIC["where"](self > 0, grad_output, weight * grad_output),
        PUBLIC["where"](self > 0, zero, self * grad_output),
    )


@own("rrelu_with_noise_backward")
def _rrelu_with_noise_backward(
    grad_output: Tensor,
    self: Tensor,
    noise: Tensor,
    lower: Any,
    upper: Any,
    training: bool,
    self_is_result: bool,
) -> Tensor:
    if training and upper - lower > 1e-6:
        return grad_output * noise
    return pull(lambda x: functional()["leaky_relu"](x, (lower + upper) / 2), grad_output, self)[0]


# ---- Losses --------------------------------------------------------------------------------------------------------------


def _loss(name: str, *options: str) -> None:
    """`name_backward(grad_output, self, target, reduction, *options)`."""

    @own(f"{name}_backward")
    def backward(
        grad_output: Tensor, self: Tensor, target: Tensor, reduction: int = 1, *values: Any
    ) -> Tensor:
        named = dict(zip(options, values, strict=False))
        return pull(
            lambda x: functional()[name](x, target, reduction=REDUCTIONS[reduction], **named),
            grad_output,
            self,
        )[0]


_loss("mse_loss")
_loss("soft_margin_loss")
_loss("huber_loss", "delta")
_loss("smooth_l1_loss", "beta")


@own("binary_cross_entropy_backward")
def _binary_cross_entropy_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    function = functional()["binary_cross_entropy"]
    return pull(lambda x: function(x, target, weight, reduction=REDUCTIONS[reduction]), grad_output, self)[0]


@own("multi_margin_loss_backward")
def _multi_margin_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    p: Any,
    margin: Any,
    weight: Any = None,
    reduction: int = 1,
) -> Tensor:
    function = functional()["multi_margin_loss"]
    return pull(
        lambda x: function(x, target, p, margin, weight, reduction=REDUCTIONS[reduction]), grad_output, self
    )[0]


@own("nll_loss_backward", "nll_loss2d_backward")
def _nll_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    def loss(x: Tensor) -> Tensor:
        return functional()["nll_loss"](
            x, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction]
        )

    return pull(loss, grad_output, self)[0]


# ---- Poolings, paddings, convolutions, pictures --------------------------------------------------------------------------

for _dims in (2, 3):
    _of_first(f"avg_pool{_dims}d", _named(f"avg_pool{_dims}d"))


def _adaptive_average(dims: int) -> None:
    @own(f"_adaptive_avg_pool{dims}d_backward")
    def backward(grad_output: Tensor, self: Tensor) -> Tensor:
        sizes = grad_output.shape[-dims:]
        return pull(lambda x: functional()[f"adaptive_avg_pool{dims}d"](x, sizes), grad_output, self)[0]


def _from_indices(name: str, dims: int) -> None:
    @own(f"{name}_backward")
    def backward(grad_output: Tensor, self: Tensor, *options: Any) -> Tensor:
        indices = options[-1]
        outer = self.shape[: self.ndim - dims]
        zeros = PUBLIC["zeros"](
            (*outer, self[(0,) * len(outer)].numel()), dtype=grad_output.dtype, device=grad_output.device
        )
        flat = zeros.scatter_add(-1, indices.reshape(*outer, -1), grad_output.reshape(*outer, -1))
        return flat.reshape(self.shape)


def _padding(mode: str, name: str) -> None:
    @own(f"{name}_backward")
    def backward(grad_output: Tensor, self: Tensor, padding: Sequence[int]) -> Tensor:
        return pull(lambda x: functional()["pad"](x, list(padding), mode=mode), grad_output, self)[0]


for _dims in (1, 2, 3):
    _padding("reflect", f"reflection_pad{_dims}d")
    _padding("replicate", f"replication_pad{_dims}d")
for _dims in (2, 3):
    _adaptive_average(_dims)
    for _name in ("adaptive_max_pool{}d", "fractional_max_pool{}d", "max_pool{}d_with_indices"):
        _from_indices(_name.format(_dims), _dims)


def _upsampling(name: str) -> None:
    @own(f"{name}_backward")
    def backward(grad_output: Tensor, output_size: Any, input_size: Sequence[int], *options: Any) -> Tensor:
        zeros = PUBLIC["zeros"](list(input_size), dtype=grad_output.dtype, device=grad_output.device)
        return pull(lambda x: upsampled(name, x, output_size, *options), grad_output, zeros)[0]


for _name in UPSAMPLING:
    _upsampling(_name)


@own("convolution_backward")
def _convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple:
    def convolve(x: Tensor, w: Tensor) -> Tensor:
        return PUBLIC["convolution"](
            x, w, None, stride, padding, dilation, transposed, output_padding, groups
        )

    by_input, by_weight = pull(convolve, grad_output, input, weight)
    dims = [each for each in range(grad_output.ndim) if each != 1]
    found = (by_input, by_weight, grad_output.sum(dims) if output_mask[2] else None)
    return tuple(each if wanted else None for each, wanted in zip(found, output_mask, strict=True))


def _grid(dims: int) -> None:
    @own(f"grid_sampler_{dims}d_backward")
    def backward(
        grad_output: Tensor,
        input: Tensor,
        grid: Tensor,
        interpolation_mode: int,
        padding_mode: int,
        align_corners: bool,
        output_mask: Sequence[bool],
    ) -> tuple:
        mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
        padding = ("zeros", "border", "reflection")[padding_mode]
        function = functional()["grid_sample"]
        found = pull(lambda x, g: function(x, g, mode, padding, align_corners), grad_output, input, grid)
        return tuple(each if wanted else None for each, wanted in zip(found, output_mask, strict=True))


_grid(2)
_grid(3)


# ---- Norms ---------------------------------------------------------------------------------------------------------------


def _normalized(ct: Tensor, x: Tensor, dims: Sequence[int]) -> Tensor:
    """The gradient of what was centered and scaled to `x` over `dims`, before the factor of the deviation."""
    return ct - ct.mean(dims, True) - x * (ct * x).mean(dims, True)


@own("native_layer_norm_backward")
def _native_layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> tuple:
    inner = list(range(input.ndim - len(normalized_shape), input.ndim))
    outer = list(range(input.ndim - len(normalized_shape)))
    x = (input - mean) * rstd
    ct = grad_out if weight is None else grad_out * weight
    by_weight, by_bias = grad_out * x, grad_out
    if outer:
        by_weight, by_bias = by_weight.sum(outer), by_bias.sum(outer)
    return (
        _normalized(ct, x, inner) * rstd if output_mask[0] else None,
        by_weight if output_mask[1] and weight is not None else None,
        by_bias if output_mask[2] and bias is not None else None,
    )


@own("native_group_norm_backward")
def _native_group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Sequence[bool],
) -> tuple:
    shape = (N, group, C // group, HxW)
    scale = rstd.reshape(N, group, 1, 1)
    x = (input.reshape(shape) - mean.reshape(N, group, 1, 1)) * scale
    ct = grad_out.reshape(shape)
    weighted = ct if weight is None else ct * weight.reshape(1, group, C // group, 1)
    return (
        (_normalized(weighted, x, (2, 3)) * scale).reshape(input.shape) if output_mask[0] else None,
        (ct * x).sum((0, 3)).reshape(C) if output_mask[1] else None,
        ct.sum((0, 3)).reshape(C) if output_mask[2] else None,
    )


@own("native_batch_norm_backward")
def _native_batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple:
    dims = [each for each in range(input.ndim) if each != 1]
    shape = [1, -1, *[1] * (input.ndim - 2)]
    if train:
        assert save_mean is not None and save_invstd is not None
        mean, scale = save_mean.reshape(shape), save_invstd.reshape(shape)
    else:
        assert running_mean is not None and running_var is not None
        mean, scale = running_mean.reshape(shape), (running_var + eps).rsqrt().reshape(shape)
    x = (input - mean) * scale
    ct = grad_out if weight is None else grad_out * weight.reshape(shape)
    return (
        (_normalized(ct, x, dims) if train else ct) * scale if output_mask[0] else None,
        (grad_out * x).sum(dims) if output_mask[1] else None,
        grad_out.sum(dims) if output_mask[2] else None,
    )


# ---- Views, indexing, distances ------------------------------------------------------------------------------------------


def _of_view(name: str, view: Callable) -> None:
    """`name_backward(grad_output, input_sizes, *options)` puts a gradient where the view lay, zeros elsewhere."""

    @own(f"{name}_backward")
    def backward(grad_output: Tensor, input_sizes: Sequence[int], *options: Any) -> Tensor:
        zeros = PUBLIC["zeros"](list(input_sizes), dtype=grad_output.dtype, device=grad_output.device)
        return pull(lambda x: view(x, *options), grad_output, zeros)[0]


_of_view("select", lambda x, dim, index: x.select(dim, index))
_of_view("diagonal", lambda x, offset, dim1, dim2: x.diagonal(offset, dim1, dim2))
_of_view("unfold", lambda x, dim, size, step: x.unfold(dim, size, step))
_of_view("slice", lambda x, dim, start, end, step: OWN["slice"](x, dim, start, end, step))


@own("masked_scatter_backward")
def _masked_scatter_backward(grad_output: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    taken = grad_output.masked_select(mask)
    count = 1
    for each in sizes:
        count *= each
    return PUBLIC["cat"](
        [taken, PUBLIC["zeros"](count - taken.numel(), dtype=taken.dtype, device=taken.device)]
    ).reshape(list(sizes))


@own("embedding_dense_backward")
def _embedding_dense_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    zeros = PUBLIC["zeros"](
        (num_weights, grad_output.shape[-1]), dtype=grad_output.dtype, device=grad_output.device
    )
    function = PUBLIC["embedding"]
    return pull(lambda w: function(w, indices, padding_idx, scale_grad_by_freq), grad_output, zeros)[0]


@own("_cdist_backward")
def _cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    return pull(lambda x: PUBLIC["cdist"](x, x2, p), grad, x1)[0]


@own("_pdist_backward")
def _pdist_backward(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    return pull(lambda x: functional()["pdist"](x, p), grad, self)[0]


@own("_scaled_dot_product_flash_attention_for_cpu_backward")
def _attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple:
    function = functional()["scaled_dot_product_attention"]
    return pull(
        lambda q, k, v: function(q, k, v, attn_mask, dropout_p, is_causal, scale=scale),
        grad_out,
        query,
        key,
        value,
    )
