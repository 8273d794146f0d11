import copy
import math
import pickle

import pytest
import torch
import torch.distributions

import weft
import weft.distributions


def both(function):
    """`function(torch)` and `function(weft)`."""
    return function(torch), function(weft)


MAKERS = {
    "normal": lambda t: t.distributions.Normal(t.tensor([0.0, 1.0]), t.tensor([1.0, 2.0])),
    "laplace": lambda t: t.distributions.Laplace(t.tensor([0.0, 1.0]), 2.0),
    "uniform": lambda t: t.distributions.Uniform(t.tensor([0.0]), t.tensor([2.0])),
    "exponential": lambda t: t.distributions.Exponential(t.tensor([0.5, 2.0])),
    "gamma": lambda t: t.distributions.Gamma(t.tensor([0.3, 1.5, 20.0]), t.tensor([1.0, 2.0, 0.5])),
    "beta": lambda t: t.distributions.Beta(t.tensor([0.5, 3.0]), t.tensor([2.0, 2.0])),
    "dirichlet": lambda t: t.distributions.Dirichlet(t.tensor([[0.5, 1.0, 2.0], [3.0, 3.0, 3.0]])),
    "bernoulli": lambda t: t.distributions.Bernoulli(t.tensor([0.3, 0.6])),
    "bernoulli of logits": lambda t: t.distributions.Bernoulli(logits=t.tensor([0.3, -2.0])),
    "categorical": lambda t: t.distributions.Categorical(t.tensor([0.1, 0.2, 0.7])),
    "categorical of logits": lambda t: t.distributions.Categorical(
        logits=t.tensor([[0.1, 0.2, 0.7], [0.0, 0.0, 1.0]])
    ),
    "poisson": lambda t: t.distributions.Poisson(t.tensor([0.5, 3.0, 40.0])),
    "multivariate normal": lambda t: t.distributions.MultivariateNormal(
        t.zeros(2), t.tensor([[2.0, 0.5], [0.5, 1.0]])
    ),
    "its precision": lambda t: t.distributions.MultivariateNormal(
        t.ones(3, 2), precision_matrix=t.tensor([[2.0, 0.5], [0.5, 1.0]])
    ),
    "its factor": lambda t: t.distributions.MultivariateNormal(
        t.ones(2), scale_tril=t.tensor([[2.0, 0.0], [0.5, 1.0]])
    ),
    "independent": lambda t: t.distributions.Independent(
        t.distributions.Normal(t.zeros(2, 3), t.ones(2, 3)), 1
    ),
    "log-normal": lambda t: t.distributions.LogNormal(t.tensor([0.0, 1.0]), t.tensor([1.0, 0.5])),
    "half-normal": lambda t: t.distributions.HalfNormal(t.tensor([1.0, 3.0])),
    "half-cauchy": lambda t: t.distributions.HalfCauchy(t.tensor([1.0, 3.0])),
    "cauchy": lambda t: t.distributions.Cauchy(t.tensor([0.0, 1.0]), 2.0),
    "gumbel": lambda t: t.distributions.Gumbel(t.tensor([0.0, 1.0]), t.tensor([1.0, 2.0])),
    "weibull": lambda t: t.distributions.Weibull(t.tensor([1.0, 2.0]), t.tensor([1.5, 3.0])),
    "pareto": lambda t: t.distributions.Pareto(t.tensor([1.0, 2.0]), t.tensor([1.5, 3.0])),
    "inverse gamma": lambda t: t.distributions.InverseGamma(t.tensor([0.5, 3.0]), 2.0),
    "logistic normal": lambda t: t.distributions.LogisticNormal(t.zeros(2), t.tensor([1.0, 2.0])),
    "logistic normal of numbers": lambda t: t.distributions.LogisticNormal(t.tensor(0.5), 2.0),
    "student t": lambda t: t.distributions.StudentT(t.tensor([0.5, 1.5, 4.0]), 1.0, 2.0),
    "chi squared": lambda t: t.distributions.Chi2(t.tensor([0.5, 4.0])),
    "binomial": lambda t: t.distributions.Binomial(5, t.tensor([0.3, 1.0])),
    "binomial of logits": lambda t: t.distributions.Binomial(t.tensor([3.0, 7.0]), logits=t.tensor(0.3)),
    "geometric": lambda t: t.distributions.Geometric(t.tensor([0.3, 1.0])),
    "geometric of logits": lambda t: t.distributions.Geometric(logits=t.tensor([0.3, -1.0])),
    "negative binomial": lambda t: t.distributions.NegativeBinomial(3.0, t.tensor([0.3, 0.6])),
    "multinomial": lambda t: t.distributions.Multinomial(4, t.tensor([[0.1, 0.9], [0.5, 0.5]])),
    "one-hot": lambda t: t.distributions.OneHotCategorical(t.tensor([[0.1, 0.2, 0.7], [0.0, 0.0, 1.0]])),
    "one-hot of logits": lambda t: t.distributions.OneHotCategoricalStraightThrough(
        logits=t.tensor([0.1, 0.5])
    ),
    "relaxed bernoulli": lambda t: t.distributions.RelaxedBernoulli(
        t.tensor(0.5), logits=t.tensor([0.3, 2.0])
    ),
    "relaxed one-hot": lambda t: t.distributions.RelaxedOneHotCategorical(
        t.tensor(0.5), t.tensor([[0.1, 0.9], [0.5, 0.5]])
    ),
    "mixture": lambda t: t.distributions.MixtureSameFamily(
        t.distributions.Categorical(t.tensor([[0.2, 0.8], [0.5, 0.5]])),
        t.distributions.Normal(t.tensor([[0.0, 4.0], [1.0, 2.0]]), 1.0),
    ),
    "mixture of vectors": lambda t: t.distributions.MixtureSameFamily(
        t.distributions.Categorical(t.ones(3, 2)),
        t.distributions.Independent(t.distributions.Laplace(t.zeros(3, 2, 4), 1.0), 1),
    ),
    "transformed": lambda t: t.distributions.TransformedDistribution(
        t.distributions.Normal(t.zeros(2), t.ones(2)),
        [
            t.distributions.transforms.AffineTransform(t.tensor([1.0, 2.0]), -2.0),
            t.distributions.transforms.SigmoidTransform(),
        ],
    ),
    "transformed by more": lambda t: t.distributions.TransformedDistribution(
        t.distributions.Exponential(t.ones(2)),
        t.distributions.transforms.AffineTransform(t.zeros(3, 2), t.ones(2), event_dim=1),
    ),
    "von mises": lambda t: t.distributions.VonMises(t.tensor([0.0, 3.0]), t.tensor([0.5, 20.0])),
    "lkj": lambda t: t.distributions.LKJCholesky(3, t.tensor([0.5, 2.0])),
    "lkj of two": lambda t: t.distributions.LKJCholesky(2, 1.5),
    "wishart": lambda t: t.distributions.Wishart(t.tensor(4.0), t.tensor([[2.0, 0.5], [0.5, 1.0]])),
    "wishart of a factor": lambda t: t.distributions.Wishart(
        t.tensor(4.5), scale_tril=t.tensor([[2.0, 0.0], [0.5, 1.0]])
    ),
    "wisharts of factors": lambda t: t.distributions.Wishart(
        t.tensor([3.0, 5.5, 7.0]), scale_tril=t.tensor([[2.0, 0.0], [0.5, 1.0]])
    ),
    "wisharts of precisions": lambda t: t.distributions.Wishart(
        t.tensor([3.0, 5.5]), precision_matrix=t.tensor([[2.0, 0.5], [0.5, 1.0]])
    ),
    "low rank": lambda t: t.distributions.LowRankMultivariateNormal(
        t.tensor([1.0, 2.0]), t.tensor([[2.0], [0.5]]), t.tensor([0.5, 1.5])
    ),
    "batch of low rank": lambda t: t.distributions.LowRankMultivariateNormal(
        t.ones(2), t.tensor([[[2.0, 1.0], [0.5, 0.0]], [[1.0, 0.0], [0.5, 3.0]]]), t.tensor([0.5, 1.5])
    ),
    "kumaraswamy": lambda t: t.distributions.Kumaraswamy(
        t.tensor([0.5, 2.0, 3.0]), t.tensor([2.0, 1.0, 5.0])
    ),
    "f": lambda t: t.distributions.FisherSnedecor(t.tensor([0.5, 2.0, 8.0]), t.tensor([2.0, 4.5, 9.0])),
    "continuous bernoulli": lambda t: t.distributions.ContinuousBernoulli(t.tensor([0.0, 0.2, 0.5, 0.9])),
    "continuous bernoulli of logits": lambda t: t.distributions.ContinuousBernoulli(
        logits=t.tensor([-2.0, 0.0, 5.0])
    ),
    "generalized pareto": lambda t: t.distributions.GeneralizedPareto(
        t.tensor([1.0, 2.0]), t.tensor([1.5, 3.0]), t.tensor([0.3, 1.2])
    ),
    "generalized pareto without tail": lambda t: t.distributions.GeneralizedPareto(
        t.tensor([1.0, 2.0]), t.tensor([1.5, 3.0]), t.tensor([-0.3, 0.0])
    ),
}
QUESTIONS = {
    "batch_shape": lambda d, x: tuple(d.batch_shape),
    "event_shape": lambda d, x: tuple(d.event_shape),
    "mean": lambda d, x: d.mean,
    "mode": lambda d, x: d.mode,
    "variance": lambda d, x: d.variance,
    "stddev": lambda d, x: d.stddev,
    "log_prob": lambda d, x: d.log_prob(x),
    "entropy": lambda d, x: d.entropy(),
    "perplexity": lambda d, x: d.perplexity(),
    "cdf": lambda d, x: d.cdf(x),
    "icdf": lambda d, x: d.icdf(d.cdf(x)),
    "enumerate_support": lambda d, x: d.enumerate_support(),
    "support": lambda d, x: repr(d.support),
    "constraints": lambda d, x: repr(d.arg_constraints),
    "in support": lambda d, x: d.support.check(x),
    "expanded": lambda d, x: tuple(d.expand((4, *d.batch_shape)).sample().shape),
    "log_prob of expanded": lambda d, x: d.expand((2, *d.batch_shape)).log_prob(x),
    "has_rsample": lambda d, x: d.has_rsample,
    "repr": lambda d, x: repr(d),
}


