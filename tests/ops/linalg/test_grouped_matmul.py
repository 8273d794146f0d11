import pytest
import torch

import weft

OFFSETS = [2, 2, 6]
CASES = {
    "rows": ((6, 16), (3, 16, 8), OFFSETS),
    "contraction": ((5, 16), (16, 8), [4, 9, 16]),
    "columns": ((3, 5, 16), (16, 8), [4, 4, 8]),
    "stacks": ((3, 5, 16), (3, 16, 8), None),
}


def computed(lib, shapes, offsets, dtype, turned=False):
    torch.manual_seed(0)
    given = []
    for place, shape in enumerate(shapes):
        x = lib.tensor(torch.randn(shape).numpy()).to(getattr(lib, dtype))
        x = x.mT.contiguous().mT if turned and place else x
        given.append(x.detach().requires_grad_())
    offsets = offsets and lib.tensor(offsets, dtype=lib.int32)
    result = lib.nn.functional.grouped_mm(*given, offs=offsets)
    (result * result.detach()).backward(lib.ones_like(result))
    return [result, *[each.grad for each in given]]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, dtype, turned):
    *shapes, offsets = CASES[name]
    turned = turned and name == "rows"
    own, reference = (computed(lib, shapes, offsets, dtype, turned) for lib in (weft, torch))
    assert own[0].grad_fn.name() == reference[0].grad_fn.name()
    for mine, theirs in zip(own, reference, strict=True):
        assert tuple(mine.shape) == tuple(theirs.shape) and str(mine.dtype) == str(theirs.dtype)
        tolerance = 1e-5 if dtype == "float32" else 3e-2
        found = torch.tensor(mine.detach().float().numpy())
        assert torch.allclose(found, theirs.detach().float(), rtol=tolerance, atol=tolerance)


WRONG = {
    "no offsets": lambda lib, a, b, offs: (a, b, {}),
    "offsets of stacks": lambda lib, a, b, offs: (b.mT.contiguous(), b, {"offs": offs}),
    "offsets of another dtype": lambda lib, a, b, offs: (a, b, {"offs": offs.long()}),
    "offsets of two dims": lambda lib, a, b, offs: (a, b, {"offs": offs[None]}),
    "few offsets": lambda lib, a, b, offs: (a, b, {"offs": offs[:2]}),
    "bias": lambda lib, a, b, offs: (a, b, {"offs": offs, "bias": lib.zeros(8)}),
    "another dtype of the result": lambda lib, a, b, offs: (a, b, {"offs": offs, "out_dtype": lib.float16}),
    "contraction": lambda lib, a, b, offs: (a[:, :8], b, {"offs": offs}),
    "one dim": lambda lib, a, b, offs: (a[0], b, {"offs": offs}),
    "dtypes": lambda lib, a, b, offs: (a.bfloat16(), b, {"offs": offs}),
    "float64": lambda lib, a, b, offs: (a.double(), b.double(), {"offs": offs}),
    "gaps": lambda lib, a, b, offs: (a[:, ::2], b[:, ::2], {"offs": offs}),
    "odd strides": lambda lib, a, b, offs: (a[:, :3].contiguous(), b[:, :3], {"offs": offs}),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    messages = []
    for lib in (weft, torch):
        a, b, options = WRONG[name](
            lib, lib.ones(6, 16), lib.ones(3, 16, 8), lib.tensor(OFFSETS, dtype=lib.int32)
        )
        with pytest.raises(RuntimeError) as raised:
            lib.nn.functional.grouped_mm(a, b, **options)
        messages.append(str(raised.value))
    assert messages[0].startswith(messages[1])


def test_rows_beyond_the_last_group_are_zeros():
    """PyTorch leaves them as they come, and reads beyond the rows if an offset does."""
    a, b = weft.rand(8, 16), weft.rand(2, 16, 8)
    for last, full in ((5, 5), (12, 8)):
        found = weft.nn.functional.grouped_mm(a, b, offs=weft.tensor([3, last], dtype=weft.int32))
        expected = weft.cat([a[:3] @ b[0], a[3:full] @ b[1], weft.zeros(8 - full, 8)])
        weft.testing.assert_close(found, expected)
