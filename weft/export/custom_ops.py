"""`torch.export.custom_ops`: operators that PyTorch's exporter puts into graphs. weft's graphs need none."""
