"""`torch.backends.xeon`: a launcher of programs on many cores."""
