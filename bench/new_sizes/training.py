"""Steps of training, each with a batch of another size."""

import random
from collections.abc import Callable
from typing import Any

from bench.new_sizes.setting import MEASURED, OTHER, Measured, Setting

STEPS, WARM_UP = 150, 5
LARGEST = 2 * (STEPS + WARM_UP)  # a batch


def measure(setting: Setting) -> Measured:
    torch = setting.torch
    step = trainer(torch)
    warm_up, sizes = batch_sizes(setting)
    setting.seconds(step, [batch(torch, size) for size in warm_up])
    return Measured.single(*setting.seconds(step, [batch(torch, size) for size in sizes]))


def batch_sizes(setting: Setting) -> tuple[list[int], list[int]]:
    """Sizes for the warm-up, and those for the steps."""
    sizes = list(range(1, LARGEST + 1))
    random.Random(0).shuffle(sizes)
    parts = {OTHER: sizes[: len(sizes) // 2], MEASURED: sizes[len(sizes) // 2 :]}
    return parts[setting.part][:WARM_UP], parts[setting.part][WARM_UP:][: setting.count(STEPS)]


def batch(torch: Any, size: int) -> tuple[Any, Any]:
    return torch.rand(size, 64), torch.randint(0, 10, (size,))


def trainer(torch: Any) -> Callable[[tuple[Any, Any]], float]:
    """A function that trains a small network with one batch and returns the loss."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(batch: tuple[Any, Any]) -> float:
        x, y = batch
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
