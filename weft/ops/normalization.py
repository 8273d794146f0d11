"""Normalization over batches, layers, groups and neighbours: shift to mean 0, scale to variance 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.arguments import integer
from ..core.dtype import LEGACY_NAMES, DType, compute_type
from ..core.limits import finfo
from ..core.op import PlanCache, needs_recording, public, unrecorded
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..engine.scalar import rsqrt
from ..families.map import Map, keep
from ..families.program import Operand, Planner, Program
from ..families.reduce import Reduce
from ..families.reduce import Types as ReduceTypes
from ..families.step import step
from .average_pooling import avg_pool2d, avg_pool3d
from .creation import empty
from .padding import constant_pad
from .reduction import MEAN
from .windows import like_format, wide


def _affine(x, mean, inverse, weight, bias):
    return (x - mean) * inverse * weight + bias


AFFINE = Map("normalize", keep, _affine)


def normalized(x: Tensor, mean: Tensor, inverse: Tensor, weight: Any, bias: Any) -> Tensor:
    """(x - mean) * inverse * weight + bias in one pass, or op by op where derivatives are recorded."""
    operands = (x, mean, inverse, 1.0 if weight is None else weight, 0.0 if bias is None else bias)
    return _affine(*operands) if needs_recording(operands) else AFFINE(*operands)


# ---- By statistics of the input itself, as one step ------------------------------------------------------------------

_SPREAD = Reduce(
    "norm_spread",
    lambda dtype, wanted: ReduceTypes(dtype, (dtype, dtype)),
    lambda dtype: (0,),
    lambda x, mean: ((x - mean) * (x - mean),),
    lambda a, b: (a[0] + b[0],),
    lambda sums, count, eps: (rsqrt(sums[0] / count + eps), sums[0] / count),
    cascade=True,
)


def _describe_normalize(planner: Planner, dims: tuple[int, ...]) -> list[Operand]:
    x, weight, bias = planner.inputs
    count = float(math.prod(x.spec.shape[dim] for dim in dims))
    (mean,) = planner.reduce(MEAN, x, dims=dims, numbers=(count,))
    inverse, var = planner.reduce(_SPREAD, x, mean, dims=dims, numbers=(count, *planner.numbers))
    result = planner.map(AFFINE, x, mean, inverse, weight or 1.0, bias or 0.0)
    return [result, mean, inverse, var]


_NORMALIZE = Program(_describe_normalize)

# In one pass: the sums of g = ct * weight and of g * z, where z is the normalised input; z without weight.
_SUMS = Reduce(
    "norm_sums",
    lambda dtype, wanted: ReduceTypes(dtype, (dtype, dtype)),
    lambda dtype: (0, 0),
    lambda ct, x, mean, inverse, weight: (ct * weight, ct * weight * ((x - mean) * inverse)),
    lambda a, b: (a[0] + b[0], a[1] + b[1]),
    cascade=True,
)
_INPUT_COTANGENT = Map(
    "norm_backward",
    keep,
    lambda ct, x, mean, inverse, weight, sum_g, sum_gz, count: (
        (ct * weight - sum_g / count - (x - mean) * inverse * (sum_gz / count)) * inverse
    ),
)


def _statistics_rule(cts, outs, x, weight, bias, dims, eps, *, wanted):
    """Cotangents of (x, weight, bias). Source: Ioffe and Szegedy 2015, section 3."""
    ct, ct_mean, ct_inverse, _ = cts
    _, mean, inverse, _ = outs
    count = math.prod(x.shape[dim] for dim in dims)
    if ct is None:
        ct = x.new_zeros(()).expand(x.shape)
    plain = ct_mean is None and ct_inverse is None and not needs_recording((ct, x, weight, mean, inverse))
    if not plain:
        return _recorded_rule(ct, ct_mean, ct_inverse, x, mean, inverse, weight, dims, count, wanted)
    found: list = [None, None, None]
    ones = x.new_ones(())
    if wanted[0]:
        scale = ones if weight is None else weight
        sums = _SUMS(ct, x, mean, inverse, scale, dims=dims, keepdim=True)
        found[0] = _INPUT_COTANGENT(ct, x, mean, inverse, scale, *sums, float(count))
    if wanted[1] or wanted[2]:
        own = (weight if weight is not None else bias).shape
        rest = tuple(dim for dim in range(ct.dim()) if dim - ct.dim() < -len(own) or own[dim - ct.dim()] == 1)
        found[2], found[1] = (
            each.reshape(own) for each in _SUMS(ct, x, mean, inverse, ones, dims=rest, keepdim=True)
        )
    return found


def _recorded_rule(ct, ct_mean, ct_inverse, x, mean, inverse, weight, dims, count, wanted):
    """The same in steps that can be differentiated, with cotangents of the statistics."""
    z = (x - mean) * inverse
    g = ct if weight is None else ct * weight
    found = (g - g.mean(dims, keepdim=True) - z * (g * z).mean(dims, keepdim=True)) * inverse
    if ct_mean is not None:
        found = found + ct_mean / count
    if ct_inverse is not None:
        found = found - ct_inverse * inverse * inverse * z / count
    return found, ct * z if wanted[1] else None, ct if wanted[2] else None


@step(joint=_statistics_rule, results=(1, 2))
def normalize_by_own(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, dims: tuple[int, ...], eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x minus its mean over `dims`, divided by its deviation; the means; the inverse deviations; the variances.

    `weight` and `bias` broadcast to `x`. Dims are not negative; they stay, with size 1, in the statistics.
    """
    result, mean, inverse, var = _NORMALIZE((x, weight, bias), (dims,), (float(eps),))
    return result, mean, inverse, var


