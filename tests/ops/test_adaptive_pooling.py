import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from images import images
from oracle import check

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@settings(max_examples=60, deadline=None)
@given(images(), st.integers(1, 4))
def test_adaptive_windows(image, size):
    n, x = image
    check(f"{F}adaptive_avg_pool{n}d", x, size)
    check(f"{F}adaptive_max_pool{n}d", x, size, return_indices=True)
