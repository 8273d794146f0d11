"""Models and functions that both libraries trace: `models(torch)` makes them of the library `torch`."""

import collections
import math

Point = collections.namedtuple("Point", ["x", "y"])


def models(torch):
    """Name -> what to trace, and the arguments to call it with."""
    nn, functional = torch.nn, torch.nn.functional

    class Simple(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 5)
            self.register_buffer("offset", torch.ones(5))

        def forward(self, x):
            hidden = self.linear(x + self.linear.weight[0]).relu()
            return torch.topk(torch.sum(hidden, dim=-1), 2), self.offset + hidden, self.offset

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 3, padding=1)
            self.norm = nn.BatchNorm2d(3)
            self.relu = nn.ReLU(inplace=True)
            self.layers = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Sequential(nn.ReLU(), nn.BatchNorm2d(3)))
            self.list = nn.ModuleList([nn.Conv2d(3, 3, 1), nn.Identity()])
            self.dict = nn.ModuleDict({"act": nn.GELU(), "pool": nn.MaxPool2d(2)})

        def forward(self, x):
            y = self.relu(self.norm(self.conv(x)))
            y += x
            y = self.layers(y)
            for layer in self.list:
                y = layer(y)
            y = self.dict["pool"](self.dict["act"](y))
            return functional.adaptive_avg_pool2d(y, (1, 1)).flatten(1)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
            self.norm = nn.LayerNorm(8)
            self.multihead = nn.MultiheadAttention(8, 2)
            self.position = nn.Parameter(torch.zeros(1, 10, 8))
            self.table = torch.arange(10)

        def forward(self, x, mask=None, scale: float = 1.0, *args, **kwargs):
            b, t, c = x.shape[0], x.size(1), x.size()[2]
            x = x + self.position[:, :t]
            q = self.query(x).view(b, t, 2, c // 2).transpose(1, 2)
            k = self.key(x).view(b, t, 2, c // 2).transpose(1, 2)
            v = self.value(x).reshape(b, t, 2, -1).permute(0, 2, 1, 3)
            weights = q @ k.transpose(-2, -1) / math.sqrt(8) * scale
            weights = functional.softmax(weights, dim=-1)
            y = (weights @ v).transpose(1, 2).contiguous().view(b, t, c)
            y = functional.dropout(y, p=0.0, training=self.training)
            y = functional.layer_norm(y, (8,), self.norm.weight, self.norm.bias)
            z, w = self.multihead(y, y, y)
            z = z.to(torch.float32).float()
            fresh = torch.arange(10, dtype=torch.int64)
            return {
                "out": self.norm(z),
                "w": [w, (x, None, 1.5)],
                "m": fresh[None, ..., 1:3],
                "t": self.table,
            }

    def operators(a, b):
        c = ((1 + a - b) * 3 / 2) // 1 % 5
        c = 2**c - -c + 7 % (c + 1) - 2 / (1 + abs(c)) * (3 // (1 + abs(c)))
        c = c @ b
        flags = ~(a > 0) & (b < 1) | (a == b) ^ (a != b)
        return c, flags, (a <= b, a >= b), +c

    def indices(a, b):
        return (
            a[0],
            a[1:2],
            a[:, ::2],
            a[..., None],
            a[[1, 0]],
            a[b > 0],
            a[-1, :],
            a[b.argmax(-1)],
            a.T,
            a.ndim,
        )

    def in_place(a, b):
        a = a.clone()
        a += b
        a -= 1
        a *= 2
        a /= 3
        return a.add_(1).mul_(b)

    def functions(a, b):
        joined = torch.stack([a, b], dim=1), torch.cat((a, b)), torch.where(a > 0, a, 0.0)
        products = (
            torch.einsum("ij,jk->ik", a, b),
            torch.add(1, a, alpha=2),
            torch.linalg.norm(a),
            torch.norm(b),
        )
        others = (
            torch.fft.fft(a),
            torch.special.expit(a),
            torch.split(a, 2),
            torch.tanh(a),
            functional.tanh(b),
        )
        return joined, products, others, functional.pad(a, (1, 1), "constant", 0.5), torch.absolute(a)

    def activations(a, b):
        return [
            functional.gelu(a), functional.silu(a), functional.leaky_relu(a), functional.hardswish(a), functional.elu(a),
            functional.softplus(a), functional.logsigmoid(b), functional.glu(b), functional.mish(b), functional.relu6(b),
            functional.normalize(a), functional.one_hot(a.argmax(-1), 5), functional.cross_entropy(a, b.argmax(-1)),
        ]  # fmt: skip

    def images(x):
        return [
            functional.max_pool2d(x, 2), functional.max_pool2d(x, 2, return_indices=True)[1], functional.avg_pool2d(x, 2),
            functional.interpolate(x, scale_factor=2.0, mode="bilinear"), functional.group_norm(x, 1),
            functional.batch_norm(x, None, None, training=True), functional.conv2d(x, x[:, :, :2, :2]),
        ]  # fmt: skip

    def numbers(x):
        return x.clamp(min=float("-inf"), max=float("inf")), x * 1j, x * True, x * 1e-5, torch.complex(x, x)

    def keyword_only(x, *, y=2, z: int = 3):
        return x + y * z

    def annotated(x: torch.Tensor, y: int = 3, s: str = "a", l: list[int] = None) -> tuple[torch.Tensor, int]:  # noqa: E741, RUF013
        return x + y, s

    def containers(d, items):
        return {"a": d["x"] + items[0], "b": d.get("y"), "c": [{}, ()]}

    def unused(x, y):
        z = x * y
        z + 1
        return x

    def builtin_names(input, torch_, type, len, range):
        return input + torch_ + type + len + range

    def named_tuple(x):
        return Point(x, x + 1)

    def constants(x):
        return (1, 2.5, "a", None, True, ..., torch.float32, torch.device("cpu"), torch.contiguous_format)

    def unpacked(x):
        first, second = x.split(2)
        return first * second

    square, other = _values(torch, 4, 4), _values(torch, 4, 4) * 0.5 - 0.3
    image = _values(torch, 2, 3, 4, 4)
    sequence = _values(torch, 2, 6, 8)
    layers = {
        "linear": (nn.Linear(4, 2), (square,)),
        "sequential": (nn.Sequential(nn.Linear(4, 2), nn.ReLU()), (square,)),
    }
    return layers | {
        "simple": (Simple(), (square,)),
        "residual": (Residual(), (image,)),
        "attention": (Attention(), (sequence,)),
        "operators": (operators, (square, other)),
        "indices": (indices, (square, other)),
        "in_place": (in_place, (square, other)),
        "functions": (functions, (square, other)),
        "activations": (activations, (square, other)),
        "images": (images, (image,)),
        "numbers": (numbers, (square,)),
        "keyword_only": (keyword_only, (square,)),
        "annotated": (annotated, (square,)),
        "containers": (containers, ({"x": square}, [other])),
        "unused": (unused, (square, other)),
        "builtin_names": (builtin_names, (square, 1, 2, 3, 4)),
        "named_tuple": (named_tuple, (square,)),
        "constants": (constants, (square,)),
        "unpacked": (unpacked, (square,)),
    }


def _values(torch, *shape):
    count = math.prod(shape)
    return (torch.arange(count, dtype=torch.float32) * 37 % 17 / 17 - 0.4).reshape(shape)


NAMES = list(models(__import__("weft")))
