"""Calls on 16 elements which autograd records, and backward passes through a few of them."""

from bench.cases import Case, Section

SETUP = """
nn, F = torch.nn, torch.nn.functional
x = rand(n).requires_grad_(); y = rand(n); w = rand(n).requires_grad_(); c = y > 0.5
m = rand(4, 4).requires_grad_(); v = rand(4, 4); i = integers(n, 5)
linear = nn.Linear(4, 4); loss = (x * y).sum(); loss.backward(retain_graph=True)
"""

# fmt: off
CALLS = [  # name                PyTorch
    ("add",                      "x + w"),
    ("mul",                      "x * y"),
    ("mul by a number",          "x * 2.5"),
    ("square",                   "x ** 2"),
    ("where",                    "torch.where(c, x, y)"),
    ("relu",                     "torch.relu(x)"),
    ("exp",                      "x.exp()"),
    ("slice",                    "x[2:9]"),
    ("select",                   "x[3]"),
    ("view",                     "x.view(4, 4)"),
    ("t",                        "m.t()"),
    ("index by tensor",          "x[i]"),
    ("sum",                      "x.sum()"),
    ("mean",                     "x.mean()"),
    ("product of matrices",      "m @ v"),
    ("cat",                      "torch.cat([x, w])"),
    ("mul, then add_",           "t = x * y; t.add_(y)"),
    ("detach",                   "x.detach()"),
    ("grad",                     "x.grad"),
    ("nn.Linear",                "linear(v)"),
    ("softmax",                  "F.softmax(m, 1)"),
    ("mse_loss",                 "F.mse_loss(x, y)"),
    ("cross_entropy",            "F.cross_entropy(m, i[:4] % 4)"),
    ("5 operations",             "((x * y + w).exp() * y).sum()"),
    ("5 operations and backward", "x.grad = w.grad = None; ((x * y + w).exp() * y).sum().backward()"),
    ("5 operations and grad()",  "torch.autograd.grad(((x * y + w).exp() * y).sum(), (x, w))"),
    ("nn.Linear, tanh, mse and backward", "linear.zero_grad(); F.mse_loss(torch.tanh(linear(v)), v).backward()"),
    ("backward alone",           "loss.backward(retain_graph=True)"),
]
# fmt: on

SECTION = Section(
    "recorded",
    "calls on 16 elements, recorded; forward and backward of 5 operations",
    tuple(Case(name, SETUP, torch, None, 16, deferrable=False) for name, torch in CALLS),
    mean=1.5,
    floor=1.0,
    share=0.2,
)
