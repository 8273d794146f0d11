"""Two ways to square the distances between points, timed by torch.utils.benchmark."""

import torch
from torch.utils import benchmark


def by_broadcasting(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a[:, None] - b[None]).square().sum(dim=-1)


def by_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.square().sum(dim=1)[:, None] - 2 * (a @ b.T) + b.square().sum(dim=1)


torch.manual_seed(0)
a, b = torch.randn(300, 3), torch.randn(200, 3)
print("agree:", torch.allclose(by_broadcasting(a, b), by_product(a, b), atol=1e-4))

results = []
for n in (100, 300):
    for function in (by_broadcasting, by_product):
        timer = benchmark.Timer(
            stmt="function(a, b)",
            globals={"function": function, "a": a[:n], "b": b},
            label="squared distances",
            sub_label=f"{n} x {len(b)}",
            description=function.__name__,
        )
        results.append(timer.blocked_autorange(min_run_time=0.1))
benchmark.Compare(results).print()
