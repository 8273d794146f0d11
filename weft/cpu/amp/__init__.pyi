# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, override, misc, no-redef"
from weft.compat.torch.cpu.amp.grad_scaler import GradScaler as GradScaler
from weft.compat.torch.cpu.amp.autocast_mode import autocast as autocast
from . import autocast_mode as autocast_mode
from . import grad_scaler as grad_scaler
from ...compat.torch.cpu.amp import *
