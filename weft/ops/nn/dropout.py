"""Adds random noise in networks: dropout in its forms, randomised leaky ReLU, Gumbel softmax."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ...core.arguments import boolean, number
from ...core.checking import tensor
from ...core.dtype import LEGACY_NAMES, bool_, float64
from ...core.entry import entry
from ...core.generator import default_generator, generator_on
from ...core.layout import contiguous_format
from ...core.names import named
from ...core.public import public
from ...core.registry import add_function
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, address
from ...core.tensor import empty as empty_of
from ...core.warn import user_level
from ..creation.creation import empty, empty_like, ones_like, zeros_like
from ..creation.random_filling import check_randomness
from ..elementwise.activation import leaky_relu
from ..reductions.softmax import softmax
from ..tensor.node_names import with_node_name
from .window_views import wide

# Alpha dropout replaces elements by this value: the limit of `selu` at minus infinity, negated.
ALPHA = 1.7580993408473766


def _check_probability(p: float, error: type[Exception]) -> None:
    if not 0.0 <= p <= 1.0:
        # PyTorch's Python functions accept NaN, but the C++ functions that they call raise RuntimeError for it.
        raise (RuntimeError if p != p else error)(
            f"dropout probability has to be between 0 and 1, but got {p}"
        )


def _channel_noise(input: Tensor) -> Tensor:
    """Return one number per sample and channel."""
    shape = input.spec.shape
    if len(shape) < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input (got {list(shape)})")
    return empty((*shape[:2], *[1] * (len(shape) - 2)), dtype=input.spec.dtype, device=input.spec.device)


def dropped(input: Tensor, p: float, train: bool, channels: bool = False, alpha: bool = False) -> Tensor:
    """The input with elements, or whole channels, dropped with probability `p`, the rest scaled to keep the mean."""
    _check_probability(p, RuntimeError)
    if p == 0 or not train or input.spec.numel == 0:
        return input
    if p == 1:
        return input * zeros_like(input.detach())
    noise = _channel_noise(input) if channels else empty_like(input)
    noise.bernoulli_(1 - p)
    if not alpha:
        return input * noise.div_(1 - p)
    scale = 1 / math.sqrt((ALPHA * ALPHA * p + 1) * (1 - p))
    offset = (noise - 1).mul_(ALPHA * scale).add_(ALPHA * scale * p)
    return input * noise.mul_(scale) + offset


def _written(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return input.copy_(result) if inplace and result is not input else result


# ---- torch.dropout and its relatives -------------------------------------------------------------------------------------------


def _define(name: str, **kind: bool) -> None:
    @named(name, layer=name.replace("feature_dropout", "dropout2d"))
    def function(input: Tensor, p: float, train: bool) -> Tensor:
        """`nn.functional.{layer}`; `train` turns it on."""
        return dropped(input, p, train, **kind)

    @named(f"{name}_", of=name)
    def inplace(input: Tensor, p: float, train: bool) -> Tensor:
        """Apply in place `{of}`."""
        return _written(input, dropped(input, p, train, **kind), inplace=True)

    add_function(name, entry(function))
    add_function(f"{name}_", entry(inplace))


_define("dropout")
_define("feature_dropout", channels=True)
_define("alpha_dropout", alpha=True)
_define("feature_alpha_dropout", channels=True, alpha=True)


@public("function")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Dropout and the mask of elements that were kept."""
    _check_probability(p, RuntimeError)
    if input.spec.numel == 0 or train is False:
        return input.clone(), ones_like(input, dtype=bool_)
    kept = empty(input.spec.shape, dtype=bool_, device=input.spec.device).bernoulli_(1 - p)
    return input * kept * (1 / (1 - p) if p != 1 else 0.0), kept


# ---- torch.nn.functional -----------------------------------------------------------------------------------------------------------


@public(name="nn.functional.dropout", checks=False)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set elements to zero with probability `p` and divide the rest by 1 - p.

    >>> import weft as torch
    >>> torch.nn.functional.dropout(torch.ones(2), p=0.3, training=False)
    tensor([1., 1.])
    """
    if type(input) is not Tensor or type(p) is not float or training is not True and training is not False:
        input, p = tensor(input, "dropout", "input", 1), number(p, "dropout", "p", 2)
        training = boolean(training, "dropout", "training", 3)
    _check_probability(p, ValueError)
    return _written(input, dropped(input, p, training), inplace)


@public(name="nn.functional.dropout1d")
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set whole channels to zero with probability `p`. Shapes: [N, C, L] or [C, L]."""
    _check_probability(p, ValueError)
    if input.spec.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.spec.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    return _written(input, _batched(input, 3, p, training), inplace)


