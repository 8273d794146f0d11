"""Without an OpenCL GPU the device `xpu` raises PyTorch's error. `test_gpu.py` runs its kernels."""

import pytest
from expressions import check, lines

from weft.devices.xpu import device_count

pytestmark = pytest.mark.skipif(device_count() > 0, reason="this computer has a GPU of OpenCL")

EXPRESSIONS = """
torch.ones(2, device="xpu")  # raises
torch.ones(2, device="xpu:3")  # raises
torch.ones(2).to("xpu")  # raises
torch.ones(2).xpu()  # raises
torch.nn.Linear(2, 2).to("xpu")  # raises
torch.ones(2).is_xpu, torch.device("xpu", 1).index
torch.xpu.is_available(), torch.xpu.device_count(), torch.xpu.empty_cache()
torch.xpu.memory_allocated(), torch.xpu.max_memory_allocated(), torch.xpu.memory_reserved(), torch.xpu.max_memory_reserved()
torch.xpu.synchronize()  # raises
torch.xpu.get_device_name()  # raises
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_like_pytorch(expression):
    check(expression)
