"""Training scripts give PyTorch's losses from the same seed: each is run with both libraries, unchanged."""

import math

import pytest
import torch

import weft

STEPS = 50


def linear_regression(torch):
    nn = torch.nn
    torch.manual_seed(0)
    x = torch.linspace(0, 1, 100).unsqueeze(1)
    y = 3 * x + 2 + 0.1 * torch.randn(100, 1)
    model = nn.Linear(in_features=1, out_features=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.MSELoss()
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        yield loss


def mlp(torch):
    nn = torch.nn
    torch.manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(256, 20), torch.randint(0, 5, (256,)))
    loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 5))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
    while True:
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            yield loss


def convolutional_net(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(1, 8, 3, padding=1),
                nn.BatchNorm2d(8),
                nn.ReLU(inplace=True),
                nn.MaxPool2d(2),
                nn.Conv2d(8, 16, 3, stride=2),
                nn.GELU(),
                nn.AdaptiveAvgPool2d(2),
            )
            self.head = nn.Linear(64, 4)

        def forward(self, x):
            return self.head(self.features(x).flatten(1))

    torch.manual_seed(2)
    x, y = torch.randn(16, 1, 12, 12), torch.randint(0, 4, (16,))
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss(label_smoothing=0.1)(model(x), y)
        loss.backward()
        optimizer.step()
        yield loss


def character_rnn(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self, letters):
            super().__init__()
            self.embedding = nn.Embedding(letters, 16)
            self.rnn = nn.LSTM(16, 24, num_layers=2, batch_first=True)
            self.out = nn.Linear(24, letters)

        def forward(self, x, state=None):
            found, state = self.rnn(self.embedding(x), state)
            return self.out(found), state

    torch.manual_seed(3)
    text = "the quick brown fox jumps over the lazy dog and runs away from the quick brown dog "
    letters = sorted(set(text))
    codes = torch.tensor([letters.index(c) for c in text])
    model = Net(len(letters))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3)
    state = None
    for step in range(STEPS):
        start = (step * 8) % (len(text) - 34)
        x = torch.stack([codes[start : start + 32], codes[start + 1 : start + 33]])
        y = torch.stack([codes[start + 1 : start + 33], codes[start + 2 : start + 34]])
        scores, state = model(x, state)
        state = tuple(each.detach() for each in state)
        loss = nn.functional.cross_entropy(scores.transpose(1, 2), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def small_gpt(torch):
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.project = nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            batch, time, width = x.shape
            q, k, v = (
                each.view(batch, time, self.heads, -1).transpose(1, 2)
                for each in self.qkv(self.norm1(x)).split(width, dim=2)
            )
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).contiguous().view(batch, time, width))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self, letters=11, width=32, block=16):
            super().__init__()
            self.tokens, self.places = nn.Embedding(letters, width), nn.Embedding(block, width)
            self.blocks = nn.ModuleList([Block(width, 4) for _ in range(2)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, letters, bias=False)
            self.head.weight = self.tokens.weight
            self.apply(self.initialise)

        @staticmethod
        def initialise(module):
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

        def forward(self, index):
            x = self.tokens(index) + self.places(torch.arange(index.size(1)))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    torch.manual_seed(4)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    for _ in range(STEPS):
        x = torch.randint(0, 11, (4, 16))
        y = (x.cumsum(1) % 11).roll(-1, 1)
        scores = model(x)
        loss = functional.cross_entropy(scores.view(-1, 11), y.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def losses(script, library):
    return [loss.item() for loss, _ in zip(script(library), range(STEPS), strict=False)]


@pytest.mark.parametrize("script", [linear_regression, mlp, convolutional_net, character_rnn, small_gpt])
def test_losses_are_pytorchs(script):
    expected, found = losses(script, torch), losses(script, weft)
    assert len(found) == STEPS
    assert all(map(math.isfinite, found))
    assert found == pytest.approx(expected, rel=1e-4)


def test_printed_losses_of_linear_regression_are_pytorchs():
    for expected, found in zip(linear_regression(torch), linear_regression(weft), strict=True):
        assert str(found) == str(expected)
        assert f"{found.item():.4f}" == f"{expected.item():.4f}"
