"""Chains of pointwise operations as programs write them, some with a reduction in them or at their end.

All arrays have n elements in rows of 1000.
"""

from bench.cases import FLOAT, Case, Section

SIZES = {"1e4": 10**4, "1e6": 10**6, "1e7": 10**7}
PICTURE_SIZES = {f"1e{k}": 10**k for k in range(2, 8)}

TORCH = dict(
    np="torch", relu="torch.relu", sigmoid="torch.sigmoid", erf="torch.erf", keep="keepdim=True", max="amax"
)
NUMPY = dict(
    np="np", relu="relu", sigmoid="special.expit", erf="special.erf", keep="keepdims=True", max="max"
)

# fmt: off
CHAINS = [  # name         inputs, outputs (an output of 0 is one number), body of a function of a, b, c
    ("relu(a*b+c)",            3, 1, "return {relu}(a * b + c)"),
    ("gelu by tanh",           1, 1, "return 0.5 * a * (1 + {np}.tanh(0.7978846 * (a + 0.044715 * a * a * a)))"),
    ("gelu by erf",            1, 1, "return 0.5 * a * (1 + {erf}(a * 0.70710678))"),
    ("swish",                  1, 1, "return a * {sigmoid}(a)"),
    ("polynomial",             1, 1, "return ((((0.1 * a - 0.2) * a + 0.3) * a - 0.4) * a + 0.5) * a - 0.6"),
    ("Black-Scholes",          3, 2, """
def normal(x): return 0.5 * (1 + {erf}(x * 0.70710678))
spot = 50 + 50 * a; strike = 50 + 50 * b; years = 0.5 + c
spread = 0.3 * {np}.sqrt(years)
up = ({np}.log(spot / strike) + 0.065 * years) / spread
down = up - spread
paid = strike * {np}.exp(-0.02 * years)
call = spot * normal(up) - paid * normal(down)
return call, call - spot + paid"""),
    ("Adam's update",          3, 1, """
mean = 0.9 * a + 0.1 * c; square = 0.999 * b + 0.001 * c * c
return c - 0.001 * (mean / 0.1) / ({np}.sqrt(square / 0.001) + 1e-8)"""),
    ("masked",                 3, 1, "return {np}.where((a > b) & (c < 0.5), a * 2 - b, {np}.exp(-c))"),
    ("normalisation",          1, 1, """
centred = a - a.mean(1, {keep})
return centred / {np}.sqrt((centred * centred).mean(1, {keep}) + 1e-5) * 1.5 + 0.5"""),
    ("softmax",                1, 1, "e = {np}.exp(a - a.{max}(1, {keep})); return e / e.sum(1, {keep})"),
    ("logsumexp",              1, 0, "top = a.{max}(1, {keep}); return top + {np}.log({np}.exp(a - top).sum(1, {keep}))"),
    ("smooth L1",              2, 0, "d = abs(a - b); return {np}.where(d < 1, 0.5 * d * d, d - 0.5).mean()"),
    ("squared error",          2, 0, "return ((a - b) ** 2).mean()"),
]
# fmt: on
RECORDED = [
    ("relu(a*b+c), backward", 3, 1, "{relu}(a * b + c).sum()"),
    (
        "gelu by tanh, backward",
        1,
        1,
        "(0.5 * a * (1 + torch.tanh(0.7978846 * (a + 0.044715 * a * a * a)))).sum()",
    ),
]


def function(name: str, body: str, words: dict[str, str]) -> str:
    lines = body.strip().format(**words).replace("\n", "\n    ")
    return f"def {name}(a, b, c):\n    {lines}\n"


def setup(body: str) -> str:
    return f"""
a, b, c = (rand(max(1, n // 1000), min(n, 1000)) for _ in range(3))
def relu(x): return np.maximum(x, 0)
{function("chain", body, TORCH)}{function("numpy_chain", body, NUMPY)}"""


def chain(name: str, inputs: int, outputs: int, body: str, n: int, size: str) -> Case:
    traffic = (inputs * n * FLOAT, outputs * n * FLOAT)
    call, numpy = "chain(a, b, c)", "numpy_chain(a, b, c)"
    compiled = "chain" if size == "1e6" else ""  # a compilation takes seconds
    return Case(f"{name} {size}", setup(body), call, numpy, n, compiled=compiled, traffic=traffic)


def backward(name: str, inputs: int, expression: str, n: int, size: str) -> Case:
    """The gradients of a chain of which the elements are summed."""
    names = "abc"[:inputs]
    body = setup("return " + expression) + "".join(f"{name}.requires_grad_()\n" for name in names)
    stmt = f"{' = '.join(f'{name}.grad' for name in names)} = None; chain(a, b, c).backward(); a.grad"
    return Case(
        f"{name} {size}",
        body,
        stmt,
        n=n,
        compiled="chain" if size == "1e6" else "",
        traffic=(inputs * n * FLOAT, inputs * n * FLOAT),
    )


def cases(sizes: dict[str, int]) -> tuple[Case, ...]:
    return tuple(
        case
        for size, n in sizes.items()
        for case in (
            *(chain(*row, n, size) for row in CHAINS),
            *(backward(name, inputs, body, n, size) for name, inputs, _, body in RECORDED),
        )
    )


IMPLEMENTATIONS = ("torch", "weft", "compiled", "numpy", "jax", "limit")
SECTIONS = (
    Section(
        "chains small",
        "chains at 10^4",
        cases({"1e4": 10**4}),
        mean=1.5,
        floor=1.0,
        implementations=("torch", "weft", "numpy", "jax", "limit"),
    ),
    Section(
        "chains",
        "chains at 10^6 and 10^7",
        cases({"1e6": 10**6, "1e7": 10**7}),
        mean=4.0,
        floor=2.0,
        implementations=IMPLEMENTATIONS,
    ),
    Section(
        "sizes",
        "time over size, for the picture",
        tuple(chain(*row, n, size) for row in CHAINS[:2] for size, n in PICTURE_SIZES.items()),
        implementations=("torch", "weft", "numpy", "limit"),
        counted=False,
    ),
)
