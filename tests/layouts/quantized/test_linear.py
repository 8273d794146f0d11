"""Linear layers of quantized tensors: the numbers of PyTorch's kernels, by the kernel and by elementwise steps.

PyTorch's sums depend on the processor, so tests/exact_quantized.py says what they must be. With small weights they are exact everywhere.
"""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from exact_quantized import SMALL_WEIGHT, exact
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from weft.layouts.quantized import linear, products
from weft.ops.elementwise.qparams import QParams

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")


@pytest.fixture(params=["kernel", "steps"], autouse=True)
def way(request, monkeypatch):
    if request.param == "steps":
        monkeypatch.setattr(products, "_in_lines", lambda integers, groups: None)


@pytest.fixture(params=["fbgemm", "onednn"])
def engine(request):
    if request.param not in torch.backends.quantized.supported_engines:
        pytest.skip(f"this PyTorch has no {request.param}")
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = request.param
    yield request.param
    torch.backends.quantized.engine = before


class Layer(NamedTuple):
    """A quantized linear layer in both libraries."""

    integers: np.ndarray
    scales: np.ndarray
    zero_points: np.ndarray
    bias: np.ndarray | None

    def torch(self):
        weight, scales, points = map(torch.from_numpy, self[:3])
        if len(scales) == 1:
            made = torch._make_per_tensor_quantized_tensor(weight, scales.item(), points.item())
        else:
            made = torch._make_per_channel_quantized_tensor(weight, scales, points, 0)
        return torch.ops.quantized.linear_prepack(
            made, None if self.bias is None else torch.from_numpy(self.bias)
        )

    def weft(self):
        points = np.broadcast_to(self.zero_points, len(self.integers)).copy()
        packed = products.pack(weft.from_numpy(self.integers), weft.from_numpy(points))
        scales = weft.from_numpy(self.scales.astype(np.float32))
        return packed, scales, None if self.bias is None else weft.from_numpy(self.bias)


def layer(random, terms, columns, engine):
    """One or several scales, powers of two in half of the cases; zero points, a bias and small integers, in half of the cases each."""
    own, shifted, biased, even, small = random.integers(0, 2, 5).astype(bool)
    count = columns if own and columns > 1 else 1
    scales = 2.0 ** random.integers(-9, -4, count) if even else random.uniform(1e-3, 1e-1, count)
    points = random.integers(-9, 10, count) * (shifted and engine != "onednn")
    bias = (random.standard_normal(columns) * 3).astype(np.float32) if biased else None
    ends = (-SMALL_WEIGHT, SMALL_WEIGHT + 1) if small else (-128, 128)
    integers = random.integers(*ends, (columns, terms)).astype(np.int8)
    return Layer(integers, scales, points.astype(np.int64), bias)


# The fixtures hold for all examples of a test.
EXAMPLES = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
sizes = st.tuples(st.integers(1, 20), st.integers(1, 70), st.integers(1, 70))


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1), sizes=sizes)
def test_linear(engine, seed, sizes):
    random = np.random.default_rng(seed)
    rows, terms, columns = sizes
    given_ = layer(random, terms, columns, engine)
    a = random.integers(0, 256, (rows, terms)).astype(np.uint8)
    by = QParams(float(random.choice([2.0**-6, 0.013])), int(random.integers(0, 256)))
    result = QParams(float(random.choice([0.25, 0.5, 1.7])), int(random.integers(0, 256)))
    relu = bool(seed % 2)
    call = exact["linear_relu" if relu else "linear"]
    quantized = torch._make_per_tensor_quantized_tensor(torch.from_numpy(a), *by)
    wanted = call(quantized, given_.torch(), *result).int_repr().numpy()
    found = linear.linear(weft.from_numpy(a), by, *given_.weft(), result, relu)
    assert found.dtype is weft.uint8
    np.testing.assert_array_equal(found.numpy(), wanted)


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1), sizes=sizes)
def test_linear_dynamic(engine, seed, sizes):
    random = np.random.default_rng(seed)
    rows, terms, columns = sizes
    given_ = layer(random, terms, columns, engine)
    values = (random.standard_normal((rows, terms)) * 3).astype(np.float32)
    reduced, relu = bool(seed & 2), bool(seed & 1)
    call = exact["linear_relu_dynamic" if relu else "linear_dynamic"]
    # Only fbgemm reduces the range of the input.
    reduced = reduced and engine == "fbgemm"
    wanted = call(torch.from_numpy(values), given_.torch(), reduced).numpy()
    found = linear.linear_dynamic(weft.from_numpy(values), *given_.weft(), reduced, relu)
    np.testing.assert_array_equal(found.numpy(), wanted)
