"""Normalization over batches, layers, groups and neighbours: shift to mean 0, scale to variance 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.arguments import integer
from ...core.checking import check_tensor
from ...core.derivative import Derivative
from ...core.dispatch import watchers
from ...core.dtype import LEGACY_NAMES, DType, compute_type
from ...core.limits import finfo
from ...core.public import public
from ...core.recording import needs_recording
from ...core.spec import Spec
from ...core.symbols import as_float, per_plan
from ...core.tensor import Tensor
from ...engine.scalar import rsqrt
from ...families.kernel_graph import GraphBuilder, KernelGraph, Value
from ...families.map import COPY, Map, same_dtype
from ...families.monoid_op import Types
from ...families.reduce import Reduce
from ..assembly.padding import constant_pad
from ..creation.creation import zeros
from .average_pooling import avg_pool2d, avg_pool3d
from .norm_kernels import AFFINE, SPREAD_OR_ZERO, STATISTICS, Rows, cotangents, standardized
from .window_views import like_format, wide


def _spec(name: str, input: Any) -> Spec:
    check_tensor(input, name)
    return input.spec


def _specs(*parameters: Value | None) -> list[Spec | None]:
    return [None if each is None else each.spec for each in parameters]


def _check_float(name: str, spec: Spec) -> None:
    if spec.dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[spec.dtype]}'")


def _check_dtypes(name: str, spec: Spec, *parameters: Spec | None) -> DType:
    """The dtype of statistics: that of the parameters, which may be wider than a narrow input."""
    found = {each.dtype for each in parameters if each is not None}
    allowed = {spec.dtype, compute_type(spec.dtype)}
    if len(found) > 1 or not found <= allowed:
        raise RuntimeError(
            f"mixed dtype (CPU): all inputs must share same datatype. ({name}: input {spec.dtype}, parameters "
            f"{', '.join(sorted(map(str, found)))})"
        )
    return found.pop() if found else spec.dtype


# ---- Batch ----------------------------------------------------------------------------------------------------------------


def _check_batch(name: str, spec: Spec, training: bool, *parameters: Spec | None) -> DType:
    """Check the batch and return the dtype of statistics."""
    _check_float(name, spec)
    channels = spec.shape[1] if len(spec.shape) > 1 else 0
    words = ("running_mean", "running_var", "weight", "bias")
    for which, each in zip(words, parameters, strict=True):
        if each is None and which.startswith("running") and not training:
            raise RuntimeError(f"{which} must be defined in evaluation mode")
        if each is not None and each.numel != channels:
            raise RuntimeError(f"{which} should contain {channels} elements not {each.numel}")
    if not spec.numel:  # nothing is computed
        return spec.dtype
    return _check_dtypes(name, spec, *parameters)


def _channels(spec: Spec) -> Rows:
    """Each channel is standardized over the batch."""
    channels = spec.shape[1]
    across = (channels, *[1] * (len(spec.shape) - 2))
    return Rows(spec.shape, (0, *range(2, len(spec.shape))), across, (channels,))


_RUNNING = Map(
    "running",
    same_dtype,
    lambda running, value, momentum, factor: value * factor * momentum + running * (1 - momentum),
)


@per_plan
def _unbiased(count: int) -> float:
    """Return the factor from the mean of squares of so many elements to the unbiased variance."""
    return count / (count - 1) if count > 1 else math.nan


def _build_training(graph: GraphBuilder, name: str) -> list[Value]:
    x, weight, bias, running_mean, running_var = graph.inputs
    momentum, eps = graph.numbers
    kept = _check_batch(name, x.spec, True, *_specs(running_mean, running_var, weight, bias))
    if not x.spec.numel:
        return [graph.map(COPY, x), graph.empty(kept), graph.empty(kept)]
    rows = _channels(x.spec)
    results, var = standardized(graph, x, weight, bias, rows, eps, kept, SPREAD_OR_ZERO)
    factors = 1.0, _unbiased(rows.elements)
    for running, value, scale in zip((running_mean, running_var), (results[-2], var), factors):
        if running is not None:
            value = graph.reshape(value, running.spec.shape)
            graph.write(_RUNNING, running, running, value, momentum, scale)
    return results


def _training_rule(
    cts, outs, x, weight, bias, running_mean, running_var, name, momentum, eps, *, specs, wanted
):
    if not specs[0].numel:
        return cts[0], *_zeros_like_parameters(specs), None, None
    return *cotangents(cts, outs, x, weight, _channels(specs[0]), specs, wanted), None, None


def _zeros_like_parameters(specs: Sequence[Spec | None]) -> list[Tensor | None]:
    """Return the gradients of weight and bias over no elements."""
    return [
        None if each is None else zeros(each.shape, dtype=each.dtype, device=each.device)
        for each in specs[1:3]
    ]


_TRAINING = KernelGraph(
    "native_batch_norm",
    5,
    _build_training,
    numbers=(float, float),
    derivative=Derivative(joint=_training_rule, results=STATISTICS),
)

_INVERSE = Map("inverse_deviation", same_dtype, lambda var, eps: rsqrt(var + eps))


def _build_evaluation(graph: GraphBuilder, name: str) -> list[Value]:
    x, weight, bias, running_mean, running_var = graph.inputs
    kept = _check_batch(name, x.spec, False, *_specs(running_mean, running_var, weight, bias))
    if not x.spec.numel:
        return [graph.map(COPY, x), graph.empty(kept), graph.empty(kept)]
    compute, across = compute_type(x.spec.dtype), _channels(x.spec).across
    mean: Any
    var: Any
    weight, bias, mean, var = (
        None if each is None else graph.reshape(graph.to(each, compute), across)
        for each in (weight, bias, running_mean, running_var)
    )
    inverse = graph.map(_INVERSE, var, graph.numbers[1])
    result = graph.map(
        AFFINE,
        graph.to(x, compute),
        mean,
        inverse,
        1.0 if weight is None else weight,
        0.0 if bias is None else bias,
    )
    return [graph.to(result, x.spec.dtype), graph.empty(kept), graph.empty(kept)]


def _evaluation_rule(cts, outs, x, weight, bias, mean, var, name, momentum, eps, *, specs, wanted):
    if not specs[0].numel:
        return cts[0], *_zeros_like_parameters(specs), None, None
    rows = _channels(specs[0])
    dims, across = rows.dims, rows.across
    ct, x, weight, mean, var = wide(specs[0].dtype, cts[0], x, weight, mean, var)
    inverse = (var + eps).rsqrt().view(across)
    of_weight = (ct * (x - mean.view(across)) * inverse).sum(dims) if wanted[1] else None
    found = ct * (inverse if weight is None else inverse * weight.view(across)) if wanted[0] else None
    return found, of_weight, ct.sum(dims) if wanted[2] else None, None, None


_EVALUATION = KernelGraph(
    "native_batch_norm",
    5,
    _build_evaluation,
    numbers=(float, float),
    derivative=Derivative(joint=_evaluation_rule),
)


def _batch_norm(
    name: str, input, weight, bias, running_mean, running_var, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The result, and the mean and inverse deviation that it was normalised with in training, else empty."""
    graph = _TRAINING if training else _EVALUATION
    found = graph((input, weight, bias, running_mean, running_var), (name,), (momentum, eps))
    return (found[0] if input.spec.is_contiguous else like_format(found[0], input)), found[1], found[2]


