"""Views with drawn shapes, strides and values, and the comparison of a device with the CPU.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import os

from hypothesis import strategies as st

import weft

HERE = os.environ.get("TESTED_DEVICE", "reference:0")
STEP = int(os.environ.get("TESTED_STEP", "1"))  # TESTED_STEP=3 takes a third of the examples
FLOATS = (weft.float32, weft.float64, weft.float16, weft.bfloat16)
INTEGERS = (weft.int64, weft.int32, weft.int8, weft.uint8)
SPECIAL = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.0, -1.5, 60000.0)

SIZES = st.one_of(st.integers(0, 5), st.sampled_from([17, 300]))
SHAPES = st.lists(SIZES, max_size=3).filter(lambda shape: weft.Size(shape).numel() <= 2000)
# Views of a tensor with twice the size in each dim, from which each takes one of the wanted shape.
LAYOUTS = {
    "the first": lambda whole, shape: whole[tuple(slice(size) for size in shape)],
    "every second": lambda whole, shape: whole[(slice(None, None, 2),) * len(shape)],
    "odd offset": lambda whole, shape: whole[tuple(slice(size, None) for size in shape)],
    "contiguous": lambda whole, shape: whole[tuple(slice(size) for size in shape)].contiguous(),
    "column-major": lambda whole, shape: (
        whole[tuple(slice(size) for size in shape)]
        .permute(*reversed(range(len(shape))))
        .contiguous()
        .permute(*reversed(range(len(shape))))
    ),
    "expanded": lambda whole, shape: whole[(slice(1),) * len(shape)].expand(shape),
}


@st.composite
def operands(draw, dtypes, count=1, shapes=SHAPES):
    """The wanted shape, the tensors on the CPU, and a function that gives their views on a device."""
    shape, dtype = draw(shapes), draw(st.sampled_from(dtypes))
    wholes = [whole(draw, [2 * size for size in shape], dtype) for _ in range(count)]
    layouts = [draw(st.sampled_from(sorted(LAYOUTS))) for _ in range(count)]

    def on(where):
        return [LAYOUTS[layout](each.to(where), shape) for each, layout in zip(wholes, layouts, strict=True)]

    return shape, on


def whole(draw, shape, dtype):
    generator = weft.Generator().manual_seed(draw(st.integers(0, 1000)))
    if not dtype.is_floating_point:
        return weft.randint(-100, 100, shape, generator=generator).to(dtype)
    values = weft.randn(shape, generator=generator) * 4
    for place in draw(st.lists(st.integers(0, 10**6), max_size=4)):
        if values.numel():
            values.view(-1)[place % values.numel()] = draw(st.sampled_from(SPECIAL))
    return values.to(dtype)


def check(function, on, exactly=True):
    """The function gives the same results of the views on the CPU and on the device."""
    expected, results = function(*on("cpu")), function(*on(HERE))
    if isinstance(expected, weft.Tensor):
        expected, results = (expected,), (results,)
    for result, wanted in zip(results, expected, strict=True):
        assert result.device == weft.device(HERE)
        assert (result.dtype, result.stride()) == (wanted.dtype, wanted.stride())
        # XLA computes a product and a sum by one instruction, and subnormal numbers as 0.
        tolerance = {"rtol": 0, "atol": 0} if exactly and not HERE.startswith("xla") else {}
        weft.testing.assert_close(result.cpu(), wanted, equal_nan=True, **tolerance)
