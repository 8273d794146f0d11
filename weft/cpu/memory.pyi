# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, no-redef"
from ..compat.torch.cpu.memory import *
