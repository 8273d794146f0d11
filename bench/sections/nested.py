"""Batches of sequences of different lengths, as jagged tensors. Their lengths of 16 to 512 fill 52 % of the padded tensor.

One row is the block on the padded tensor, for comparison.
"""

from bench.cases import Case, Section

BATCH = """
F, nn = torch.nn.functional, torch.nn
lengths = torch.linspace(16, 512, n).long()[torch.randperm(n)].tolist()
parts = [rand(length, 256) for length in lengths]
x = torch.nested.nested_tensor(parts, layout=torch.jagged)
"""

BLOCK = f"""{BATCH}
first, second = nn.LayerNorm(256), nn.LayerNorm(256)
query, key, value, out = (nn.Linear(256, 256) for _ in range(4))
wide, narrow = nn.Linear(256, 1024), nn.Linear(1024, 256)
def heads(y):
    return y.unflatten(-1, [8, 32]).transpose(1, 2)
@torch.no_grad()
def block(x, mask=None):
    z = first(x)
    y = F.scaled_dot_product_attention(heads(query(z)), heads(key(z)), heads(value(z)), attn_mask=mask)
    x = x + out(y.transpose(1, 2).flatten(-2))
    return x + narrow(F.gelu(wide(second(x))))
"""
PADDED = f"""{BLOCK}
padded = x.to_padded_tensor(0.0)[:, : max(lengths)]
mask = (torch.arange(padded.shape[1]) < torch.tensor(lengths).unsqueeze(1)).view(n, 1, 1, -1)
"""

# fmt: off
CASES = [
    # PyTorch's attention takes some seconds for 64 sequences.
    ("transformer block, 32 sequences", BLOCK,  "block(x)", 32),
    ("the same, padded",                PADDED, "block(padded, mask)", 32),
    ("gelu(x) * x",                     BATCH,  "F.gelu(x) * x", 64),
    ("layer_norm",                      BATCH,  "F.layer_norm(x, (256,))", 64),
    ("softmax along the ragged dim",    BATCH,  "torch.softmax(x, 1)", 64),
    ("sum over the ragged dim",         BATCH,  "x.sum(1)", 64),
    ("to_padded_tensor",                BATCH,  "torch.nested.to_padded_tensor(x, 0.0)", 64),
]
# fmt: on

SECTION = Section(
    "nested",
    "64 sequences of 16 to 512 vectors of width 256",
    tuple(Case(name, setup, stmt, n=n) for name, setup, stmt, n in CASES),
    mean=1.5,
    floor=1,
    implementations=("torch", "weft"),
)
