"""Defines the Kullback-Leibler divergence between distributions of known types."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import weft
import weft.nn.functional

from ..core.tensor import Tensor
from ..core.warn import user_level
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .normal import Normal
from .of_covariance import half_log_det
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant
from .wishart import Wishart, _mvdigamma

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Decorator that registers a function for the divergence of these types of distributions and their subclasses.

    If several functions match, the one for the most derived types is used. If the most derived type of `p` and the most
    derived type of `q` belong to different functions, a RuntimeWarning says so.

    As in PyTorch, the types may be any classes: a library's distributions may have a base class of its own.

    Raises: TypeError if an argument is not a class.
    """
    for position, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):
            raise TypeError(f"Expected {position} to be a Distribution subclass but got {kind}")

    def decorator(fun: Callable) -> Callable:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()  # because the new function may be a better match for other pairs
        return fun

    return decorator


@functools.total_ordering
class _Match:
    """A pair of types. It is less than the pairs of base classes of its types; the first type decides."""

    __slots__ = ("types",)

    def __init__(self, *types: type):
        self.types = types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Match) and self.types == other.types

    def __le__(self, other: _Match) -> bool:
        for mine, its in zip(self.types, other.types, strict=True):
            if mine is not its:
                return issubclass(mine, its)
        return True


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """Return the function for these types, or NotImplemented."""
    matches = [
        (kind_p, kind_q)
        for kind_p, kind_q in _KL_REGISTRY
        if issubclass(type_p, kind_p) and issubclass(type_q, kind_q)
    ]
    if not matches:
        return NotImplemented
    left_p, left_q = min(_Match(*pair) for pair in matches).types
    right_q, right_p = min(_Match(*reversed(pair)) for pair in matches).types
    found = _KL_REGISTRY[left_p, left_q]
    if found is not _KL_REGISTRY[right_p, right_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=user_level(),
        )
    return found


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence, which is the expectation under `p` of log p - log q, for each element of the batch.

    Raises: NotImplementedError if no function is registered for these types.

    >>> import weft as torch
    >>> from weft.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    types = type(p), type(q)
    if types not in _KL_MEMOIZE:
        _KL_MEMOIZE[types] = _dispatch_kl(*types)
    function = _KL_MEMOIZE[types]
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {types[0].__name__} and q type {types[1].__name__}"
        )
    return function(p, q)


def _infinite_like(tensor: Tensor) -> Tensor:
    return weft.full_like(tensor, math.inf)


# Distributions of one family.


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = terms.masked_fill((q.probs == 0).expand_as(terms), math.inf)
    return terms.masked_fill((p.probs == 0).expand_as(terms), 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    softplus = weft.nn.functional.softplus
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    yes = yes.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    no = no.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)
    return yes + no


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("kl_divergence of binomials needs p.total_count >= q.total_count")
    terms = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return (p.total_count * terms).masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    logs = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    excess = p.concentration - q.concentration
    expected = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return total_p.lgamma() - total_q.lgamma() - logs + (excess * expected).sum(-1)


