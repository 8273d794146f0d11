"""The modules that `torch.func` is made of in PyTorch; libraries import from them."""

from weft.compat.missing import module_getattr as _module_getattr

__getattr__ = _module_getattr(
    __name__,
    ("apis", "batch_norm_replacement", "eager_transforms", "functional_call", "make_functional", "vmap"),
)
