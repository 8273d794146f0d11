"""Transforms of `torch.distributions`, one by one in both libraries."""

import pickle

import pytest
import torch
from alike import same

import weft
import weft.distributions

TRANSFORMS = {
    "exp": lambda T: T.ExpTransform(),
    "sigmoid": lambda T: T.SigmoidTransform(),
    "tanh": lambda T: T.TanhTransform(),
    "softplus": lambda T: T.SoftplusTransform(),
    "power": lambda T: T.PowerTransform(2.0),
    "affine": lambda T: T.AffineTransform(1.0, -3.0),
    "affine vectors": lambda T: T.AffineTransform(1.0, -3.0, event_dim=1),
    "inverse": lambda T: T.AffineTransform(0.1, 4.0).inv,
    "stick breaking": lambda T: T.StickBreakingTransform(),
    "composed": lambda T: T.ComposeTransform([T.ExpTransform(), T.AffineTransform(0.0, 2.0, event_dim=1)]),
    "inverse of composed": lambda T: T.ComposeTransform([T.AffineTransform(0.0, 2.0), T.ExpTransform()]).inv,
    "composed with other event dims": lambda T: T.ComposeTransform(
        [
            T.ReshapeTransform((2,), (1, 2)),
            T.ExpTransform(),
            T.ReshapeTransform((1, 2), (2,)),
            T.ExpTransform(),
        ]
    ),
    "nothing": lambda T: T.identity_transform,
    "independent": lambda T: T.IndependentTransform(T.ExpTransform(), 1),
    "reshape": lambda T: T.ReshapeTransform((2,), (1, 2)),
    "abs": lambda T: T.AbsTransform(),
    "softmax": lambda T: T.SoftmaxTransform(),
    "lower cholesky": lambda T: T.LowerCholeskyTransform(),
    "positive definite": lambda T: T.PositiveDefiniteTransform(),
    "cat": lambda T: T.CatTransform([T.ExpTransform(), T.TanhTransform()], dim=1),
    "cat of lengths": lambda T: T.CatTransform([T.ExpTransform()], dim=-1, lengths=[2]),
    "stack": lambda T: T.StackTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)], dim=1),
}


NOT_BIJECTIVE = (
    "abs",
    "softmax",
    "lower cholesky",
    "positive definite",
)  # PyTorch has no repr of their inverses


def answers(t, name):
    T = t.distributions.transforms
    transform = TRANSFORMS[name](T)
    x = t.tensor([[0.3, 0.7], [0.2, 0.9]])
    y = transform(x)
    found = [y, transform.inv(y), transform.bijective, tuple(transform.forward_shape((2, 2)))]
    found += [
        tuple(transform.inverse_shape(y.shape)),
        transform == T.AffineTransform(0, 1),
        transform == transform,
    ]
    found += [repr(each) for each in (transform, transform.domain, transform.codomain)]
    found += [] if name in NOT_BIJECTIVE else [repr(transform.inv)]
    for question in (lambda: transform.log_abs_det_jacobian(x, y), lambda: transform.sign):
        try:
            found.append(question())
        except NotImplementedError:
            found.append("not implemented")
    return found


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_do_what_pytorchs_do(name):
    same(answers, name)


@pytest.mark.parametrize("name", ["exp", "affine", "composed", "inverse", "independent"])
def test_a_cache_gives_the_argument_itself(name):
    for t in (torch, weft):
        transform = TRANSFORMS[name](t.distributions.transforms).with_cache()
        x = t.tensor([0.3, 0.7])
        assert transform.inv(transform(x)) is x
        pickle.loads(pickle.dumps(transform))


def test_the_probability_of_saturated_actions_is_finite():
    """The policy of soft actor-critic: tanh of a normal number, with the cache."""
    for t in (torch, weft):
        transform = t.distributions.transforms.TanhTransform(cache_size=1)
        policy = t.distributions.TransformedDistribution(
            t.distributions.Normal(t.tensor([30.0]), 1.0), [transform]
        )
        action = policy.rsample()
        assert action.item() == 1 and policy.log_prob(action).isfinite().all()


