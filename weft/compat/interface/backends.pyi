# module torch.backends.cudnn.rnn: this version of weft computes on the CPU only; test torch.cuda.is_available() first
