"""The programs of this folder by their names."""

from collections.abc import Callable
from functools import partial

from bench.new_sizes import boxes, calls, generation, graphs, memory, sentences, training, varied
from bench.new_sizes.setting import Measured, Setting

PROGRAMS: dict[str, Callable[[Setting], Measured]] = {
    "calls": calls.measure,
    "training": training.measure,
    "generation": generation.measure,
    "lstm": partial(sentences.lstm, ordered=False),
    "lstm sorted": partial(sentences.lstm, ordered=True),
    "transformer": partial(sentences.transformer, ordered=False),
    "transformer sorted": partial(sentences.transformer, ordered=True),
    "graphs": graphs.measure,
    "boxes": boxes.measure,
    "varied": varied.measure,
    "memory": memory.measure,
}
