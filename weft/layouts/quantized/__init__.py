"""Quantized tensors: integers that stand for numbers, `(integer - zero_point) * scale`."""

from . import access, calculation, files, images, views  # noqa: F401 (they fill the rules)
