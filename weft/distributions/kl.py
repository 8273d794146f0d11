"""The Kullback-Leibler divergence between distributions of known types."""

from __future__ import annotations

import math
from collections.abc import Callable

import weft
import weft.nn.functional

from ..core.tensor import Tensor
from .bernoulli import Bernoulli
from .beta import Beta
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution, sum_rightmost
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import EULER, Gumbel
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal
from .normal import Normal
from .of_categorical import OneHotCategorical
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .wishart import Wishart, expected_log_gammas

_RULES: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Decorator: how the divergence of these types of distributions is computed.

    Raises: TypeError for types that are no distributions.
    """
    for position, kind in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {position} to be a Distribution subclass but got {kind}")

    def decorate(function: Callable) -> Callable:
        _RULES[type_p, type_q] = function
        return function

    return decorate


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The expectation under `p` of log p - log q, for each member of the batch.

    Raises: NotImplementedError if it is not known for these types.

    >>> import weft as torch
    >>> from weft.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            if (kind_p, kind_q) in _RULES:
                return _RULES[kind_p, kind_q](p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
    )


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = terms.masked_fill((q.probs == 0).expand_as(terms), math.inf)
    return terms.masked_fill((p.probs == 0).expand_as(terms), 0).sum(-1)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    softplus = weft.nn.functional.softplus
    yes = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    yes = yes.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    no = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    no = no.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)
    return yes + no


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    logs = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    excess = p.concentration - q.concentration
    expected = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return total_p.lgamma() - total_q.lgamma() - logs + (excess * expected).sum(-1)


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    return (
        q.concentration * (p.rate / q.rate).log()
        + q.concentration.lgamma()
        - p.concentration.lgamma()
        + (p.concentration - q.concentration) * p.concentration.digamma()
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return found.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        )
    whitened = weft.linalg.solve_triangular(q._factor, p._factor, upper=False)
    offset = weft.linalg.solve_triangular(q._factor, (q.loc - p.loc).unsqueeze(-1), upper=False)
    trace, distance = whitened.pow(2).sum((-2, -1)), offset.squeeze(-1).pow(2).sum(-1)
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + distance - p.event_shape[0])


def _check_shapes(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {type(p).__name__} with different event shapes cannot be computed"
        )


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p, q):
    _check_shapes(p, q)
    # The trace of covariance(p) by the inverse of covariance(q), by the Woodbury identity.
    scaled = q._factor.mT / q._diagonal.unsqueeze(-2)
    whitened = weft.linalg.solve_triangular(q._capacitance, scaled, upper=False)
    trace = (
        (p._diagonal / q._diagonal).sum(-1)
        + (p._factor * q._diagonal.rsqrt().unsqueeze(-1)).pow(2).sum((-2, -1))
        - (whitened * p._diagonal.sqrt().unsqueeze(-2)).pow(2).sum((-2, -1))
        - (whitened @ p._factor).pow(2).sum((-2, -1))
    )
    return 0.5 * (q._log_det() - p._log_det() + trace + q._distance(q.loc - p.loc) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_and_low_rank(p, q):
    _check_shapes(p, q)
    scaled = q._factor.mT / q._diagonal.unsqueeze(-2)
    whitened = weft.linalg.solve_triangular(q._capacitance, scaled, upper=False)
    trace = (p._factor * q._diagonal.rsqrt().unsqueeze(-1)).pow(2).sum((-2, -1))
    trace = trace - (whitened @ p._factor).pow(2).sum((-2, -1))
    log_dets = q._log_det() - 2 * p._half_log_det()
    return 0.5 * (log_dets + trace + q._distance(q.loc - p.loc) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_and_full(p, q):
    _check_shapes(p, q)
    parts = weft.cat([p._factor, p._diagonal.sqrt().diag_embed()], -1)
    trace = weft.linalg.solve_triangular(q._factor, parts, upper=False).pow(2).sum((-2, -1))
    offset = weft.linalg.solve_triangular(q._factor, (q.loc - p.loc).unsqueeze(-1), upper=False)
    distance = offset.squeeze(-1).pow(2).sum(-1)
    return 0.5 * (2 * q._half_log_det() - p._log_det() + trace + distance - p.event_shape[0])


@register_kl(Wishart, Wishart)
def _wishart(p, q):
    n = p._event_shape[-1]
    trace = weft.linalg.solve_triangular(q._factor, p._factor, upper=False).pow(2).sum((-2, -1))
    return (
        q.df * (q._half_log_det() - p._half_log_det())
        + p.df * (trace - n) / 2
        + weft.mvlgamma(q.df / 2, n)
        - weft.mvlgamma(p.df / 2, n)
        + (p.df - q.df) / 2 * expected_log_gammas(p.df / 2, n)
    )


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    first = p.mean * (p.logits - q.logits)
    rest = p._log_normalizer() + (-p.probs).log1p() - q._log_normalizer() - (-q.probs).log1p()
    return first + rest


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return p._summed(kl_divergence(p.base_dist, q.base_dist))


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    spread = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return spread.log() - (4 * p.scale * q.scale).log()


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, offset = p.scale / q.scale, (p.loc - q.loc) / q.scale
    distance = (1 + ratio).lgamma().exp() * (-offset).exp()
    return -ratio.log() + offset + ratio * EULER - EULER - 1 + distance


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return sum_rightmost(
        kl_divergence(p.base_dist, q.base_dist), len(p.event_shape) - len(p.base_dist.event_shape)
    )
