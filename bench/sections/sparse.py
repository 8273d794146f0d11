"""Sparse matrices with a million entries: ten in a row of a graph's adjacency, a hundred in a row of a layer of features."""

from bench.cases import Case, Section

SETUP = """
def matrix():
    keys = torch.unique(integers(n * n, 1_000_000))
    return torch.sparse_coo_tensor(torch.stack([keys // n, keys % n]), rand(len(keys)), (n, n), is_coalesced=True)
a = matrix(); b = matrix(); csr = a.to_sparse_csr(); m = rand(n, 64); v = rand(n)
c = torch.sparse_coo_tensor(integers(n, 2, 1_000_000), rand(1_000_000), (n, n))
"""

# fmt: off
FUNCTIONS = [
    ("CSR @ 64 columns",  "csr @ m"),
    ("CSR @ vector",      "csr @ v"),
    ("COO coalesce",      "c.coalesce()"),
    ("COO + COO",         "a + b"),
    ("COO softmax",       "torch.sparse.softmax(a, 1)"),
]
# fmt: on

SECTION = Section(
    "sparse",
    "sparse matrices with 10^6 entries",
    tuple(
        Case(f"{name}, {n // 1000}k rows", SETUP, stmt, n=n)
        for n in (10_000, 100_000)
        for name, stmt in FUNCTIONS
    ),
    mean=1.5,
    floor=1.5,
    implementations=("torch", "weft"),
)
