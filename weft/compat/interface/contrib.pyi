# module torch.contrib: weft writes no graphs for TensorBoard
