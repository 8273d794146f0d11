"""Every divergence that PyTorch knows: values, and gradients in all parameters."""

import itertools
import math
import warnings

import pytest
import torch
from torch.distributions.kl import _KL_REGISTRY

import weft
import weft.distributions

# Two or more sets of parameters for each family: within and outside of the unit interval, where that matters.
PARAMETERS = {
    "Bernoulli": [(0.3,), (0.6,)],
    "Beta": [(2.5, 1.5), (0.8, 3.0)],
    "Binomial": [(3.0, 0.3), (3.0, 0.6)],
    "Categorical": [([0.2, 0.3, 0.5],), ([0.5, 0.1, 0.4],)],
    "Cauchy": [(0.5, 1.5), (-1.0, 0.7)],
    "ContinuousBernoulli": [(0.3,), (0.6,), (0.5,)],
    "Dirichlet": [([2.5, 1.5, 0.5],), ([0.8, 3.0, 1.1],)],
    "Exponential": [(1.5,), (0.4,)],
    "Gamma": [(2.5, 1.5), (0.8, 0.6)],
    "Geometric": [(0.3,), (0.6,)],
    "Gumbel": [(0.5, 1.5), (-1.0, 0.7)],
    "HalfNormal": [(0.5,), (2.0,)],
    "Laplace": [(0.5, 1.5), (-1.0, 0.7)],
    "LowRankMultivariateNormal": [
        ([0.5, 1.0], [[2.0], [0.5]], [1.0, 2.0]),
        ([-0.5, 2.0], [[1.0], [-0.5]], [0.5, 0.7]),
    ],
    "MultivariateNormal": [([0.5, 1.0], [[2.0, 0.3], [0.3, 1.0]]), ([-1.0, 0.0], [[1.0, -0.2], [-0.2, 0.5]])],
    "Normal": [(0.5, 1.5), (-1.0, 0.7)],
    "OneHotCategorical": [([0.2, 0.3, 0.5],), ([0.5, 0.1, 0.4],)],
    "Pareto": [(0.7, 2.5), (1.5, 0.8), (0.1, 1.5)],
    "Poisson": [(1.5,), (0.4,)],
    "Uniform": [(0.2, 0.8), (-1.0, 3.0), (0.0, 1.0), (1.6, 2.0)],
}
PAIRS = sorted(
    (p.__name__, q.__name__)
    for p, q in _KL_REGISTRY
    if p.__name__ in PARAMETERS and q.__name__ in PARAMETERS and p.__module__.startswith("torch.")
)


def test_every_pair_is_registered():
    registered = {(p.__name__, q.__name__) for p, q in weft.distributions.kl._KL_REGISTRY}
    expected = {(p.__name__, q.__name__) for p, q in _KL_REGISTRY if p.__module__.startswith("torch.")}
    assert expected <= registered
    others = {
        "ExponentialFamily",
        "Independent",
        "TransformedDistribution",
    }  # tested with the other distributions
    assert {name for pair in expected for name in pair} == {*PARAMETERS, *others}


@pytest.mark.parametrize("p, q", PAIRS)
def test_values_and_gradients(p, q):
    def program(lib, of_p, of_q):
        made = [
            [lib.tensor(each, dtype=lib.float64, requires_grad=True) for each in parameters]
            for parameters in (of_p, of_q)
        ]
        found = lib.distributions.kl_divergence(
            *(getattr(lib.distributions, name)(*each) for name, each in zip((p, q), made, strict=True))
        )
        leaves = [leaf for each in made for leaf in each]
        gradients = [None] * len(leaves)
        if found.isfinite().all() and found.requires_grad:
            gradients = lib.autograd.grad(found.sum(), leaves, allow_unused=True)
        return found.tolist(), [None if each is None else each.tolist() for each in gradients]

    for of_p, of_q in itertools.product(PARAMETERS[p], PARAMETERS[q]):
        ours, theirs = program(weft, of_p, of_q), program(torch, of_p, of_q)
        assert ours[0] == pytest.approx(theirs[0], rel=1e-9, abs=1e-12)
        for mine, its in zip(ours[1], theirs[1], strict=True):
            zero = torch.zeros(()) if its is None else torch.zeros_like(torch.tensor(its))
            mine, its = (zero if each is None else torch.tensor(each) for each in (mine, its))
            torch.testing.assert_close(mine, its, rtol=1e-6, atol=1e-8, equal_nan=True)


def test_the_most_derived_types_decide_and_ambiguity_is_reported():
    from weft.distributions import Normal, kl_divergence, register_kl
    from weft.distributions.kl import _KL_MEMOIZE, _KL_REGISTRY

    class Base(Normal):
        pass

    class Derived(Base):
        pass

    before = dict(_KL_REGISTRY)
    try:
        register_kl(Base, Derived)(lambda p, q: "left")
        register_kl(Derived, Base)(lambda p, q: "right")
        base, derived = Base(0.0, 1.0), Derived(0.0, 1.0)
        assert kl_divergence(base, derived) == "left"
        assert kl_divergence(base, base).item() == 0
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(Derived, Derived\)"):
            assert kl_divergence(derived, derived) == "right"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            register_kl(Derived, Derived)(lambda p, q: "both")
            assert kl_divergence(derived, derived) == "both"
    finally:
        _KL_REGISTRY.clear()
        _KL_REGISTRY.update(before)
        _KL_MEMOIZE.clear()


def test_exponential_families_of_a_library_follow_from_their_log_normalizer():
    def program(lib):
        class Mine(lib.distributions.ExponentialFamily):
            arg_constraints = {}

            def __init__(self, rate):
                self.rate = rate
                super().__init__(rate.shape)

            @property
            def _natural_params(self):
                return (-self.rate,)

            def _log_normalizer(self, x):
                return -(-x).log()

        return lib.distributions.kl_divergence(
            Mine(lib.tensor([1.0, 2.0])), Mine(lib.tensor([0.5, 3.0]))
        ).tolist()

    assert program(weft) == pytest.approx(program(torch))
    with pytest.raises(NotImplementedError):
        weft.distributions.kl_divergence(
            weft.distributions.Bernoulli(weft.tensor(0.5)), weft.distributions.Gamma(1.0, 1.0)
        )
    assert math.isinf(
        weft.distributions.kl_divergence(
            weft.distributions.Normal(0.0, 1.0), weft.distributions.Uniform(0.0, 1.0)
        )
    )


def test_binomials_of_other_counts():
    for lib in (torch, weft):
        few, many = (lib.distributions.Binomial(n, lib.tensor(0.5)) for n in (3, 5))
        assert math.isinf(lib.distributions.kl_divergence(many, few))
        with pytest.raises(NotImplementedError):
            lib.distributions.kl_divergence(few, many)
