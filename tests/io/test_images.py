"""Pictures, against Pillow."""

import os

import numpy as np
import pytest
from PIL import Image

import weft
from weft.io import load_image, save_image


def picture(channels):
    return weft.arange(channels * 5 * 7).mul(7).to(weft.uint8).view(channels, 5, 7)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("ending", [".png", ".TIFF", ".webp"])
def test_pixels_return(tmp_path, channels, ending):
    if ending == ".webp" and channels != 3:
        pytest.skip("WebP has RGB only, or RGBA whose hidden colours it forgets")
    path = tmp_path / f"t{ending}"
    save_image(picture(channels), path)
    if ending != ".webp":  # which loses detail
        assert weft.equal(load_image(path), picture(channels))
    with Image.open(path) as image:
        expected = np.asarray(image).reshape(5, 7, channels)
    assert np.array_equal(load_image(path).permute(1, 2, 0).numpy(), expected)
    assert load_image(path).is_contiguous()


def test_grey_without_a_dimension_of_channels_and_views(tmp_path):
    save_image(picture(1)[0], tmp_path / "t.bmp")
    assert weft.equal(load_image(tmp_path / "t.bmp"), picture(1))
    turned = picture(3).transpose(1, 2)
    save_image(turned, tmp_path / "t.png")
    assert weft.equal(load_image(tmp_path / "t.png"), turned)


@pytest.mark.parametrize("mode, channels", [("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4)])
def test_modes(tmp_path, mode, channels):
    save_image(picture(3), tmp_path / "t.png")
    with Image.open(tmp_path / "t.png") as image:
        expected = np.asarray(image.convert(mode)).reshape(5, 7, channels)
    assert np.array_equal(load_image(tmp_path / "t.png", mode).permute(1, 2, 0).numpy(), expected)
    with pytest.raises(ValueError, match="mode"):
        load_image(tmp_path / "t.png", "CMYK")


@pytest.mark.parametrize(
    "mode, ending, channels", [("1", "png", 1), ("P", "gif", 3), ("CMYK", "jpg", 3), ("YCbCr", "jpg", 3)]
)
def test_other_kinds_of_pixels_become_channels(tmp_path, mode, ending, channels):
    Image.new("RGB", (7, 5), (250, 10, 20)).convert(mode).save(tmp_path / f"t.{ending}")
    assert load_image(tmp_path / f"t.{ending}").shape == (channels, 5, 7)


def test_wide_pixels_are_refused(tmp_path):
    Image.fromarray(np.zeros((2, 2), np.uint16)).save(tmp_path / "t.png")
    for mode in (None, "L"):
        with pytest.raises(TypeError, match="8 bits"):
            load_image(tmp_path / "t.png", mode)


@pytest.mark.parametrize(
    "image, name, error",
    [
        (weft.ones(3, 2, 2), "t.png", TypeError),
        (picture(4).repeat(2, 1, 1), "t.png", ValueError),
        (picture(1)[0, 0], "t.png", ValueError),
        (picture(3)[:, :0], "t.png", ValueError),
        (picture(3), "t.xyz", ValueError),
        (picture(3), "t.eps", ValueError),
        (picture(4), "t.jpg", OSError),
    ],
)
def test_what_is_no_picture(tmp_path, image, name, error):
    with pytest.raises(error):
        save_image(image, tmp_path / name)
    assert not os.listdir(tmp_path)


def test_damaged_and_foreign_files(tmp_path):
    save_image(picture(3), tmp_path / "t.png")
    content = (tmp_path / "t.png").read_bytes()
    Image.new("RGB", (4, 4)).save(tmp_path / "t.eps")  # which would be drawn by another program
    bad = (content[:60], b"no", b"", (tmp_path / "t.eps").read_bytes())
    for each in bad:
        (tmp_path / "bad").write_bytes(each)
        with pytest.raises(RuntimeError, match="bad"):
            load_image(tmp_path / "bad")
    with pytest.raises(FileNotFoundError):
        load_image(tmp_path / "none")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_too_many_pixels(tmp_path, monkeypatch):
    save_image(picture(3), tmp_path / "t.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    with pytest.raises(RuntimeError, match="MAX_IMAGE_PIXELS|DecompressionBomb"):
        load_image(tmp_path / "t.png")