def _batched(input: Tensor, ndim: int, p: float, training: bool) -> Tensor:
    if input.spec.ndim == ndim:
        return dropped(input, p, training, channels=True)
    return dropped(input.unsqueeze(0), p, training, channels=True).squeeze(0)


@public(name="nn.functional.dropout2d")
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set whole channels to zero with probability `p`. Shapes: [N, C, H, W]."""
    _check_probability(p, ValueError)
    if input.spec.ndim not in (3, 4):
        _warn_dims("dropout2d", input, "4-D (batch of images)")
    if input.spec.ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input "
            "is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to "
            "interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=user_level(),
        )
    return _written(input, dropped(input, p, training, channels=True), inplace)


def _warn_dims(name: str, input: Tensor, wanted: str) -> None:
    warnings.warn(
        f"{name}: Received a {input.spec.ndim}-D input to {name}, which is deprecated and will result in an error in a future "
        f"release. Use a {wanted} input instead, or dropout for elements.",
        stacklevel=user_level(),
    )


@public(name="nn.functional.dropout3d")
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set whole channels to zero with probability `p`. Shapes: [N, C, D, H, W] or [C, D, H, W]."""
    _check_probability(p, ValueError)
    if input.spec.ndim not in (4, 5):
        _warn_dims("dropout3d", input, "5-D (batch of volumes)")
    return _written(input, _batched(input, 5, p, training), inplace)


@public(name="nn.functional.alpha_dropout")
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for `selu`: keeps mean 0 and variance 1. Source: Klambauer et al. 2017, "Self-normalizing networks"."""
    _check_probability(p, ValueError)
    return _written(input, dropped(input, p, training, alpha=True), inplace)


@public(name="nn.functional.feature_alpha_dropout")
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Compute `alpha_dropout` of whole channels."""
    _check_probability(p, ValueError)
    return _written(input, dropped(input, p, training, channels=True, alpha=True), inplace)


# ---- Other noise -----------------------------------------------------------------------------------------------------------------


def _random_slopes(input: Tensor, lower: float, upper: float, generator: Any) -> Tensor:
    """Return 1 for positive elements, for the others a uniform number each, drawn in their order."""
    check_randomness("rrelu")
    slopes = ones_like(input.detach(), memory_format=contiguous_format)
    negative = input.detach() <= 0
    count = int(negative.sum()) if input.spec.device.backend.has_memory else 0
    if not count:
        return slopes
    where = input.spec.device
    drawn = empty_of(contiguous_spec((count,), float64, where))
    stream = generator_on(where, generator or default_generator)
    where.backend.fill("uniform", stream, address(drawn), count, float64, low=lower, high=upper)
    return slopes.masked_scatter(negative, drawn.to(input.spec.dtype))


def _rrelu(
    input: Tensor, lower: float, upper: float, training: bool, inplace: bool, generator: Any = None
) -> Tensor:
    for which, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {which} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound (got {lower} and {upper})"
        )
    if input.spec.dtype.kind != "f":
        raise NotImplementedError(f"\"rrelu\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")
    if not training:
        result = leaky_relu(input, (lower + upper) / 2, inplace)
        return result if inplace else with_node_name(result, "RreluWithNoiseBackward0")
    (source,) = wide(input.spec.dtype, input)
    result = (source * _random_slopes(source, lower, upper, generator)).to(input.spec.dtype)
    result = with_node_name(result, "RreluWithNoiseBackward0")
    return _written(input, result, inplace)


@public(name="nn.functional.rrelu")
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Apply `leaky_relu` with a slope for each element, uniform in [lower, upper]; the mean slope unless `training`."""
    return _rrelu(input, lower, upper, training, inplace)


def _rrelu_forms(write: bool) -> Callable:
    @named("rrelu_" if write else "rrelu", rrelu.__doc__)
    def function(
        input: Tensor,
        lower: float = 1.0 / 8,
        upper: float = 1.0 / 3,
        training: bool = False,
        generator: Any = None,
    ) -> Tensor:
        return _rrelu(input, lower, upper, training, write, generator)

    return function


add_function("rrelu", entry(_rrelu_forms(write=False)))
add_function("rrelu_", entry(_rrelu_forms(write=True)))
add_function("nn.functional.rrelu_", entry(_rrelu_forms(write=True)))


@public(name="nn.functional.gumbel_softmax")
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Return a random, differentiable choice along `dim`: the softmax of (logits + Gumbel noise) / tau.

    hard: one-hot, with the derivative of the soft choice. Source: Jang, Gu, Poole 2017, "Categorical reparameterization".
    """
    noise = -empty_like(logits.detach(), memory_format=contiguous_format).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = soft.detach().argmax(dim, keepdim=True)
    choice = zeros_like(logits.detach(), memory_format=contiguous_format).scatter(dim, chosen, 1.0)
    return choice - soft.detach() + soft
