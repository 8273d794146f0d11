"""Batches of elementwise ops promote as their samples do, not as the batches would."""

import pytest
import torch

import weft


@pytest.mark.parametrize(
    "sample, other", [("float64", "float32"), ("float32", "int64"), ("int64", "uint8"), ("float32", "bool")]
)
@pytest.mark.parametrize("name", ["mul", "add", "maximum"])
def test_samples_without_dims_decide_as_0_dim_tensors(name, sample, other):
    dtypes = []
    for lib in (torch, weft):
        x, y = lib.ones(3).to(getattr(lib, sample)), lib.ones(4).to(getattr(lib, other))
        result = lib.vmap(lambda a: getattr(lib, name)(a, y))(x)  # noqa: B023 (called at once)
        dtypes.append((str(result.dtype), tuple(result.shape)))
    assert dtypes[0] == dtypes[1]