def answer(question, distribution, value):
    try:
        found = question(distribution, value)
    except NotImplementedError:
        return "NotImplementedError"
    return found


def same(found, expected):
    if not isinstance(expected, torch.Tensor):
        assert found == expected
        return
    assert str(found.dtype) == str(expected.dtype)
    torch.testing.assert_close(
        torch.tensor(found.tolist()), torch.tensor(expected.tolist()), rtol=1e-5, atol=1e-5, equal_nan=True
    )


@pytest.mark.parametrize("name", MAKERS)
def test_samples_are_those_of_pytorch(name):
    for seed, shape in ((0, ()), (1, (3,)), (2, (2, 20))):
        torch.manual_seed(seed), weft.manual_seed(seed)
        expected, found = both(lambda t, shape=shape: MAKERS[name](t).sample(shape))
        same(found, expected)
        assert weft.rand(1).item() == torch.rand(1).item()


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", MAKERS)
def test_answers_are_those_of_pytorch(name, question):
    theirs, ours = both(MAKERS[name])
    value = theirs.sample((2,))
    ours.sample()  # which makes probabilities of logits, and repr shows what there is
    expected = answer(QUESTIONS[question], theirs, value)
    found = answer(
        QUESTIONS[question], ours, weft.tensor(value.tolist(), dtype=getattr(weft, str(value.dtype)[6:]))
    )
    same(found, expected)


