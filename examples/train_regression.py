"""A line is fitted to noisy points: a model, a loss, an optimizer, and a picture of what was learned."""

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import nn, optim

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)  # the last steps change the loss by less than float32 can tell
slope, offset = 2.0, 1.0
x = torch.randn(100, 1) * 10
y = slope * x + offset + 2 * torch.randn(100, 1)


class Line(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features=1, out_features=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


model = Line()
print(model)
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.005)
losses = []
for epoch in range(500):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if (epoch + 1) % 100 == 0:
        print(f"epoch {epoch + 1:3}  loss {losses[-1]:.4f}")

weight, bias = model.linear.weight.item(), model.linear.bias.item()
print(f"learned y = {weight:.3f} x + {bias:.3f}, true y = {slope:.3f} x + {offset:.3f}")

# The slope is found at once, the offset slowly: the loss falls fast, then slowly, towards the least that a line can have.
design = torch.cat((x, torch.ones_like(x)), dim=1)
best = torch.linalg.lstsq(design, y).solution
least = (design @ best - y).square().mean().item()

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
ends = torch.stack((x.min(), x.max()))
left.scatter(x.numpy(), y.numpy(), s=12, alpha=0.7, label="data")
left.plot(ends.numpy(), (slope * ends + offset).numpy(), color="black", linestyle="--", label="true line")
left.plot(ends.numpy(), (weight * ends + bias).numpy(), color="red", label="learned line")
left.set(title="100 noisy points of a line", xlabel="x", ylabel="y")
left.legend()
right.semilogy([loss - least for loss in losses])
right.set(title="Training", xlabel="epoch", ylabel="loss above that of the best line")
right.grid(alpha=0.3)
figure.tight_layout()
target = Path("pictures/train_regression.png")
target.parent.mkdir(exist_ok=True)
figure.savefig(target)
print("wrote", target)
