"""What GPUs share: one generator of kernels, a `Backend` over them, and the runtimes of drivers."""