@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    return (
        q.concentration * (p.rate / q.rate).log()
        + q.concentration.lgamma()
        - p.concentration.lgamma()
        + (p.concentration - q.concentration) * p.concentration.digamma()
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p, q):
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return found.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return found.masked_fill(p.support.lower_bound < q.support.lower_bound, math.inf)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    first = p.mean * (p.logits - q.logits)
    rest = p._cont_bern_log_norm() + (-p.probs).log1p() - q._cont_bern_log_norm() - (-q.probs).log1p()
    return first + rest


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    spread = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return spread.log() - (4 * p.scale * q.scale).log()


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    ratio, offset = p.scale / q.scale, (p.loc - q.loc) / q.scale
    distance = (1 + ratio).lgamma().exp() * (-offset).exp()
    return -ratio.log() + offset + ratio * euler_constant - euler_constant - 1 + distance


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    """Return the Bregman divergence of the log normalizer. Source: Nielsen and Nock 2010."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"The cross KL-divergence between different exponential families cannot be computed: got "
            f"{type(p).__name__} and {type(q).__name__}"
        )
    of_p = [each.detach().requires_grad_() for each in p._natural_params]
    of_q = q._natural_params
    normalizer = p._log_normalizer(*of_p)
    gradients = weft.autograd.grad(normalizer.sum(), of_p, create_graph=True)
    found = q._log_normalizer(*of_q) - normalizer
    for mine, its, gradient in zip(of_p, of_q, gradients, strict=True):
        found = found - _sum_rightmost((its - mine) * gradient, len(q.event_shape))
    return found


# Distributions of vectors.


def _check_shapes(p, q, what):
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {what} with different event shapes cannot be computed: "
            f"{p.event_shape} and {q.event_shape}"
        )


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p, q):
    _check_shapes(p, q, "Multivariate Normals")
    of_p, of_q = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    trace = weft.linalg.solve_triangular(of_q, of_p, upper=False).pow(2).sum((-2, -1))
    distance = _batch_mahalanobis(of_q, q.loc - p.loc)
    return half_log_det(of_q) - half_log_det(of_p) + 0.5 * (trace + distance - p.event_shape[0])


def _low_rank_trace(q, matrix):
    """The sum of the diagonal of M.T C M for a `matrix` M; C is the inverse of q's covariance."""
    diagonal = q._unbroadcasted_cov_diag
    scaled = q._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
    whitened = weft.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    of_diagonal = (matrix * diagonal.rsqrt().unsqueeze(-1)).pow(2).sum((-2, -1))
    return of_diagonal - (whitened @ matrix).pow(2).sum((-2, -1))  # by the Woodbury identity


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p, q):
    _check_shapes(p, q, "Low Rank Multivariate Normals")
    root = p._unbroadcasted_cov_diag.sqrt().diag_embed()
    trace = _low_rank_trace(q, p._unbroadcasted_cov_factor) + _low_rank_trace(q, root)
    return 0.5 * (q._log_det() - p._log_det() + trace + q._distance(q.loc - p.loc) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p, q):
    _check_shapes(p, q, "(Low Rank) Multivariate Normals")
    factor = p._unbroadcasted_scale_tril
    log_dets = q._log_det() - 2 * half_log_det(factor)
    distance = q._distance(q.loc - p.loc)
    return 0.5 * (log_dets + _low_rank_trace(q, factor) + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p, q):
    _check_shapes(p, q, "(Low Rank) Multivariate Normals")
    factor = q._unbroadcasted_scale_tril
    of_p = (p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed())
    trace = sum(weft.linalg.solve_triangular(factor, each, upper=False).pow(2).sum((-2, -1)) for each in of_p)
    distance = _batch_mahalanobis(factor, q.loc - p.loc)
    return 0.5 * (2 * half_log_det(factor) - p._log_det() + trace + distance - p.event_shape[0])


@register_kl(Wishart, Wishart)
def _kl_wishart_wishart(p, q):
    n = p._event_shape[-1]
    of_p, of_q = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    trace = weft.linalg.solve_triangular(of_q, of_p, upper=False).pow(2).sum((-2, -1))
    return (
        q.df * (half_log_det(of_q) - half_log_det(of_p))
        + p.df * (trace - n) / 2
        + weft.mvlgamma(q.df / 2, n)
        - weft.mvlgamma(p.df / 2, n)
        + (p.df - q.df) / 2 * _mvdigamma(p.df / 2, n)
    )


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence of Independent distributions with different numbers of reinterpreted dims: "
            f"{p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence of distributions with different transforms or event shapes")
    n_extra = len(p.event_shape) - len(p.base_dist.event_shape)
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), n_extra)


# Different families, where the support of the first is not within the support of the second, so the result is infinite.

