"""Copies into another order, indexing, sorting, creation."""

from bench.cases import Case, Section

SETUP = """
x = rand(n); m = rand(1000, 1000); big = rand(2000, 2000); images = rand(16, 64, 56, 56)
c = x > 0.5; i = integers(n, n); r = integers(1000, 1000); g = integers(1000, 1000, 1000); k = integers(100, n)
"""
BYTES = "pictures = integers(256, 8, 3, 224, 224).to(torch.uint8)"

# fmt: off
LAYOUT = [  # name                     PyTorch                                     NumPy
    ("transposing copy 2000x2000",     "big.t().contiguous()",                     "np.ascontiguousarray(big.T)"),
    ("NCHW to NHWC",                   "images.permute(0, 2, 3, 1).contiguous()",  "np.ascontiguousarray(images.transpose(0, 2, 3, 1))"),
    ("cat dim 1",                      "torch.cat([m, m], 1)",                     "np.concatenate([m, m], 1)"),
    ("stack dim 2",                    "torch.stack([m, m], 2)",                   "np.stack([m, m], 2)"),
    ("flip",                           "m.flip(1)",                                "np.flip(m, 1).copy()"),
    ("roll",                           "m.roll(7, 1)",                             "np.roll(m, 7, 1)"),
    ("repeat",                         "m.repeat(2, 2)",                           "np.tile(m, (2, 2))"),
    ("pad",                            "torch.nn.functional.pad(m, (3, 3, 3, 3))", "np.pad(m, 3)"),
    ("tril",                           "m.tril()",                                 "np.tril(m)"),
    ("to float64",                     "x.to(torch.float64)",                      "x.astype(np.float64)"),
    ("to bfloat16",                    "x.to(torch.bfloat16)",                     None),
    ("rows by index",                  "m[r]",                                     "m[r]"),
    ("elements by index",              "x[i]",                                     "x[i]"),
    ("elements by mask",               "x[c]",                                     "x[c]"),
    ("mask filled",                    "x.masked_fill(c, 0.0)",                    "np.where(c, np.float32(0), x)"),
    ("nonzero",                        "c.nonzero()",                              "np.argwhere(c)"),
    ("gather dim 1",                   "m.gather(1, g)",                           "np.take_along_axis(m, g, 1)"),
    ("scatter_add",                    "torch.zeros(1000, 1000).scatter_add_(1, g, m)", None),
    ("index_add",                      "torch.zeros(1000, 1000).index_add_(0, r, m)", None),
    ("one_hot",                        "torch.nn.functional.one_hot(r, 1000)",     None),
    ("bincount",                       "torch.bincount(k)",                        "np.bincount(k)"),
    ("sort",                           "x.sort()[0]",                              "np.sort(x)"),
    ("argsort rows",                   "m.argsort(1)",                             "np.argsort(m, 1)"),
    ("topk 10 of rows",                "m.topk(10)[0]",                            None),
    ("unique",                         "k.unique()",                               "np.unique(k)"),
    ("searchsorted",                   "torch.searchsorted(m[0].sort()[0], x)",    "np.searchsorted(np.sort(m[0]), x)"),
    ("cumsum",                         "m.cumsum(1)",                              "np.cumsum(m, 1)"),
    ("cummax",                         "m.cummax(1)[0]",                           "np.maximum.accumulate(m, 1)"),
    ("arange",                         "torch.arange(1000000)",                    "np.arange(1000000)"),
    ("linspace",                       "torch.linspace(0, 1, 1000000)",            "np.linspace(0, 1, 1000000, dtype=np.float32)"),
    ("eye",                            "torch.eye(1000)",                          "np.eye(1000, dtype=np.float32)"),
    ("zeros",                          "torch.zeros(1000, 1000)",                  "np.zeros((1000, 1000), np.float32)"),
    ("rand of 1000",                   "torch.rand(1000)",                         None),
    ("rand of 10^6",                   "torch.rand(1000000)",                      None),
    ("randn of 10^6",                  "torch.randn(1000000)",                     None),
    ("randperm of 10^5",               "torch.randperm(100000)",                   None),
    ("resize bilinear, antialiased",   "torch.nn.functional.interpolate(images, (28, 28), mode='bilinear', antialias=True)", None),
    ("grid_sample",                    "torch.nn.functional.grid_sample(images[:4], rand(4, 56, 56, 2) * 2 - 1, align_corners=False)", None),
]
PICTURES = [
    ("colors last, bytes",        "pictures.permute(0, 2, 3, 1).contiguous()"),
    ("resize bytes, antialiased", "torch.nn.functional.interpolate(pictures, (160, 160), mode='bilinear', antialias=True)"),
]
# fmt: on

SECTION = Section(
    "layout",
    "layout, indexing, sorting",
    (
        *(Case(name, SETUP, torch, numpy, 10**6) for name, torch, numpy in LAYOUT),
        *(Case(name, BYTES, torch) for name, torch in PICTURES),
    ),
    mean=2.0,
    floor=1.0,
)
