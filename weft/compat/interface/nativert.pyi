# module torch.nativert: weft has no TorchScript: programs run as they are

# module torch.nativert.backends: weft has no TorchScript: programs run as they are
