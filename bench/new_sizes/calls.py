"""One call at a time: the first with its sizes, after the operation was warmed up on others, and the next nine with the same."""

import random
from collections.abc import Callable
from typing import Any

from bench.new_sizes.setting import MEASURED, Measured, Setting

# fmt: off
CALLS = [  # name           inputs                                           call
    ("add",                "rand(r, c), rand(r, c)",                         "x + y"),
    ("mul, broadcast",     "rand(r, c), rand(c)",                            "x * y"),
    ("mul, transposed",    "rand(c, r), rand(r, c)",                         "x.t() * y"),
    ("exp",                "rand(r, c),",                                    "x.exp()"),
    ("where",              "rand(r, c) > 0.5, rand(r, c), rand(r, c)",       "torch.where(x, y, z)"),
    ("less",               "rand(r, c), rand(r, c)",                         "x < y"),
    ("to float64",         "rand(r, c),",                                    "x.to(torch.float64)"),
    ("copy_",              "rand(r, c), rand(r, c)",                         "x.copy_(y)"),
    ("clone",              "rand(r, c),",                                    "x.clone()"),
    ("contiguous of t()",  "rand(c, r),",                                    "x.t().contiguous()"),
    ("sum dim 0",          "rand(r, c),",                                    "x.sum(0)"),
    ("sum dim 1",          "rand(r, c),",                                    "x.sum(1)"),
    ("mean",               "rand(r, c),",                                    "x.mean()"),
    ("max",                "rand(r, c),",                                    "x.max()"),
    ("argmax",             "rand(r, c),",                                    "x.argmax(1)"),
    ("cumsum",             "rand(r, c),",                                    "x.cumsum(1)"),
    ("sort",               "rand(r, c),",                                    "x.sort(1)"),
    ("topk",               "rand(r, c),",                                    "x.topk(2, 1)"),
    ("softmax",            "rand(r, c),",                                    "F.softmax(x, 1)"),
    ("log_softmax",        "rand(r, c),",                                    "F.log_softmax(x, 1)"),
    ("layer_norm",         "rand(r, c), rand(c), rand(c)",                   "F.layer_norm(x, y.shape, y, z)"),
    ("rms_norm",           "rand(r, c), rand(c)",                            "F.rms_norm(x, y.shape, y)"),
    ("gelu",               "rand(r, c),",                                    "F.gelu(x)"),
    ("relu",               "rand(r, c),",                                    "torch.relu(x)"),
    ("linear",             "rand(r, c), rand(8, c), rand(8)",                "F.linear(x, y, z)"),
    ("matmul",             "rand(r, c), rand(c, r)",                         "x @ y"),
    ("bmm",                "rand(3, r, c), rand(3, c, 4)",                   "torch.bmm(x, y)"),
    ("cat",                "rand(r, c), rand(r, c)",                         "torch.cat([x, y])"),
    ("stack",              "rand(r, c), rand(r, c)",                         "torch.stack([x, y], 1)"),
    ("pad",                "rand(r, c),",                                    "F.pad(x, (1, 2))"),
    ("x[1:]",              "rand(r, c),",                                    "x[1:]"),
    ("x[:, None]",         "rand(r, c),",                                    "x[:, None]"),
    ("reshape",            "rand(r, c),",                                    "x.reshape(-1)"),
    ("transpose",          "rand(r, c),",                                    "x.transpose(0, 1)"),
    ("narrow",             "rand(r, c),",                                    "x.narrow(1, 1, x.shape[1] - 1)"),
    ("index_select",       "rand(r, c), integers(r, c)",                     "x.index_select(0, y)"),
    ("gather",             "rand(r, c), integers(c, r, c)",                  "x.gather(1, y)"),
    ("scatter_add",        "rand(r, c), integers(c, r, c), rand(r, c)",      "x.scatter_add(1, y, z)"),
    ("embedding",          "integers(r, c), rand(r, 8)",                     "F.embedding(x, y)"),
    ("masked_fill",        "rand(r, c), rand(r, c) > 0.5",                   "x.masked_fill(y, 0.0)"),
    ("cross_entropy",      "rand(r, c), integers(c, r)",                     "F.cross_entropy(x, y)"),
    ("attention",          "rand(1, 2, r, c), rand(1, 2, r, c), rand(1, 2, r, c)", "F.scaled_dot_product_attention(x, y, z)"),
    ("conv1d",             "rand(1, r, c), rand(4, r, 3)",                   "F.conv1d(x, y, padding=1)"),
    ("max_pool2d",         "rand(1, 3, r, c),",                              "F.max_pool2d(x, 2)"),
    ("zeros",              "r, c",                                           "torch.zeros(x, y)"),
    ("arange",             "r * c,",                                         "torch.arange(x)"),
]
# fmt: on
FIRST, AGAIN = "first", "again"

LARGEST = 48  # of a dimension
SIZES, WARM_UP = 40, 8  # of one call: those that are measured, and those that warm it up
REPETITIONS = 9
Sizes = list[tuple[int, int]]


def measure(setting: Setting) -> Measured:
    """Seconds of one call of each operation: "first/<name>" and "again/<name>"."""
    measured = Measured({}, [], {})
    calls = prepared(setting, measured)
    for name, (call, inputs) in calls.items():
        measured.values[f"{FIRST}/{name}"], _ = setting.seconds(call, inputs)
        measured.values[f"{AGAIN}/{name}"], _ = setting.seconds(call, inputs * REPETITIONS)
    return measured


def prepared(setting: Setting, measured: Measured) -> dict[str, tuple[Callable, list[Any]]]:
    """Each call and its inputs; all calls are warm before the first one is measured. A call that fails is an error."""
    calls = {}
    for index, (name, inputs, call) in enumerate(CALLS):
        try:
            make, run = functions(setting.torch, inputs, call)
            sizes = sizes_of(index, setting.part)
            setting.seconds(run, [make(*size) for size in sizes[:WARM_UP]] * 3)
            calls[name] = run, [make(*size) for size in sizes[WARM_UP:][: setting.count(SIZES)]]
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            measured.errors.update({f"{FIRST}/{name}": message, f"{AGAIN}/{name}": message})
    return calls


def functions(
    torch: Any, inputs: str, call: str
) -> tuple[Callable[[int, int], tuple], Callable[[tuple], Any]]:
    """A function that makes the inputs of a size, and one that runs the call on them."""
    names = {
        "torch": torch,
        "F": torch.nn.functional,
        "rand": torch.rand,
        "integers": lambda high, *shape: torch.randint(0, high, shape),
    }
    make = eval(f"lambda r, c: ({inputs})", names)
    run = eval(f"lambda x, y=None, z=None: {call}", names)
    return make, lambda given: run(*given)


def sizes_of(index: int, part: int) -> Sizes:
    """Numbers of rows and columns for a call. In one process all calls have different ones, as a call has in two parts."""
    pairs = [(r, c) for r in range(2, LARGEST + 2) for c in range(3, LARGEST + 3)]
    random.Random(0).shuffle(pairs)
    length = SIZES + WARM_UP
    place = (index + (part == MEASURED)) % (len(pairs) // length)
    return pairs[place * length :][:length]
