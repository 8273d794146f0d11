"""Tools around the tensor: benchmarks, data loading, counting of operations."""

from ..autograd import handles as hooks
from ..autograd.swapping import set_module, swap_tensors
from ..compat.missing import module_getattr as _module_getattr

# Submodules that are loaded when first used. weft/compat/served.py lists others.
__getattr__ = _module_getattr(
    __name__,
    (
        "_contextlib", "_device", "_dtype_abbrs", "_import_utils", "_mode_utils", "_triton",
        "backcompat", "backend_registration", "benchmark", "checkpoint", "collect_env",
        "cpp_backtrace", "data", "debug_log", "deterministic", "dlpack", "file_baton",
        "flop_counter", "model_zoo", "module_tracker", "serialization", "show_pickle",
        "tensorboard", "throughput_benchmark", "viz",
    ),
    {
        "ThroughputBenchmark": "throughput_benchmark",
        "generate_methods_for_privateuse1_backend": "backend_registration",
        "get_cpp_backtrace": "cpp_backtrace",
        "rename_privateuse1_backend": "backend_registration",
    },
)  # fmt: skip
