"""`torch._inductor`, the compiler behind `torch.compile`: its settings. weft compiles each operation by itself."""

from weft.compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("config", "utils"))
