"""Reductions of a square matrix over its rows, its columns and everything, and of other shapes."""

from bench.cases import FLOAT, Case, Section

SETUP = """
x = rand(n, n); c = x > 0.99999; narrow = rand(n * n // 4, 4); images = rand(16, 64, 56, 56); small = rand(100, 100)
"""
SIDE = 2000

# fmt: off
SQUARE = [  # over "", "0" or "1"
    ("sum",               "x.sum({})",               "x.sum({})"),
    ("mean",              "x.mean({})",              "x.mean({})"),
    ("max",               "x.max({})",               "x.max({})"),
    ("argmax",            "x.argmax({})",            "x.argmax({})"),
    ("var",               "x.var({})",               "x.var({}, ddof=1)"),
]
OTHERS = [
    ("prod dim 0",        "x.prod(0)",               "x.prod(0)"),
    ("norm",              "x.norm()",                "np.linalg.norm(x)"),
    ("norm dim 1",        "x.norm(dim=1)",           "np.linalg.norm(x, axis=1)"),
    ("aminmax",           "x.aminmax()",             None),
    ("logsumexp dim 0",   "x.logsumexp(0)",          None),
    ("any dim 0",         "c.any(0)",                "c.any(0)"),
    ("count true",        "c.sum()",                 "c.sum()"),
    ("count_nonzero dim 1", "c.count_nonzero(1)",    "np.count_nonzero(c, 1)"),
    ("median dim 1",      "x.median(1)",             None),
    ("sum of rows of 4",  "narrow.sum(1)",           "narrow.sum(1)"),
    ("max of rows of 4",  "narrow.max(1)",           "narrow.max(1)"),
    ("mean of channels",  "images.mean((0, 2, 3))",  "images.mean((0, 2, 3))"),
    ("var of channels",   "images.var((0, 2, 3))",   "images.var((0, 2, 3), ddof=1)"),
    ("sum of 10^4",       "small.sum()",             "small.sum()"),
    ("sum of 10^4 dim 0", "small.sum(0)",            "small.sum(0)"),
]
# fmt: on
READ = (SIDE * SIDE * FLOAT, 0)

SECTION = Section(
    "reductions",
    "reductions",
    (
        *(
            Case(
                f"{name} {'dim ' + dim if dim else 'all'}",
                SETUP,
                torch.format(dim),
                numpy.format(dim or "None"),
                SIDE,
                traffic=READ,
            )
            for name, torch, numpy in SQUARE
            for dim in ("0", "1", "")
        ),
        *(Case(name, SETUP, torch, numpy, SIDE) for name, torch, numpy in OTHERS),
    ),
    mean=3.0,
    floor=1.0,
    implementations=("torch", "weft", "numpy", "limit"),
)
