# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from ._api import DTensor as DTensor
from weft.distributed.device_mesh import DeviceMesh as DeviceMesh
from .placement_types import Partial as Partial
from .placement_types import Placement as Placement
from .placement_types import Replicate as Replicate
from .placement_types import Shard as Shard
from ._api import distribute_module as distribute_module
from ._api import distribute_tensor as distribute_tensor
from ._api import empty as empty
from ._api import full as full
from weft.distributed.device_mesh import init_device_mesh as init_device_mesh
from ._api import ones as ones
from . import parallel as parallel
from ._api import rand as rand
from ._api import randn as randn
from ._api import zeros as zeros
