"""A network that tells sounds apart is made one of bytes, for a small machine: a quarter of the file, the same answers."""

import io

import torch
from torch import nn
from torch.ao.quantization import DeQuantStub, QuantStub, convert, fuse_modules, get_default_qconfig, prepare

torch.manual_seed(0)
KINDS = ("sine", "square", "sawtooth")


def sounds(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Waves of a random pitch and phase under noise, and which kind each one is: (count, 1, 128) and (count,)."""
    kinds = torch.randint(len(KINDS), (count,))
    turns = torch.rand(count, 1) + (3 + 5 * torch.rand(count, 1)) * torch.linspace(0, 1, 128)
    sine = torch.sin(2 * torch.pi * turns)
    waves = torch.stack((sine, sine.sign(), 2 * turns.frac() - 1))
    return (waves[kinds, torch.arange(count)] + 0.5 * torch.randn(count, 128)).unsqueeze(1), kinds


class Listener(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quantize, self.dequantize = QuantStub(), DeQuantStub()
        self.first, self.relu1 = nn.Conv1d(1, 16, 9, stride=2, padding=4), nn.ReLU()
        self.second, self.relu2 = nn.Conv1d(16, 32, 9, stride=2, padding=4), nn.ReLU()
        self.third, self.relu3 = nn.Conv1d(32, 64, 9, stride=2, padding=4), nn.ReLU()
        self.last = nn.Linear(64, len(KINDS))

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        x = self.quantize(sound)
        x = self.relu3(self.third(self.relu2(self.second(self.relu1(self.first(x))))))
        return self.dequantize(self.last(x.mean(2)))


def right(model: nn.Module) -> int:
    with torch.no_grad():
        return int((model(test_sounds).argmax(1) == test_kinds).sum())


def size(model: nn.Module) -> int:
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return len(file.getvalue())


test_sounds, test_kinds = sounds(1000)
model = Listener()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(61):
    batch, kinds = sounds(64)
    loss = nn.functional.cross_entropy(model(batch), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step:2}  loss {loss:.3f}")

# Three steps: a layer and its activation become one module, observers see some data, and floats become bytes.
model = fuse_modules(model.eval(), [["first", "relu1"], ["second", "relu2"], ["third", "relu3"]])
model.qconfig = get_default_qconfig("fbgemm")
observed = prepare(model)
with torch.no_grad():
    observed(sounds(256)[0])
small = convert(observed)

print("layers:", ", ".join(type(layer).__name__ for layer in small.children()))
print(f"float32: {right(model)} of 1000 right, {size(model) / 1024:.0f} KiB")
print(f"int8:    {right(small)} of 1000 right, {size(small) / 1024:.0f} KiB")
