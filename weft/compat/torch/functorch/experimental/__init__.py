"""`functorch.experimental`: functions that PyTorch has since moved to `torch.func` and `torch`."""

from weft.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_

from ..._functorch.apis import chunk_vmap

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
