"""Pi from random points in a square: the same seed gives the same numbers everywhere."""

import torch

torch.manual_seed(2024)
print("first numbers", torch.rand(3), torch.randn(2), torch.randint(0, 100, (4,)))

for exponent in range(2, 7):
    points = torch.rand(10**exponent, 2, dtype=torch.float64)
    inside = (points.square().sum(dim=1) <= 1).double()
    estimate, error = 4 * inside.mean(), 4 * inside.std() / len(points) ** 0.5
    print(f"{len(points):8} points: {estimate:.5f} +- {error:.5f}")

state = torch.get_rng_state()
before = torch.randperm(10)
torch.set_rng_state(state)
print("the same shuffle twice:", before.tolist(), torch.equal(before, torch.randperm(10)))
