"""Prints digests of what weft computes, by call.

Run by test_processors.py, in processes of its own: kernels are compiled for one processor in each.
"""

import hashlib

import numpy as np

import weft as torch

UNARY = """
abs neg sign floor ceil round trunc frac sqrt rsqrt reciprocal square exp exp2 expm1 log log2 log10 log1p sin cos tan sinh
cosh tanh asin acos atan asinh acosh atanh erf erfc erfinv sigmoid lgamma digamma isnan isfinite logical_not relu
sum mean prod amax amin argmax cumsum sort softmax var logsumexp nansum any count_nonzero clone flip
""".split()
BINARY = "add sub mul div true_divide maximum minimum fmod remainder pow atan2 eq lt ge logical_and copysign hypot where".split()
DTYPES = (
    "float16 bfloat16 float32 float64 int8 uint8 int16 int32 int64 bool complex64 complex128 float8_e4m3fn float8_e5m2"
).split()


def report(name, result):
    for k, each in enumerate(result if isinstance(result, tuple) else (result,)):
        values = each.reshape(-1).view(torch.uint8) if each.dtype is not torch.bool else each
        print(f"{name}[{k}]", hashlib.sha256(np.ascontiguousarray(values.numpy()).tobytes()).hexdigest()[:16])


def attempt(name, compute):
    try:
        report(name, compute())
    except (RuntimeError, TypeError, NotImplementedError) as error:
        print(name, type(error).__name__)


halves = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(torch.float16)
singles = halves.to(torch.float32)
report("half to single", singles)
report("half to double", halves.to(torch.float64))
report("half to int", halves.to(torch.int32))
report("half to bool", halves.to(torch.bool))
report("half to bfloat16", halves.to(torch.bfloat16))
report("single to half", singles.to(torch.float16))
# Every tie between two halves, its neighbours, and NaN with all kinds of payloads.
bits = np.arange(0, 2**32, 2**12, dtype=np.uint64)
near = torch.tensor(np.concatenate([bits, bits + 1, bits + 0xFFF]).astype(np.uint32).view(np.int32)).view(
    torch.float32
)
report("near ties", near.to(torch.float16))
report("double to half", (near.to(torch.float64) * (1 + 2.0**-40)).to(torch.float16))
report("int to half", torch.arange(-70000, 70000).to(torch.float16))
for dtype in DTYPES:
    kind = getattr(torch, dtype)
    torch.manual_seed(0)
    a = (torch.randn(13, 21) * 3).to(kind)
    b = (torch.randn(13, 21) * 3).to(kind)
    for name in UNARY if dtype == "float16" else UNARY[::9]:
        function = getattr(torch, name)
        more = {
            "argmax": (1,),
            "cumsum": (0,),
            "softmax": (1,),
            "logsumexp": (0,),
            "flip": ((0,),),
            "amax": (0,),
        }.get(name, ())
        attempt(f"{name} {dtype}", lambda: function(a, *more))  # noqa: B023
    for name in BINARY if dtype == "float16" else BINARY[::5]:
        function = getattr(torch, name)
        first = (a != 0,) if name == "where" else ()
        attempt(f"{name} {dtype}", lambda: function(*first, a.t(), b.t()))  # noqa: B023
    attempt(f"matmul {dtype}", lambda: a @ b.t())  # noqa: B023
    attempt(f"conv {dtype}", lambda: torch.conv2d(a[None, None], b[None, None, :5, :4]))  # noqa: B023
    attempt(f"rand {dtype}", lambda: torch.rand(50, dtype=kind))  # noqa: B023
    attempt(f"scatter {dtype}", lambda: a.index_add(0, torch.tensor([0, 0, 5]), b[:3]))  # noqa: B023
    attempt(f"index {dtype}", lambda: a[torch.tensor([3, 1]), 2:].masked_fill(b[:2, 2:] != 0, 1))  # noqa: B023
for dtype in (torch.float32, torch.float64):
    a, b = torch.randn(31, 300, dtype=dtype), torch.randn(300, 53, dtype=dtype)
    for rows in (4, 9, 31):
        report(f"product of {rows} rows {dtype}", a[:rows] @ b)
        report(f"product of {rows} transposed rows {dtype}", a.t().contiguous().t()[:rows] @ b)
report("half sum", halves[halves.isfinite()].sum())
report("half product", torch.randn(40, 30).half() @ torch.randn(30, 20).half())
