import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import DTYPES, check, tensors

VALUES = (
    0,
    1,
    -1,
    2.5,
    True,
    300,
    -300,
    2**40,
    1e300,
    float("inf"),
    float("nan"),
    1j,
    1 + 0j,
    -(2**63),
    2**63,
)


@pytest.mark.may_raise(least=0.65)
@settings(max_examples=300, deadline=None)
@given(tensors(dtypes=DTYPES, expanded=False), st.sampled_from(VALUES))
def test_fill_with_numbers(base, value):
    check(lambda lib, b: b.clone().fill_(value), base)


@pytest.mark.refuses(2)
@pytest.mark.filterwarnings("ignore")
def test_fill_with_tensors_and_zero():
    base = torch.ones(2, 3)
    check(lambda lib, b: lib.fill(b, lib.tensor(2)), base)
    check(lambda lib, b: b.fill_(lib.tensor([2.0])), base)
    check(lambda lib, b: b.fill_("a"), base)
    check(lambda lib, b: (b[:, ::2].zero_(), b), base)
