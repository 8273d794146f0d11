"""The operators of torchvision's library of pictures, registered under `torch.ops.image` when this module is imported."""

from __future__ import annotations

from ...library import Library
from . import pictures

# fmt: off
_OPERATORS = (
    ("read_file(str filename) -> Tensor",                                                pictures.read_file),
    ("write_file(str filename, Tensor data) -> Tensor",                                  pictures.write_file),
    ("decode_image(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor", pictures.decode_image),
    ("decode_jpeg(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor",  pictures.decode_jpeg),
    ("decode_png(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor",   pictures.decode_png),
    ("decode_gif(Tensor data) -> Tensor",                                                pictures.decode_gif),
    ("decode_webp(Tensor encoded_data, int mode) -> Tensor",                             pictures.decode_webp),
    ("encode_jpeg(Tensor data, int quality) -> Tensor",                                  pictures.encode_jpeg),
    ("encode_png(Tensor data, int compression_level) -> Tensor",                         pictures.encode_png),
)
# fmt: on

_library = Library("image", "DEF")
for _schema, _function in _OPERATORS:
    _library.impl(_library.define(_schema), _function, "CompositeExplicitAutograd")
