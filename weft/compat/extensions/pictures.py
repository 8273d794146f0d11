"""Pictures as encoded bytes and back, through Pillow: the operators of the namespace `image`.

Encoded bytes are uint8 tensors of one dim; pictures are uint8 [C, H, W] (uint16 for PNG files with 16 bits), channels last in memory.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ...core.dtype import uint8
from ...core.tensor import Tensor
from ...families.array_op import array, tensor_of
from .png import Png

UNCHANGED, GRAY, GRAY_ALPHA, RGB, RGB_ALPHA = range(5)
_ORIENTATION = 274  # the tag of EXIF


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise RuntimeError("Decoding and encoding of pictures needs Pillow: pip install pillow") from None
    return Image


def _bytes(data: Tensor, function: str) -> bytes:
    if data.spec.dtype is not uint8:
        raise RuntimeError(f"{function}: Expected a torch.uint8 tensor, got {data.spec.dtype}")
    if data.spec.ndim != 1 or not data.spec.numel:
        raise RuntimeError(
            f"{function}: Input tensor must be 1-dimensional and non-empty, got {data.spec.ndim} dims and "
            f"{data.spec.numel} elements"
        )
    return array(data).tobytes()


def _picture(pixels: np.ndarray) -> Tensor:
    """[..., H, W, C] as a tensor [..., C, H, W]."""
    return tensor_of(np.ascontiguousarray(pixels)).movedim(-1, -3)


def _opened(data: bytes, function: str, format: str) -> Any:
    try:
        return _pillow().open(io.BytesIO(data), formats=(format,))
    except (OSError, SyntaxError, ValueError) as error:
        raise RuntimeError(f"{function}: not a {format} file: {error}") from None


def _pixels(image: Any, function: str) -> np.ndarray:
    """[H, W, C]."""
    try:
        pixels = np.asarray(image)
    except (OSError, SyntaxError, ValueError) as error:
        raise RuntimeError(f"{function}: Image is incomplete or truncated: {error}") from None
    return pixels if pixels.ndim == 3 else pixels[..., None]


def _oriented(picture: Tensor, orientation: int | None) -> Tensor:
    """A picture [C, H, W], turned as the orientation in its EXIF data asks."""
    if orientation in (5, 6, 7, 8):
        picture = picture.transpose(1, 2)
    if orientation in (3, 4, 7, 8):
        picture = picture.flip(1)
    if orientation in (2, 3, 6, 7):
        picture = picture.flip(2)
    return picture


# ---- Files ----------------------------------------------------------------------------------------------------------------


def read_file(filename: str) -> Tensor:
    """The bytes of a file, uint8."""
    try:
        with open(filename, "rb") as file:
            data = file.read()
    except OSError as error:
        raise RuntimeError(f"read_file: {error}") from None
    if not data:
        raise RuntimeError(f"read_file: Expected a non empty file, but {filename!r} is empty")
    return tensor_of(np.frombuffer(data, np.uint8).copy())


def write_file(filename: str, data: Tensor) -> Tensor:
    """Write uint8 elements of one dim to a file."""
    if data.spec.dtype is not uint8:
        raise RuntimeError(f"write_file: Input tensor dtype should be uint8, got {data.spec.dtype}")
    if data.spec.ndim != 1:
        raise RuntimeError(
            f"write_file: Input data should be a 1-dimensional tensor, got {data.spec.ndim} dims"
        )
    try:
        with open(filename, "wb") as file:
            file.write(array(data).tobytes())
    except OSError as error:
        raise RuntimeError(f"write_file: Error opening output file: {error}") from None
    return data


# ---- Decoding ---------------------------------------------------------------------------------------------------------------


def decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """A picture in the format that its first bytes name: JPEG, PNG, GIF or WebP."""
    start = _bytes(data, "decode_image")[:12]
    if start.startswith(b"\xff\xd8\xff"):
        return decode_jpeg(data, mode, apply_exif_orientation)
    if start.startswith(b"\x89PNG"):
        return decode_png(data, mode, apply_exif_orientation)
    if start.startswith((b"GIF87a", b"GIF89a")):
        return decode_gif(data)
    if start[:4] == b"RIFF" and start[8:] == b"WEBP":
        return decode_webp(data, mode)
    raise RuntimeError(
        "decode_image: Unsupported image file. Only jpeg, png, webp and gif are currently supported. For avif and heic format, "
        "please rely on `decode_avif` and `decode_heic` directly."
    )


def decode_jpeg(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """A JPEG file. Gray is its luminance as it is stored."""
    image = _opened(_bytes(data, "decode_jpeg"), "decode_jpeg", "JPEG")
    if mode not in (UNCHANGED, GRAY, RGB):
        raise RuntimeError("decode_jpeg: The provided mode is not supported for JPEG files")
    orientation = image.getexif().get(_ORIENTATION) if apply_exif_orientation else None
    if mode == GRAY:
        image.draft("L", None)
    pixels = _pixels(image, "decode_jpeg")
    if image.mode == "CMYK":
        # Pillow inverts CMYK, which JPEG files store inverted.
        if mode == UNCHANGED:
            pixels = 255 - pixels
        else:
            pixels = _pixels(image.convert("RGB" if mode == RGB else "L"), "decode_jpeg")
    elif mode == RGB:
        pixels = np.broadcast_to(pixels, (*pixels.shape[:2], 3))
    return _oriented(_picture(pixels), orientation)


def decode_png(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """A PNG file; of one with a palette, UNCHANGED gives the indices."""
    png = Png(_bytes(data, "decode_png"))
    pixels = png.pixels(_pillow())
    if mode != UNCHANGED:
        pixels = png.converted(pixels, mode in (RGB, RGB_ALPHA), mode in (GRAY_ALPHA, RGB_ALPHA))
    orientation = None
    if apply_exif_orientation and png.exif:
        exif = _pillow().Exif()
        exif.load(png.exif)
        orientation = exif.get(_ORIENTATION)
    return _oriented(_picture(pixels), orientation)


def decode_gif(data: Tensor) -> Tensor:
    """A GIF file as RGB: [3, H, W], or [N, 3, H, W] if it has several images."""
    image = _opened(_bytes(data, "decode_gif"), "decode_gif", "GIF")
    frames = []
    for k in range(getattr(image, "n_frames", 1)):
        image.seek(k)
        frames.append(_pixels(image.convert("RGB"), "decode_gif"))
    return _picture(frames[0] if len(frames) == 1 else np.stack(frames))


def decode_webp(data: Tensor, mode: int) -> Tensor:
    """A WebP file as RGB or RGBA; gray is not supported and leaves it as it is."""
    image = _opened(_bytes(data, "decode_webp"), "decode_webp", "WEBP")
    pixels = _pixels(image, "decode_webp")
    if mode == RGB:
        pixels = pixels[..., :3]
    elif mode == RGB_ALPHA and pixels.shape[-1] == 3:
        pixels = np.concatenate([pixels, np.full_like(pixels[..., :1], 255)], -1)
    return _picture(pixels)


# ---- Encoding ---------------------------------------------------------------------------------------------------------------


def _image_of(data: Tensor, function: str) -> Any:
    if data.spec.dtype is not uint8:
        raise RuntimeError(f"{function}: Input tensor dtype should be uint8, got {data.spec.dtype}")
    if data.spec.ndim != 3:
        raise RuntimeError(
            f"{function}: Input data should be a 3-dimensional tensor, got {data.spec.ndim} dims"
        )
    channels = data.spec.shape[0]
    if channels not in (1, 3):
        raise RuntimeError(f"{function}: The number of channels should be 1 or 3, got: {channels}")
    pixels = array(data.movedim(0, -1).contiguous())
    return _pillow().fromarray(pixels[..., 0] if channels == 1 else pixels)


def _encoded(image: Any, format: str, **options: Any) -> Tensor:
    file = io.BytesIO()
    image.save(file, format, **options)
    return tensor_of(np.frombuffer(file.getvalue(), np.uint8).copy())


def encode_jpeg(data: Tensor, quality: int) -> Tensor:
    """The bytes of a JPEG file of a picture [1 or 3, H, W]."""
    return _encoded(_image_of(data, "encode_jpeg"), "JPEG", quality=quality)


def encode_png(data: Tensor, compression_level: int) -> Tensor:
    """The bytes of a PNG file of a picture [1 or 3, H, W]."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError(
            f"encode_png: Compression level should be between 0 and 9, got {compression_level}"
        )
    return _encoded(_image_of(data, "encode_png"), "PNG", compress_level=compression_level)
