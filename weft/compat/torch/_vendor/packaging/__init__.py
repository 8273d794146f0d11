"""`torch._vendor.packaging`: the package `packaging`, where it is installed."""
