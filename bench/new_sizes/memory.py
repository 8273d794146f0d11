"""By how much different sizes raise the peak of resident memory."""

import gc
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from bench.new_sizes.setting import MEASURED, Measured, Setting
from bench.worker import give_back, peak, reset_peak

SIZES, WARM_UP = 10**6, 1000
MOST = 10**4  # elements
Shape = tuple[int, ...]


def measure(setting: Setting) -> Measured:
    """Bytes by which the peak grows while small tensors of many shapes are made and added to."""
    run = step(setting.torch)
    for k in range(WARM_UP):
        run((12, 10, 10, 10 + k % 100))  # more elements than any shape below has
    gc.collect()
    setting.look(None)
    give_back(setting.torch.__name__)
    reset_peak()
    before = peak()
    first = 0 if setting.part == MEASURED else SIZES
    for shape in islice(shapes(), first, first + setting.count(SIZES)):
        run(shape)
    setting.look(None)
    return Measured.single(peak() - before)


def step(torch: Any) -> Callable[[Shape], Any]:
    return lambda shape: torch.ones(shape) + 1


def shapes() -> Iterator[Shape]:
    """1.3 million shapes of four dimensions, with at most MOST elements."""
    for a in range(1, MOST + 1):
        for b in range(1, MOST // a + 1):
            for c in range(1, MOST // (a * b) + 1):
                yield from ((a, b, c, d) for d in range(1, MOST // (a * b * c) + 1))
