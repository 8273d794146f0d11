"""Fixtures for the tests of quantized tensors."""

from exact_quantized import exact_layers  # noqa: F401 (a fixture)
