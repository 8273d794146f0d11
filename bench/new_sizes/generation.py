"""Text from a transformer like GPT-2 with a key-value cache, in plain functions: attention has another length for each token."""

from collections.abc import Callable
from typing import Any

from bench.new_sizes.setting import MEASURED, Measured, Setting

BLOCKS, HEADS, WIDTH, VOCABULARY, POSITIONS = 4, 4, 128, 500, 300
WARM_UP = 4  # tokens
Weights = dict[str, Any]


def measure(setting: Setting) -> Measured:
    """Seconds for a token of one text. Warm-ups generate two or three texts at once, whose sizes are all others."""
    torch = setting.torch
    weights = random_weights(torch)
    with torch.no_grad():
        setting.seconds(generator(torch, weights, texts=2), range(WARM_UP))
        texts = 1 if setting.part == MEASURED else 3
        return Measured.single(
            *setting.seconds(generator(torch, weights, texts), range(setting.count(POSITIONS)))
        )


def random_weights(torch: Any) -> Weights:
    shapes: dict[str, tuple[int, ...]] = {"tokens": (VOCABULARY, WIDTH), "positions": (POSITIONS, WIDTH)}
    for k in range(BLOCKS):
        shapes |= {
            f"{k}.attention": (3 * WIDTH, WIDTH),
            f"{k}.out": (WIDTH, WIDTH),
            f"{k}.wide": (4 * WIDTH, WIDTH),
            f"{k}.narrow": (WIDTH, 4 * WIDTH),
        }
    # Embeddings are smaller than what the blocks add to them, so that generated texts vary.
    return {
        name: torch.randn(*shape) * (shape[1] ** -0.5 if "." in name else 0.02)
        for name, shape in shapes.items()
    }


def generator(torch: Any, weights: Weights, texts: int) -> Callable[[int], int]:
    """A function that appends the most likely token at a position to each text, and returns that of the first."""
    empty = torch.zeros(texts, HEADS, 0, WIDTH // HEADS)
    cache = [(empty, empty)] * BLOCKS
    token = torch.zeros(texts, 1, dtype=torch.int64)

    def step(position: int) -> int:
        nonlocal token
        x = weights["tokens"][token] + weights["positions"][position : position + 1]
        for k in range(BLOCKS):
            x = block(torch, weights, k, cache, x)
        x = torch.nn.functional.layer_norm(x, (WIDTH,))
        token = (x[:, -1] @ weights["tokens"].t()).argmax(-1, keepdim=True)
        return int(token[0])

    return step


def block(torch: Any, weights: Weights, k: int, cache: list[tuple[Any, Any]], x: Any) -> Any:
    """Attention to all tokens before, whose keys and values are in the cache, and two linear layers."""
    F = torch.nn.functional
    projected = F.linear(F.layer_norm(x, (WIDTH,)), weights[f"{k}.attention"])
    query, key, value = (heads(part) for part in projected.split(WIDTH, -1))
    key, value = torch.cat([cache[k][0], key], 2), torch.cat([cache[k][1], value], 2)
    cache[k] = key, value
    scores = query @ key.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
    mixed = torch.softmax(scores, -1) @ value
    x = x + F.linear(mixed.transpose(1, 2).reshape(x.shape), weights[f"{k}.out"])
    wide = F.gelu(F.linear(F.layer_norm(x, (WIDTH,)), weights[f"{k}.wide"]), approximate="tanh")
    return x + F.linear(wide, weights[f"{k}.narrow"])


def heads(x: Any) -> Any:
    return x.view(x.shape[0], -1, HEADS, WIDTH // HEADS).transpose(1, 2)