normalize_by_own.node_name = lambda inputs, static: (
    "NativeLayerNormBackward0" if 1 in inputs[3] else "NativeBatchNormBackward0"
)


def _spec(name: str, input: Any) -> Spec:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input.spec


def _specs(*parameters: Tensor | None) -> list[Spec | None]:
    return [None if each is None else each.spec for each in parameters]


def _check_float(name: str, own: Spec) -> None:
    if own.dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[own.dtype]}'")


def _check_dtypes(name: str, own: Spec, *parameters: Spec | None) -> DType:
    """The dtype of statistics: that of the parameters, which may be wider than a narrow input."""
    found = {each.dtype for each in parameters if each is not None}
    allowed = {own.dtype, compute_type(own.dtype)}
    if len(found) > 1 or not found <= allowed:
        raise RuntimeError(
            f"mixed dtype (CPU): all inputs must share same datatype. ({name}: input {own.dtype}, parameters "
            f"{', '.join(sorted(map(str, found)))})"
        )
    return found.pop() if found else own.dtype


# ---- Batch ----------------------------------------------------------------------------------------------------------------


def _batch_norm(
    name: str, input, weight, bias, running_mean, running_var, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The result, and the mean and inverse deviation that it was normalised with in training, else empty."""
    kept = _BATCHES[name, _spec(name, input), training, *_specs(running_mean, running_var, weight, bias)]
    own = input.spec
    if own.numel == 0:
        return input.clone(), *_nothing(own, kept)
    channels, across = own.shape[1], (own.shape[1], *[1] * (len(own.shape) - 2))
    x = input
    if own.dtype is not kept or kept is not compute_type(kept):
        x, weight, bias, *running = wide(own.dtype, input, weight, bias, running_mean, running_var)
    else:
        running = [running_mean, running_var]
    scale, shift = (None if each is None else each.view(across) for each in (weight, bias))
    if not training:
        mean, var = (each.view(across) for each in running)
        result = normalized(x, mean, (var + eps).rsqrt(), scale, shift)
        return like_format(result.to(own.dtype), input), *_nothing(own, kept)
    dims = (0, *range(2, len(own.shape)))
    result, mean, inverse, var = normalize_by_own(x, scale, shift, dims, eps)
    mean, inverse = mean.view(channels), inverse.view(channels)
    with unrecorded():
        count = own.numel // channels
        _update(running_mean, mean, momentum, 1.0)
        _update(running_var, var.view(channels), momentum, count / (count - 1) if count > 1 else math.nan)
    return like_format(result.to(own.dtype), input), mean.to(kept), inverse.to(kept)


def _check_batch(name: str, own: Spec, training: bool, *parameters: Spec | None) -> DType:
    """The dtype of statistics."""
    _check_float(name, own)
    channels = own.shape[1] if len(own.shape) > 1 else 0
    words = ("running_mean", "running_var", "weight", "bias")
    for which, each in zip(words, parameters, strict=True):
        if each is None and which.startswith("running") and not training:
            raise RuntimeError(f"{which} must be defined in evaluation mode")
        if each is not None and each.numel != channels:
            raise RuntimeError(f"{which} should contain {channels} elements not {each.numel}")
    return _check_dtypes(name, own, *parameters)


_BATCHES = PlanCache(_check_batch)


def _nothing(own: Spec, kept: DType) -> tuple[Tensor, Tensor]:
    """In place of statistics."""
    return empty(0, dtype=kept, device=own.device), empty(0, dtype=kept, device=own.device)


_RUNNING = Map(
    "running",
    keep,
    lambda running, value, momentum, factor: value * factor * momentum + running * (1 - momentum),
)


def _update(running: Tensor | None, value: Tensor, momentum: float, factor: float) -> None:
    if running is not None:
        _RUNNING.inplace(running, value, momentum, factor)


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
    """`batch_norm`, and the mean and the inverse deviation of each channel; empty tensors unless training."""
    return _batch_norm("batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)


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


@public(name="nn.functional.batch_norm")
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
    """Normalise each channel (dim 1): by its own statistics in training, which update the running ones, else by those.

    Raises: ValueError in training if a channel has a single element.
    """
    if training:
        _check_more_than_one(input.spec.shape)
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    return _batch_norm("batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)[
        0
    ]


functional_batch_norm.__name__ = "batch_norm"


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
    scale, shift, means, variances = (
        None if each is None else each.repeat(samples) for each in (weight, bias, running_mean, running_var)
    )
    rows = input.contiguous().view(1, samples * channels, *rest)
    arguments = (rows, scale, shift, means, variances, use_input_stats, momentum, eps)
    found = _batch_norm("instance_norm", *arguments)[0]
    if use_input_stats:
        for running, each in ((running_mean, means), (running_var, variances)):
            if running is not None and each is not None:
                running.copy_(each.view(samples, channels).mean(0))
    return found.view(input.spec.shape)


@public(name="nn.functional.instance_norm")
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


functional_instance_norm.__name__ = "instance_norm"


# ---- Layers ---------------------------------------------------------------------------------------------------------------


def _normalized_dims(
    own: Spec, normalized_shape: Any, name: str, **parameters: Spec | None
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
    if tuple(own.shape[-len(wanted) :]) != wanted:
        raise RuntimeError(
            f"Given normalized_shape={list(wanted)}, expected input with shape [*, {', '.join(map(str, wanted))}], but got "
            f"input of size{list(own.shape)}"
        )
    return tuple(range(len(own.shape) - len(wanted), len(own.shape)))


def _check_layer(own: Spec, normalized_shape: Any, weight: Spec | None, bias: Spec | None) -> tuple:
    """The dims that are normalised over, and the dtype of statistics."""
    dims = _normalized_dims(own, normalized_shape, "layer_norm", weight=weight, bias=bias)
    _check_float("LayerNormKernelImpl", own)
    return dims, _check_dtypes("layer_norm", own, weight, bias)


_LAYERS = PlanCache(_check_layer)


@public("function")
def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`layer_norm`, and the means and the inverse deviations that it was normalised with."""
    own = _spec("layer_norm", input)
    sizes = tuple(normalized_shape) if isinstance(normalized_shape, list) else normalized_shape
    dims, kept = _LAYERS[own, sizes, *_specs(weight, bias)]
    x = input if own.is_contiguous else input.contiguous()
    if own.dtype is kept is compute_type(kept):
        return normalize_by_own(x, weight, bias, dims, eps)[:3]
    x, weight, bias = wide(own.dtype, x, weight, bias)
    result, mean, inverse, _ = normalize_by_own(x, weight, bias, dims, eps)
    return result.to(own.dtype), mean.to(kept), inverse.to(kept)


@public("function", "nn.functional.layer_norm")
def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Tensor:
    """Normalise over the last dims, whose sizes are `normalized_shape`, then scale and shift element by element."""
    return native_layer_norm(input, normalized_shape, weight, bias, eps)[0]


@public("function", "nn.functional.rms_norm")
def rms_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root of the mean square over the last dims, whose sizes are `normalized_shape`.

    eps: the epsilon of the dtype that is computed in, unless given.
    """
    dims = _normalized_dims(
        _spec("rms_norm", input), normalized_shape, "rms_norm", weight=None if weight is None else weight.spec
    )
    if input.spec.dtype.category < 2:
        raise NotImplementedError(f"\"rms_norm\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")
    x, weight = wide(input.spec.dtype, input.contiguous(), weight)
    eps = finfo(x.spec.dtype.to_real()).eps if eps is None else eps
    found = x * ((x * x).mean(dims, keepdim=True) + eps).rsqrt()
    return (found if weight is None else found * weight).to(input.spec.dtype)


# ---- Groups ---------------------------------------------------------------------------------------------------------------


def _group_norm(input: Tensor, groups: int, weight, bias, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    shape = input.spec.shape
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
    for which, each in (("weight", weight), ("bias", bias)):
        if each is not None and each.spec.shape != (channels,):
            raise RuntimeError(
                f"Expected {which} to be a vector of size equal to the number of channels in input, but got {which} of "
                f"shape {list(each.spec.shape)} and input of shape {list(shape)}"
            )
    _check_float("GroupNormKernelImpl", input.spec)
    kept = _check_dtypes("group_norm", input.spec, *_specs(weight, bias))
    x, weight, bias = wide(input.spec.dtype, input, weight, bias)
    each_group = channels // groups
    rows = x.contiguous().view(samples, groups, each_group, math.prod(shape[2:]))
    scale, shift = (None if each is None else each.view(groups, each_group, 1) for each in (weight, bias))
    result, mean, inverse, _ = normalize_by_own(rows, scale, shift, (2, 3), eps)
    return (
        like_format(result.view(shape).to(input.spec.dtype), input),
        mean.view(samples, groups).to(kept),
        inverse.view(samples, groups).to(kept),
    )


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
    """`group_norm`, and the means and the inverse deviations [N, group]."""
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


@public(name="nn.functional.group_norm")
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


functional_group_norm.__name__ = "group_norm"


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
    input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """Divide by the `p`-norm along `dim`, or by `eps` where that is larger."""
    lengths = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input.div(lengths, out=out)
