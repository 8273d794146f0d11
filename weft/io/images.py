"""Reads and writes images as uint8 tensors [channels, height, width], through Pillow."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..core.dtype import uint8
from ..core.tensor import Tensor
from ..interop.numpy import tensor_on
from ..serialization.atomic import replacing
from .damage import damaged, reading
from .extras import library

# Only formats of plain pixels, because some other formats of Pillow start programs (EPS) or open other files.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")

# Format -> the largest number of pixels per byte of the file. In PNG these are 8 pixels of one bit, times 1032, the limit of
# deflate. An image with more pixels must be truncated, so raise an error before allocating memory for it.
PIXELS_PER_BYTE = 8 * 1032
_LIMITED = {"PNG", "JPEG", "GIF", "PPM"}

MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}  # number of channels -> mode
# Other modes, and the modes to which they are converted.
_CONVERTED = {
    "1": "L",
    "La": "LA",
    "RGBX": "RGB",
    "RGBa": "RGBA",
    "CMYK": "RGB",
    "YCbCr": "RGB",
    "PA": "RGBA",
}


def load_image(path: str | os.PathLike, mode: str | None = None) -> Tensor:
    """Load an image as a uint8 tensor [C, H, W] with the channels of the file: grey, grey and alpha, RGB, or RGBA.

    `mode` converts to "L", "LA", "RGB" or "RGBA". Of an animation, the first frame is loaded. EXIF rotation is ignored.

    Raises: RuntimeError if the file is damaged, is not a PNG, JPEG, WebP, GIF, BMP, TIFF or PPM, or has more pixels than
    `PIL.Image.MAX_IMAGE_PIXELS`; TypeError if its channels have more than 8 bits.

    >>> import os, tempfile, weft
    >>> path = os.path.join(tempfile.mkdtemp(), "t.png")
    >>> weft.io.save_image(weft.arange(6, dtype=weft.uint8).view(1, 2, 3), path)
    >>> weft.io.load_image(path)
    tensor([[[0, 1, 2],
             [3, 4, 5]]], dtype=torch.uint8)
    """
    Image = library("PIL.Image", "images")
    if mode is not None and mode not in MODES.values():
        raise ValueError(f"mode is one of {', '.join(MODES.values())}, not {mode!r}")
    with open(path, "rb") as file, reading(path), Image.open(file, formats=FORMATS) as image:
        _check_size(Image, image, path, os.fstat(file.fileno()).st_size)
        own = _mode_of(image, path)
        wanted = mode or own
        values = np.asarray(image if image.mode == wanted else image.convert(wanted))
    channels = values if values.ndim == 3 else values[:, :, None]
    return tensor_on(np.array(channels.transpose(2, 0, 1), order="C"))


def _check_size(Image: Any, image: Any, path: Any, size: int) -> None:
    pixels, limit = image.width * image.height, Image.MAX_IMAGE_PIXELS
    if limit is not None and pixels > limit:
        raise damaged(
            path, f"{image.width} x {image.height} pixels are more than PIL.Image.MAX_IMAGE_PIXELS, {limit}"
        )
    if image.format in _LIMITED and pixels > size * PIXELS_PER_BYTE:
        raise damaged(path, f"{size} bytes cannot hold {image.width} x {image.height} pixels")


def _mode_of(image: Any, path: Any) -> str:
    """Return the mode with the channels of the image."""
    if image.mode in MODES.values():
        return image.mode
    if image.mode == "P":
        return "RGBA" if "transparency" in image.info else "RGB"
    if image.mode not in _CONVERTED:
        raise TypeError(
            f"{path}: pixels of mode {image.mode} are no channels of 8 bits; open the picture with Pillow instead"
        )
    return _CONVERTED[image.mode]


def save_image(image: Tensor, path: str | os.PathLike) -> None:
    """Write a uint8 tensor [C, H, W] or [H, W] as an image. The extension of the file selects the format.

    Raises: TypeError for other dtypes, ValueError for other shapes and unknown extensions, OSError for channels that the
    format does not support.
    """
    Image = library("PIL.Image", "images")
    if image.dtype is not uint8:
        raise TypeError(f"pixels are uint8, but the tensor is {image.dtype}")
    planes = image if image.dim() == 3 else image[None]
    if planes.dim() != 3 or planes.shape[0] not in MODES or 0 in planes.shape:
        raise ValueError(
            f"expected [channels, height, width] with 1 to 4 channels, but got {tuple(image.shape)}"
        )
    ending = os.path.splitext(os.fsdecode(path))[1].lower()
    kind = Image.registered_extensions().get(ending)
    if kind not in FORMATS:
        raise ValueError(f"no picture format that is written here has the ending {ending!r}")
    values = np.ascontiguousarray(planes.numpy(force=True).transpose(1, 2, 0))
    picture = Image.fromarray(values[:, :, 0] if planes.shape[0] == 1 else values)
    with replacing(path) as file:
        picture.save(file, kind)
