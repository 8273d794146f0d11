"""What `gradcheck` asks of derivatives besides their numbers: zero cotangents, missing ones, and batches of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.above import above
from ..core.dtype import FLOAT
from ..core.layout_spec import is_strided
from ..core.names import ROOT, set_name
from ..core.subclasses import is_wrapper
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..interop.numpy import from_numpy
from ..ops.assembly.joining import stack
from ..ops.creation.creation import zeros_like
from ..ops.creation.random import randn_like
from ..ops.elementwise.comparison import allclose
from . import forward_ad
from .backward import grad
from .undefined import UndefinedGrad


class GradcheckError(RuntimeError):
    """A derivative differs from the finite differences."""


set_name(GradcheckError, f"{ROOT}.autograd.gradcheck", "GradcheckError")

_BATCHED = (
    "gradcheck or gradgradcheck failed while testing batched gradient computation: backward of a batch of cotangents, by "
    "vmap, differs from backward of one after the other. check_batched_grad=False leaves this check out."
)
_BATCHED_FORWARD = (
    "gradcheck failed while testing batched gradient computation with forward-mode AD: the derivatives for a batch of tangents, "
    "by vmap, differ from those for one after the other. check_batched_forward_grad=False leaves this check out."
)


def as_tuple(value: Any) -> tuple:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def asks_for_gradient(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.spec.dtype.category >= FLOAT


def outputs_of(
    func: Callable, inputs: Sequence[Any], chosen: Callable[[Any], bool] = asks_for_gradient
) -> list[Tensor]:
    """The results that are differentiable; sparse ones are made dense. In forward mode these are all floating point ones."""
    found = [y for y in as_tuple(func(*inputs)) if chosen(y)]
    return [y if is_strided(y.spec) else y.to_dense() for y in found]


def dual_inputs(inputs: Sequence[Any], tangents: dict[int, Tensor]) -> list[Any]:
    """The inputs with these tangents at the open level. They do not require grad."""
    return [
        forward_ad.make_dual(x.detach(), tangents[k])
        if k in tangents
        else x.detach()
        if isinstance(x, Tensor)
        else x
        for k, x in enumerate(inputs)
    ]


def tangent_of(y: Tensor) -> Tensor:
    tangent = forward_ad.unpack_dual(y).tangent
    return zeros_like(y.detach()) if tangent is None else tangent


def random_direction(x: Tensor, random: np.random.Generator) -> Tensor:
    """A tensor of length 1 in the shape of x. It takes no numbers from weft's generators, like PyTorch's."""
    values = random.standard_normal((2, x.numel()))
    values /= max(float(np.sqrt((values**2).sum())), 1e-30)
    numbers = values[0] + 1j * values[1] if x.is_complex() else values[0]
    return from_numpy(numbers).reshape(x.shape).to(x.device, x.dtype)


# ---- Backward ------------------------------------------------------------------------------------------------------------


def check_zero_cotangents(func: Callable, inputs: Sequence[Any], masked: bool) -> None:
    """Raises: GradcheckError unless backward of zeros is zero and fits the inputs."""
    leaves = [x for x in inputs if asks_for_gradient(x)]
    outputs = outputs_of(func, inputs)
    gradients = grad(outputs, leaves, [zeros_like(y.detach()) for y in outputs], allow_unused=True)
    for gradient, leaf in zip(gradients, leaves, strict=True):
        if gradient is None:
            continue
        if gradient.layout is not leaf.layout and not is_strided(gradient.spec):
            raise GradcheckError(f"grad is incorrect layout ({gradient.layout} is not {leaf.layout})")
        if not is_strided(gradient.spec):
            gradient = gradient.to_dense()
        if not (allclose(gradient, zeros_like(gradient)) if masked else gradient.eq(0).all()):
            raise GradcheckError("backward not multiplied by grad_output")


def check_missing_cotangents(func: Callable, inputs: Sequence[Any]) -> None:
    """Raises: GradcheckError unless backward takes None for all results, or one of several, and zeros for the others give zeros."""
    leaves = [x for x in inputs if asks_for_gradient(x)]
    count = len(outputs_of(func, inputs))
    each_of_several = [{k} for k in range(count)] if count > 1 else []
    for missing in (set(range(count)), *each_of_several):
        found = outputs_of(func, inputs)
        outputs = [UndefinedGrad()(y) if k in missing else y for k, y in enumerate(found)]
        try:
            gradients = grad(outputs, leaves, [zeros_like(y.detach()) for y in outputs], allow_unused=True)
        except RuntimeError as error:
            _warn_of_missing()
            raise GradcheckError("Expected backward function to handle undefined output grads") from error
        if any(g is not None and g.count_nonzero() for g in gradients):
            _warn_of_missing()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero"
            )


def _warn_of_missing() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
        "existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature',
        UserWarning,
        stacklevel=user_level(),
    )


def check_batched(func: Callable, inputs: Sequence[Any]) -> None:
    """Raises: GradcheckError unless backward of a batch of cotangents is that of each of them."""
    leaves = [x for x in inputs if asks_for_gradient(x)]
    if any(map(is_wrapper, leaves)):
        return  # their gradients are computed one after the other in any case
    for index, y in enumerate(outputs_of(func, inputs)):

        def pull(ct: Tensor, y: Tensor = y) -> tuple[Tensor, ...]:
            gradients = grad(y, leaves, ct, retain_graph=True, allow_unused=True)
            return tuple(
                [
                    x.new_zeros(()).expand(x.shape) if g is None else g
                    for x, g in zip(leaves, gradients, strict=True)
                ]
            )

        _compare_batch(pull, [randn_like(y.detach()) for _ in range(2)], f"output {index}", _BATCHED)


def _compare_batch(function: Callable, values: Sequence[Tensor], what: str, message: str) -> None:
    """Raises: GradcheckError if a function of all values at once, by vmap, differs from that of one after the other."""
    vmap = above("func.batching").vmap

    expected = [stack(shards) for shards in zip(*map(function, values), strict=True)]
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="There is a performance drop")
            found = vmap(function)(stack(values))
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched gradients, got: {error}\n\n{message}") from error
    for index, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if not allclose(ours, theirs):
            raise GradcheckError(
                f"For {what} and derivative {index}:\n\n{message}\n\nGot:\n{ours}\n\nExpected:\n{theirs}"
            )


# ---- Forward -------------------------------------------------------------------------------------------------------------


def check_missing_tangents(func: Callable, inputs: Sequence[Any]) -> None:
    """Raises: GradcheckError if an input without a tangent gives other tangents than one whose tangent is zero."""
    checked = [k for k, x in enumerate(inputs) if asks_for_gradient(x)]
    random = np.random.default_rng(0)
    tangents = {k: random_direction(inputs[k], random) for k in checked}
    for missing in checked:
        others = {k: t for k, t in tangents.items() if k != missing}
        found = []
        for given in (others | {missing: zeros_like(inputs[missing].detach())}, others):
            with forward_ad.dual_level():
                results = outputs_of(func, dual_inputs(inputs, given), is_float)
                found.append([forward_ad.unpack_dual(y).tangent for y in results])
        for index, (zero, none) in enumerate(zip(*found, strict=True)):
            if zero is not None and none is not None and not allclose(zero, none):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {index} when input: {inputs[missing]} has an "
                    f"undefined tangent value. Got: {zero} but expected: {none}"
                )


def check_batched_forward(func: Callable, inputs: Sequence[Any]) -> None:
    """Raises: GradcheckError unless the derivatives for a batch of tangents are those for each of them."""
    for which, x in enumerate(inputs):
        if not asks_for_gradient(x):
            continue

        def push(tangent: Tensor, which: int = which) -> tuple[Tensor, ...]:
            with forward_ad.dual_level():
                results = outputs_of(func, dual_inputs(inputs, {which: tangent}), is_float)
                return tuple([tangent_of(y) for y in results])

        values = [randn_like(x.detach()) for _ in range(2)]
        _compare_batch(push, values, f"input {which}", _BATCHED_FORWARD)
