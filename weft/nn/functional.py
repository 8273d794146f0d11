"""weft.nn.functional: the functions of neural networks."""

from __future__ import annotations

from ..compat.missing import module_getattr
from ..core.names import name_public
from ..core.op import namespace
from ..ops.scaled_matmul import ScalingType as ScalingType
from ..ops.scaled_matmul import SwizzleType as SwizzleType

globals().update(namespace("nn.functional"))
name_public(__name__)

__getattr__ = module_getattr(__name__)
