"""Images in other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import float32
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


@translates("affine_grid", "affine_grid_generator")
def affine_grid(b: Builder, theta: Any, size: Any, align_corners: Any = None) -> str:
    sizes = [int(each) for each in size[2:]]
    axes = [np.linspace(-1, 1, each) if each > 1 else np.zeros(1) for each in sizes]
    if not align_corners:
        axes = [axis * (each - 1) / each for axis, each in zip(axes, sizes)]
    grids = np.meshgrid(*axes, indexing="ij")[::-1]  # x, y, z: the last dimension first
    places = np.stack([each.reshape(-1) for each in (*grids, np.ones(sizes))], 0)
    base = b.constant(places.astype(np.float32), np.float32)
    found = b.op("MatMul", b.tensor(theta, float32), base)  # [N, dims, dims + 1] @ [dims + 1, points]
    found = b.op("Transpose", found, perm=[0, 2, 1])
    return b.cast(b.reshape(found, [b.size_of(theta, 0), *sizes, len(sizes)]), b.result().dtype)
