"""Pictures and films as arrays in the orders of dimensions that TensorBoard and Pillow take.

N is the number of pictures, C of channels, T of points in time; H and W are height and width.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt


def figure_to_image(figures: Any, close: bool = True) -> npt.NDArray[np.uint8]:
    """Return a matplotlib figure as an array [C=3, H, W], or a list of figures as [N, C=3, H, W].

    `close` closes the figures, so that pyplot forgets them.
    """
    if isinstance(figures, list):
        return np.stack([_render(each, close) for each in figures])
    return _render(figures, close)


def _render(figure: Any, close: bool) -> npt.NDArray[np.uint8]:
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    rgba = np.asarray(canvas.buffer_rgba())
    if close:
        plt.close(figure)
    return rgba[:, :, :3].transpose(2, 0, 1)


def _prepare_video(V: npt.NDArray) -> npt.NDArray:
    """Films [N, T, C, H, W] as one film [T, rows * H, columns * W, C].

    The films lie in a grid with powers of two as its numbers of rows and columns. Black films fill it up.
    """
    n, t, c, h, w = V.shape
    if V.dtype == np.uint8:
        V = V.astype(np.float32) / 255.0
    cells = 2 ** (n - 1).bit_length()
    rows = 2 ** ((n.bit_length() - 1) // 2)
    padded = np.concatenate([V, np.zeros((cells - n, t, c, h, w))])
    grid = padded.reshape(rows, cells // rows, t, c, h, w).transpose(2, 0, 4, 1, 5, 3)
    return grid.reshape(t, rows * h, cells // rows * w, c)


def make_grid(I: npt.NDArray, ncols: int = 8) -> npt.NDArray:  # noqa: E741  (PyTorch's name)
    """Pictures [N, C, H, W] as one picture [C, rows * H, columns * W] of up to `ncols` columns.

    Grey pictures (C=1) become ones of three channels.

    >>> make_grid(np.ones((5, 1, 2, 3)), ncols=4).shape
    (3, 4, 12)
    """
    if not isinstance(I, np.ndarray):
        raise AssertionError(f"make_grid takes a numpy array, and got a value of type {type(I)}")
    if I.ndim != 4 or I.shape[1] not in (1, 3):
        raise AssertionError(
            f"make_grid takes pictures [N, C, H, W] with C = 1 or 3, and got the shape {I.shape}"
        )
    if I.shape[1] == 1:
        I = np.repeat(I, 3, axis=1)  # noqa: E741
    n, c, h, w = I.shape
    columns = min(n, ncols)
    rows = math.ceil(n / columns)
    grid = np.zeros((rows * columns, c, h, w), dtype=I.dtype)
    grid[:n] = I
    return grid.reshape(rows, columns, c, h, w).transpose(2, 0, 3, 1, 4).reshape(c, rows * h, columns * w)


def convert_to_HWC(tensor: npt.NDArray, input_format: str) -> npt.NDArray:
    """A picture of the format `input_format` as [H, W, C]. The format has the letters HW, HWC or NHWC in any order.

    Several pictures (N) become one, as in `make_grid`.

    >>> convert_to_HWC(np.ones((2, 3)), "HW").shape, convert_to_HWC(np.ones((8, 2, 3, 3)), "NHWC").shape
    ((2, 3, 3), (2, 24, 3))
    """
    if len(set(input_format)) != len(input_format):
        raise AssertionError(f"each dimension may occur once in the format, and it is {input_format!r}")
    if len(tensor.shape) != len(input_format):
        raise AssertionError(
            f"the format {input_format!r} has {len(input_format)} dimensions, and the tensor's shape is {tensor.shape}"
        )
    given = input_format.upper()
    for wanted in ("NCHW", "HWC", "HW"):
        if set(given) == set(wanted):
            ordered = tensor.transpose([given.index(each) for each in wanted])
            break
    else:
        raise ValueError(
            f"the format has the letters HW, CHW or NCHW in any order, and it is {input_format!r}"
        )
    if wanted == "NCHW":
        return make_grid(ordered).transpose(1, 2, 0)
    if wanted == "HW":
        ordered = ordered[:, :, None]
    return np.repeat(ordered, 3, axis=2) if ordered.shape[2] == 1 else ordered
