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
torch.xpu.init()  # raises
torch.xpu.current_device()  # raises
torch.xpu.set_device(0)  # raises
torch.xpu.current_stream()  # raises
torch.xpu.mem_get_info()  # raises
torch.xpu.get_device_properties()  # raises
torch.xpu.get_device_capability()  # raises
torch.xpu.can_device_access_peer(0, 1)  # raises
torch.xpu.initial_seed()  # raises
torch.xpu.get_rng_state()  # raises
torch.xpu.seed(), torch.xpu.manual_seed(1), torch.xpu.set_rng_state(torch.zeros(3)), torch.xpu.get_rng_state_all()
torch.xpu.memory_stats(), torch.xpu.memory_stats_as_nested_dict(), torch.xpu.memory_snapshot()
torch.xpu.set_stream(None), torch.xpu.is_initialized(), torch.xpu.is_bf16_supported(), torch.xpu.is_tf32_supported()
torch.xpu.get_arch_list(), torch.xpu.get_gencode_flags(), torch.accelerator.is_available(), torch.accelerator.device_count()
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_like_pytorch(expression):
    check(expression)
