"""Layers, a network and conversions of bytes, and products with a weight of bytes or nibbles."""

from bench.cases import Case, Section

PREPACK = """
def signed(w):
    return torch.quantize_per_channel(w, torch.full((len(w),), 0.004), torch.zeros(len(w), dtype=torch.int64), 0, torch.qint8)
def bytes_of(x):
    return torch.quantize_per_tensor(x, 0.02, 128, torch.quint8)
def conv(made, own, size, stride=1, groups=1):
    weight = signed(rand(made, own // groups, size, size) - 0.5)
    return q.conv2d_prepack(weight, rand(made) - 0.5, [stride] * 2, [size // 2] * 2, [1, 1], groups)
q = torch.ops.quantized; F = torch.nn.functional
"""
LINEAR = "x = rand(n, 1024) * 4 - 2; qx = bytes_of(x); p = q.linear_prepack(signed(rand(1024, 1024) - 0.5), rand(1024) - 0.5)"
CONVOLUTION = (
    "x = bytes_of(rand({x}) * 4 - 2).contiguous(memory_format=torch.channels_last); p = conv({conv})"
)
NETWORK = """
x = rand(1, 3, 96, 96)
stem = conv(32, 3, 3, 2); head = q.linear_prepack(signed(rand(10, 128) - 0.5), rand(10))
blocks = [(conv(a, a, 3, step, a), conv(b, a, 1)) for a, b, step in ((32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 128, 2))]
def network(x):
    x = q.conv2d_relu(bytes_of(x), stem, 0.05, 0)
    for depthwise, pointwise in blocks:
        x = q.conv2d_relu(q.conv2d_relu(x, depthwise, 0.05, 0), pointwise, 0.05, 0)
    x = F.adaptive_avg_pool2d(x, 1).flatten(1)
    return q.linear(x, head, 0.1, 128).dequantize()
"""
ELEMENTS = "x = rand(1_000_000) * 4 - 2; qx = bytes_of(x); qy = torch.quantize_per_tensor(x, 0.03, 120, torch.quint8)"
WEIGHT_ONLY = """
x = rand(1, 4096).to(torch.bfloat16)
w8 = (integers(256, 4096, 4096) - 128).to(torch.int8); scales = rand(4096).to(torch.bfloat16)
w4 = torch._convert_weight_to_int4pack_for_cpu(integers(16, 4096, 4096).to(torch.int32), 1)
both = rand(4096 // 32, 4096, 2).to(torch.bfloat16)
"""

# fmt: off
FUNCTIONS = [  # name                     setup        n   statement
    ("linear 1024x1024, batch 1",         LINEAR,      1,  "q.linear(qx, p, 0.5, 100)"),
    ("linear 1024x1024, batch 64",        LINEAR,      64, "q.linear(qx, p, 0.5, 100)"),
    ("dynamic linear 1024x1024, batch 1", LINEAR,      1,  "q.linear_dynamic(x, p)"),
    ("dynamic linear 1024x1024, batch 64", LINEAR,     64, "q.linear_dynamic(x, p)"),
    ("conv 3x3, 64 channels, 56x56",      CONVOLUTION.format(x="1, 64, 56, 56", conv="64, 64, 3"),             0, "q.conv2d(x, p, 0.5, 100)"),
    ("conv 1x1, 256 channels, 28x28",     CONVOLUTION.format(x="1, 256, 28, 28", conv="256, 256, 1"),          0, "q.conv2d(x, p, 0.5, 100)"),
    ("depthwise conv 3x3, 128, 28x28",    CONVOLUTION.format(x="1, 128, 28, 28", conv="128, 128, 3, 1, 128"),  0, "q.conv2d(x, p, 0.5, 100)"),
    ("a network of 9 convolutions",       NETWORK,     0,  "network(x)"),
    ("quantize 1e6",                      ELEMENTS,    0,  "torch.quantize_per_tensor(x, 0.02, 128, torch.quint8)"),
    ("dequantize 1e6",                    ELEMENTS,    0,  "qx.dequantize()"),
    ("add 1e6",                           ELEMENTS,    0,  "q.add(qx, qy, 0.05, 128)"),
    ("int8 weight 4096x4096, batch 1",    WEIGHT_ONLY, 0,  "torch._weight_int8pack_mm(x, w8, scales)"),
    ("int4 weight 4096x4096, batch 1",    WEIGHT_ONLY, 0,  "torch._weight_int4pack_mm_for_cpu(x, w4, 32, both)"),
]
# fmt: on

SECTION = Section(
    "quantized",
    "quantized layers and conversions",
    tuple(Case(name, PREPACK + setup, stmt, n=n) for name, setup, n, stmt in FUNCTIONS),
    mean=1.0,
    floor=0.7,
    implementations=("torch", "weft"),
)
