# module torch.backends.cudnn.rnn: weft's CUDA devices do not have it