def _check_more_than_one(sizes: Sequence[int]) -> None:
    if sizes[0] * math.prod(sizes[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {sizes}")


@public("function")
def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `batch_norm`, and the mean and the inverse deviation of each channel; empty tensors unless training."""
    found = _batch_norm("batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)
    return _only_first_recorded(found)


def _only_first_recorded(found: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """The result, and statistics without a history: as in PyTorch, gradients do not flow through them."""
    return found[0], found[1].detach(), found[2].detach()


@public("function")
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Normalise each channel (dim 1) over all other dims; see `nn.functional.batch_norm`."""
    return _batch_norm("batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)[
        0
    ]


@public(name="nn.functional.batch_norm", words={})
def functional_batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise each channel (dim 1): in training by its own statistics, which update the running ones, else by the running ones.

    Raises: ValueError in training if a channel has a single element.
    """
    if training:
        _check_more_than_one(input.spec.shape)
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _batch_norm("batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)[
        0
    ]


# ---- Instances ------------------------------------------------------------------------------------------------------------


@public("function")
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Normalise each channel of each sample; see `nn.functional.instance_norm`."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    samples, channels, *rest = input.spec.shape
    scale, shift = (None if each is None else each.repeat(samples) for each in (weight, bias))
    # Statistics of another dtype than the input are converted to it, and back when they are kept.
    usable = input.spec.dtype, compute_type(input.spec.dtype)
    means, variances = (
        each if each is None else (each if each.spec.dtype in usable else each.to(usable[0])).repeat(samples)
        for each in (running_mean, running_var)
    )
    rows = input.contiguous().view(1, samples * channels, *rest)
    arguments = (rows, scale, shift, means, variances, use_input_stats, momentum, eps)
    found = _batch_norm("instance_norm", *arguments)[0]
    if use_input_stats:
        for running, each in ((running_mean, means), (running_var, variances)):
            if running is not None and each is not None:
                running.copy_(each.view(samples, channels).mean(0))
    return found.view(input.spec.shape)


@public(name="nn.functional.instance_norm", words={})
def functional_instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise each channel of each sample, by its own statistics or by the running ones.

    Raises: ValueError if a channel of a sample has a single element.
    """
    shape = input.spec.shape
    if use_input_stats and math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {shape}")
    return instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


# ---- What layers and groups share -----------------------------------------------------------------------------------------


def _affine(name: str, kernel: str, rows: Callable[..., Rows]) -> KernelGraph:
    """(x, weight, bias), how to group them, eps -> the results of `native_{name}`; `rows` says what is standardized together.

    `kernel` is how PyTorch's message names the computation.
    """

    def build(graph: GraphBuilder, how: Any) -> list[Value]:
        x, weight, bias = graph.inputs
        together = rows(x.spec, how, *_specs(weight, bias))
        _check_float(kernel, x.spec)
        kept = _check_dtypes(name, x.spec, *_specs(weight, bias))
        return standardized(graph, x, weight, bias, together, graph.numbers[0], kept)[0]

    def rule(cts, outs, x, weight, bias, how, eps, *, specs, wanted):
        return cotangents(cts, outs, x, weight, rows(specs[0], how, *specs[1:]), specs, wanted)

    derivative = Derivative(joint=rule, results=STATISTICS)
    return KernelGraph(f"native_{name}", 3, build, numbers=(float,), derivative=derivative)


# ---- Layers ---------------------------------------------------------------------------------------------------------------


def _normalized_dims(
    spec: Spec, normalized_shape: Any, name: str, **parameters: Spec | None
) -> tuple[int, ...]:
    if not isinstance(normalized_shape, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not {type(normalized_shape).__name__}"
        )
    wanted = tuple(integer(size, name, "normalized_shape") for size in normalized_shape)
    if not wanted:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for which, each in parameters.items():
        if each is not None and each.shape != wanted:
            raise RuntimeError(
                f"Expected {which} to be of same shape as normalized_shape, but got {which} of shape {list(each.shape)} "
                f"and normalized_shape = {list(wanted)}"
            )
    if tuple(spec.shape[-len(wanted) :]) != wanted:
        raise RuntimeError(
            f"Given normalized_shape={list(wanted)}, expected input with shape [*, {', '.join(map(str, wanted))}], but got "
            f"input of size{list(spec.shape)}"
        )
    return tuple(range(len(spec.shape) - len(wanted), len(spec.shape)))


def _layers(spec: Spec, normalized_shape: Any, weight: Spec | None, bias: Spec | None) -> Rows:
    dims = _normalized_dims(spec, normalized_shape, "layer_norm", weight=weight, bias=bias)
    kept = tuple(1 if dim in dims else size for dim, size in enumerate(spec.shape))
    return Rows(spec.shape, dims, spec.shape[dims[0] :], kept)


_LAYER = _affine("layer_norm", "LayerNormKernelImpl", _layers)


@public("function")
def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, and the means and the inverse deviations that it was normalised with."""
    return _only_first_recorded(_layer_norm(input, normalized_shape, weight, bias, eps))


def _layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Any:
    if type(normalized_shape) is list:
        normalized_shape = tuple(normalized_shape)
    x = input if input.spec.is_contiguous else input.contiguous()
    return _LAYER((x, weight, bias), (normalized_shape,), (eps,))[:3]


@public(name="nn.functional.layer_norm", words={})
def functional_layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise over the last dims, whose sizes are `normalized_shape`, then scale and shift element by element."""
    return _layer_norm(input, normalized_shape, weight, bias, eps)[0]


@public("function")
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """Normalise over the last dims; see `nn.functional.layer_norm`."""
    return _layer_norm(input, normalized_shape, weight, bias, eps)[0]


_INVERSE_ROOT = Reduce(
    "inverse_root_mean_square",
    lambda dtype, wanted: Types(dtype, (dtype,)),
    lambda dtype: (0,),
    lambda x: (x * x,),
    lambda a, b: (a[0] + b[0],),
    lambda sums, count, eps: (rsqrt(sums[0] / count + eps),),
    cascade=True,
)
_SCALED = Map("rms_norm", same_dtype, lambda x, inverse: x * inverse)
_SCALED_BY_WEIGHT = Map("rms_norm", same_dtype, lambda x, inverse, weight: x * inverse * weight)


def _build_rms(graph: GraphBuilder, dims: tuple[int, ...]) -> list[Value]:
    dtype, shape = graph.inputs[0].spec.dtype, graph.inputs[0].spec.shape
    x, weight = (graph.to(each, compute_type(dtype)) for each in graph.inputs)
    count = as_float(math.prod(shape[dim] for dim in dims))
    (inverse,) = graph.reduce(_INVERSE_ROOT, x, dims=dims, numbers=(count, graph.numbers[0]))
    scaled = (
        graph.map(_SCALED, x, inverse) if weight is None else graph.map(_SCALED_BY_WEIGHT, x, inverse, weight)
    )
    return [graph.to(scaled, dtype)]


# Calls that are recorded or watched are composed of ops, because PyTorch has no operator for all of it there.
_RMS = KernelGraph("rms_norm", 2, _build_rms, numbers=(float,))


@public("function", "nn.functional.rms_norm")
def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root of the mean square over the last dims, whose sizes are `normalized_shape`.

    eps: the epsilon of the dtype that is computed in, unless given.
    """
    own = _spec("rms_norm", input)
    if isinstance(normalized_shape, (tuple, list)) and own.ndim < len(normalized_shape):
        raise ValueError(
            f"Input tensor must have at least {len(normalized_shape)} dimensions, but got {own.ndim} (rms_norm)"
        )
    dims = _normalized_dims(own, normalized_shape, "rms_norm", weight=None if weight is None else weight.spec)
    if input.spec.dtype.category < 2:
        raise NotImplementedError(f"\"rms_norm\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")
    eps = finfo(compute_type(input.spec.dtype).to_real()).eps if eps is None else eps
    input = input.contiguous()
    if own.dtype.kind == "f" and own.numel and not watchers and not needs_recording((input, weight)):
        return _RMS((input, weight), (dims,), (float(eps),))
    x, weight = wide(input.spec.dtype, input, weight)
    found = x * ((x * x).mean(dims, keepdim=True) + eps).rsqrt()
    return (found if weight is None else found * weight).to(input.spec.dtype)


# ---- Groups ---------------------------------------------------------------------------------------------------------------


def _groups(spec: Spec, groups: int, *parameters: Spec | None) -> Rows:
    shape = spec.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    samples, channels = shape[:2]
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if channels % groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(shape)} and num_groups={groups}"
        )
    for which, each in zip(("weight", "bias"), parameters, strict=True):
        if each is not None and each.shape != (channels,):
            raise RuntimeError(
                f"Expected {which} to be a vector of size equal to the number of channels in input, but got {which} of "
                f"shape {list(each.shape)} and input of shape {list(shape)}"
            )
    sizes = (samples, groups, channels // groups, math.prod(shape[2:]))
    return Rows(sizes, (2, 3), (groups, channels // groups, 1), (samples, groups))


_GROUP = _affine("group_norm", "GroupNormKernelImpl", _groups)


def _group_norm(input: Tensor, groups: int, weight, bias, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    groups = integer(groups, "group_norm", "num_groups")
    found = _GROUP((input, weight, bias), (groups,), (eps,))
    return (found[0] if input.spec.is_contiguous else like_format(found[0], input)), found[1], found[2]


@public("function")
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `group_norm`, and the means and the inverse deviations [N, group]. N, C, HxW: the sizes of the input."""
    own = input.spec.shape
    if (N, C, HxW) != (*own[:2], math.prod(own[2:])):
        raise RuntimeError(
            f"native_group_norm: the input has shape {list(own)}, which is not N={N}, C={C}, HxW={HxW}"
        )
    return _group_norm(input, group, weight, bias, eps)


@public("function")
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalise each of `num_groups` groups of channels (dim 1) of each sample, then scale and shift each channel."""
    return _group_norm(input, num_groups, weight, bias, eps)[0]


@public(name="nn.functional.group_norm", words={})
def functional_group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Normalise each of `num_groups` groups of channels (dim 1) of each sample, then scale and shift each channel.

    Raises: ValueError if a group has a single element.
    """
    shape = input.spec.shape
    if len(shape) < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {len(shape)}")
    _check_more_than_one([shape[0] * shape[1] // num_groups, num_groups, *shape[2:]])
    return _group_norm(input, num_groups, weight, bias, eps)[0]


# ---- Neighbours and vectors ------------------------------------------------------------------------------------------------


@public(name="nn.functional.local_response_norm")
def local_response_norm(
    input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by (k + alpha * mean square of `size` neighbouring channels) ** beta.

    Source: Krizhevsky, Sutskever, Hinton 2012, "ImageNet classification with deep convolutional neural networks".
    """
    shape = input.spec.shape
    if len(shape) < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {len(shape)} dimensions)")
    if input.spec.numel == 0:
        return input
    squares = input * input
    around = (size // 2, (size - 1) // 2)
    if len(shape) == 3:
        means = avg_pool2d(constant_pad(squares.unsqueeze(1), (0, 0, *around)), (size, 1), stride=1).squeeze(
            1
        )
    else:
        rows = squares.view(shape[0], 1, shape[1], shape[2], -1)
        means = (
            avg_pool3d(constant_pad(rows, (0, 0, 0, 0, *around)), (size, 1, 1), stride=1)
            .squeeze(1)
            .view(shape)
        )
    return input / (means * alpha + k).pow(beta)


@public(name="nn.functional.normalize")
def normalize(
    input: Tensor, p: Any = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divide by the `p`-norm along `dim`, or by `eps` where that is larger."""
    lengths = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input.div(lengths, out=out)
