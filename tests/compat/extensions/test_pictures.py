import io
import struct
import zlib

import numpy as np
import pytest

import weft
from weft.compat.extensions import pictures

Image = pytest.importorskip("PIL.Image")
UNCHANGED, GRAY, GRAY_ALPHA, RGB, RGB_ALPHA = range(5)


def encoded(image, format, **options):
    file = io.BytesIO()
    image.save(file, format, **options)
    return weft.frombuffer(bytearray(file.getvalue()), dtype=weft.uint8)


def colors(channels=3, dtype=np.uint8):
    random = np.random.default_rng(0)
    return random.integers(0, np.iinfo(dtype).max, (5, 7, channels), dtype, endpoint=True)


def shown(tensor):
    return tensor.permute(1, 2, 0).numpy()


def png_of_16_bits(pixels):
    """Pillow does not write such files."""
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[pixels.shape[-1]]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    height, width = pixels.shape[:2]

    def chunk(name, content):
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )

    header = struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return weft.frombuffer(bytearray(b"\x89PNG\r\n\x1a\n" + parts), dtype=weft.uint8)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_files_keep_16_bits(channels):
    pixels = colors(channels, np.uint16)
    decoded = pictures.decode_png(png_of_16_bits(pixels), UNCHANGED)
    assert decoded.dtype is weft.uint16
    np.testing.assert_array_equal(shown(decoded), pixels)


def test_png_modes():
    pixels = colors(4)
    data = encoded(Image.fromarray(pixels), "PNG")
    np.testing.assert_array_equal(shown(pictures.decode_png(data, UNCHANGED)), pixels)
    np.testing.assert_array_equal(shown(pictures.decode_png(data, RGB)), pixels[..., :3])
    with_alpha = shown(pictures.decode_png(data, GRAY_ALPHA))
    np.testing.assert_array_equal(with_alpha[..., 1], pixels[..., 3])
    gray = pixels[..., :3] @ [0.2989, 0.587, 0.1141]
    np.testing.assert_allclose(with_alpha[..., 0], gray, atol=1.01)  # libpng cuts the digits behind the point
    opaque = shown(pictures.decode_png(encoded(Image.fromarray(pixels[..., :3]), "PNG"), RGB_ALPHA))
    assert (opaque[..., 3] == 255).all()


def test_png_of_one_bit_is_black_and_white():
    pixels = np.array([[0, 255, 0], [255, 255, 0]], np.uint8)
    data = encoded(Image.fromarray(pixels).convert("1"), "PNG")
    np.testing.assert_array_equal(shown(pictures.decode_png(data, UNCHANGED))[..., 0], pixels)


def test_gray_of_16_bits_is_rounded():
    pixels = np.arange(300, dtype=np.uint16).reshape(10, 10, 3) * 217
    found = shown(pictures.decode_png(png_of_16_bits(pixels), GRAY))[..., 0].astype(np.int64)
    shares = pixels.astype(np.int64) @ [9794, 19234, 3740]
    np.testing.assert_array_equal(found, (shares + (1 << 14)) >> 15)


def test_png_palettes():
    image = Image.fromarray(colors()).quantize(4)
    data = encoded(image, "PNG", transparency=2)
    indices = np.asarray(image)
    np.testing.assert_array_equal(shown(pictures.decode_png(data, UNCHANGED))[..., 0], indices)
    found = shown(pictures.decode_png(data, RGB_ALPHA))
    np.testing.assert_array_equal(found[..., :3], np.asarray(image.convert("RGB")))
    np.testing.assert_array_equal(found[..., 3], np.where(indices == 2, 0, 255))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["PNG", "JPEG"])
def test_orientation(orientation, format):
    from PIL import ImageOps

    exif = Image.Exif()
    exif[274] = orientation
    data = encoded(Image.fromarray(colors()), format, exif=exif)
    upright = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(bytes(data.tolist())))))
    np.testing.assert_array_equal(shown(pictures.decode_image(data, RGB, True)), upright)
    assert pictures.decode_image(data, RGB, False).shape == (3, 5, 7)


def test_animations_and_webp():
    frames = [Image.fromarray(colors()).quantize(8), Image.fromarray(colors()[::-1]).quantize(8)]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert pictures.decode_image(data, RGB).shape == (2, 3, 5, 7)
    assert pictures.decode_gif(encoded(frames[0], "GIF")).shape == (3, 5, 7)
    lossless = encoded(Image.fromarray(colors()), "WEBP", lossless=True)
    np.testing.assert_array_equal(shown(pictures.decode_image(lossless, RGB)), colors())
    assert (pictures.decode_webp(lossless, RGB_ALPHA)[3] == 255).all()


def test_errors(tmp_path):
    data = encoded(Image.fromarray(colors()), "PNG")
    for bad in (data[:60], data[:4], weft.zeros(9, dtype=weft.uint8), weft.ones(3), data[None]):
        for decode in (pictures.decode_png, pictures.decode_jpeg, pictures.decode_webp):
            with pytest.raises(RuntimeError, match=decode.__name__):
                decode(bad, UNCHANGED)
    with pytest.raises(RuntimeError, match="Unsupported image file"):
        pictures.decode_image(weft.ones(20, dtype=weft.uint8), UNCHANGED)
    with pytest.raises(RuntimeError, match="mode is not supported"):
        pictures.decode_jpeg(encoded(Image.fromarray(colors()), "JPEG"), RGB_ALPHA)
    with pytest.raises(RuntimeError, match="channels should be 1 or 3, got: 2"):
        pictures.encode_jpeg(weft.zeros(2, 4, 4, dtype=weft.uint8), 75)
    with pytest.raises(RuntimeError, match="between 0 and 9"):
        pictures.encode_png(weft.zeros(1, 4, 4, dtype=weft.uint8), 10)
    with pytest.raises(RuntimeError, match="No such file"):
        pictures.read_file(str(tmp_path / "absent"))
    with pytest.raises(RuntimeError, match="uint8"):
        pictures.write_file(str(tmp_path / "file"), weft.ones(2))
