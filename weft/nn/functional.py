"""weft.nn.functional has the functions of neural networks."""

from __future__ import annotations

from typing import Any

from ..compat.missing import module_getattr
from ..core.names import name_public
from ..core.registry import namespace
from ..ops.linalg.scaled_matmul import ScalingType as ScalingType
from ..ops.linalg.scaled_matmul import SwizzleType as SwizzleType
from ..ops.reductions.softmax import _get_softmax_dim as _get_softmax_dim
from ._projection import (  # noqa: F401 (other libraries import these from here)
    _canonical_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
    _verify_batch_size,
)

globals().update(namespace("nn.functional"))
name_public(__name__)

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Raise AssertionError(message) unless `arg` is an int or has two elements; `{}` in it stands for `arg_name`."""
    assert isinstance(arg, int) or len(arg) == 2, message.format(arg_name)


__getattr__ = module_getattr(__name__)
from . import grad as grad  # noqa: E402 (which uses the functions of this module)
