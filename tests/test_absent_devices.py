"""What `torch.cpu` and `torch.accelerator` say, and PyTorch's names for streams and memory of devices that are not there."""

import pytest
from expressions import check, lines

EXPRESSIONS = """
torch.cpu.is_available(), torch.cpu.is_initialized(), torch.cpu.device_count(), torch.cpu.current_device()
torch.cpu.synchronize(), torch.cpu.set_device('cpu')
torch.cpu.current_stream().__class__.__name__
torch.cpu.Stream().wait_stream(torch.cpu.Stream()), torch.cpu.Event().query()
torch.cpu.stream(torch.cpu.Stream()).__enter__()
torch.accelerator.is_available(), torch.accelerator.device_count(), torch.accelerator.current_accelerator()
torch.accelerator.current_stream()  # raises
torch.accelerator.empty_cache()  # raises
torch.accelerator.memory_allocated()  # raises
torch.accelerator.memory.memory_stats(0)  # raises
torch.accelerator.set_device_index(0)  # raises
torch.accelerator.set_device_idx(0)  # raises
torch.accelerator.device_index(None).__enter__()
torch.accelerator.get_device_capability()  # raises
torch.accelerator.synchronize()  # raises
torch.accelerator.set_stream(torch.Stream())  # raises
torch.accelerator.Graph()  # raises
torch.ones(2).untyped_storage().pin_memory()  # raises
torch.FloatStorage([1.], dtype=torch.float64)  # raises
torch.return_types.topk((1, 2))
torch.return_types.max_out((1, 2))
torch.topk(torch.ones(2), 1).__class__ is torch.return_types.topk
torch.sort(torch.ones(2)).__class__ is torch.return_types.sort
len(torch.return_types.all_return_types) > 60
torch.return_types.pytree_register_structseq(torch.return_types.topk)  # raises
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_like_pytorch(expression):
    check(expression)
