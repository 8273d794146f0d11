"""Boxes: which of those that overlap stay."""

from __future__ import annotations

import numpy as np

from ..core.dtype import float32, float64, int64
from ..core.tensor import Tensor
from ..engine.suppression import suppression_code
from ..families.library import array, tensor_of


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The positions of the boxes that stay, by falling score: a box goes if it overlaps one that stays by more than the threshold.

    Shapes: dets [K, 4], rows of (x1, y1, x2, y2), scores [K] -> int64 [at most K].
    """
    if dets.spec.ndim != 2:
        raise RuntimeError(f"boxes should be a 2d tensor, got {dets.spec.ndim}D")
    if dets.spec.shape[1] != 4:
        raise RuntimeError(f"boxes should have 4 elements in dimension 1, got {dets.spec.shape[1]}")
    if scores.spec.ndim != 1:
        raise RuntimeError(f"scores should be a 1d tensor, got {scores.spec.ndim}D")
    if dets.spec.shape[0] != scores.spec.shape[0]:
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{dets.spec.shape[0]} and {scores.spec.shape[0]}"
        )
    if dets.spec.dtype is not scores.spec.dtype:
        raise RuntimeError(
            f"dets should have the same type as scores, but got {dets.spec.dtype} and {scores.spec.dtype}"
        )
    if dets.spec.dtype not in (float32, float64):
        raise NotImplementedError(f"\"nms_kernel\" not implemented for '{dets.spec.dtype}'")
    order = array(scores.detach().sort(stable=True, descending=True).indices)
    boxes = np.empty((5, len(order)), array(dets).dtype)
    boxes[:4] = array(dets)[order].T
    x1, y1, x2, y2, area = boxes
    np.multiply(x2 - x1, y2 - y1, out=area)
    suppressed = np.zeros(len(order), np.uint8)
    # The threshold is compared in the type of the boxes' overlaps, rounded down, which is what a comparison with a double does.
    threshold = np.array([_rounded_down(iou_threshold, boxes.dtype)], boxes.dtype)
    count = np.array([len(order)], np.int64)
    suppression_code(dets.spec.dtype).entry(
        suppressed.ctypes.data, boxes.ctypes.data, threshold.ctypes.data, count.ctypes.data, 1
    )
    return tensor_of(order[suppressed == 0], int64)


def _rounded_down(value: float, dtype: np.dtype) -> np.floating:
    """The greatest number of a dtype that is not above `value`."""
    found = dtype.type(value)
    return np.nextafter(found, dtype.type(-np.inf)) if float(found) > value else found
