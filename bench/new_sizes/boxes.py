"""What follows a detector: overlaps, masks, non-maximum suppression and top-k of a random number of boxes per image."""

import random
from typing import Any

from bench.new_sizes.setting import MEASURED, Measured, Setting

IMAGES, WARM_UP = 60, 3
FEWEST, MOST = 20, 120  # boxes of an image; half of these numbers occur in each part
OVERLAP, LEAST_SCORE, BEST = 0.4, 0.2, 10
Image = tuple[Any, Any]  # corners of boxes (left, top, right, bottom), scores


def measure(setting: Setting) -> Measured:
    torch = setting.torch
    odd = setting.part == MEASURED
    images = [image(torch, k, odd) for k in range(setting.count(IMAGES))]
    setting.seconds(lambda given: detect(torch, given), [image(torch, k, False) for k in range(WARM_UP)])
    return Measured.single(*setting.seconds(lambda given: detect(torch, given), images))


def image(torch: Any, seed: int, odd: bool) -> Image:
    boxes = 2 * random.Random(seed).randint(FEWEST // 2, MOST // 2) + odd
    corners = torch.rand(boxes, 2)
    return torch.cat([corners, corners + 0.1 + 0.3 * torch.rand(boxes, 2)], 1), torch.rand(boxes)


def detect(torch: Any, image: Image) -> float:
    """The sum of the coordinates of the boxes that are found, weighted by their scores."""
    boxes, scores = image
    likely = scores > LEAST_SCORE
    boxes, scores = boxes[likely], scores[likely]
    kept = suppress(torch, boxes, scores)
    boxes, scores = boxes[kept], scores[kept]
    scores, best = scores.topk(min(BEST, len(scores)))
    return (boxes[best] * scores[:, None]).sum().item()


def suppress(torch: Any, boxes: Any, scores: Any) -> Any:
    """Indices of the boxes that remain when each takes away those of lower score that overlap it."""
    order = scores.argsort(descending=True)
    overlaps = overlap(torch, boxes, boxes)
    kept = []
    while len(order):
        best = order[0]
        kept.append(best)
        rest = order[1:]
        order = rest[overlaps[best, rest] <= OVERLAP]
    return torch.stack(kept)


def overlap(torch: Any, first: Any, second: Any) -> Any:
    """The intersection of each box of the first with each of the second, over their union."""
    low = torch.maximum(first[:, None, :2], second[None, :, :2])
    high = torch.minimum(first[:, None, 2:], second[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(2)
    return shared / (area(first)[:, None] + area(second) - shared)


def area(boxes: Any) -> Any:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
