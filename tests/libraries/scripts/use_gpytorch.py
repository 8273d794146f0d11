"""gpytorch: exact, variational, multitask and deep-kernel Gaussian processes."""

import math

import gpytorch
import torch
from checks import check, main, weights
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from torch import nn


def data(n=20):
    x = torch.linspace(0, 1, n)
    return x, torch.sin(x * 2 * math.pi) + torch.randn(n) * 0.1


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, kernel=None):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = kernel or gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def fit(model, likelihood, objective, x, y, steps=8, lr=0.1):
    model.train()
    likelihood.train()
    parameters = {id(p): p for p in [*model.parameters(), *likelihood.parameters()]}.values()
    optimizer = torch.optim.Adam(parameters, lr=lr)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    likelihood.eval()
    return losses


@check
def exact_gp():
    x, y = data()
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(x, y, likelihood)
    losses = fit(model, likelihood, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), x, y)
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        predicted = likelihood(model(torch.linspace(0, 1, 7)))
        lower, upper = predicted.confidence_region()
        sample = predicted.rsample(torch.Size([2]))
    return {
        "losses": losses,
        "mean": predicted.mean,
        "variance": predicted.variance,
        "lower": lower,
        "upper": upper,
        "sample": sample,
        "lengthscale": model.covar_module.base_kernel.lengthscale,
        "weights": weights(model),
    }


@check
def kernels():
    x = torch.rand(6, 2)
    K = gpytorch.kernels
    choices = {
        "rbf": K.RBFKernel(ard_num_dims=2),
        "matern": K.MaternKernel(nu=1.5),
        "periodic": K.PeriodicKernel(),
        "rq": K.RQKernel(),
        "linear": K.LinearKernel(),
        "polynomial": K.PolynomialKernel(power=2),
        "cosine": K.CosineKernel(),
        "sum": K.RBFKernel() + K.LinearKernel(),
        "product": K.RBFKernel() * K.PeriodicKernel(),
        "mixture": K.SpectralMixtureKernel(num_mixtures=2, ard_num_dims=2),
        "arccos": K.ArcKernel(K.MaternKernel(nu=2.5)),
    }
    return {name: kernel(x).to_dense() for name, kernel in choices.items()}


@check
def variational():
    x, y = data(40)

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, points):
            inner = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
            strategy = gpytorch.variational.VariationalStrategy(
                self, points, inner, learn_inducing_locations=True
            )
            super().__init__(strategy)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

        def forward(self, x):
            return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model, likelihood = Model(torch.linspace(0, 1, 8)[:, None]), gpytorch.likelihoods.GaussianLikelihood()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=40)
    losses = fit(model, likelihood, objective, x[:, None], y)
    with torch.no_grad():
        predicted = model(x[::7, None])
    return {"losses": losses, "mean": predicted.mean, "variance": predicted.variance}


@check
def classification():
    x, y = data(20)
    labels = (y > 0).float()

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self, x):
            inner = gpytorch.variational.CholeskyVariationalDistribution(x.size(0))
            super().__init__(gpytorch.variational.UnwhitenedVariationalStrategy(self, x, inner, False))
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x):
            return MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model, likelihood = Model(x), gpytorch.likelihoods.BernoulliLikelihood()
    losses = fit(model, likelihood, gpytorch.mlls.VariationalELBO(likelihood, model, 20), x, labels, steps=5)
    with torch.no_grad():
        probabilities = likelihood(model(x)).mean
    return {"losses": losses, "probabilities": probabilities}


@check
def multitask():
    x, y = data(12)
    y = torch.stack([y, torch.cos(x * 6)], -1)

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.MultitaskMean(gpytorch.means.ConstantMean(), num_tasks=2)
            self.covar_module = gpytorch.kernels.MultitaskKernel(
                gpytorch.kernels.RBFKernel(), num_tasks=2, rank=1
            )

        def forward(self, x):
            return MultitaskMultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=2)
    model = Model(x, y, likelihood)
    losses = fit(
        model, likelihood, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), x, y, steps=5
    )
    with torch.no_grad():
        predicted = likelihood(model(torch.linspace(0, 1, 5)))
    return {"losses": losses, "mean": predicted.mean, "covariance": predicted.covariance_matrix}


@check
def deep_kernel():
    x, y = data(15)
    network = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 2, bias=False))

    class Model(Exact):
        def __init__(self, x, y, likelihood):
            super().__init__(
                x, y, likelihood, gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2))
            )
            self.network = network

        def forward(self, x):
            return super().forward(self.network(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(x[:, None], y, likelihood)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    losses = fit(model, likelihood, objective, x[:, None], y, lr=0.05)
    return {"losses": losses, "weights": weights(model)}


@check
def priors_and_constraints():
    x, y = data(10)
    kernel = gpytorch.kernels.RBFKernel(
        lengthscale_prior=gpytorch.priors.GammaPrior(3.0, 6.0),
        lengthscale_constraint=gpytorch.constraints.Interval(0.01, 2.0),
    )
    likelihood = gpytorch.likelihoods.GaussianLikelihood(
        noise_prior=gpytorch.priors.LogNormalPrior(-4.0, 1.0)
    )
    model = Exact(x, y, likelihood, gpytorch.kernels.ScaleKernel(kernel))
    kernel.lengthscale = 0.3
    losses = fit(
        model, likelihood, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), x, y, steps=4
    )
    copy = Exact(x, y, gpytorch.likelihoods.GaussianLikelihood(noise_prior=gpytorch.priors.LogNormalPrior(-4.0, 1.0)),
                 gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(
                     lengthscale_prior=gpytorch.priors.GammaPrior(3.0, 6.0),
                     lengthscale_constraint=gpytorch.constraints.Interval(0.01, 2.0))))  # fmt: skip
    copy.load_state_dict(model.state_dict())
    return {
        "losses": losses,
        "names": [name for name, *_ in model.named_priors()],
        "lengthscale": copy.covar_module.base_kernel.lengthscale,
        "state": list(model.state_dict()),
    }


@check
def linear_operators():
    from linear_operator import to_linear_operator
    from linear_operator.operators import DiagLinearOperator, ToeplitzLinearOperator

    a = torch.randn(6, 6)
    dense = a @ a.T + 6 * torch.eye(6)
    operator, right = to_linear_operator(dense), torch.randn(6, 2)
    toeplitz = ToeplitzLinearOperator(torch.tensor([4.0, 2.0, 1.0, 0.5, 0.25, 0.125]))
    return {
        "solve": operator.solve(right),
        "cholesky": operator.cholesky().to_dense(),
        "logdet": operator.logdet(),
        "inv_quad": operator.inv_quad_logdet(right, logdet=True),
        "diagonal": (operator + DiagLinearOperator(torch.arange(6.0))).diagonal(),
        "toeplitz": toeplitz @ right,
        "root": operator.root_decomposition().to_dense(),
        "torch function": torch.linalg.solve(operator, right),
    }


if __name__ == "__main__":
    main("gpytorch", "linear_operator")