CONSTRAINTS = {
    "real": lambda c: c.real,
    "positive": lambda c: c.positive,
    "nonnegative": lambda c: c.nonnegative,
    "less_than": lambda c: c.less_than(2.0),
    "interval": lambda c: c.interval(-1.0, 3.0),
    "unit_interval": lambda c: c.unit_interval,
    "simplex": lambda c: c.simplex,
    "vectors": lambda c: c.independent(c.positive, 1),
    "lower_cholesky": lambda c: c.lower_cholesky,
    "positive_definite": lambda c: c.positive_definite,
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_transforms_onto_constraints(name):
    def answer(t):
        constraint = CONSTRAINTS[name](t.distributions.constraints)
        x, found = t.tensor([[0.3, -0.7], [0.2, 2.0]]), []
        for registry in (t.distributions.biject_to, t.distributions.transform_to):
            try:
                transform = registry(constraint)
                y = transform(x)
                found += [y, constraint.check(y), repr(transform)]
            except NotImplementedError:
                found.append("none")
        return found

    same(answer)


def test_transforms_of_new_constraints_can_be_registered():
    class Even(weft.distributions.constraints.Constraint):
        pass

    doubled = weft.distributions.transforms.AffineTransform(0, 2)
    weft.distributions.transform_to.register(Even, lambda constraint: doubled)
    assert weft.distributions.transform_to(Even()) is doubled
    with pytest.raises(TypeError, match="to be either a Constraint subclass or instance"):
        weft.distributions.transform_to.register(3, lambda constraint: doubled)
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean constraints"):
        weft.distributions.biject_to(weft.distributions.constraints.boolean)


def test_wrong_transforms_are_refused():
    for t in (torch, weft):
        T = t.distributions.transforms
        with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
            T.ExpTransform(cache_size=2)
        with pytest.raises(ValueError, match="different numbers of elements"):
            T.ReshapeTransform((2,), (3,))
        with pytest.raises(ValueError, match="Too few dimensions on input"):
            T.ReshapeTransform((2, 2), (4,)).forward_shape((2,))
        with pytest.raises(ValueError, match="Please use either"):
            _ = T.ReshapeTransform((2, 2), (4,)).event_dim


def test_utils():
    def answer(t):
        utils = t.distributions.utils
        p = t.tensor([0.0, 0.25, 0.75])
        logits = utils.probs_to_logits(p, is_binary=True)
        return (
            utils.broadcast_all(1.0, p),
            logits,
            utils.logits_to_probs(logits, True),
            utils.probs_to_logits(p),
        )

    import weft.distributions.utils  # noqa: F401

    same(answer)


def test_factors_of_correlations():
    def answers(t):
        T = t.distributions.transforms
        transform, x = T.CorrCholeskyTransform(), t.tensor([[0.3, -0.7, 2.0], [0.2, 0.9, 0.0]])
        y = transform(x)
        found = [y, transform.inv(y), transform.log_abs_det_jacobian(x, y), transform.codomain.check(y)]
        found += [tuple(transform.forward_shape((2, 3))), tuple(transform.inverse_shape((2, 3, 3)))]
        return [*found, t.distributions.biject_to(t.distributions.constraints.corr_cholesky)(x)]

    same(answers)


def test_constraints_of_parts():
    def answers(t):
        c = t.distributions.constraints
        x = t.tensor([[0.3, -0.7], [-0.2, 0.9]])
        for constraint in (c.cat([c.positive, c.real], 1), c.stack([c.positive, c.real], 0)):
            found = [constraint.check(x), constraint.event_dim, constraint.is_discrete]
            transform = t.distributions.transform_to(constraint)
            found += [transform(x), constraint.check(transform(x))]
        return found

    same(answers)


def test_triangles():
    from torch.distributions import utils as theirs

    from weft.distributions import utils as ours

    for count, diag in ((3, 0), (3, -1), (1, -2), (9, 2)):
        vec = [float(k + 1) for k in range(count)]
        matrix = ours.vec_to_tril_matrix(weft.tensor([vec, vec]), diag)
        assert matrix.tolist() == theirs.vec_to_tril_matrix(torch.tensor([vec, vec]), diag).tolist()
        assert ours.tril_matrix_to_vec(matrix, diag).tolist() == [vec, vec]


def test_the_inverse_of_softplus_does_not_overflow():
    y = [1e-6, 0.5, 20.0, 88.0, 89.0, 1000.0]
    ours, theirs = (t.distributions.transforms.SoftplusTransform().inv(t.tensor(y)) for t in (weft, torch))
    assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-5)
