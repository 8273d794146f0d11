"""pyro: variational inference, MCMC, enumeration, normalizing flows."""

import pyro
import pyro.distributions as dist
import torch
from checks import check, main
from pyro.infer import HMC, MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, TraceMeanField_ELBO
from pyro.infer.autoguide import (
    AutoDiagonalNormal,
    AutoLowRankMultivariateNormal,
    AutoMultivariateNormal,
    AutoNormal,
)
from pyro.nn import PyroModule, PyroSample
from torch import nn


def regression(x, y=None):
    slope = pyro.sample("slope", dist.Normal(0.0, 2.0))
    offset = pyro.sample("offset", dist.Normal(0.0, 2.0))
    noise = pyro.sample("noise", dist.LogNormal(-1.0, 0.5))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(slope * x + offset, noise), obs=y)


def data():
    x = torch.linspace(-1, 1, 20)
    return x, 2 * x - 1 + 0.2 * torch.randn(20)


def infer(model, guide, loss, *arguments, steps=10, lr=0.02):
    pyro.clear_param_store()
    svi = SVI(model, guide, pyro.optim.Adam({"lr": lr}), loss)
    return [svi.step(*arguments) for _ in range(steps)]


@check
def autoguides():
    x, y = data()
    found = {}
    for guide in (AutoNormal, AutoDiagonalNormal, AutoMultivariateNormal, AutoLowRankMultivariateNormal):
        pyro.set_rng_seed(0)
        pyro.clear_param_store()
        made = guide(regression)
        found[guide.__name__] = infer(regression, made, Trace_ELBO(), x, y)
        found[f"{guide.__name__} median"] = {k: v.detach() for k, v in made.median(x).items()}
    return found


@check
def guide_by_hand():
    x, y = data()

    def guide(x, y=None):
        for name in ("slope", "offset"):
            loc = pyro.param(f"{name}_loc", torch.tensor(0.1))
            scale = pyro.param(f"{name}_scale", torch.tensor(0.5), constraint=dist.constraints.positive)
            pyro.sample(name, dist.Normal(loc, scale))
        pyro.sample("noise", dist.LogNormal(pyro.param("noise_loc", torch.tensor(-1.0)), 0.3))

    losses = infer(regression, guide, TraceMeanField_ELBO(), x, y)
    return {
        "losses": losses,
        "parameters": {name: value.detach() for name, value in pyro.get_param_store().items()},
        "predictive": Predictive(regression, guide=guide, num_samples=3)(x),
    }


@check
def mixture():
    points = torch.cat([torch.randn(10) - 3, torch.randn(10) + 3])

    @pyro.infer.config_enumerate
    def model(points):
        weights = pyro.sample("weights", dist.Dirichlet(torch.ones(2)))
        with pyro.plate("components", 2):
            locs = pyro.sample("locs", dist.Normal(0.0, 5.0))
        with pyro.plate("points", len(points)):
            which = pyro.sample("which", dist.Categorical(weights))
            pyro.sample("obs", dist.Normal(locs[which], 1.0), obs=points)

    guide = AutoNormal(pyro.poutine.block(model, expose=["weights", "locs"]))
    losses = infer(model, guide, TraceEnum_ELBO(max_plate_nesting=1), points)
    return {"losses": losses, "median": {k: v.detach() for k, v in guide.median().items()}}


@check
def hmc():
    x, y = data()
    mcmc = MCMC(HMC(regression, step_size=0.02, num_steps=4, adapt_step_size=False, adapt_mass_matrix=False),
                num_samples=6, warmup_steps=2, disable_progbar=True)  # fmt: skip
    mcmc.run(x, y)
    return {name: value for name, value in sorted(mcmc.get_samples().items())}


@check
def nuts():
    x, y = data()
    pyro.set_rng_seed(3)
    mcmc = MCMC(NUTS(regression, step_size=0.05, adapt_step_size=False, adapt_mass_matrix=False, max_tree_depth=3),
                num_samples=4, warmup_steps=1, disable_progbar=True)  # fmt: skip
    mcmc.run(x, y)
    return {name: value for name, value in sorted(mcmc.get_samples().items())}


