import pytest
import torch

import weft


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["_standard_gamma", "_sample_dirichlet"])
def test_the_bits_are_those_of_pytorch(name, dtype):
    shapes = torch.linspace(0.0, 30.0, 300, dtype=getattr(torch, dtype)).reshape(100, 3)
    ours = weft.from_numpy(shapes.numpy().copy())
    torch.manual_seed(3), weft.manual_seed(3)
    torch.randn(1), weft.randn(1)  # leaves a second normal to start with
    expected = getattr(torch, name)(shapes)
    assert getattr(weft, name)(ours).tolist() == expected.tolist()
    assert weft.randn(1).item() == torch.randn(1).item()


@pytest.mark.parametrize("name", ["_standard_gamma", "_sample_dirichlet"])
def test_a_device_without_memory(name):
    found = getattr(weft, name)(weft.ones(3, 2, device="meta").t())
    assert (found.shape, found.stride(), found.device.type) == ((2, 3), (3, 1), "meta")


def test_what_has_no_samples_is_refused():
    with pytest.raises(NotImplementedError, match="gamma_cpu"):
        weft._standard_gamma(weft.ones(2, dtype=weft.int64))
