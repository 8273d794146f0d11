"""Draws random numbers of the gamma and Dirichlet distributions, with derivatives in the parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.dtype import DType, float32, float64
from ...core.generator import Generator
from ...core.iteration import broadcast_shapes
from ...core.layout import contiguous_format
from ...core.limits import finfo
from ...core.public import public
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor
from ...engine import gamma
from ...engine.blas import scipy
from ...engine.incomplete_gamma import LOWER, UPPER
from ...families.array_op import array, array_op, runs_inside, tensor_of
from ...families.custom_vjp import custom_vjp
from ...families.indexed import bare
from ...families.iterated import has_iterations, iterated
from ..indexing.masking import where
from .creation import empty_as
from .random_filling import FLOATS, check_implemented, drawing_generator

# Relative step of a central difference of quantiles in float64: cancellation and curvature cost about as much.
_STEP = 1e-5


def _samples(shapes: Tensor, generator: Generator, dtype: DType) -> np.ndarray:
    wanted = array(shapes).astype(np.float64, order="C")
    values = np.empty_like(wanted)
    gamma.gamma(generator, values.ctypes.data, wanted.ctypes.data, values.size, dtype)
    return values


@public("function")
def _standard_gamma(self: Tensor, generator: Generator | None = None) -> Tensor:
    """Return a gamma number of rate 1 for each shape in `self`, differentiable in the shapes."""
    return _gamma(self, drawing_generator(generator, "_standard_gamma", self.spec.device))


@custom_vjp(lambda ct, out, shapes, generator: ct * _standard_gamma_grad(shapes, out))  # type: ignore[has-type]
def _gamma(shapes: Tensor, generator: Generator) -> Tensor:
    check_implemented(shapes, FLOATS, "gamma_cpu")
    if not shapes.spec.device.backend.has_memory:
        return empty_as(shapes, memory_format=contiguous_format)
    if has_iterations(shapes.spec.device):
        values = iterated(gamma.GAMMA, shapes, shapes, generator)
        return values.clamp(min=finfo(shapes.dtype).tiny).to(shapes.dtype)
    return _gamma_on_host(shapes, generator)


@runs_inside
def _gamma_on_host(shapes: Tensor, generator: Generator) -> Tensor:
    dtype = float64 if shapes.dtype is float64 else float32
    return tensor_of(np.maximum(_samples(shapes, generator, dtype), finfo(shapes.dtype).tiny), shapes.dtype)


@public("function")
def _sample_dirichlet(self: Tensor, generator: Generator | None = None) -> Tensor:
    """Return a point of the simplex for each vector of concentrations; differentiable in them."""
    return _dirichlet(self, drawing_generator(generator, "_sample_dirichlet", self.spec.device))


def dirichlet_rule(ct, out, concentration, generator=None):
    total = concentration.sum(-1, keepdim=True).expand_as(concentration)
    return _dirichlet_grad(out, concentration, total) * (ct - (out * ct).sum(-1, keepdim=True))


@custom_vjp(dirichlet_rule)
def _dirichlet(concentration: Tensor, generator: Generator) -> Tensor:
    check_implemented(concentration, FLOATS, "dirichlet")
    if not concentration.spec.device.backend.has_memory:
        return empty_as(concentration, memory_format=contiguous_format)
    if has_iterations(concentration.spec.device):
        values = iterated(gamma.GAMMA, concentration, concentration, generator).clamp(min=finfo(float64).tiny)
        limits = finfo(concentration.dtype)
        points = (values / values.sum(-1, keepdim=True)).clamp(limits.tiny, 1 - limits.eps / 2)
        return points.to(concentration.dtype)
    return _dirichlet_on_host(concentration, generator)


@runs_inside
def _dirichlet_on_host(concentration: Tensor, generator: Generator) -> Tensor:
    values = np.maximum(_samples(concentration, generator, float64), finfo(float64).tiny)
    limits = finfo(concentration.dtype)
    points = np.clip(values / values.sum(-1, keepdims=True), limits.tiny, 1 - limits.eps / 2)
    return tensor_of(points, concentration.dtype)


# ---- Implicit reparameterization: a sample moves with a parameter as the quantile of its probability does ---------
# (Figurnov, Mohamed, Mnih 2018, "Implicit reparameterization gradients")


def _slope(
    quantile: Callable[[np.ndarray, np.ndarray, bool], np.ndarray], parameter: np.ndarray, below, above
):
    """d quantile / d parameter at fixed probability, of the tail that is smaller and so the more exact."""
    h = _STEP * parameter
    upper = above < below
    probability = np.where(upper, above, below)
    return (quantile(parameter + h, probability, upper) - quantile(parameter - h, probability, upper)) / (
        2 * h
    )


@public("function")
def _standard_gamma_grad(self: Tensor, output: Tensor) -> Tensor:
    """Compute d output / d self for samples `output` of `_standard_gamma(self)`."""
    return _gamma_slope(self, output)


@array_op
def _gamma_slope(shapes: Tensor, samples: Tensor) -> Tensor:
    special = scipy("special")
    a, x = (array(each).astype(np.float64) for each in (shapes, samples))

    def quantile(a, p, upper):
        return np.where(upper, special.gammainccinv(a, p), special.gammaincinv(a, p))

    with np.errstate(all="ignore"):
        slope = _slope(quantile, a, special.gammainc(a, x), special.gammaincc(a, x))
        # Near 0 the probability is x^a / gamma(a + 1) to first order, and may be too small for a float.
        near_zero = x * (special.digamma(a + 1) - np.log(x)) / a
    return tensor_of(np.where(x < 1e-6 * (1 + a), near_zero, slope), samples.dtype)


def _gamma_slope_by_kernels(shapes: Tensor, samples: Tensor) -> Tensor:
    """The probability below a sample moves with the shape; the density says by how much the sample moves back."""
    a, x = (bare(each).double() for each in (shapes, samples))
    h = a * _STEP / (1 + a.sqrt())  # of a large `a`, a part of the standard deviation
    below, above = (iterated(cases, a, x) for cases in (LOWER, UPPER))
    rates = ((iterated(cases, a + h, x) - iterated(cases, a - h, x)) / (2 * h) for cases in (LOWER, UPPER))
    of_below, of_above = rates
    density = ((a - 1) * x.log() - x - a.lgamma()).exp()
    slope = where(above < below, of_above, -of_below) / density
    near_zero = x * ((a + 1).digamma() - x.log()) / a
    return where(x < 1e-6 * (1 + a), near_zero, slope).to(samples.dtype)


_gamma_slope.by_kernels = _gamma_slope_by_kernels


@_gamma_slope.spec_rule
def _gamma_slope_spec(shapes: Spec, samples: Spec) -> Spec:
    return contiguous_spec(
        broadcast_shapes("_standard_gamma_grad", shapes.shape, samples.shape), samples.dtype
    )


@public("function")
def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """Compute d x / d alpha / (1 - x) for samples x of beta distributions with parameters alpha and total - alpha."""
    return _beta_slope(x, alpha, total)


@array_op
def _beta_slope(samples: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    special = scipy("special")
    x, a, sum_ = (array(each).astype(np.float64) for each in (samples, alpha, total))
    b = sum_ - a

    def quantile(a, p, upper):
        return np.where(upper, 1 - special.betaincinv(b, a, p), special.betaincinv(a, b, p))

    with np.errstate(all="ignore"):
        slope = _slope(quantile, a, special.betainc(a, b, x), special.betainc(b, a, 1 - x))
        near_zero = x * (special.digamma(a + 1) - special.digamma(sum_ + 0.0) - np.log(x)) / a
    return tensor_of(np.where(x < 1e-9, near_zero, slope) / (1 - x), samples.dtype)


@_beta_slope.spec_rule
def _beta_slope_spec(samples: Spec, alpha: Spec, total: Spec) -> Spec:
    sizes = broadcast_shapes("_dirichlet_grad", samples.shape, alpha.shape, total.shape)
    return contiguous_spec(sizes, samples.dtype)
