"""PyTorch quantizes with FBGEMM, whose integers weft's are, and its sums are exact on every processor."""

import pytest
import torch
from exact_quantized import exact_layers  # noqa: F401 (a fixture)


@pytest.fixture(autouse=True)
def fbgemm(exact_layers):  # noqa: F811 (the fixture above)
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm"
    yield
    torch.backends.quantized.engine = before
