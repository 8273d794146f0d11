# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from .join import Join as Join
from .join import JoinHook as JoinHook
from .join import Joinable as Joinable
from . import ddp_comm_hooks as ddp_comm_hooks
from . import join as join
from . import model_averaging as model_averaging
