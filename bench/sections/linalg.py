"""Decompositions and what is made of them: one matrix of 64 to 512, and stacks of small ones."""

from bench.cases import Case, Section

# `a` is well conditioned, `s` symmetric and positive definite.
SETUP = """
a = rand(n, n)
for k in range(n): a[k, k] += n
s = a @ a.T / n
for k in range(n): s[k, k] += 1
b = rand(n, 8)
"""
STACK = """
a = rand(*shape); s = a @ a.swapaxes(-1, -2)
for k in range(shape[-1]): a[:, k, k] += shape[-1]; s[:, k, k] += 1
b = rand(shape[0], shape[1], 2)
"""

# fmt: off
FUNCTIONS = [  # name   PyTorch                          NumPy
    ("inv",             "torch.linalg.inv(a)",           "np.linalg.inv(a)"),
    ("solve",           "torch.linalg.solve(a, b)",      "np.linalg.solve(a, b)"),
    ("cholesky",        "torch.linalg.cholesky(s)",      "np.linalg.cholesky(s)"),
    ("qr",              "torch.linalg.qr(a)",            "np.linalg.qr(a)"),
    ("eigh",            "torch.linalg.eigh(s)",          "np.linalg.eigh(s)"),
    ("svd",             "torch.linalg.svd(a)",           "np.linalg.svd(a)"),
]
OF_STACKS = [
    *FUNCTIONS,
    ("det",             "torch.linalg.det(a)",           "np.linalg.det(a)"),
    ("solve_triangular", "torch.linalg.solve_triangular(s, b, upper=True)", None),
]
# fmt: on

SECTION = Section(
    "linalg",
    "linear algebra, 64 to 512, stacks",
    (
        *(
            Case(f"{name} {n}", SETUP, torch, numpy, n, deferrable=False)
            for n in (64, 128, 256, 512)
            for name, torch, numpy in FUNCTIONS
        ),
        *(
            Case(
                f"{name} {'x'.join(map(str, shape))}",
                f"shape = {shape}{STACK}",
                torch,
                numpy,
                deferrable=False,
            )
            for shape in ((1000, 4, 4), (64, 32, 32))
            for name, torch, numpy in OF_STACKS
        ),
    ),
    mean=1.1,
    floor=0.9,
)
