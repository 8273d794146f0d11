"""Training with sentences of random length, as they come or sorted by length: an LSTM and a transformer encoder."""

import random
from collections.abc import Callable
from typing import Any

from bench.new_sizes.setting import MEASURED, Measured, Setting

SENTENCES, SHORTEST, LONGEST = 1000, 3, 60
WIDTH, VOCABULARY, CLASSES = 64, 200, 5
Batch = tuple[Any, Any, Any]  # padded words, lengths, classes


def lstm(setting: Setting, ordered: bool) -> Measured:
    return measure(setting, trainer(setting.torch, lstm_model(setting.torch)), ordered)


def transformer(setting: Setting, ordered: bool) -> Measured:
    return measure(setting, trainer(setting.torch, transformer_model(setting.torch)), ordered)


def measure(setting: Setting, step: Callable[[Batch], float], ordered: bool) -> Measured:
    """Seconds for a batch of 16; warm-ups have other sizes of batches."""
    generator = random.Random(setting.part)
    lengths = [generator.randint(SHORTEST, LONGEST) for _ in range(setting.count(SENTENCES))]
    size = 16 if setting.part == MEASURED else 13
    setting.seconds(step, batches(setting.torch, [5, 9, 14, 11, 7, 4], 3))
    if ordered:
        lengths.sort()
    return Measured.single(*setting.seconds(step, batches(setting.torch, lengths, size)))


def batches(torch: Any, lengths: list[int], size: int) -> list[Batch]:
    return [batch(torch, lengths[k : k + size]) for k in range(0, len(lengths), size)]


def batch(torch: Any, lengths: list[int]) -> Batch:
    words = [torch.randint(1, VOCABULARY, (length,)) for length in lengths]
    padded = torch.nn.utils.rnn.pad_sequence(words, batch_first=True)
    return padded, torch.tensor(lengths), torch.randint(0, CLASSES, (len(lengths),))


def trainer(torch: Any, model: Any) -> Callable[[Batch], float]:
    """A function that trains a model to classify the sentences of a batch, and returns the loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(batch: Batch) -> float:
        words, lengths, classes = batch
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(words, lengths), classes)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def lstm_model(torch: Any) -> Any:
    nn = torch.nn

    class Classifier(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
            self.out = nn.Linear(WIDTH, CLASSES)

        def forward(self, words: Any, lengths: Any) -> Any:
            packed = nn.utils.rnn.pack_padded_sequence(
                self.embedding(words), lengths, batch_first=True, enforce_sorted=False
            )
            return self.out(self.lstm(packed)[1][0][-1])

    return Classifier()


def transformer_model(torch: Any) -> Any:
    nn = torch.nn

    class Classifier(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(VOCABULARY, WIDTH)
            layer = nn.TransformerEncoderLayer(WIDTH, 4, 128, 0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.out = nn.Linear(WIDTH, CLASSES)

        def forward(self, words: Any, lengths: Any) -> Any:
            padding = words == 0
            x = self.encoder(self.embedding(words), src_key_padding_mask=padding)
            x = x.masked_fill(padding.unsqueeze(-1), 0.0)
            return self.out(x.sum(1) / lengths.unsqueeze(1))

    return Classifier()
