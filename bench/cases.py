"""The table of what is measured: one `Case`, one row.

Statements are written in PyTorch's API, with `torch` bound to the implementation. A NumPy statement, where there is
one, sees `np` and `special` (SciPy's). Setups run in every implementation: they may use `rand(*shape)`, uniform
float32 in [0, 1), and `n`, the size of the case.
"""

from dataclasses import dataclass
from textwrap import indent

from bench.training import TRAINING

# Targets are ratios, PyTorch's time (or memory) over weft's.
NO_SLOWER = 1.0
NEARLY_AS_FAST = 1 / 1.2
FASTER = 1.5
A_TENTH_MORE = 1 / 1.1


@dataclass(frozen=True)
class Case:
    """One statement to measure. `measure` is "time" (seconds per run) or "memory" (peak growth, in bytes)."""

    group: str
    name: str
    setup: str
    stmt: str
    numpy: str | None = None
    n: int = 0
    target: float = NO_SLOWER
    measure: str = "time"
    # Whether weft may put the work off until somebody looks, so that the measurement has to look.
    deferrable: bool = True

    @property
    def id(self) -> str:
        return f"{self.group}/{self.name}"


# fmt: off
SMALL_SETUP = "x = rand(n) - 0.5; y = rand(n); m = x.reshape(4, 4)"
SMALL = [  # name         PyTorch            NumPy
    ("add",               "x + y",           "x + y"),
    ("mul by scalar",     "x * 2.5",         "x * 2.5"),
    ("relu",              "torch.relu(x)",   "np.maximum(x, 0)"),
    ("sum",               "x.sum()",         "x.sum()"),
    ("slice",             "x[2:9]",          "x[2:9]"),
    ("view",              "x.view(4, 4)",    "x.reshape(4, 4)"),
    ("t",                 "m.t()",           "m.T"),
    ("zeros",             "torch.zeros(16)", "np.zeros(16, np.float32)"),
    ("add_",              "x.add_(y)",       "np.add(x, y, out=x)"),
    ("item",              "x[3].item()",     "x[3].item()"),
    ("select",            "x[3]",            "x[3]"),
]

# Every function on its natural domain: x in [-4, 4), p in [0.5, 1.5).
MAP_SETUP = "x = 8 * rand(n) - 4; y = 8 * rand(n) - 4; p = rand(n) + 0.5; c = x > 0"
FAST = {"exp", "log", "tanh", "sin", "erf"}
GELU = "0.5 * x * (1 + {tanh}(0.7978846 * (x + 0.044715 * x * x * x)))"
TRANSCENDENTAL = [
    ("exp",               "torch.exp(x)",            "np.exp(x)"),
    ("log",               "torch.log(p)",            "np.log(p)"),
    ("sin",               "torch.sin(x)",            "np.sin(x)"),
    ("cos",               "torch.cos(x)",            "np.cos(x)"),
    ("tanh",              "torch.tanh(x)",           "np.tanh(x)"),
    ("erf",               "torch.erf(x)",            "special.erf(x)"),
]
MAPS = [
    ("add",               "x + y",                   "x + y"),
    ("mul",               "x * y",                   "x * y"),
    ("div",               "x / p",                   "x / p"),
    ("neg",               "-x",                      "-x"),
    ("abs",               "torch.abs(x)",            "np.abs(x)"),
    ("relu",              "torch.relu(x)",           "np.maximum(x, 0)"),
    ("sqrt",              "torch.sqrt(p)",           "np.sqrt(p)"),
    *TRANSCENDENTAL,
    ("sigmoid",           "torch.sigmoid(x)",        "special.expit(x)"),
    ("gelu composed",     GELU.format(tanh="torch.tanh"), GELU.format(tanh="np.tanh")),
    ("pow",               "p ** y",                  "p ** y"),
    ("less",              "x < y",                   "x < y"),
    ("where",             "torch.where(c, x, y)",    "np.where(c, x, y)"),
    ("clamp",             "torch.clamp(x, -1, 1)",   "np.clip(x, -1, 1)"),
    ("to bfloat16",       "x.to(torch.bfloat16)",    "x.astype(bfloat16)"),
]

