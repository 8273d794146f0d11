"""PyTorch without what only costs time in tests.

python tests/quick_torch.py script.py [argument ...]    runs a script so

For every kind of device that may be asked for later, `torch.manual_seed` keeps the call stack as text: 1.2 ms below pytest (AMD Zen 3).
"""

import runpy
import sys
from pathlib import Path

import torch

if not torch.cuda.is_available():
    for devices in (torch.cuda.random, torch.xpu.random, torch.mtia):
        devices._lazy_call = lambda callable, **options: None


def op_db() -> list:
    """PyTorch's table of operations.

    For every list of samples PyTorch searches the call stack for the test that asks for it: 0.23 s below pytest (AMD Zen 3).
    """
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo import core

    common_utils.extract_test_fn = core.extract_test_fn = lambda: None
    return op_db


if __name__ == "__main__":
    op_db()
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
