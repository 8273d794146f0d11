"""`torch.distributed.tensor`: tensors that lie on several processes."""

from ...compat.missing import module_getattr
from ..device_mesh import DeviceMesh, init_device_mesh
from ._api import DTensor, distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from .placement_types import Partial, Placement, Replicate, Shard

__getattr__ = module_getattr(__name__, lazy=("parallel",))
