import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import check, counting, tensors

import weft

pytestmark = pytest.mark.filterwarnings("ignore")


@settings(max_examples=100, deadline=None)
@given(st.data(), tensors(expanded=False, dtypes=("float32", "int64")), st.booleans())
def test_put(data, base, accumulate):
    count = base.numel()
    values = (
        st.lists(st.integers(-count, count - 1), max_size=5, unique_by=lambda i: i % count)
        if count
        else st.just([])
    )
    index = torch.tensor(data.draw(values), dtype=torch.int64)
    source = counting(index.shape, str(base.dtype).removeprefix("torch."))
    check(lambda lib, b, i, s: b.put(i, s, accumulate), base, index, source)
    check(lambda lib, b, i, s: b.put_(i, s, accumulate), base, index, source)


@pytest.mark.parametrize("accumulate", [True, False])
def test_gradients(accumulate):
    found = []
    for lib in (torch, weft):
        x = lib.arange(1.0, 7.0).reshape(2, 3).requires_grad_()
        source = lib.tensor([10.0, 20.0], requires_grad=True)
        y = x.put(lib.tensor([4, -6]), source, accumulate)
        z = (x * 1).put_(lib.tensor([1, 2]), source, accumulate)
        found.append([g.tolist() for g in lib.autograd.grad((y * y * z).sum(), (x, source))])
    assert found[1] == found[0]
