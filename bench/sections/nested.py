"""Batches of sequences of different lengths, as jagged tensors. Their 64 lengths of 16 to 512 fill 52 % of the padded tensor.

The last row is the same block on the padded tensor, for comparison.
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
def block(x, mask=None):
    z = first(x)
    y = F.scaled_dot_product_attention(heads(query(z)), heads(key(z)), heads(value(z)), attn_mask=mask)
    x = x + out(y.transpose(1, 2).flatten(-2))
    return x + narrow(F.gelu(wide(second(x))))
torch.set_grad_enabled(False)
"""
PADDED = f"""{BLOCK}
padded = x.to_padded_tensor(0.0)[:, : max(lengths)]
mask = (torch.arange(padded.shape[1]) < torch.tensor(lengths).unsqueeze(1)).view(n, 1, 1, -1)
"""

# fmt: off
CASES = [
    ("transformer block",               BLOCK,  "block(x)"),
    ("gelu(x) * x",                     BATCH,  "F.gelu(x) * x"),
    ("layer_norm",                      BATCH,  "F.layer_norm(x, (256,))"),
    ("softmax along the ragged dim",    BATCH,  "torch.softmax(x, 1)"),
    ("sum over the ragged dim",         BATCH,  "x.sum(1)"),
    ("to_padded_tensor",                BATCH,  "torch.nested.to_padded_tensor(x, 0.0)"),
    ("transformer block, padded",       PADDED, "block(padded, mask)"),
]
# fmt: on

SECTION = Section(
    "nested",
    "64 sequences of 16 to 512 vectors of width 256",
    tuple(Case(name, setup, stmt, n=64) for name, setup, stmt in CASES),
    mean=1.5,
    floor=1,
    implementations=("torch", "weft"),
)
