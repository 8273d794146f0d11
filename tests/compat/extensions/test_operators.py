"""torchvision's operators against what its compiled ones gave; `record.py` recorded it."""

import json
import pathlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.compat.extensions import boxes, deformable, regions

RECORDED = np.load(pathlib.Path(__file__).with_name("torchvision.npz"))
ARGUMENTS = json.loads(RECORDED["arguments"].tobytes())
OPERATORS = {
    **{name: getattr(regions, name) for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool")},
    "deform_conv2d": deformable.deform_conv2d,
    "nms": boxes.nms,
}


def recorded(prefix):
    return {int(key.rpartition(".")[2]): RECORDED[key] for key in RECORDED.files if key.startswith(prefix)}


@pytest.mark.parametrize("k", range(len(ARGUMENTS)))
def test_the_numbers_of_the_compiled_operators(k):
    name, count, arguments = ARGUMENTS[k]
    tensors = [weft.from_numpy(RECORDED[f"{k}.given.{j}"]).requires_grad_() for j in range(count)]
    results = OPERATORS[name](*tensors, *arguments)
    results = [results] if isinstance(results, weft.Tensor) else list(results)
    tolerance = 1e-5 if name == "deform_conv2d" else 0  # because of its products of matrices
    for j, expected in recorded(f"{k}.result.").items():
        got = results[j].detach().numpy()
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
    if f"{k}.cotangent" in RECORDED:
        results[0].backward(weft.from_numpy(RECORDED[f"{k}.cotangent"]))
        for j, expected in recorded(f"{k}.grad.").items():
            np.testing.assert_allclose(
                tensors[j].grad.numpy(), expected, rtol=tolerance, atol=max(tolerance, 1e-7)
            )


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 60), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_what_suppression_keeps_does_not_overlap(n, threshold, seed):
    random = np.random.default_rng(seed)
    corner, extent = random.uniform(0, 9, (n, 2)), random.uniform(0.1, 9, (n, 2))
    rows, scores = np.concatenate([corner, corner + extent], 1), random.normal(size=n)
    kept = boxes.nms(weft.from_numpy(rows), weft.from_numpy(scores), threshold).numpy()

    def overlap(a, b):
        sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
        areas = [np.prod(each[2:] - each[:2]) for each in (a, b)]
        return sides.prod() / (sum(areas) - sides.prod())

    assert (np.diff(scores[kept]) <= 0).all()
    for i in range(n):
        better = [j for j in kept if scores[j] > scores[i]]
        assert (i in kept) == all(overlap(rows[i], rows[j]) <= threshold for j in better)


@pytest.mark.parametrize("k", [k for k, (name, *_) in enumerate(ARGUMENTS) if name == "deform_conv2d"])
def test_gradients_of_deformable_convolutions_are_slopes(k):
    name, count, arguments = ARGUMENTS[k]
    tensors = [
        weft.from_numpy(RECORDED[f"{k}.given.{j}"].astype(np.float64)).requires_grad_() for j in range(count)
    ]
    direction = [weft.randn(*t.shape, dtype=t.dtype) for t in tensors]
    if not arguments[-1]:
        direction[3] = weft.zeros_like(direction[3])
    step = 1e-6

    def value(shift):
        moved = [t.detach() + shift * d for t, d in zip(tensors, direction, strict=True)]
        return (OPERATORS[name](*moved, *arguments) ** 2).sum().item()

    grads = weft.autograd.grad((OPERATORS[name](*tensors, *arguments) ** 2).sum(), tensors)
    slope = sum((g * d).sum().item() for g, d in zip(grads, direction, strict=True))
    assert slope == pytest.approx((value(step) - value(-step)) / (2 * step), rel=1e-4)


def test_half_precision_and_errors():
    image = weft.randn(1, 2, 6, 6)
    box = weft.tensor([[0.0, 1.0, 1.0, 4.0, 5.0]])
    whole = regions.roi_align(image, box, 1.0, 2, 2, 2, False)
    half = regions.roi_align(image.half(), box.half(), 1.0, 2, 2, 2, False)
    assert half.dtype is weft.float16
    np.testing.assert_allclose(half.float().numpy(), whole.numpy(), atol=2e-2)
    with pytest.raises(NotImplementedError, match="on device meta"):
        regions.roi_align(image.to("meta"), box.to("meta"), 1.0, 2, 2, 2, False)
    with pytest.raises(IndexError, match="index 1 of an image"):
        regions.roi_align(image, box + weft.tensor([1.0, 0, 0, 0, 0]), 1.0, 2, 2, 2, False)
    with pytest.raises(RuntimeError, match="same type"):
        regions.roi_pool(image, box.double(), 1.0, 2, 2)
    with pytest.raises(RuntimeError, match="Tensor\\[K, 5\\]"):
        regions.roi_align(image, box[:, 1:], 1.0, 2, 2, 2, False)
    with pytest.raises(RuntimeError, match="multiple of pooling"):
        regions.ps_roi_pool(image, box, 1.0, 3, 1)
    with pytest.raises(RuntimeError, match="4 elements in dimension 1"):
        boxes.nms(box, box[:, 0], 0.5)
    with pytest.raises(RuntimeError, match="offset must have shape"):
        static = (1, 1, 0, 0, 1, 1, 1, 1, False)
        kernel = weft.ones(1, 2, 3, 3)
        deformable.deform_conv2d(image, kernel, weft.ones(1, 18, 3, 4), image, weft.ones(1), *static)


def test_no_regions_and_boxes_that_are_not_numbers():
    image = weft.randn(1, 2, 6, 6)
    assert regions.roi_align(image, weft.empty(0, 5), 1.0, 2, 2, 2, False).shape == (0, 2, 2, 2)
    assert regions.roi_pool(image, weft.empty(0, 5), 1.0, 2, 2)[1].shape == (0, 2, 2, 2)
    odd = weft.tensor([[0.0, weft.nan, 1.0, 3.0, 3.0]])
    assert regions.roi_align(image, odd, 1.0, 2, 2, 2, False).shape == (1, 2, 2, 2)


def test_a_threshold_is_not_rounded():
    """In float32 the overlap of these boxes is the number next to 0.1, which lies above it."""
    rows = weft.tensor([[0.0, 0.0, 1.0, 10.0], [0.0, 0.0, 1.0, 1.0]])
    for threshold, kept in ((0.1, [0]), (0.1000001, [0, 1])):
        assert boxes.nms(rows, weft.tensor([2.0, 1.0]), threshold).tolist() == kept


def test_rotated_boxes():
    square = weft.tensor([[5.0, 5, 4, 4, 0]])
    others = weft.tensor(
        [[5.0, 5, 4, 4, 90], [5, 5, 4, 4, 45], [7, 5, 4, 4, 0], [50, 5, 4, 4, 30], [5, 5, 0, 4, 0]]
    )
    octagon = 16 * (2 * 2**0.5 - 2)  # of a square and the same square turned by 45 degrees
    expected = [1, octagon / (32 - octagon), 8 / 24, 0, 0]
    np.testing.assert_allclose(boxes.box_iou_rotated(square, others)[0].numpy(), expected, atol=1e-6)
    assert boxes.box_iou_rotated(square[:0], others).shape == (0, 5)
    turned = weft.tensor([[0.0, 0, 6, 1, 30]]), weft.tensor([[0.0, 0, 6, 1, -30]])
    assert boxes.box_iou_rotated(*turned)[0, 0] < 0.2
    assert boxes.box_iou_rotated(turned[0], turned[0])[0, 0] == pytest.approx(1)
