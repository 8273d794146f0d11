"""Calls on 16 elements, of which nothing is recorded: what a call costs apart from its arithmetic."""

from bench.cases import Case, Section

SETUP = """
x = rand(n) - 0.5; y = rand(n); p = rand(n) + 0.5; z = rand(n); c = x > 0
m = rand(4, 4); w = rand(4, 4); v = rand(4); i = integers(n, 5)
"""

# fmt: off
CALLS = [  # name             PyTorch                       NumPy
    ("add",                   "x + y",                      "x + y"),
    ("mul",                   "x * y",                      "x * y"),
    ("div",                   "x / p",                      "x / p"),
    ("mul by a number",       "x * 2.5",                    "x * 2.5"),
    ("number minus",          "1 - x",                      "1 - x"),
    ("square",                "x ** 2",                     "x ** 2"),
    ("less",                  "x < y",                      "x < y"),
    ("where",                 "torch.where(c, x, y)",       "np.where(c, x, y)"),
    ("relu",                  "torch.relu(x)",              "np.maximum(x, 0)"),
    ("exp",                   "x.exp()",                    "np.exp(x)"),
    ("sqrt",                  "torch.sqrt(p)",              "np.sqrt(p)"),
    ("clamp",                 "x.clamp(-1, 1)",             "x.clip(-1, 1)"),
    ("add_",                  "z.add_(x)",                  "np.add(z, x, out=z)"),
    ("mul_ by a number",      "z.mul_(0.5)",                "np.multiply(z, 0.5, out=z)"),
    ("out=",                  "torch.add(x, y, out=z)",     "np.add(x, y, out=z)"),
    ("copy_",                 "z.copy_(x)",                 "np.copyto(z, x)"),
    ("set an element",        "z[3] = 1.0",                 "z[3] = 1.0"),
    ("slice",                 "x[2:9]",                     "x[2:9]"),
    ("select",                "x[3]",                       "x[3]"),
    ("column",                "m[:, 1]",                    "m[:, 1]"),
    ("view",                  "x.view(4, 4)",               "x.reshape(4, 4)"),
    ("t",                     "m.t()",                      "m.T"),
    ("unsqueeze",             "x.unsqueeze(0)",             "x[None]"),
    ("index by tensor",       "x[i]",                       "x[i]"),
    ("index by mask",         "x[c]",                       "x[c]"),
    ("gather",                "x.gather(0, i)",             "np.take_along_axis(x, i, 0)"),
    ("sum",                   "x.sum()",                    "x.sum()"),
    ("sum dim 1",             "m.sum(1)",                   "m.sum(1)"),
    ("mean",                  "x.mean()",                   "x.mean()"),
    ("max",                   "x.max()",                    "x.max()"),
    ("argmax",                "x.argmax()",                 "x.argmax()"),
    ("product of matrices",   "m @ w",                      "m @ w"),
    ("matrix by vector",      "m @ v",                      "m @ v"),
    ("dot",                   "x @ y",                      "x @ y"),
    ("cat",                   "torch.cat([x, y])",          "np.concatenate([x, y])"),
    ("stack",                 "torch.stack([x, y])",        "np.stack([x, y])"),
    ("zeros",                 "torch.zeros(16)",            "np.zeros(16, np.float32)"),
    ("empty",                 "torch.empty(16)",            "np.empty(16, np.float32)"),
    ("arange",                "torch.arange(16)",           "np.arange(16)"),
    ("tensor of a list",      "torch.tensor([1.0, 2.0])",   "np.array([1.0, 2.0], np.float32)"),
    ("zeros_like",            "torch.zeros_like(x)",        "np.zeros_like(x)"),
    ("clone",                 "x.clone()",                  "x.copy()"),
    ("detach",                "x.detach()",                 None),
    ("item",                  "x[3].item()",                "x[3].item()"),
    ("tolist",                "x.tolist()",                 "x.tolist()"),
    ("shape",                 "x.shape",                    "x.shape"),
    ("size(0)",               "x.size(0)",                  "x.shape[0]"),
    ("dtype",                 "x.dtype",                    "x.dtype"),
    ("requires_grad",         "x.requires_grad",            None),
    ("numel",                 "x.numel()",                  "x.size"),
    ("loop s += t[i]",        "s = 0.0\nfor e in range(16): s += x[e]", "s = np.float32(0)\nfor e in range(16): s += x[e]"),
]
# fmt: on

SECTION = Section(
    "calls",
    "calls on 16 elements, unrecorded",
    tuple(Case(name, SETUP, torch, numpy, 16, deferrable=False) for name, torch, numpy in CALLS),
    mean=2.5,
    floor=1.3,
    share=0.2,
)