@check
def distributions():
    choices = {
        "Delta": dist.Delta(torch.tensor(1.5)),
        "ZeroInflatedPoisson": dist.ZeroInflatedPoisson(torch.tensor(3.0), gate=torch.tensor(0.2)),
        "BetaBinomial": dist.BetaBinomial(torch.tensor(2.0), torch.tensor(3.0), total_count=10),
        "MaskedMixture": dist.MaskedMixture(
            torch.tensor([True, False]), dist.Normal(torch.zeros(2), 1.0), dist.Normal(torch.ones(2), 2.0)
        ),
        "AsymmetricLaplace": dist.AsymmetricLaplace(torch.tensor(0.0), torch.tensor(1.0), torch.tensor(2.0)),
        "ProjectedNormal": dist.ProjectedNormal(torch.tensor([1.0, 2.0])),
        "LKJ": dist.LKJCholesky(3, torch.tensor(2.0)),
        "Stable": dist.Stable(torch.tensor(1.5), torch.tensor(0.1)),
        "GammaPoisson": dist.GammaPoisson(torch.tensor(2.0), torch.tensor(1.0)),
        "InverseGamma": dist.InverseGamma(torch.tensor(3.0), torch.tensor(1.0)),
        "OrderedLogistic": dist.OrderedLogistic(torch.tensor(0.3), torch.tensor([-1.0, 0.5, 2.0])),
        "VonMises": dist.VonMises(torch.tensor(0.5), torch.tensor(2.0)),
        "MixtureSameFamily": dist.MixtureSameFamily(
            dist.Categorical(torch.tensor([0.3, 0.7])), dist.Normal(torch.tensor([0.0, 1.0]), torch.ones(2))
        ),
    }
    values = {}
    for name, choice in choices.items():
        values[name] = choice.sample(torch.Size([3]))
        if name not in ("Stable",):
            values[f"{name} log_prob"] = choice.log_prob(values[name])
    masked = dist.Normal(torch.zeros(3), 1.0).mask(torch.tensor([True, False, True])).to_event(1)
    values["mask"] = masked.log_prob(torch.ones(3))
    values["expand"] = repr(dist.Normal(0.0, 1.0).expand([2, 3]).to_event(1))
    return values


@check
def flows():
    base = dist.Normal(torch.zeros(2), torch.ones(2))
    spline = dist.transforms.spline_coupling(2, count_bins=4)
    flow = dist.TransformedDistribution(base, [spline, dist.transforms.Permute(torch.tensor([1, 0]))])
    points = torch.randn(30, 2) * 0.5
    optimizer = torch.optim.Adam(spline.parameters(), lr=5e-3)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = -flow.log_prob(points).mean()
        loss.backward()
        optimizer.step()
        flow.clear_cache()
        losses.append(loss.item())
    planar = dist.transforms.planar(2)
    iaf = dist.transforms.affine_autoregressive(2, hidden_dims=[8])
    return {
        "losses": losses,
        "sample": flow.sample([3]),
        "planar": planar(points[:3]),
        "iaf": iaf(points[:3]),
    }


@check
def bayesian_network():
    class Model(PyroModule):
        def __init__(self):
            super().__init__()
            self.layer = PyroModule[nn.Linear](1, 4)
            self.layer.weight = PyroSample(dist.Normal(0.0, 1.0).expand([4, 1]).to_event(2))
            self.layer.bias = PyroSample(dist.Normal(0.0, 1.0).expand([4]).to_event(1))
            self.out = PyroModule[nn.Linear](4, 1)

        def forward(self, x, y=None):
            mean = self.out(self.layer(x).tanh()).squeeze(-1)
            with pyro.plate("data", len(x)):
                pyro.sample("obs", dist.Normal(mean, 0.1), obs=y)
            return mean

    x, y = data()
    pyro.clear_param_store()
    model = Model()
    guide = AutoDiagonalNormal(model)
    losses = infer(model, guide, Trace_ELBO(), x[:, None], y)
    return {"losses": losses, "store": sorted(pyro.get_param_store().keys())}


@check
def vae():
    encoder, decoder = nn.Linear(6, 4), nn.Sequential(nn.Linear(2, 6), nn.Sigmoid())
    x = torch.rand(8, 6).round()

    def model(x):
        pyro.module("decoder", decoder)
        with pyro.plate("data", len(x)):
            z = pyro.sample("z", dist.Normal(torch.zeros(len(x), 2), 1.0).to_event(1))
            pyro.sample("x", dist.Bernoulli(decoder(z)).to_event(1), obs=x)

    def guide(x):
        pyro.module("encoder", encoder)
        with pyro.plate("data", len(x)):
            loc, scale = encoder(x).chunk(2, -1)
            pyro.sample("z", dist.Normal(loc, scale.exp()).to_event(1))

    losses = infer(model, guide, Trace_ELBO(num_particles=2, vectorize_particles=False), x)
    trace = pyro.poutine.trace(model).get_trace(x)
    trace.compute_log_prob()
    return {"losses": losses, "trace": list(trace.nodes), "log_prob": trace.log_prob_sum()}


if __name__ == "__main__":
    main("pyro-ppl")
