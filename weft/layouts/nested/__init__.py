"""Nested tensors: batches of tensors with different sizes, which need no padding."""

from . import creation  # noqa: F401 (loads all rules)
