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
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_like_pytorch(expression):
    check(expression)
