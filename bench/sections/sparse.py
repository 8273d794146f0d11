"""Sparse matrices with a million entries: ten in a row of a graph's adjacency, a hundred in a row of a layer of features."""

from bench.cases import Case, Section

SETUP = """
def matrix(entries=1_000_000):
    keys = torch.unique(integers(n * n, entries))
    return torch.sparse_coo_tensor(torch.stack([keys // n, keys % n]), rand(len(keys)), (n, n), is_coalesced=True)
"""
CSR = f"{SETUP}csr = matrix().to_sparse_csr(); "
COO = f"{SETUP}coo = matrix(); "
COLUMNS, VECTOR = "m = rand(n, 64)", "v = rand(n)"

# fmt: off
FUNCTIONS = [
    ("CSR @ 64 columns",  CSR + COLUMNS,               "csr @ m"),
    ("CSR @ vector",      CSR + VECTOR,                "csr @ v"),
    ("COO coalesce",      "c = torch.sparse_coo_tensor(integers(n, 2, 1_000_000), rand(1_000_000), (n, n))", "c.coalesce()"),
    ("COO + COO",         COO + "other = matrix()",    "coo + other"),
    ("COO softmax",       COO,                         "torch.sparse.softmax(coo, 1)"),
]
# Of the rarer functions one size is enough. The matrices of CSR @ CSR have 100k entries, their product a million.
MORE = [
    ("CSR @ CSR",         f"{SETUP}n = 10_000; a, b = (matrix(100_000).to_sparse_csr() for _ in range(2))", "a @ b"),
    ("COO @ 64 columns",  COO + COLUMNS,               "coo @ m"),
    ("COO @ vector",      COO + VECTOR,                "coo @ v"),
    ("CSR @ 64 columns, with backward",
     f"{CSR}m = rand(n, 64).requires_grad_(); csr.requires_grad_(); ones = torch.ones(n, 64)",
     "csr.grad = m.grad = None; torch.sparse.mm(csr, m).backward(ones); m.grad"),
    ("sampled_addmm, width 64", f"{CSR}{COLUMNS}; w = rand(64, n)", "torch.sparse.sampled_addmm(csr, m, w, beta=0.0)"),
    ("CSR + CSR",         CSR + "other = matrix().to_sparse_csr()", "csr + other"),
    ("COO sum over rows", COO,                         "torch.sparse.sum(coo, 0)"),
    ("CSR to CSC",        CSR,                         "csr.to_sparse_csc()"),
    ("sparse embedding, step of SparseAdam",
     "e = torch.nn.Embedding(n, 64, sparse=True); optimizer = torch.optim.SparseAdam(e.parameters()); i = integers(n, 4096)",
     "optimizer.zero_grad(); loss = e(i).sum(); loss.backward(); optimizer.step(); loss"),
]
# fmt: on

SECTION = Section(
    "sparse",
    "sparse matrices with 10^6 entries",
    tuple(
        Case(f"{name}, {n // 1000}k rows", setup, stmt, n=n)
        for n in (10_000, 100_000)
        for name, setup, stmt in FUNCTIONS
    )
    + tuple(Case(name, setup, stmt, n=100_000) for name, setup, stmt in MORE),
    mean=1.5,
    floor=1.5,
    implementations=("torch", "weft"),
)
