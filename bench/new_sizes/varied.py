"""Calls of 14 operations with random types and shapes, as a test suite makes them."""

import random
from collections.abc import Callable
from typing import Any

from bench.new_sizes.setting import Measured, Setting

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "float32", "float64", "bool")
TENSORS, CALLS_EACH = 580, 5  # 2,900 calls
Call = Callable[[Any, Any, Any, int], Any]

# fmt: off
CALLS: tuple[Call, ...] = (  # of torch, two tensors of one shape, and a dimension of them; 1 * a is for those that take no bool
    lambda torch, a, b, dim: torch.add(a, b),
    lambda torch, a, b, dim: torch.mul(a, b),
    lambda torch, a, b, dim: torch.sub(1 * a, 1 * b),
    lambda torch, a, b, dim: torch.eq(a, b),
    lambda torch, a, b, dim: torch.maximum(a, b),
    lambda torch, a, b, dim: torch.abs(a.float()),
    lambda torch, a, b, dim: torch.floor(1.5 * b),
    lambda torch, a, b, dim: torch.sum(a, dim),
    lambda torch, a, b, dim: torch.prod(a, dim),
    lambda torch, a, b, dim: torch.cumsum(a, dim),
    lambda torch, a, b, dim: torch.sort(a, dim),
    lambda torch, a, b, dim: torch.argmax(1 * a, dim),
    lambda torch, a, b, dim: torch.where(a > 0, a, b),
    lambda torch, a, b, dim: torch.matmul(1 * a.flatten(), (1 * b.flatten()).to((1 * a).dtype)),
)
# fmt: on


def measure(setting: Setting) -> Measured:
    """Seconds of all calls, with the tensors that they take."""
    generator = random.Random(0)
    tensors = setting.count(TENSORS)
    seconds, results = setting.seconds(lambda _: five(setting.torch, generator), range(tensors))
    return Measured.single(seconds * tensors, results)


def five(torch: Any, generator: random.Random) -> float:
    """Some calls on two new tensors of one shape; how many elements they return together."""
    shape = [generator.randint(1, 4) for _ in range(generator.randint(0, 4))]
    a, b = (torch.ones(shape, dtype=getattr(torch, generator.choice(DTYPES))) for _ in range(2))
    if len(shape) > 1 and generator.random() < 0.5:
        a, b = a.transpose(0, 1), b.transpose(0, 1)
    dim = generator.randrange(len(shape)) if shape else 0
    results = [call(torch, a, b, dim) for call in generator.sample(CALLS, CALLS_EACH)]
    return sum((each[0] if isinstance(each, tuple) else each).numel() for each in results)
