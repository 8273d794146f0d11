"""weft: PyTorch's tensor, in Python. `import weft as torch`.

The folders are the floors of a house, listed from the ground up. A folder imports from those that are listed before it, never from those that are listed after
it; tests/test_floors.py reads this list. `core/above.py` has the few modules that a lower floor loads from a higher one.

The tensor
    core              what a tensor is: specs, storages, dispatch, the table of functions, settings
    compat            `import torch` bound to weft, and what names say that weft lacks
    engine            kernels: from expressions to machine code; memory and threads
    devices           a folder for each device
    families          the common code of operations: maps, reductions, views
    interop           memory shared with NumPy, other libraries and other processes
    ops               every operation, one row each
    autograd          derivatives backward and forward, parameters
    layouts           sparse, quantized, nested and named tensors
    batching          the rules of vmap
    compat.libraries  what other libraries ask of tensors: the array API standard, einops
    amp               autocast and gradient scaling
    serialization     files of torch.save
    weft              this file: the public names

What people import by name
    func              transforms of functions
    overrides         what classes with __torch_function__ are asked about
    nn                modules and layers
    optim             optimizers
    distributions     probability distributions
    compiler          torch.compile
    library           operators that programs define, torch.ops, schemas, control flow
    fx                programs as graphs
    jit               TorchScript's functions and files
    masked            tensors with masks
    accelerator       the accelerator of this computer
    cuda              CUDA devices
    profiler          times of operators and ranges
    export            torch.export
    distributed       groups of processes
    utils             data loading, benchmarks
    viz               pictures of tensors, graphs, kernels, memory and models
    testing           assert_close, make_tensor
    onnx              programs as ONNX models
    ao                quantized layers, pruning
    io                HDF5, safetensors, .npy, images, CSV

PyTorch's private and legacy modules, the operators of other libraries' extensions, the command
    compat.extensions
    compat.torch
    compat.torch_xla
    cli
    __main__
"""

from __future__ import annotations

import importlib
import sys as _sys
from math import e, inf, nan, pi

from .compat import served as _served
from .compat.missing import module_getattr as _module_getattr
from .compat.version import PYTORCH as __version__
from .core import dtype as _dtypes
from .core import layout as _layouts
from .core.device import CPU as _CPU
from .core.device import device, get_default_device, set_default_device
from .core.dtype import LEGACY_NAMES as _LEGACY_NAMES
from .core.dtype import DType as dtype
from .core.dtype import get_default_dtype, set_default_dtype
from .core.dtype import when_plans_expire as _when_plans_expire
from .core.generator import Generator, default_generator
from .core.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .core.layout import Layout as layout
from .core.layout import MemoryFormat as memory_format
from .core.limits import finfo, iinfo
from .core.names import INNER as _INNER
from .core.names import name_methods as _name_methods
from .core.names import name_public as _name_public
from .core.out_of_memory import OutOfMemoryError
from .core.overrides import DisableTorchFunctionSubclass
from .core.promotion import can_cast, promote_types
from .core.qscheme import SCHEMES as _SCHEMES
from .core.qscheme import AcceleratorError, FatalError, qscheme
from .core.registry import FUNCTIONS as _FUNCTIONS
from .core.registry import name_functions as _name_functions
from .core.registry import separate_aliases as _separate_aliases
from .core.size import Size
from .core.streams import Event, Stream
from .core.switches import (
    are_deterministic_algorithms_enabled,
    compiled_with_cxx11_abi,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    get_num_interop_threads,
    has_lapack,
    has_mkl,
    has_openmp,
    has_spectral,
    init_num_threads,
    is_deterministic_algorithms_warn_only_enabled,
    is_vulkan_available,
    is_warn_always_enabled,
    read_vitals,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_num_interop_threads,
    set_vital,
    set_warn_always,
    thread_safe_generator,
    use_deterministic_algorithms,
)
from .core.tensor import Tensor
from .devices import synchronize
from .engine.defer import eager
from .engine.explain import explain
from .engine.workers import get_num_threads, set_num_threads

newaxis = None

for _module in ("ops", "layouts"):  # make the names of all operations public
    importlib.import_module(f".{_module}", __name__)
# The CPU is loaded now, because a thread that loads it first would hold the lock of its import while another thread forks.
_CPU.backend  # noqa: B018

for _module in ("interop.numpy", "interop.dlpack", "compat.libraries.discovery", "interop.sharing"):
    importlib.import_module(f".{_module}", __name__)
_separate_aliases()

from . import autograd  # noqa: E402  (its methods of Tensor come last)
from .amp.autocast_mode import (  # noqa: E402
    autocast,
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    get_autocast_ipu_dtype,
    get_autocast_xla_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
    is_autocast_ipu_enabled,
    is_autocast_xla_enabled,
    set_autocast_cache_enabled,
    set_autocast_cpu_dtype,
    set_autocast_cpu_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
    set_autocast_gpu_dtype,
    set_autocast_ipu_dtype,
    set_autocast_ipu_enabled,
    set_autocast_xla_dtype,
    set_autocast_xla_enabled,
)
from .amp.grad_scaler import GradScaler  # noqa: E402
from .autograd import grad_mode as _grad_mode  # noqa: E402, F401 (where no_grad says that it is)
from .autograd.anomaly import set_anomaly_enabled  # noqa: E402
from .ops.tensor.printing import set_printoptions  # noqa: E402
from .serialization import load, save  # noqa: E402

