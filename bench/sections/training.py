"""Steps of training: forward, backward, optimizer. `n` is the size of the batch."""

from bench.cases import Case, Section

STEP = "optimizer.zero_grad(); loss = criterion(model(x), y); loss.backward(); optimizer.step(); loss"
ADAM = "optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)"
CLASSES = "y = integers(10, n); criterion = nn.CrossEntropyLoss()"

LINEAR_REGRESSION = """
nn = torch.nn
x = torch.randn(n, 1); y = 3 * x + 2 + 0.1 * torch.randn(n, 1)
model = nn.Linear(1, 1); criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
"""

MLP = f"""
nn = torch.nn
model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
x = torch.randn(n, 784); {CLASSES}; {ADAM}
"""

TRANSFORMER = f"""
nn = torch.nn
model = nn.TransformerEncoderLayer(256, 8, 1024, 0.0, "gelu", batch_first=True, norm_first=True)
x = torch.randn(n, 128, 256); y = torch.randn(n, 128, 256); criterion = nn.MSELoss(); {ADAM}
"""

# As tutorials write it: attention by products and softmax, GELU by tanh, LayerNorm by mean and var.
TRANSFORMER_BY_HAND = f"""
nn = torch.nn
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(256)); self.shift = nn.Parameter(torch.zeros(256))
    def forward(self, x):
        mean = x.mean(-1, keepdim=True); var = x.var(-1, keepdim=True, unbiased=False)
        return self.scale * (x - mean) / torch.sqrt(var + 1e-5) + self.shift
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(256, 256) for _ in range(4))
        self.register_buffer("mask", torch.triu(torch.ones(128, 128), diagonal=1).bool())
    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (
            part(x).view(batch, length, 8, 32).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        scores = (query @ key.transpose(2, 3)).masked_fill(self.mask, -torch.inf)
        weights = torch.softmax(scores / 32**0.5, dim=-1)
        return self.out((weights @ value).transpose(1, 2).contiguous().view(batch, length, width))
class GELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(0.7978846 * (x + 0.044715 * torch.pow(x, 3))))
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention(); self.first = Norm(); self.second = Norm()
        self.feed_forward = nn.Sequential(nn.Linear(256, 1024), GELU(), nn.Linear(1024, 256))
    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.feed_forward(self.second(x))
model = Block()
x = torch.randn(n, 128, 256); y = torch.randn(n, 128, 256); criterion = nn.MSELoss(); {ADAM}
"""

CONVOLUTIONS_3X3 = f"""
nn = torch.nn
model = nn.Sequential(
    nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10),
)
x = torch.randn(n, 1, 28, 28); {CLASSES}; {ADAM}
"""

CONVOLUTIONS_5X5 = f"""
nn = torch.nn
model = nn.Sequential(
    nn.Conv2d(3, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 5, padding=2), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(2048, 10),
)
x = torch.randn(n, 3, 32, 32); {CLASSES}; {ADAM}
"""

# One letter at a time, as in the tutorial on names: 32 letters of 57, 128 hidden.
RNN_BY_HAND = """
nn = torch.nn
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(57 + 128, 128); self.out = nn.Linear(57 + 128, 57)
    def forward(self, letter, hidden):
        both = torch.cat((letter, hidden), 1)
        return torch.log_softmax(self.out(both), 1), torch.tanh(self.hidden(both))
model = Cell()
letters = torch.nn.functional.one_hot(integers(57, 33, n), 57).float(); y = integers(57, 33, n)
criterion = nn.NLLLoss()
def step():
    hidden = torch.zeros(n, 128); loss = 0
    for k in range(32):
        out, hidden = model(letters[k], hidden)
        loss = loss + criterion(out, y[k + 1])
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data.add_(p.grad.data, alpha=-0.0005)
    return loss
"""

LSTM = f"""
nn = torch.nn
class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 64); self.lstm = nn.LSTM(64, 128, batch_first=True); self.out = nn.Linear(128, 64)
    def forward(self, x):
        return self.out(self.lstm(self.embedding(x))[0]).flatten(0, 1)
model = Letters(); x = integers(64, n, 64); y = integers(64, n * 64); criterion = nn.CrossEntropyLoss(); {ADAM}
"""

LOGISTIC_REGRESSION = """
x = torch.randn(n, 20); y = (x.sum(1) > 0).float()
w = torch.zeros(20, requires_grad=True); b = torch.zeros(1, requires_grad=True)
def step():
    p = torch.sigmoid(x @ w + b)
    loss = -(y * torch.log(p + 1e-8) + (1 - y) * torch.log(1 - p + 1e-8)).mean()
    loss.backward()
    with torch.no_grad():
        w.sub_(0.1 * w.grad); b.sub_(0.1 * b.grad)
        w.grad.zero_(); b.grad.zero_()
    return loss
"""

# fmt: off
TRAINING = [  # name                               setup                 statement                                  n
    ("linear regression, 100 steps",         LINEAR_REGRESSION,    f"for _ in range(100): {STEP}\nloss",      100),
    ("logistic regression on tensors, 100 steps", LOGISTIC_REGRESSION, "for _ in range(100): loss = step()\nloss", 1000),
    ("MLP 784-512-512-10, batch 128",        MLP,                  STEP,                                      128),
    ("transformer block, d 256, 8x128",      TRANSFORMER,          STEP,                                        8),
    ("transformer block by hand, 8x128",     TRANSFORMER_BY_HAND,  STEP,                                        8),
    ("conv net 3x3, 64x1x28x28",             CONVOLUTIONS_3X3,     STEP,                                       64),
    ("conv net 5x5, 64x3x32x32",             CONVOLUTIONS_5X5,     STEP,                                       64),
    ("character RNN by hand, one name",      RNN_BY_HAND,          "step()",                                    1),
    ("character RNN by hand, batch 64",      RNN_BY_HAND,          "step()",                                   64),
    ("nn.LSTM, 16 texts of 64",              LSTM,                 STEP,                                       16),
]
# fmt: on
COMPILED = ("MLP", "transformer block by hand", "conv net 3x3")  # a compilation takes half a minute

SECTION = Section(
    "training",
    "training steps",
    tuple(
        Case(name, setup, stmt, n=n, compiled="model" if name.startswith(COMPILED) else "")
        for name, setup, stmt, n in TRAINING
    ),
    mean=1.7,
    floor=1.1,
    implementations=("torch", "weft", "compiled"),
)
