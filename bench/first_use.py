"""`python -m bench.first_use weft`: the seconds in which a program imports weft and runs every operation below for the first time."""

import importlib
import sys
import time

SETUP = """
nn, F = torch.nn, torch.nn.functional
x = torch.rand(64, 64); y = torch.rand(64, 64); v = torch.rand(64); k = torch.arange(64); c = x > 0.5
d = torch.rand(64, 64, dtype=torch.float64); images = torch.rand(2, 3, 16, 16); w = torch.rand(4, 3, 3, 3)
r = torch.rand(64, 64, requires_grad=True)
"""

OPERATIONS = (
    "x + y", "x - y", "x * y", "x / y", "x * 2.5", "1 - x", "-x", "x ** 2", "x ** y", "x // y", "x % y",
    "x < y", "x == y", "x.exp()", "x.log()", "x.sqrt()", "x.sin()", "x.cos()", "x.tanh()", "x.sigmoid()", "x.erf()",
    "x.abs()", "x.clamp(0, 0.5)", "x.round()", "torch.relu(x)", "F.gelu(x)", "F.silu(x)", "F.softplus(x)",
    "F.leaky_relu(x)", "torch.where(c, x, y)", "torch.maximum(x, y)", "x + v", "x.t() + y", "x + k", "k * 3", "k // 7",
    "d + d", "d * x", "x.to(torch.float64)", "x.to(torch.bfloat16)", "k.float()", "c & c", "~c", "x.sum()", "x.sum(0)",
    "x.sum(1)", "x.mean()", "x.mean(1)", "x.var(1)", "x.max()", "x.max(1)", "x.argmax(1)", "x.prod()", "c.any()",
    "x.norm()", "x.cumsum(1)", "k.sum()", "x.t().contiguous()", "torch.cat([x, y], 1)", "x[k]", "x[c]", "x[::2, ::2] + 1",
    "x.masked_fill(c, 0.0)", "x.tril()", "x.gather(1, k.expand(64, 64))", "x.sort()[0]", "F.one_hot(k)", "x @ y",
    "F.softmax(x, 1)", "F.log_softmax(x, 1)", "F.layer_norm(x, (64,))", "F.cross_entropy(x, k)", "F.mse_loss(x, y)",
    "F.conv2d(images, w)", "F.max_pool2d(images, 2)", "((r * x + y).tanh() ** 2).mean().backward()",
)  # fmt: skip


def main(implementation: str) -> None:
    start = time.perf_counter()
    names = {"torch": importlib.import_module(implementation)}
    exec(SETUP, names)
    for operation in OPERATIONS:
        eval(operation, names)
    if implementation == "weft":
        names["torch"].synchronize()
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main(sys.argv[1])