SQUARE_SETUP = "x = rand(n, n)"
REDUCTIONS = [  # over "", "0" or "1"
    ("sum",               "x.sum({})",               "x.sum({})"),
    ("mean",              "x.mean({})",              "x.mean({})"),
    ("max",               "x.max({})",               "x.max({})"),
    ("argmax",            "x.argmax({})",            "x.argmax({})"),
    ("var",               "x.var({})",               "x.var({}, ddof=1)"),
]
# fmt: on


def squares() -> list[Case]:
    """Reductions, the transposing copy and matrix products: time and peak memory."""
    rows = [
        (f"{name} {'dim ' + dim if dim else 'all'}", 4000, torch.format(dim), numpy.format(dim or "None"))
        for name, torch, numpy in REDUCTIONS
        for dim in ("0", "1", "")
    ]
    rows.append(("transpose copy", 4000, "x.t().contiguous()", "np.ascontiguousarray(x.T)"))
    rows += [(f"matmul {n}", n, "x @ x", "x @ x") for n in (500, 2000)]
    return [
        Case(group, name, SQUARE_SETUP, torch, numpy, n, measure=measure)
        for group, measure in (("square", "time"), ("memory", "memory"))
        for name, n, torch, numpy in rows
    ]


# A state_dict of a gigabyte: 64 tensors of n floats. It stays in memory, so that loading needs as much again.
FILES_SETUP = """
import tempfile
folder = tempfile.TemporaryDirectory()
path = folder.name + "/state.pt"
state = {f"layer{k}": rand(n) for k in range(64)}
torch.save(state, path)
"""
FILES = [
    ("save", "torch.save(state, path)"),
    ("load", "torch.load(path)"),
    ("load, mmap", "torch.load(path, mmap=True)"),
]


def files() -> list[Case]:
    """Saving and loading: time and peak memory."""
    return [
        Case(group, name, FILES_SETUP, stmt, n=2**22, measure=measure, deferrable=False)
        for group, measure in (("files", "time"), ("files memory", "memory"))
        for name, stmt in FILES
    ]


def training() -> list[Case]:
    """Steps of training: time, and the peak memory of the first three; the first of them makes Adam's moments."""
    return [
        *(Case("train", name, setup, stmt, n=n, target=target) for name, setup, stmt, n, target in TRAINING),
        *(
            Case(
                "train memory",
                name,
                setup,
                f"for _ in range(3):\n{indent(stmt, '    ')}\nNone",
                n=n,
                target=A_TENTH_MORE,
                measure="memory",
            )
            for name, setup, stmt, n, _ in TRAINING
        ),
    ]


def cases() -> list[Case]:
    """All cases, in the order of the table."""
    loop = "s = 0.0\nfor i in range(len(t)): s += t[i]\ns"
    return [
        *(
            Case("small", name, SMALL_SETUP, torch, numpy, 16, NEARLY_AS_FAST, deferrable=False)
            for name, torch, numpy in SMALL
        ),
        *(
            Case(
                f"map 1e{digits}",
                name,
                MAP_SETUP,
                torch,
                numpy,
                10**digits,
                FASTER if name in FAST else NO_SLOWER,
            )
            for digits in (5, 6, 7)
            for name, torch, numpy in MAPS
        ),
        *(
            Case("map 2e5", name, MAP_SETUP, torch, numpy, 200_000, FASTER if name in FAST else NO_SLOWER)
            for name, torch, numpy in TRANSCENDENTAL
        ),
        *squares(),
        *files(),
        *training(),
        Case(
            "loop",
            "s += t[i], float64",
            "t = torch.rand(n, dtype=torch.float64)",
            loop,
            n=100_000,
            target=NEARLY_AS_FAST,
            deferrable=False,
        ),
    ]
