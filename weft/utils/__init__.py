"""Tools around the tensor: benchmarks, data loading, counting of operations."""

from ..compat.missing import module_getattr as _module_getattr

# Submodules that are loaded when first used.
__getattr__ = _module_getattr(
    __name__,
    (
        "_foreach_utils",
        "_pytree",
        "_python_dispatch",
        "benchmark",
        "checkpoint",
        "data",
        "dlpack",
        "flop_counter",
        "hooks",
        "model_zoo",
    ),
)
