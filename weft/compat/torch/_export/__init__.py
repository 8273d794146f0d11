"""`torch._export`: what programs prepare for `torch.export`."""
