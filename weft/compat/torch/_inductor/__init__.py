"""`torch._inductor`, the compiler behind `torch.compile`: its settings. weft compiles each operation by itself."""
