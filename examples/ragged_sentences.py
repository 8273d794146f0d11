"""Sentences of different lengths in one batch, without padding: attention learns to find the marked word.

Needs weft: PyTorch 2.13 computes this attention on CUDA only.
"""

import torch
from torch import nn

F = nn.functional

torch.manual_seed(0)
DIGITS, WIDTH, HEADS = 10, 32, 4


def sentence() -> tuple[torch.Tensor, torch.Tensor]:
    """4 to 39 digits, one of which has a mark (is higher by ten), and that digit."""
    words = torch.randint(DIGITS, (int(torch.randint(4, 40, ())),))
    place = int(torch.randint(len(words), ()))
    answer = words[place].clone()
    words[place] += DIGITS
    return words, answer


def batch(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    sentences, answers = zip(*(sentence() for _ in range(count)))
    return torch.nested.nested_tensor(list(sentences), layout=torch.jagged), torch.stack(answers)


class Reader(nn.Module):
    """One layer of attention, then the mean over the words of each sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(2 * DIGITS, WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.answer = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, DIGITS)

    def attention(self, words: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        parts = self.project(self.norm(self.words(words))).chunk(3, dim=-1)
        query, key, value = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        return F.scaled_dot_product_attention(query, key, value, mask).transpose(1, 2).flatten(-2)

    def forward(self, sentences: torch.Tensor) -> torch.Tensor:
        return self.answer(self.attention(sentences).mean(1))

    def padded(self, words: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        """The same for padded sentences: a mask in each place that looks at several words."""
        real = torch.arange(words.shape[1]) < length.unsqueeze(1)
        found = self.attention(words, real[:, None, None, :])
        return self.answer((found * real.unsqueeze(2)).sum(1) / length.unsqueeze(1))


sentences, answers = batch(256)
padded = sentences.to_padded_tensor(0)
print(f"{len(answers)} sentences have {len(sentences.values())} words, {padded.numel()} with padding")

model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(41):
    scores = model(sentences)
    loss = F.cross_entropy(scores, answers)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step:2}  loss {loss:.3f}  right {(scores.argmax(1) == answers).sum()}")

test, answers = batch(500)
with torch.no_grad():
    scores = model(test)
    same = model.padded(test.to_padded_tensor(0), test.offsets().diff())
print(f"new sentences: {(scores.argmax(1) == answers).sum()} of {len(answers)} right")
print("padding and masks give the same scores:", torch.allclose(scores, same, atol=1e-5))
