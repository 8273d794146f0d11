import pytest
import torch

import weft

EIGHT = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz")


def operands(lib, kind="float8_e4m3fn"):
    torch.manual_seed(0)
    x, y = torch.randn(16, 32), torch.randn(48, 32)
    dtype = getattr(lib, kind)
    return lib.tensor(x.numpy()).to(dtype), lib.tensor(y.numpy()).to(dtype).t()


def one(lib, value=1.0):
    return lib.tensor(value)


CALLS = {
    "float8": lambda lib, a, b: lib._scaled_mm(a, b, one(lib), one(lib, 0.5)),
    "float32": lambda lib, a, b: lib._scaled_mm(a, b, one(lib), one(lib, 0.3), out_dtype=lib.float32),
    "bfloat16": lambda lib, a, b: lib._scaled_mm(a, b, one(lib, 3.0), one(lib, 0.3), out_dtype=lib.bfloat16),
    "float16": lambda lib, a, b: lib._scaled_mm(a, b, lib.ones(1, 1), lib.ones(1), out_dtype=lib.float16),
    "rows": lambda lib, a, b: lib._scaled_mm(
        a, b, lib.arange(16.0).reshape(16, 1) / 8, lib.arange(48.0).reshape(1, 48) / 7, out_dtype=lib.bfloat16
    ),
    "bias": lambda lib, a, b: lib._scaled_mm(
        a, b, one(lib), one(lib, 0.5), bias=lib.arange(48.0).to(lib.bfloat16), out_dtype=lib.bfloat16
    ),
    "scale of the result": lambda lib, a, b: lib._scaled_mm(
        a, b, one(lib), one(lib, 0.5), scale_result=one(lib, 2.0)
    ),
    "ignored scale of the result": lambda lib, a, b: lib._scaled_mm(
        a, b, one(lib), one(lib, 0.5), scale_result=one(lib, 2.0), out_dtype=lib.bfloat16
    ),
    "recipes": lambda lib, a, b: lib.nn.functional.scaled_mm(
        a,
        b,
        one(lib),
        lib.nn.functional.ScalingType.TensorWise,
        [one(lib)],
        [lib.nn.functional.ScalingType.TensorWise],
    ),
}


@pytest.mark.parametrize("kind", EIGHT)
@pytest.mark.parametrize("name", CALLS)
def test_values(name, kind):
    own, reference = (CALLS[name](lib, *operands(lib, kind)) for lib in (weft, torch))
    assert str(own.dtype) == str(reference.dtype) and tuple(own.shape) == tuple(reference.shape)
    found = torch.tensor(own.float().numpy())
    # One rounding apart where float32 sums differ in their last bit.
    spacing = {"float8": 0.13, "bfloat16": 8e-3, "float16": 1e-3, "float32": 1e-5}[
        str(own.dtype).split(".")[1].split("_")[0]
    ]
    assert torch.allclose(found, reference.float(), rtol=spacing, atol=1e-4)
    assert (found != reference.float()).float().mean() < 0.05 or reference.dtype is torch.float32


WRONG = {
    "float32 matrices": lambda lib, a, b: lib._scaled_mm(a.float(), b.float(), one(lib), one(lib)),
    "scales of rows that do not fit": lambda lib, a, b: lib._scaled_mm(a, b, lib.ones(16, 1), lib.ones(1, 8)),
    "integer scale": lambda lib, a, b: lib._scaled_mm(a, b, lib.tensor(1), one(lib)),
    "two scales": lambda lib, a, b: lib._scaled_mm(a, b, lib.ones(2), one(lib)),
    "sizes": lambda lib, a, b: lib._scaled_mm(a[:, :16], b, one(lib), one(lib)),
    "three dims": lambda lib, a, b: lib._scaled_mm(a[None], b, one(lib), one(lib)),
    "bias": lambda lib, a, b: lib._scaled_mm(a, b, one(lib), one(lib), bias=lib.ones(4)),
    "blocks": lambda lib, a, b: lib.nn.functional.scaled_mm(
        a, b, lib.ones(16, 2), lib.nn.functional.ScalingType.BlockWise1x16, lib.ones(2, 48),
        lib.nn.functional.ScalingType.BlockWise1x16,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    with pytest.raises((RuntimeError, ValueError)) as reference:
        WRONG[name](torch, *operands(torch))
    with pytest.raises(reference.type):
        WRONG[name](weft, *operands(weft))
