"""`torch._vmap_internals`: `vmap` by its older names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.compat.missing import module_getattr
from weft.func import vmap

in_dims_t = out_dims_t = int | tuple[int, ...]


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """`vmap`. allow_none_pass_through: results that are None stay None, which weft's `vmap` refuses."""
    if allow_none_pass_through:
        raise NotImplementedError("torch._vmap_internals._vmap: weft's vmap takes no results that are None")
    return vmap(func, in_dims, out_dims)


__getattr__ = module_getattr(__name__)