INFINITE: dict[type, tuple[Callable[[Any], Tensor], tuple[type, ...]]] = {
    Beta: (lambda p: p.concentration1, (Pareto,)),
    ContinuousBernoulli: (lambda p: p.probs, (Pareto,)),
    Exponential: (lambda p: p.rate, (Beta, ContinuousBernoulli, Pareto, Uniform)),
    Gamma: (lambda p: p.concentration, (Beta, ContinuousBernoulli, Pareto, Uniform)),
    Gumbel: (lambda p: p.loc, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Laplace: (lambda p: p.loc, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Normal: (lambda p: p.loc, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    Pareto: (lambda p: p.scale, (Beta, ContinuousBernoulli, Uniform)),
    Poisson: (lambda p: p.rate, (Bernoulli, Binomial)),
}


def _register_infinite() -> None:
    for kind_p, (parameter, kinds_q) in INFINITE.items():

        def infinite(p: Any, q: Any, parameter: Callable[[Any], Tensor] = parameter) -> Tensor:
            return _infinite_like(parameter(p))

        for kind_q in kinds_q:
            register_kl(kind_p, kind_q)(infinite)


_register_infinite()

# Other different families: minus the entropy of p, minus the expectation under p of log q. That needs a few
# expectations of p only: of x, x squared, log x or exp(-x).


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p, q):
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p, q):
    found = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()
    # As in PyTorch, infinite also where the bounds are equal.
    return found.masked_fill((p.high >= q.support.upper_bound) | (p.low <= q.support.lower_bound), math.inf)


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _kl_positive_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p, q):
    return _kl_positive_exponential(p, q).masked_fill(p.alpha <= 1, math.inf)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponetial(p, q):
    return _kl_positive_exponential(p, q).masked_fill(p.low < q.support.lower_bound, math.inf)


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _kl_any_normal(p, q):
    spread = p.variance + (p.mean - q.loc).pow(2)
    return -p.entropy() + q.scale.log() + 0.5 * math.log(2 * math.pi) + 0.5 * spread / q.scale.pow(2)


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p, q):
    return _kl_any_normal(p, q).masked_fill(p.alpha <= 2, math.inf)


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p, q):
    found = -p.entropy() + (q.high - q.low).log()
    return found.masked_fill((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), math.inf)


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p, q):
    found = -p.entropy() + (q.high - q.low).log()
    # As in PyTorch, infinite also where the bounds are equal.
    return found.masked_fill((q.low >= p.support.lower_bound) | (q.high <= p.support.upper_bound), math.inf)


def _against_gamma(p, q, mean_log):
    """Compute the divergence with E[log x] under p."""
    a, b = q.concentration, q.rate
    return -p.entropy() + a.lgamma() - a * b.log() - (a - 1) * mean_log + b * p.mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p, q):
    total = p.concentration1 + p.concentration0
    return _against_gamma(p, q, p.concentration1.digamma() - total.digamma())


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p, q):
    return _against_gamma(p, q, -euler_constant - p.rate.log())


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p, q):
    found = _against_gamma(p, q, p.scale.log() + p.alpha.reciprocal())
    return found.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p, q):
    found = _against_gamma(p, q, _mean_log(p.low, p.high))
    return found.masked_fill(p.low < q.support.lower_bound, math.inf)


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    """Return E[log x] of x uniform between `low` and `high`."""
    return (weft.xlogy(high, high) - weft.xlogy(low, low)) / (high - low) - 1


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p, q):
    logs = (q.concentration1 - 1) * _mean_log(p.low, p.high)
    logs = logs + (q.concentration0 - 1) * _mean_log(1 - p.high, 1 - p.low)
    a, b = q.concentration1, q.concentration0
    found = -p.entropy() + a.lgamma() + b.lgamma() - (a + b).lgamma() - logs
    return found.masked_fill((p.high > q.support.upper_bound) | (p.low < q.support.lower_bound), math.inf)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p, q):
    mean_log = _mean_log(p.low, p.high)
    found = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * mean_log
    return found.masked_fill(p.low < q.support.lower_bound, math.inf)


def _against_gumbel(p, q, mean_exp):
    """Compute the divergence with E[exp(-x / q.scale)] under p."""
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + (q.loc / q.scale).exp() * mean_exp


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p, q):
    product = p.rate * q.scale
    return _against_gumbel(p, q, product / (product + 1))


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p, q):
    return _against_gumbel(p, q, (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration))


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p, q):
    return _against_gumbel(p, q, (-p.loc / q.scale + 0.5 * (p.scale / q.scale).pow(2)).exp())


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p, q):
    difference = (-p.low / q.scale).exp() - (-p.high / q.scale).exp()
    return _against_gumbel(p, q, difference * q.scale / (p.high - p.low))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p, q):
    offset = p.loc - q.loc
    z = offset / p.scale
    # The mean of a folded normal distribution.
    distance = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.pow(2)).exp() + offset * (z / math.sqrt(2)).erf()
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale
