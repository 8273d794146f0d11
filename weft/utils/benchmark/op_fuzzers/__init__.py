"""Random operands for kinds of operations."""

__all__ = ["binary", "spectral", "unary"]