@pytest.mark.parametrize(
    "name, parameters",
    [
        ("Normal", ([0.5], [2.0])),
        ("Laplace", ([0.5], [2.0])),
        ("Uniform", ([0.5], [2.0])),
        ("Exponential", ([0.5],)),
        ("Gamma", ([0.5, 3.0], [2.0, 1.0])),
        ("Beta", ([0.5, 3.0], [2.0, 1.0])),
        ("Dirichlet", ([0.5, 1.0, 4.0],)),
        ("MultivariateNormal", ([0.5, 1.0], [[2.0, 0.5], [0.5, 1.0]])),
        ("LogNormal", ([0.5], [2.0])),
        ("HalfCauchy", ([0.5],)),
        ("Gumbel", ([0.5], [2.0])),
        ("Weibull", ([0.5], [2.0])),
        ("Pareto", ([0.5], [2.0])),
        ("StudentT", ([3.0], [0.5], [2.0])),
        ("LogisticNormal", ([0.5, 1.0], [2.0, 1.0])),
        ("RelaxedBernoulli", ([0.5], [0.4])),
        ("RelaxedOneHotCategorical", ([0.5], [0.4, 0.6])),
        ("OneHotCategoricalStraightThrough", ([0.4, 0.6],)),
        ("LowRankMultivariateNormal", ([0.5, 1.0], [[2.0], [0.5]], [1.0, 2.0])),
        ("Kumaraswamy", ([0.5], [2.0])),
        ("FisherSnedecor", ([3.0], [5.0])),
        ("ContinuousBernoulli", ([0.3],)),
        ("GeneralizedPareto", ([0.5], [2.0], [0.3])),
    ],
)
def test_samples_move_with_the_parameters(name, parameters):
    def gradients(t):
        t.manual_seed(0)
        given = [t.tensor(each, dtype=t.float64, requires_grad=True) for each in parameters]
        samples = getattr(t.distributions, name)(*given).rsample((5,))
        (samples * t.arange(samples.numel(), dtype=t.float64).reshape(samples.shape)).sum().backward()
        return [each.grad.tolist() for each in given]

    # PyTorch approximates some of these derivatives to three digits; weft's are exact to eight.
    torch.testing.assert_close(gradients(weft), gradients(torch), rtol=3e-3, atol=1e-6)


