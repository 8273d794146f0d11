"""One pointwise operation at a time: functions that need an expansion, and arithmetic that memory limits."""

from bench.cases import FLOAT, Case, Section

# Every function on its natural domain: x in [-4, 4), p in [0.5, 1.5).
SETUP = "x = 8 * rand(n) - 4; y = 8 * rand(n) - 4; p = rand(n) + 0.5; c = x > 0"

# fmt: off
TRANSCENDENTAL = [
    ("exp",         "torch.exp(x)",            "np.exp(x)"),
    ("expm1",       "torch.expm1(x)",          "np.expm1(x)"),
    ("log",         "torch.log(p)",            "np.log(p)"),
    ("log1p",       "torch.log1p(p)",          "np.log1p(p)"),
    ("sin",         "torch.sin(x)",            "np.sin(x)"),
    ("cos",         "torch.cos(x)",            "np.cos(x)"),
    ("atan",        "torch.atan(x)",           "np.arctan(x)"),
    ("tanh",        "torch.tanh(x)",           "np.tanh(x)"),
    ("sigmoid",     "torch.sigmoid(x)",        "special.expit(x)"),
    ("erf",         "torch.erf(x)",            "special.erf(x)"),
    ("pow",         "p ** y",                  "p ** y"),
    ("lgamma",      "torch.lgamma(p)",         "special.gammaln(p)"),
    ("gelu",        "torch.nn.functional.gelu(x)", None),
    ("silu",        "torch.nn.functional.silu(x)", None),
    ("softplus",    "torch.nn.functional.softplus(x)", None),
]
ARITHMETIC = [  # arrays read
    ("add",         2, "x + y",                   "x + y"),
    ("div",         2, "x / p",                   "x / p"),
    ("neg",         1, "-x",                      "-x"),
    ("relu",        1, "torch.relu(x)",           "np.maximum(x, 0)"),
    ("clamp",       1, "torch.clamp(x, -1, 1)",   "np.clip(x, -1, 1)"),
    ("sqrt",        1, "torch.sqrt(p)",           "np.sqrt(p)"),
    ("where",       2, "torch.where(c, x, y)",    "np.where(c, x, y)"),
]
# fmt: on
IMPLEMENTATIONS = ("torch", "weft", "numpy", "jax", "limit")


def case(name: str, read: int, torch: str, numpy: str | None, n: int) -> Case:
    return Case(name, SETUP, torch, numpy, n, traffic=(read * n * FLOAT, n * FLOAT))


SECTIONS = (
    Section(
        "transcendental",
        "transcendental functions at 10^6",
        tuple(case(name, 1 + (name == "pow"), torch, numpy, 10**6) for name, torch, numpy in TRANSCENDENTAL),
        mean=1.5,
        floor=1.0,
        implementations=IMPLEMENTATIONS,
    ),
    Section(
        "arithmetic",
        "one arithmetic operation at 10^5, 10^6 and 10^7",
        tuple(
            case(f"{name} 1e{digits}", read, torch, numpy, 10**digits)
            for digits in (5, 6, 7)
            for name, read, torch, numpy in ARITHMETIC
        ),
        mean=1.0,
        floor=1.0,
        implementations=IMPLEMENTATIONS,
    ),
)
