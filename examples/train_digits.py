"""A small convolutional network learns to read drawn digits, with a loader, Adam and a learning-rate schedule."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from tqdm import tqdm

torch.manual_seed(0)
FONT = (
    "111101101101111 010110010010111 111001111100111 111001111001111 101101111001001 "
    "111100111001111 111100111101111 111001001001001 111101111101111 111101111001111"
).split()
shapes = torch.tensor([[float(pixel) for pixel in digit] for digit in FONT]).view(10, 1, 5, 3)


def drawn(count: int) -> TensorDataset:
    """Digits at random places of a 12x12 picture, at random strengths, under noise."""
    labels = torch.randint(0, 10, (count,))
    pictures = 0.2 * torch.randn(count, 1, 12, 12)
    for picture, label in zip(pictures, labels):
        top, left = torch.randint(0, 7, ()), torch.randint(0, 9, ())
        picture[:, top : top + 5, left : left + 3] += shapes[label] * (0.7 + 0.6 * torch.rand(()))
    return TensorDataset(pictures, labels)


model = nn.Sequential(
    nn.Conv2d(1, 24, 5, padding=2),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(24, 48, 3, padding=1),
    nn.BatchNorm2d(48),
    nn.ReLU(),
    nn.AdaptiveMaxPool2d(3),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(432, 10),
)
print(sum(parameter.numel() for parameter in model.parameters()), "parameters")
train, test = random_split(drawn(2500), [2000, 500])
loader = DataLoader(train, batch_size=50, shuffle=True)
epochs = 6
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, epochs * len(loader))

progress = tqdm(total=epochs * len(loader), desc="training", unit="batch", disable=None)  # not into files
for epoch in range(epochs):
    model.train()
    total = 0.0
    for pictures, labels in loader:
        loss = nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
        progress.update()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(test, batch_size=100))
    print(f"epoch {epoch + 1}  loss {total / len(loader):.3f}  right {right} of {len(test)}")
progress.close()
