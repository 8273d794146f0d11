"""Quantized tensors: integers that stand for numbers, `(integer - zero_point) * scale`."""
