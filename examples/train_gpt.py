"""A small GPT learns to write sentences letter by letter, in one process or in several.

    weft run examples/train_gpt.py
    weft torchrun --standalone --nproc-per-node 2 examples/train_gpt.py

Several processes share each batch: every one computes the gradients of its part, and they are averaged. So they print what one process prints,
up to rounding.
"""

import math
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

LENGTH, WIDTH, HEADS, LAYERS = 32, 64, 4, 2
STEPS, BATCH, RATE = 150, 32, 3e-3
WORDS = [
    ["the", "a", "every", "no"],
    ["small", "red", "quiet", "old"],
    ["cat", "bird", "river", "tree"],
    ["sees", "knows", "likes", "meets"],
    ["a", "the", "one", "that"],
    ["cloud", "stone", "fish", "house"],
]


def sentences(count: int, generator: torch.Generator) -> str:
    """A text of random sentences, all built alike."""
    picks = torch.randint(4, (count, len(WORDS)), generator=generator).tolist()
    return "".join(" ".join(words[k] for words, k in zip(WORDS, row)) + ".\n" for row in picks)


class Block(nn.Module):
    """Attention to earlier letters, then two layers for each letter; each adds to what it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.layers = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.attention(self.norm1(x)).split(WIDTH, dim=2)
        q, k, v = (each.view(batch, length, HEADS, -1).transpose(1, 2) for each in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.layers(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, letters: int) -> None:
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters, bias=False)
        self.head.weight = self.letters.weight  # one matrix for reading and for writing
        self.apply(self.start)

    def start(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.05)

    def forward(self, x: torch.Tensor, targets: torch.Tensor | None = None) -> torch.Tensor:
        scores = self.head(self.norm(self.blocks(self.letters(x) + self.places.weight[: x.shape[1]])))
        return scores if targets is None else F.cross_entropy(scores.flatten(0, 1), targets.flatten())


def rate(step: int) -> float:
    """The learning rate: it rises for 10 steps, then falls like a cosine."""
    return RATE * min(1, (step + 1) / 10) * (1 + math.cos(math.pi * step / STEPS)) / 2


def main() -> None:
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if size > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(1)
    text = sentences(500, torch.Generator().manual_seed(2))
    alphabet = sorted(set(text))
    numbers = torch.tensor([alphabet.index(letter) for letter in text])
    model = GPT(len(alphabet))
    network = DistributedDataParallel(model) if size > 1 else model
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.1)
    draws = torch.Generator().manual_seed(3)  # the same in each process, so that they cut the same batch
    for step in range(STEPS):
        starts = torch.randint(len(numbers) - LENGTH, (BATCH,), generator=draws)[rank::size]
        rows = torch.stack([numbers[start : start + LENGTH + 1] for start in starts])
        loss = network(rows[:, :-1], rows[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        if step % 30 == 0 or step == STEPS - 1:
            mean = loss.detach().clone()
            if size > 1:
                dist.all_reduce(mean)
            if rank == 0:
                print(f"step {step:3}: loss {mean.item() / size:.3f}")
    if rank == 0:
        print(written(model, numbers[:1], alphabet))
    if size > 1:
        dist.destroy_process_group()


@torch.no_grad()
def written(model: GPT, start: torch.Tensor, alphabet: list[str], count: int = 100) -> str:
    """Text that the model writes: always the letter that it finds most likely."""
    row = start
    for _ in range(count):
        scores = model(row[None, -LENGTH:])
        row = torch.cat([row, scores[0, -1].argmax()[None]])
    return "".join(alphabet[number] for number in row.tolist())


if __name__ == "__main__":
    main()
