"""botorch: Gaussian-process surrogates, acquisition functions, their optimization."""

import warnings

import torch
from botorch.acquisition import (
    ExpectedImprovement,
    LogExpectedImprovement,
    UpperConfidenceBound,
    qExpectedImprovement,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qMaxValueEntropy,
    qUpperConfidenceBound,
)
from botorch.acquisition.multi_objective import qLogExpectedHypervolumeImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, MultiTaskGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import IIDNormalSampler, SobolQMCNormalSampler
from botorch.test_functions import Branin, Hartmann
from botorch.utils.multi_objective import Hypervolume, is_non_dominated
from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning
from botorch.utils.sampling import draw_sobol_samples, manual_seed, sample_hypersphere
from checks import check, main
from gpytorch.mlls import ExactMarginalLogLikelihood, SumMarginalLogLikelihood

warnings.simplefilter("ignore")
DOUBLE = dict(dtype=torch.double)


def branin(count=8):
    problem = Branin(negate=True)
    x = draw_sobol_samples(problem.bounds, n=count, q=1, seed=3).squeeze(1).double()
    return problem, x, problem(x)[:, None]


def surrogate(x, y):
    model = SingleTaskGP(x, y, input_transform=Normalize(2), outcome_transform=Standardize(1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


@check
def functions():
    x = torch.rand(5, 2, **DOUBLE)
    return {
        "branin": Branin()(x),
        "hartmann": Hartmann(dim=3)(torch.rand(4, 3, **DOUBLE)),
        "bounds": Branin().bounds,
    }


@check
def sobol():
    return {
        "plain": torch.quasirandom.SobolEngine(3).draw(6),
        "scrambled": torch.quasirandom.SobolEngine(3, scramble=True, seed=5).draw(6, dtype=torch.double),
        "box": draw_sobol_samples(torch.tensor([[0.0, 1.0], [1.0, 3.0]]), n=2, q=2, seed=1),
        "sphere": sample_hypersphere(3, n=2, qmc=True, seed=2),
    }


@check
def fitted():
    problem, x, y = branin()
    model = surrogate(x, y)
    test = torch.tensor([[0.0, 5.0], [2.5, 7.5], [9.0, 3.0]], **DOUBLE)
    posterior = model.posterior(test)
    with manual_seed(1):
        sample = SobolQMCNormalSampler(torch.Size([4]), seed=7)(posterior)
    return {
        "y": y,
        "mean": posterior.mean,
        "variance": posterior.variance,
        "sample": sample,
        "conditioned": model.condition_on_observations(test[:1], problem(test[:1])[:, None])
        .posterior(test)
        .mean,
    }


@check
def analytic_acquisition():
    _, x, y = branin()
    model = surrogate(x, y)
    points = torch.tensor([[[0.0, 5.0]], [[2.5, 7.5]], [[9.0, 3.0]]], **DOUBLE)
    return {
        "ei": ExpectedImprovement(model, y.max())(points),
        "logei": LogExpectedImprovement(model, y.max())(points),
        "ucb": UpperConfidenceBound(model, beta=0.5)(points),
    }


@check
def sampled_acquisition():
    _, x, y = branin()
    model = surrogate(x, y)
    points = torch.tensor([[[0.0, 5.0], [3.0, 2.0]], [[2.5, 7.5], [9.0, 3.0]]], **DOUBLE)
    sampler = SobolQMCNormalSampler(torch.Size([16]), seed=11)
    return {
        "qei": qExpectedImprovement(model, y.max(), sampler)(points),
        "qlogei": qLogExpectedImprovement(model, y.max(), sampler)(points),
        "qucb": qUpperConfidenceBound(model, 0.2, IIDNormalSampler(torch.Size([16]), seed=11))(points),
        "entropy": qMaxValueEntropy(model, x[:20], num_fantasies=2)(points[:, :1]).shape,
    }


@check
def optimized():
    problem, x, y = branin()
    model = surrogate(x, y)
    with manual_seed(5):
        candidate, value = optimize_acqf(
            LogExpectedImprovement(model, y.max()),
            bounds=problem.bounds.double(),
            q=1,
            num_restarts=2,
            raw_samples=16,
        )
    with manual_seed(5):
        batch, _ = optimize_acqf(
            qLogExpectedImprovement(model, y.max(), SobolQMCNormalSampler(torch.Size([16]), seed=1)),
            bounds=problem.bounds.double(), q=2, num_restarts=2, raw_samples=8, options={"maxiter": 10},
        )  # fmt: skip
    return {"candidate": candidate, "value": value, "batch": list(batch.shape)}


@check
def several_objectives():
    x = torch.rand(6, 2, **DOUBLE)
    y = torch.stack([-((x - 0.2) ** 2).sum(1), -((x - 0.8) ** 2).sum(1)], 1)
    model = ModelListGP(*[SingleTaskGP(x, y[:, i : i + 1]) for i in range(2)])
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    reference = torch.tensor([-1.5, -1.5], **DOUBLE)
    parts = FastNondominatedPartitioning(reference, Y=y)
    objective = qLogExpectedHypervolumeImprovement(
        model, reference, parts, SobolQMCNormalSampler(torch.Size([8]), seed=2)
    )
    return {
        "front": is_non_dominated(y),
        "volume": Hypervolume(reference).compute(y[is_non_dominated(y)]),
        "value": objective(torch.full((1, 2, 2), 0.4, **DOUBLE)),
        "mean": model.posterior(torch.full((1, 2), 0.4, **DOUBLE)).mean,
    }


@check
def tasks():
    x = torch.cat([torch.rand(8, 1, **DOUBLE), torch.arange(8, **DOUBLE)[:, None] % 2], 1)
    y = torch.sin(3 * x[:, :1]) + 0.2 * x[:, 1:]
    model = MultiTaskGP(x, y, task_feature=1)
    model.eval()
    return {"mean": model.posterior(torch.full((1, 1), 0.5, **DOUBLE)).mean}


@check
def fantasies():
    x = torch.rand(8, 1, **DOUBLE)
    y = torch.sin(3 * x)
    single = SingleTaskGP(x, y)
    single.eval()
    gradient = qKnowledgeGradient(single, num_fantasies=2)
    with manual_seed(1):
        fantasies = single.fantasize(
            torch.full((1, 1), 0.5, **DOUBLE), SobolQMCNormalSampler(torch.Size([2]), seed=3)
        )
    return {
        "fantasies": fantasies.posterior(torch.full((1, 1), 0.1, **DOUBLE)).mean,
        "size": gradient.get_augmented_q_batch_size(1),
    }


if __name__ == "__main__":
    main("botorch", "gpytorch")
