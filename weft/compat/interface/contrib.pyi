# module torch.contrib: it shows the graphs of TorchScript, which weft does not have
