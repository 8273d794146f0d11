"""Training steps as rows for `cases.py`; `n` is the size of the batch."""

STEP = "optimizer.zero_grad(); loss = criterion(model(x), y); loss.backward(); optimizer.step(); loss"
ADAM = "optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)"
CLASSES = "y = torch.randint(0, 10, (n,)); criterion = nn.CrossEntropyLoss()"

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

CONVOLUTIONS = f"""
nn = torch.nn
model = nn.Sequential(
    nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10),
)
x = torch.randn(n, 1, 28, 28); {CLASSES}; {ADAM}
"""

CHAIN = "x = torch.randn(n, requires_grad=True); w = torch.randn(n)"
CHAIN_STEP = "x.grad = None; ((x * w + w).exp() * w).sum().backward()"

# fmt: off
TRAINING = [  # name                                setup              statement                              n   target
    ("linear regression, 500 epochs",        LINEAR_REGRESSION, f"for _ in range(500): {STEP}\nloss",       100, 1 / 1.2),
    ("MLP 784-512-512-10, batch 128",        MLP,               STEP,                                       128, 1.0),
    ("transformer block, d 256, 8x128",      TRANSFORMER,       STEP,                                         8, 0.9),
    ("conv net, 64x1x28x28",                 CONVOLUTIONS,      STEP,                                        64, 0.7),
    ("chain of 5 ops, 16 floats",            CHAIN,             CHAIN_STEP,                                  16, 1 / 1.5),
]
# fmt: on
