"""`torch._vendor.packaging.version`: versions that can be compared."""

from packaging.version import VERSION_PATTERN, InvalidVersion, Version, parse

__all__ = ["VERSION_PATTERN", "InvalidVersion", "Version", "parse"]
