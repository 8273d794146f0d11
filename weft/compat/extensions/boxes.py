"""Functions of boxes: non-maximum suppression and intersection over union."""

from __future__ import annotations

import numpy as np

from ...core.dtype import compute_type, float32, float64, int64
from ...core.tensor import Tensor
from ...engine.suppression import suppression_code
from ...families.array_op import array, tensor_of, wide_array
from .sampling import check_cpu

_FLAT = 1e-14  # boxes with a smaller area share nothing


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The positions of the boxes that stay, by falling score: a box goes if it overlaps one that stays by more than the threshold.

    Shapes: dets [K, 4], rows of (x1, y1, x2, y2), scores [K] -> int64 [at most K].
    """
    check_cpu("nms", dets, scores)
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


def box_iou_rotated(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Intersection over union of each of N boxes with each of M boxes, [N, M].

    Shapes: [N, 5] and [M, 5], rows of (x and y of the center, width, height, angle in degrees).
    """
    check_cpu("box_iou_rotated", boxes1, boxes2)
    for boxes in (boxes1, boxes2):
        if boxes.spec.ndim != 2 or boxes.spec.shape[1] != 5:
            raise RuntimeError(
                f"box_iou_rotated: boxes must be [N, 5], but got shape {list(boxes.spec.shape)}"
            )
    dtype = compute_type(boxes1.spec.dtype)
    first, second = (wide_array(boxes).astype(np.float64) for boxes in (boxes1, boxes2))
    shared = _shared_area(first, second)
    areas = [np.abs(rows[:, 2] * rows[:, 3]) for rows in (first, second)]
    union = areas[0][:, None] + areas[1] - shared
    sizable = (areas[0][:, None] > _FLAT) & (areas[1] > _FLAT)
    found = np.divide(shared, union, out=np.zeros_like(union), where=sizable)
    return tensor_of(found, dtype).to(boxes1.spec.dtype)


def _corners(rows: np.ndarray) -> np.ndarray:
    """The four corners [K, 4, 2] of rotated boxes, one after the other around the box."""
    angle = np.deg2rad(rows[:, 4])
    along = np.stack([np.cos(angle), -np.sin(angle)], -1) * rows[:, 2:3] / 2
    across = np.stack([np.sin(angle), np.cos(angle)], -1) * rows[:, 3:4] / 2
    sides = np.stack([-along - across, along - across, along + across, across - along], 1)
    return rows[:, None, :2] + sides


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _shared_area(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The area that each two boxes share [N, M]: of the polygon of their crossings and of the corners inside the other."""
    p, q = _corners(first)[:, None], _corners(second)[None]
    p, q = np.broadcast_arrays(p, q)  # [N, M, 4, 2]
    side_p, side_q = np.roll(p, -1, 2) - p, np.roll(q, -1, 2) - q
    between = q[:, :, None] - p[:, :, :, None]  # [N, M, side of p, side of q, 2]
    turn = _cross(side_p[:, :, :, None], side_q[:, :, None])
    parallel = np.abs(turn) < 1e-14
    turn = np.where(parallel, 1, turn)
    at_p = _cross(between, side_q[:, :, None]) / turn
    at_q = _cross(between, side_p[:, :, :, None]) / turn
    meet = ~parallel & (at_p >= 0) & (at_p <= 1) & (at_q >= 0) & (at_q <= 1)
    crossings = p[:, :, :, None] + at_p[..., None] * side_p[:, :, :, None]
    points = [crossings.reshape(*crossings.shape[:2], 16, 2)]
    valid = [meet.reshape(*meet.shape[:2], 16)]
    for corners, others, sides in ((p, q, side_q), (q, p, side_p)):
        offsets = _cross(sides[:, :, None], corners[:, :, :, None] - others[:, :, None])
        slack = 1e-12 * np.abs(offsets).max((2, 3), keepdims=True, initial=0)
        points.append(corners)
        valid.append((offsets >= -slack).all(-1) | (offsets <= slack).all(-1))
    return _hull_area(np.concatenate(points, 2), np.concatenate(valid, 2))


def _hull_area(points: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """The area of the convex polygon on which the valid ones of [..., K, 2] points lie."""
    count = np.maximum(valid.sum(-1), 1)
    center = (points * valid[..., None]).sum(-2) / count[..., None]
    rays = np.where(valid[..., None], points - center[..., None, :], 0)
    order = np.argsort(np.where(valid, np.arctan2(rays[..., 1], rays[..., 0]), np.inf), -1)
    rays = np.take_along_axis(rays, order[..., None], -2)
    # Behind the valid points, which come first, stands the first one again, so that the polygon is closed.
    inside = np.arange(points.shape[-2]) < valid.sum(-1)[..., None]
    rays = np.where(inside[..., None], rays, rays[..., :1, :])
    area = np.abs(_cross(rays, np.roll(rays, -1, -2)).sum(-1)) / 2
    return np.where(valid.sum(-1) > 2, area, 0)
