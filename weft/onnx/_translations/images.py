"""Images in other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._builder import Builder
from .base import per_dim, translates


@translates("interpolate", "upsample")
def interpolate(
    b: Builder, input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None, antialias: bool = False,
) -> str:  # fmt: skip
    kinds = {
        "nearest": "nearest",
        "bilinear": "linear",
        "linear": "linear",
        "trilinear": "linear",
        "bicubic": "cubic",
    }
    if mode not in kinds:
        raise NotImplementedError(f"interpolate with mode={mode!r}")
    count = b.meta(input).dim() - 2
    places = "asymmetric" if mode == "nearest" else ("align_corners" if align_corners else "half_pixel")
    options: dict[str, Any] = {"mode": kinds[mode], "coordinate_transformation_mode": places, "nearest_mode": "floor",
               "cubic_coeff_a": -0.75, "antialias": int(antialias)}  # fmt: skip
    if size is not None:
        sizes = b.ints([*b.sizes_of(input)[:2], *per_dim(size, count)])
        return b.op("Resize", b.tensor(input), "", "", sizes, **options)
    scales = b.constant([1.0, 1.0, *(float(each) for each in per_dim(scale_factor, count))], np.float32)
    return b.op("Resize", b.tensor(input), "", scales, **options)


@translates("grid_sample", "grid_sampler")
def grid_sample(
    b: Builder,
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: Any = None,
) -> str:
    kinds = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
    names = kinds if b.opset >= 20 else {each: each for each in kinds}
    return b.op("GridSample", b.tensor(input), b.tensor(grid), mode=names[mode], padding_mode=padding_mode,
                align_corners=int(bool(align_corners)))  # fmt: skip
