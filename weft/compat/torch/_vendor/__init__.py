"""`torch._vendor`: packages that PyTorch brings with it."""
