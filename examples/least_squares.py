"""A curve fitted to noisy measurements: normal equations, and what is left over."""

import torch

torch.manual_seed(0)
true = torch.tensor([0.5, -2.0, 0.0, 1.0], dtype=torch.float64)  # coefficients of 1, x, x^2, x^3
x = torch.linspace(-2, 2, 41, dtype=torch.float64)
design = x.unsqueeze(1) ** torch.arange(4)  # [sample, power]
y = design @ true + 0.1 * torch.randn(41, dtype=torch.float64)

fitted = torch.linalg.solve(design.T @ design, design.T @ y)
residual = y - design @ fitted
print("true  ", true)
print("fitted", fitted)
print(f"residual: norm {torch.linalg.norm(residual):.4f}, largest {residual.abs().max():.4f}")
print(
    "orthogonal to the design:",
    torch.allclose(design.T @ residual, torch.zeros(4, dtype=torch.float64), atol=1e-9),
)

# The error of each coefficient, from the noise's size and the inverse of the normal matrix.
variance = residual.square().sum() / (len(x) - len(fitted))
errors = (variance * torch.linalg.inv(design.T @ design).diagonal()).sqrt()
for power, (value, error) in enumerate(zip(fitted.tolist(), errors.tolist())):
    print(f"x^{power}: {value:7.4f} +- {error:.4f}")

# All pairs of points at once, by broadcasting.
points = torch.stack((x, y), dim=1)[::10]
print(torch.linalg.norm(points[:, None] - points[None], dim=-1))
