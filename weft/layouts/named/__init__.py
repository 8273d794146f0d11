"""Named tensors: strided tensors whose dims have names."""

from . import methods  # noqa: F401 (fills the rules)