globals().update({name: value for name, value in _FUNCTIONS.items() if "." not in name})
globals().update({name: value for name, value in _dtypes.DTYPES.items() if name != "bool"})
globals().update(_dtypes.ALIASES)
globals().update(_SCHEMES)
bool = _dtypes.bool_  # noqa: A001 (PyTorch's name)
globals().update(
    {value.name: value for value in vars(_layouts).values() if isinstance(value, (layout, memory_format))}
)


# Submodules that are loaded when first used.
_LAZY = (
    "accelerator",
    "amp",
    "compat",
    "compiler",
    "cuda",
    "distributed",
    "distributions",
    "export",
    "func",
    "fx",
    "io",
    "jit",
    "library",
    "masked",
    "nn",
    "onnx",
    "optim",
    "overrides",
    "profiler",
    "serialization",
    "testing",
    "utils",
    "viz",
    "mps",
    *(name for name in _served.inside(__name__) if name != "functorch"),  # which is beside torch
)
# Public names that `from torch import *` does not bring.
_NOT_EXPORTED = frozenset(
    "BFloat16Storage BFloat16Tensor ComplexDoubleStorage ComplexFloatStorage HalfStorage HalfTensor QInt32Storage QInt8Storage "
    "QUInt2x4Storage QUInt4x2Storage QUInt8Storage Storage StorageBase annotations broadcast_shapes classes compiled_with_cxx11_abi "
    "count eager eig explain from_dlpack load_ipython_extension lstsq lu matrix_rank ops pca_lowrank quantized_gru quantized_lstm read_vitals segment_reduce "
    "set_default_dtype set_grad_enabled set_vital solve svd_lowrank symeig synchronize to_dlpack unique unload_ipython_extension while_loop".split()
)
# Names -> the submodules that have them, loaded when first used.
_LAZY_NAMES = {
    "AnyType": "_C",
    "Argument": "_C",
    "AwaitType": "_C",
    "Block": "_C",
    "BoolType": "_C",
    "ClassType": "_C",
    "ComplexType": "_C",
    "DeviceObjType": "_C",
    "DictType": "_C",
    "DisableTorchFunction": "_C",
    "DispatchKey": "_C",
    "DispatchKeySet": "_C",
    "FloatType": "_C",
    "FunctionSchema": "_C",
    "Future": "_C",
    "FutureType": "_C",
    "Graph": "_C",
    "IntType": "_C",
    "JITException": "jit",
    "ListType": "_C",
    "Node": "_C",
    "NoneType": "_C",
    "NumberType": "_C",
    "OptionalType": "_C",
    "PyTorchFileReader": "_C",
    "PyTorchFileWriter": "_C",
    "RRefType": "_C",
    "ScriptClass": "_C",
    "ScriptDict": "_C",
    "ScriptFunction": "jit",
    "ScriptList": "_C",
    "ScriptMethod": "_C",
    "ScriptModule": "_C",
    "ScriptObject": "_C",
    "StreamObjType": "_C",
    "StringType": "_C",
    "SymBoolType": "_C",
    "SymIntType": "_C",
    "StorageBase": "_C",
    "Tag": "_C",
    "TensorType": "_C",
    "TupleType": "_C",
    "Type": "_C",
    "Value": "_C",
    "_disable_dynamo": "_compile",
    "classes": "_classes",
    "compile": "compiler",
    "cond": "_higher_order_ops",
    "count": "utils.counting",
    "fork": "jit",
    "get_device_module": "accelerator._module",
    "load_ipython_extension": "viz.notebook",
    "ops": "_ops",
    "parse_schema": "_C",
    "unload_ipython_extension": "viz.notebook",
    "vmap": "func",
    "wait": "jit",
    "while_loop": "_higher_order_ops",
}
globals().pop("ops", None)  # the package of weft's operations; `torch.ops` is the namespace of operators
__getattr__ = _module_getattr(__name__, _LAZY, _LAZY_NAMES)


def __dir__():
    """The public names: with the submodules that are not loaded yet, without the modules that only weft has."""
    return sorted({*globals(), *_LAZY, *_LAZY_NAMES} - (_INNER - {"ops"}))


torch = _sys.modules[__name__]  # PyTorch has this name, too


def _name_default_storage() -> None:
    """`torch.Storage` is the class of typed storages of the default dtype."""
    globals()["Storage"] = _FUNCTIONS[f"{_LEGACY_NAMES[get_default_dtype()]}Storage"]


_when_plans_expire.append(_name_default_storage)  # when the default dtype changes
_tensor_classes = {value for name, value in _FUNCTIONS.items() if name.endswith("Tensor")}
_storage_classes = {value for name, value in _FUNCTIONS.items() if name.endswith("Storage")}
_name_functions()
_name_public(__name__)
_name_methods(Tensor)
__all__ = sorted(  # what `from torch import *` brings
    name
    for name, value in {"export": None, **_LAZY_NAMES, **globals()}.items()
    if not (name.startswith("_") or name in _NOT_EXPORTED)
    and not isinstance(value, (type(_sys), layout, memory_format, qscheme))
)
importlib.import_module(".autograd.replays", __name__)
importlib.import_module(".families.native_calls", __name__).arrange()
importlib.import_module(".compat.reports", __name__).arrange()
importlib.import_module(".compat.without_run", __name__).arrange()
