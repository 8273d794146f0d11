"""Record what torchvision's compiled operators give, for `test_operators.py`.

Run it in an environment with PyTorch and torchvision: `python record.py`. It was run with torch 2.14.1 and torchvision 0.29.1.
"""

import json
import pathlib

import numpy as np
import torch

CASES = [
    # name, shape of the input, arguments
    ("roi_align", (2, 3, 9, 12), [0.5, 3, 2, 2, False]),
    ("roi_align", (2, 3, 9, 12), [1.0, 2, 4, -1, True]),
    ("roi_align", (1, 2, 5, 5), [0.25, 1, 1, 0, False]),
    ("roi_pool", (2, 3, 9, 12), [0.5, 3, 2]),
    ("roi_pool", (2, 3, 9, 12), [1.0, 1, 4]),
    ("ps_roi_align", (2, 12, 9, 12), [0.5, 3, 2, 2]),
    ("ps_roi_align", (2, 12, 9, 12), [1.0, 2, 2, -1]),
    ("ps_roi_pool", (2, 12, 9, 12), [0.5, 3, 2]),
    ("ps_roi_pool", (2, 12, 9, 12), [1.0, 2, 2]),
]
# Deformable convolutions: input, sizes of the kernel, stride, padding, dilation, groups, groups of offsets, mask.
DEFORMABLE = [
    ((2, 4, 7, 8), (3, 3), (1, 1), (1, 1), (1, 1), 1, 1, True),
    ((1, 4, 7, 8), (3, 2), (2, 1), (0, 1), (1, 2), 2, 2, True),
    ((2, 4, 6, 6), (1, 2), (1, 2), (0, 0), (1, 1), 1, 2, False),
]


def main():
    import torchvision  # noqa: F401

    random, found, arguments = np.random.default_rng(0), {}, []
    run = torch.ops.torchvision

    def record(name, given, settings):
        k = len(arguments)
        tensors = [torch.from_numpy(each).requires_grad_() for each in given]
        results = getattr(run, name)(*tensors, *settings)
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        arguments.append([name, len(given), settings])
        found.update({f"{k}.given.{j}": each for j, each in enumerate(given)})
        found.update({f"{k}.result.{j}": each.detach().numpy() for j, each in enumerate(results)})
        if name != "nms":
            cotangent = random.normal(size=tuple(results[0].shape)).astype(np.float32)
            results[0].backward(torch.from_numpy(cotangent))
            found[f"{k}.cotangent"] = cotangent
            found.update(
                {f"{k}.grad.{j}": t.grad.numpy() for j, t in enumerate(tensors) if t.grad is not None}
            )

    for name, shape, settings in CASES:
        corner, extent = random.uniform(-4, 14, (5, 2)), random.uniform(0, 20, (5, 2))
        image = random.integers(0, shape[0], (5, 1))
        boxes = np.concatenate([image, corner, corner + extent], 1).astype(np.float32)
        record(name, [random.normal(size=shape).astype(np.float32), boxes], settings)
    for shape, kernel, stride, padding, dilation, groups, offset_groups, mask in DEFORMABLE:
        out = [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(shape[2:], kernel, stride, padding, dilation, strict=True)
        ]
        places = offset_groups * kernel[0] * kernel[1]
        shapes = [shape, (2, 4 // groups, *kernel), (shape[0], 2 * places, *out)]
        shapes += [(shape[0], places, *out) if mask else (shape[0], 1), (2,)]
        given = [random.normal(size=each).astype(np.float32) for each in shapes]
        record("deform_conv2d", given, [*stride, *padding, *dilation, groups, offset_groups, mask])
    for n in (0, 1, 60):
        corner, extent = random.uniform(0, 20, (n, 2)), random.uniform(0, 12, (n, 2))
        scores = random.integers(0, 20, n).astype(np.float32) / 20
        for threshold in (0.3, 0.5):
            record(
                "nms", [np.concatenate([corner, corner + extent], 1).astype(np.float32), scores], [threshold]
            )
    found["arguments"] = np.frombuffer(json.dumps(arguments).encode(), np.uint8)
    np.savez_compressed(pathlib.Path(__file__).with_name("torchvision.npz"), **found)


if __name__ == "__main__":
    main()
