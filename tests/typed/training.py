"""A training script in the usual style."""

import tempfile
from pathlib import Path

import weft as torch
import weft.nn.functional as F
from weft import nn, optim
from weft.utils.data import DataLoader, Dataset, random_split


class Squares(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    def __init__(self, count: int) -> None:
        self.x = torch.linspace(-1, 1, count)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.x[index]
        return x[None], (x * x)[None]


class Net(nn.Module):
    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, kernel_size=3, padding=1)
        self.body = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Dropout(dropout))
        self.heads = nn.ModuleList([nn.Linear(32, 1) for _ in range(2)])
        self.norm = nn.LayerNorm(32)
        self.lstm = nn.LSTM(32, 32, batch_first=True)
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("steps", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: torch.Tensor, *, head: int = 0) -> torch.Tensor:
        hidden = F.relu(self.norm(self.body(x)))
        hidden, (state, cell) = self.lstm(hidden)
        out = self.heads[head](hidden) * self.scale
        batch, *rest = out.shape
        return F.dropout(out.view(batch, -1), p=0.1, training=self.training)


def accuracy(logits: torch.Tensor, labels: torch.Tensor) -> float:
    return (logits.argmax(dim=-1) == labels).float().mean().item()


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, torch.Tensor]]) -> float:
    model.eval()
    total, count = 0.0, 0
    for x, y in loader:
        total += F.mse_loss(model(x), y, reduction="sum").item()
        count += x.size(0)
    return total / count


def main() -> None:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train, test = random_split(Squares(100), [80, 20])
    loader = DataLoader(train, batch_size=16, shuffle=True, num_workers=0)
    net = Net(1).to(device)
    groups = optim.AdamW(
        [{"params": net.heads.parameters(), "lr": 2e-2}, {"params": [net.scale]}], weight_decay=0.01
    )
    print(len(groups.param_groups))
    optimizer = optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    criterion = nn.MSELoss()
    loss = torch.tensor(0.0)
    for epoch in range(3):
        net.train()
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device)
            optimizer.zero_grad(set_to_none=True)
            prediction = net(x, head=1)
            loss = criterion(prediction, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        scheduler.step()
        print(
            f"epoch {epoch}: {loss.item():.4f} {evaluate(net, DataLoader(test))} lr {scheduler.get_last_lr()[0]}"
        )
    path = Path(tempfile.mkdtemp()) / "net.pt"
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
    state = torch.load(path, map_location=device, weights_only=True)
    net.load_state_dict(state["model"])
    with torch.no_grad():
        grid = torch.stack([torch.zeros(1), torch.ones(1)], dim=0)
        print(net(grid).squeeze(-1).tolist())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        net(grid)
    x = torch.rand(2, 3, requires_grad=True)
    y = torch.randn((2, 3), generator=torch.Generator().manual_seed(0), device=device)
    (x @ y.T).sum().backward()
    assert x.grad is not None
    print(x.grad.norm(), x.shape[0], torch.cat([x, y], dim=1).size(), x.detach().numpy())
    values, indices = torch.topk(x, 2, dim=1)
    mask = torch.where(x > 0.5, x, torch.tensor(0.0))
    probabilities = torch.softmax(x, dim=-1)
    print(values, indices, mask, probabilities, torch.arange(0, 10, 2), torch.einsum("ij,kj->ik", x, y))
    a = torch.tensor([1.0, 2.0], dtype=torch.float32)
    a += 1
    a[0] = 5
    a[a > 1] *= 2
    print(
        a.numpy().sum(),
        float(a[0]),
        int(a[1]),
        len(a),
        [float(each) for each in a],
        -a,
        abs(a),
        2 - a,
        a**2,
        ~(a > 1),
    )
    total_parameters = sum(p.numel() for p in net.parameters() if p.requires_grad)
    for name, parameter in net.named_parameters():
        print(name, tuple(parameter.shape), parameter.device, total_parameters)


if __name__ == "__main__":
    main()
