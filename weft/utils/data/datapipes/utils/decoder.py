"""From the bytes of a file to what they stand for, by the extension of its name."""

from __future__ import annotations

import io
import json
import os
import pickle
import tempfile
from collections.abc import Callable
from typing import Any

__all__ = [
    "Decoder", "ImageHandler", "MatHandler", "audiohandler", "basichandlers", "extension_extract_fn",
    "handle_extension", "imagehandler", "mathandler", "videohandler",
]  # fmt: skip


def basichandlers(extension: str, data: Any) -> Any:
    """Text, numbers, JSON, pickles and tensors; None for other extensions."""
    if extension in "txt text transcript".split():
        return data.decode("utf-8")
    if extension in "cls cls2 class count index inx id".split():
        try:
            return int(data)
        except ValueError:
            return None
    if extension in "json jsn".split():
        return json.loads(data)
    if extension in "pyd pickle".split():
        return pickle.loads(data)
    if extension == "pt":
        from .....serialization import load

        return load(io.BytesIO(data))
    return None


def handle_extension(extensions: str, f: Callable) -> Callable:
    """Return a handler that calls `f(data)` for these extensions, separated by blanks: "tar.gz gz"."""
    wanted = [each.split(".") for each in extensions.lower().split()]

    def handler(extension: str, data: Any) -> Any:
        parts = extension.lower().split(".")
        for each in wanted:
            if len(each) <= len(parts) and parts[-len(each) :] == each:
                return f(data)
        return None

    return handler


# kind of image -> (what it is, dtype of its elements or None for bytes, mode of Pillow)
_SPECS = {
    f"{kind}{mode}{bits}": (kind, "uint8" if bits == "8" else "float", {"l": "l", "": "rgb", "rgb": "rgb", "rgba": "rgba"}[mode])
    for kind in ("", "torch", "pil")
    for mode in ("l", "rgb", "rgba")
    for bits in ("", "8")
}  # fmt: skip


class ImageHandler:
    """Decodes pictures through Pillow: "l8", "rgb", "rgba", with "torch" or "pil" in front; arrays otherwise.

    Without an 8 at the end the elements are floats between 0 and 1.
    """

    def __init__(self, imagespec: str) -> None:
        found = _SPECS.get(imagespec.lower())
        if found is None:
            raise AssertionError(f"unknown image specification: {imagespec}")
        self.imagespec = imagespec.lower()

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension.lower() not in "jpg jpeg png ppm pgm pbm pnm".split():
            return None
        try:
            import numpy as np
            import PIL.Image
        except ImportError as error:
            raise ModuleNotFoundError(
                "Package `PIL` is required to be installed for default image decoder."
            ) from error
        kind, element, mode = _SPECS[self.imagespec]
        with io.BytesIO(data) as stream:
            picture = PIL.Image.open(stream).convert(mode.upper())
        if kind == "pil":
            return picture
        values = np.asarray(picture)
        if element == "float":
            values = values.astype("f") / 255.0
        if kind == "torch":
            from ..... import from_numpy

            turned = values.transpose(2, 0, 1) if values.ndim == 3 else values
            return from_numpy(np.ascontiguousarray(turned))
        return values


def imagehandler(imagespec: str) -> ImageHandler:
    """`ImageHandler`."""
    return ImageHandler(imagespec)


def _from_file(load: Callable[[str], Any], extension: str, data: bytes) -> Any:
    """Return what `load` reads from a file of `data`; libraries for videos and sounds read files only."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"file.{extension}")
        with open(path, "wb") as file:
            file.write(data)
        return load(path)


def videohandler(extension: str, data: bytes) -> Any:
    """Videos, through torchvision."""
    if extension not in "mp4 ogv mjpeg avi mov h264 mpg webm wmv".split():
        return None
    try:
        from torchvision.io import read_video
    except ImportError as error:
        raise ModuleNotFoundError(
            "Package `torchvision` is required to be installed for default video file loader."
        ) from error
    return _from_file(read_video, extension, data)


def audiohandler(extension: str, data: bytes) -> Any:
    """Sounds, through torchaudio."""
    if extension not in "flac mp3 sox wav m4a ogg wma".split():
        return None
    try:
        import torchaudio
    except ImportError as error:
        raise ModuleNotFoundError(
            "Package `torchaudio` is required to be installed for default audio file loader."
        ) from error
    return _from_file(torchaudio.load, extension, data)


class MatHandler:
    """Decodes files of Matlab through SciPy."""

    def __init__(self, **loadmat_kwargs: Any) -> None:
        self.loadmat_kwargs = loadmat_kwargs

    def __call__(self, extension: str, data: bytes) -> Any:
        if extension != "mat":
            return None
        import scipy.io

        with io.BytesIO(data) as stream:
            return scipy.io.loadmat(stream, **self.loadmat_kwargs)


def mathandler(**loadmat_kwargs: Any) -> MatHandler:
    """`MatHandler`."""
    return MatHandler(**loadmat_kwargs)


def extension_extract_fn(pathname: str) -> str:
    """Return the extension of a path, without the dot."""
    return os.path.splitext(pathname)[1].removeprefix(".")


class Decoder:
    """Decodes (path, data) or a dict of them with the first handler that knows the extension; others stay as they are."""

    def __init__(self, *handler: Callable, key_fn: Callable = extension_extract_fn) -> None:
        self.handlers = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler: Callable) -> None:
        """Append handlers."""
        self.handlers += handler

    @staticmethod
    def _is_stream_handle(data: Any) -> bool:
        return isinstance(getattr(data, "file_obj", data), (io.BufferedIOBase, io.RawIOBase))

    def decode1(self, key: str, data: Any) -> Any:
        """Return what `data` stands for, given its extension or path."""
        if not data:
            return data
        for handler in self.handlers:
            result = handler(key, data)
            if result is not None:
                return result
        return data

    def decode(self, data: Any) -> dict[str, Any]:
        """Return all of (path, data) pairs, as a dict by path."""
        result: dict[str, Any] = {}
        if data is None:
            return result
        for key, value in data.items() if isinstance(data, dict) else [data]:
            if key.startswith("__"):
                result[key] = value.decode("utf-8") if isinstance(value, bytes) else value
                continue
            content = value
            if self._is_stream_handle(value):
                content = value.read()
                value.close()
            result[key] = self.decode1(self.key_fn(key), content)
        return result

    def __call__(self, data: Any) -> dict[str, Any]:
        return self.decode(data)
