"""PNG files with all their bits: Pillow undoes the compression and the filters, and gives the rows as they are stored.

Pillow itself cuts 16 bits of colors to 8. Source of the format: https://www.w3.org/TR/png-3/
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

_GRAY, _RGB, _PALETTE, _GRAY_ALPHA, _RGB_ALPHA = 0, 2, 3, 4, 6
_CHANNELS = {_GRAY: 1, _RGB: 3, _PALETTE: 1, _GRAY_ALPHA: 2, _RGB_ALPHA: 4}

# How Pillow decodes the rows of files with (bits, channels): mode and raw modes. Of 16 bits it takes the high byte of a number, so
# numbers that are said to be little-endian give their low byte.
_ROWS = {
    (8, 1): ("L", ("L",)),
    (8, 2): ("LA", ("LA",)),
    (8, 3): ("RGB", ("RGB",)),
    (8, 4): ("RGBA", ("RGBA",)),
    (16, 1): ("LA", ("LA",)),
    (16, 2): ("RGBA", ("RGBA",)),
    (16, 3): ("RGB", ("RGB;16B", "RGB;16L")),
    (16, 4): ("RGBA", ("RGBA;16B", "RGBA;16L")),
    (1, 1): ("P", ("P;1",)),
    (2, 1): ("P", ("P;2",)),
    (4, 1): ("P", ("P;4",)),
}

# The shares of red, green and blue in gray, of 2**15, as libpng makes them of 0.2989 and 0.587.
_SHARES = (9794, 19234, 3740)


class Png:
    """What a file says before its pixels."""

    def __init__(self, data: bytes):
        if len(data) < 8:
            raise RuntimeError("decode_png: Content is too small for png!")
        if data[:8] != b"\x89PNG\r\n\x1a\n":
            raise RuntimeError("decode_png: Content is not png!")
        self.palette = self.transparent = self.exif = None
        parts, at = [], 8
        while True:
            if at + 12 > len(data):
                raise RuntimeError(
                    "decode_png: the file ends too early. Probably, the input image is corrupted"
                )
            length, kind = struct.unpack_from(">I4s", data, at)
            content = data[at + 8 : at + 8 + length]
            at += 12 + length
            if kind == b"IEND":
                break
            if kind == b"IHDR":
                self._header(content)
            elif kind == b"PLTE":
                self.palette = np.frombuffer(content, np.uint8).reshape(-1, 3)
            elif kind == b"tRNS":
                self.transparent = content
            elif kind == b"eXIf":
                self.exif = content
            elif kind == b"IDAT":
                parts.append(content)
        self.rows = b"".join(parts)

    def _header(self, content: bytes) -> None:
        self.width, self.height, self.bits, self.color, _, _, self.interlaced = struct.unpack(
            ">IIBBBBB", content
        )
        if (self.bits, _CHANNELS.get(self.color)) not in _ROWS:
            raise RuntimeError(f"decode_png: there is no color type {self.color} with {self.bits} bits")

    def pixels(self, pillow: Any) -> np.ndarray:
        """What is stored, [H, W, C]: uint8, or uint16 for 16 bits. Gray of fewer bits is stretched to eight."""
        channels = _CHANNELS[self.color]
        mode, raw_modes = _ROWS[self.bits, channels]
        planes = [self._decoded(pillow, mode, raw) for raw in raw_modes]
        if self.bits == 16:
            if len(planes) == 2:
                return planes[0].astype(np.uint16) << 8 | planes[1]
            return (
                planes[0].reshape(self.height, self.width, channels, 2).view(">u2")[..., 0].astype(np.uint16)
            )
        found = planes[0].reshape(self.height, self.width, channels)
        if self.bits < 8 and self.color == _GRAY:
            found = found * np.uint8(255 // ((1 << self.bits) - 1))
        return found

    def _decoded(self, pillow: Any, mode: str, raw: str) -> np.ndarray:
        options = (raw, 1) if self.interlaced else (raw,)
        try:
            return np.asarray(pillow.frombytes(mode, (self.width, self.height), self.rows, "zip", *options))
        except (OSError, ValueError) as error:
            raise RuntimeError(f"decode_png: the input image is corrupted: {error}") from None

    def converted(self, pixels: np.ndarray, colors: bool, alpha: bool) -> np.ndarray:
        """Pixels with three channels of color or one of gray, and with or without alpha."""
        opaque = np.iinfo(pixels.dtype).max
        opacity = np.full((*pixels.shape[:2], 1), opaque, pixels.dtype)
        if self.color == _PALETTE:
            opacity = self._opacity_of_palette()[pixels]
            pixels = self._colors_of_palette()[pixels[..., 0]]
        elif self.color in (_GRAY_ALPHA, _RGB_ALPHA):
            pixels, opacity = pixels[..., :-1], pixels[..., -1:]
        elif self.transparent is not None:
            key = np.frombuffer(self.transparent, ">u2").astype(np.int64)
            if self.color == _GRAY and self.bits < 8:
                key = key * (255 // ((1 << self.bits) - 1))
            opacity = np.where((pixels == key).all(-1, keepdims=True), pixels.dtype.type(0), opacity)
        if colors and pixels.shape[-1] == 1:
            pixels = np.repeat(pixels, 3, -1)
        elif not colors and pixels.shape[-1] == 3:
            gray = pixels.astype(np.int64) @ np.array(_SHARES)
            rounding = 1 << 14 if pixels.dtype == np.uint16 else 0
            pixels = (gray + rounding >> 15).astype(pixels.dtype)[..., None]
        return np.concatenate([pixels, opacity], -1) if alpha else pixels

    def _colors_of_palette(self) -> np.ndarray:
        colors = np.zeros((256, 3), np.uint8)
        if self.palette is not None:
            colors[: len(self.palette)] = self.palette
        return colors

    def _opacity_of_palette(self) -> np.ndarray:
        opacity = np.full(256, 255, np.uint8)
        if self.transparent is not None:
            opacity[: len(self.transparent)] = np.frombuffer(self.transparent, np.uint8)
        return opacity
