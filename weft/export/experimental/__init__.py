"""`torch.export.experimental`: its names begin with an underscore in PyTorch. weft has none of them."""