def test_samples_of_a_gamma_distribution_move_as_its_quantiles_do():
    shape = weft.tensor([0.05, 0.7, 3.0, 80.0], dtype=weft.float64, requires_grad=True)
    from scipy import special

    for u in (1e-3, 0.2, 0.5, 0.9, 1 - 1e-6):
        x = special.gammaincinv(shape.tolist(), u)
        h = 1e-4
        up, down = (special.gammaincinv([a * (1 + s * h) for a in shape.tolist()], u) for s in (1, -1))
        expected = (up - down) / (2 * h) / shape.tolist()
        found = weft._standard_gamma_grad(shape.detach(), weft.from_numpy(x))
        torch.testing.assert_close(
            torch.tensor(found.tolist()), torch.tensor(expected.tolist()), rtol=2e-4, atol=0
        )


def test_scores_reach_the_logits():
    def gradient(t):
        t.manual_seed(0)
        logits = t.tensor([[0.1, 0.5, -1.0], [2.0, 0.0, 0.0]], requires_grad=True)
        policy = t.distributions.Categorical(logits=logits)
        action = policy.sample()
        (policy.log_prob(action).sum() + policy.entropy().sum()).backward()
        assert policy.probs.requires_grad
        return logits.grad.tolist()

    torch.testing.assert_close(gradient(weft), gradient(torch))


KLS = [
    *(("normal", "normal"), ("laplace", "laplace"), ("uniform", "uniform"), ("exponential", "exponential")),
    *(("gamma", "gamma"), ("beta", "beta"), ("dirichlet", "dirichlet"), ("poisson", "poisson")),
    *(("bernoulli", "bernoulli of logits"), ("categorical", "categorical of logits")),
    *(("multivariate normal", "its precision"), ("its factor", "multivariate normal")),
    ("independent", "independent"),
    *(
        (name, name)
        for name in ("log-normal", "half-normal", "cauchy", "geometric of logits", "gumbel", "one-hot")
    ),
    ("one-hot of logits", "one-hot of logits"),
    *(("low rank", "batch of low rank"), ("multivariate normal", "low rank"), ("low rank", "its factor")),
    *(("wishart", "wishart of a factor"), ("continuous bernoulli", "continuous bernoulli")),
]


@pytest.mark.parametrize("p, q", KLS)
def test_divergences_are_those_of_pytorch(p, q):
    expected, found = both(lambda t: t.distributions.kl_divergence(MAKERS[p](t), MAKERS[q](t)))
    same(found, expected)


def test_divergences_of_what_does_not_match():
    expected, found = both(
        lambda t: t.distributions.kl_divergence(
            t.distributions.Uniform(0.0, 2.0), t.distributions.Uniform(t.tensor([0.0, 1.0]), 3.0)
        )
    )
    same(found, expected)
    assert found[1] == math.inf
    for t in (torch, weft):
        with pytest.raises(NotImplementedError):
            t.distributions.kl_divergence(MAKERS["normal"](t), MAKERS["poisson"](t))


