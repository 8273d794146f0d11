"""Devices: where tensors live, and how devices are named."""

import pytest
from alike import same
from expressions import check, lines

# A tensor on a device of which there is only one drops the index that the caller names.
PLACES = """
torch.empty(0, device="cpu:3").device
torch.zeros(2, device=torch.device("cpu", 1)).device.index
torch.tensor([1], device="cpu:1").device
torch.full((2,), 1, device="cpu:1")
torch.arange(2, device="cpu:1")
torch.linspace(0, 1, 3, device="cpu:1")
torch.eye(2, device="meta:1").device
torch.randperm(2, device="meta:1").device
torch.zeros_like(torch.ones(2), device="cpu:1")
torch.ones(1).new_zeros(2, device="cpu:2")
torch.as_tensor([1.0], device="cpu:2")
torch.ones(2).to("cpu:1").device
torch.ones(2).to("meta:7").device
torch.UntypedStorage(4, device="cpu:1").device
torch.Generator("cpu:1").device
torch.nn.Linear(1, 1, device="cpu:1").weight.device
torch.nn.Linear(1, 1).to("cpu:1").weight.device
torch.fft.fftfreq(3, device="cpu:1").device
torch.hann_window(3, device="cpu:1").device
torch.tril_indices(2, 2, device="cpu:1").device
torch.empty_strided((2,), (1,), device="cpu:1").device
torch.asarray([1.0], device="cpu:1").device
(lambda a: a.to("cpu:1") is a)(torch.ones(2))
(lambda a: a.to("cpu") is a)(torch.ones(2))
torch.device("cpu:3")
torch.device("meta", 1).index
torch.device("cpu:3") == torch.device("cpu")
"""


@pytest.mark.parametrize("expression", lines(PLACES))
def test_tensors_drop_the_index_of_a_single_device(expression):
    check(expression)


def test_default_device_keeps_its_index():
    def program(lib):
        try:
            lib.set_default_device("cpu:1")
            found = [lib.get_default_device(), lib.empty(1).device, lib.arange(2).device]
            with lib.device("meta:2"):
                found += [lib.get_default_device(), lib.zeros(2).device, lib.tensor([1]).device]
            return [*found, lib.get_default_device()]
        finally:
            lib.set_default_device(None)

    same(program)


def test_devices_travel_with_their_index():
    def program(lib):
        import copy
        import pickle

        named = lib.device("cpu:3")
        return copy.deepcopy(named), pickle.loads(pickle.dumps(named))

    same(program)
