# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .grad_scaler import GradScaler as GradScaler
from .common import amp_definitely_not_available as amp_definitely_not_available
from .autocast_mode import autocast as autocast
from . import autocast_mode as autocast_mode
from . import common as common
from .autocast_mode import custom_bwd as custom_bwd
from .autocast_mode import custom_fwd as custom_fwd
from . import grad_scaler as grad_scaler