def test_divergences_can_be_registered():
    from weft.distributions import Normal, register_kl

    class Mine(Normal):
        pass

    register_kl(Mine, Mine)(lambda p, q: "mine")
    assert weft.distributions.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)) == "mine"
    with pytest.raises(TypeError, match="type_p"):
        register_kl("Normal", Mine)


WRONG = {
    "scale": lambda t: t.distributions.Normal(0.0, -1.0),
    "probs": lambda t: t.distributions.Categorical(t.tensor([-1.0, 2.0])),
    "bounds": lambda t: t.distributions.Uniform(1.0, 0.0),
    "both": lambda t: t.distributions.Bernoulli(probs=t.tensor(0.5), logits=t.tensor(0.0)),
    "neither": lambda t: t.distributions.Categorical(),
    "no tensor": lambda t: t.distributions.Normal("0", 1.0),
    "not positive definite": lambda t: t.distributions.MultivariateNormal(t.zeros(2), -t.eye(2)),
    "no matrix": lambda t: t.distributions.MultivariateNormal(t.zeros(2)),
    "nan": lambda t: t.distributions.Normal(0.0, 1.0).log_prob(t.tensor(math.nan)),
    "outside": lambda t: t.distributions.Categorical(t.ones(3)).log_prob(t.tensor(3)),
    "shape": lambda t: t.distributions.Normal(t.zeros(2), 1.0).log_prob(t.zeros(3)),
    "event shape": lambda t: t.distributions.Dirichlet(t.ones(3)).log_prob(t.ones(2) / 2),
    "not positive": lambda t: t.distributions.Geometric(t.tensor(0.0)),
    "outside of what a transform gives": lambda t: t.distributions.LogNormal(0.0, 1.0).log_prob(
        t.tensor(-1.0)
    ),
    "not one-hot": lambda t: t.distributions.OneHotCategorical(t.ones(2)).log_prob(t.ones(2)),
    "no transform": lambda t: t.distributions.TransformedDistribution(t.distributions.Normal(0.0, 1.0), [3]),
    "no vector": lambda t: t.distributions.TransformedDistribution(
        t.distributions.Normal(0.0, 1.0), t.distributions.transforms.SoftmaxTransform()
    ),
    "no mixture": lambda t: t.distributions.MixtureSameFamily(3, t.distributions.Normal(t.ones(2), 1.0)),
    "other components": lambda t: t.distributions.MixtureSameFamily(
        t.distributions.Categorical(t.ones(3)), t.distributions.Normal(t.ones(2), 1.0)
    ),
    "too many dims": lambda t: t.distributions.Independent(t.distributions.Normal(0.0, 1.0), 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_as_in_pytorch(name):
    with pytest.raises(ValueError) as theirs:
        WRONG[name](torch)
    with pytest.raises(ValueError) as ours:
        WRONG[name](weft)
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]


def test_validation_can_be_left_out():
    assert weft.distributions.Normal(0.0, -1.0, validate_args=False).scale.item() == -1.0


def test_distributions_are_copied_and_pickled():
    for name, make in MAKERS.items():
        distribution = make(weft)
        for twin in (copy.deepcopy(distribution), pickle.loads(pickle.dumps(distribution))):
            assert twin.batch_shape == distribution.batch_shape, name
            weft.manual_seed(0)
            expected = distribution.sample()
            weft.manual_seed(0)
            assert twin.sample().equal(expected), name


FAMILY = [
    *("normal", "exponential", "gamma", "beta", "dirichlet", "bernoulli", "poisson"),
    *("bernoulli of logits", "chi squared", "wishart", "wisharts of precisions"),
]


@pytest.mark.parametrize("name", FAMILY)
def test_natural_parameters_are_those_of_pytorch(name):
    theirs, ours = both(MAKERS[name])
    assert isinstance(theirs, torch.distributions.ExponentialFamily)
    assert isinstance(ours, weft.distributions.ExponentialFamily)
    expected, found = theirs._natural_params, ours._natural_params
    for one, other in zip(found, expected, strict=True):
        same(one, other)
    same(ours._log_normalizer(*found), theirs._log_normalizer(*expected))


def test_entropy_follows_from_the_log_normalizer():
    class Family(weft.distributions.Normal):
        _mean_carrier_measure = 0.0
        entropy = weft.distributions.ExponentialFamily.entropy

    scale = weft.tensor([1.0, 3.0])
    found = Family(weft.tensor([0.0, 2.0]), scale).entropy()
    same(found, torch.distributions.Normal(torch.zeros(2), torch.tensor([1.0, 3.0])).entropy())


@pytest.mark.parametrize("name", ["wishart", "wisharts of factors", "gamma", "continuous bernoulli"])
def test_entropy_is_the_divergence_of_the_log_normalizer(name):
    distribution = MAKERS[name](weft)
    found = weft.distributions.ExponentialFamily.entropy(distribution)
    assert weft.allclose(found, distribution.entropy(), rtol=1e-4, atol=1e-4)


def test_log_prob_of_numbers():
    for name in ("gamma", "chi squared"):
        theirs, ours = both(MAKERS[name])
        same(ours.log_prob(2), theirs.log_prob(2))


def test_the_gradient_of_a_binomial_where_the_logit_is_zero():
    def program(lib):
        logits = lib.tensor([-30.0, 0.0, 30.0], requires_grad=True)
        y = lib.distributions.Binomial(1.0, logits=logits).log_prob(lib.zeros(3))
        return y, *lib.autograd.grad(y.sum(), logits)

    for one, other in zip(program(weft), program(torch), strict=True):
        same(one, other)


# Two distributions of one kind whose parameters all differ, so that every term of their divergence counts.
PAIRS = {
    "Normal": ((0.5, 1.5), (-1.0, 0.7)),
    "Laplace": ((0.5, 1.5), (-1.0, 0.7)),
    "Gumbel": ((0.5, 1.5), (-1.0, 0.7)),
    "Cauchy": ((0.5, 1.5), (-1.0, 0.7)),
    "Gamma": ((2.5, 1.5), (0.8, 0.6)),
    "Beta": ((2.5, 1.5), (0.8, 3.0)),
    "Exponential": ((1.5,), (0.4,)),
    "Poisson": ((1.5,), (0.4,)),
    "Geometric": ((0.3,), (0.6,)),
    "Bernoulli": ((0.3,), (0.6,)),
    "ContinuousBernoulli": ((0.3,), (0.6,)),
    "Uniform": ((0.2, 0.8), (-1.0, 3.0)),
    "Dirichlet": (([2.5, 1.5, 0.5],), ([0.8, 3.0, 1.1],)),
    "Categorical": (([0.2, 0.0, 0.8],), ([0.5, 0.0, 0.5],)),
    "OneHotCategorical": (([0.2, 0.3, 0.5],), ([0.5, 0.1, 0.4],)),
    "MultivariateNormal": (([0.5, 1.0], [[2.0, 0.3], [0.3, 1.0]]), ([-1.0, 0.0], [[1.0, -0.2], [-0.2, 0.5]])),
    "Wishart": ((4.0, [[2.0, 0.3], [0.3, 1.0]]), (6.0, [[1.0, -0.2], [-0.2, 0.5]])),
}


@pytest.mark.parametrize("name", PAIRS)
def test_divergences_of_different_parameters(name):
    def program(lib):
        made = [
            getattr(lib.distributions, name)(*[lib.tensor(each, dtype=lib.float64) for each in parameters])
            for parameters in PAIRS[name]
        ]
        return lib.distributions.kl_divergence(*made), lib.distributions.kl_divergence(*made[::-1])

    for ours, theirs in zip(program(weft), program(torch), strict=True):
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-9)


def test_the_smallest_samples_of_gamma_have_a_logarithm():
    for lib in (torch, weft):
        gamma = lib.distributions.Gamma(lib.tensor([1e-8, 1e-8]), lib.tensor([1.0, 1e30]))
        assert gamma.sample((20,)).log().isfinite().all()


def test_the_gradient_of_dirichlet_samples():
    def program(lib):
        x = lib.tensor([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
        rule = lib.distributions.dirichlet._Dirichlet_backward
        return rule(x, lib.tensor([[1.0, 2.0, 3.0], [0.5, 0.5, 4.0]]), lib.eye(3)[:2])

    assert program(weft).tolist() == [pytest.approx(row, rel=1e-3) for row in program(torch).tolist()]
