"""The names of PyTorch's C++ part that Python code uses: schemas, dispatch keys, types of schemas, and small settings."""

from __future__ import annotations

from weft.compat.missing import module_getattr
from weft.core.future import Future
from weft.core.modes import DisableTorchFunction
from weft.core.names import name_public
from weft.core.overrides import DisableTorchFunctionSubclass
from weft.core.overrides import disabled as _disabled_torch_function_impl
from weft.core.storage import Storage as StorageBase
from weft.core.switches import are_deterministic_algorithms_enabled as _get_deterministic_algorithms
from weft.core.switches import get_fill_uninitialized_memory as _get_deterministic_fill_uninitialized_memory
from weft.core.switches import has_lapack, has_mkl, has_openmp, has_spectral
from weft.core.switches import (
    is_deterministic_algorithms_warn_only_enabled as _get_deterministic_algorithms_warn_only,
)
from weft.core.switches import set_fill_uninitialized_memory as _set_deterministic_fill_uninitialized_memory
from weft.core.switches import use_deterministic_algorithms as _set_deterministic_algorithms
from weft.core.tensor import Tensor as _Tensor
from weft.library import keys as _keys
from weft.library import schema as _schema
from weft.library import types as _types
from weft.library.keys import (
    DispatchKey,
    DispatchKeySet,
    Tag,
    _AutoDispatchBelowAutograd,
    _ExcludeDispatchKeyGuard,
)
from weft.library.schema import Argument, FunctionSchema, _AliasInfo, parse_schema
from weft.library.script import (
    Block,
    Code,
    Gradient,
    Graph,
    Node,
    ScriptClass,
    ScriptDict,
    ScriptFunction,
    ScriptList,
    ScriptMethod,
    ScriptModule,
    ScriptObject,
    TracingState,
    Value,
)
from weft.library.types import (
    AnyType,
    AwaitType,
    BoolType,
    ClassType,
    ComplexType,
    DeviceObjType,
    DictType,
    FloatType,
    FutureType,
    IntType,
    ListType,
    NoneType,
    NumberType,
    OptionalType,
    RRefType,
    StreamObjType,
    StringType,
    SymBoolType,
    SymIntType,
    TensorType,
    TupleType,
    Type,
    _GeneratorType,
)
from weft.ops.linalg.lapack import LinAlgError as _LinAlgError

from ._archives import PyTorchFileReader, PyTorchFileWriter
from ._functorch import (
    _debug_only_are_vmap_fallback_warnings_enabled,
    _debug_only_display_vmap_fallback_warnings,
)
from ._settings import (
    _get_accelerator,
    _get_default_device,
    _get_graph_executor_optimize,
    _get_privateuse1_backend_name,
    _jit_can_fuse_on_cpu,
    _jit_can_fuse_on_gpu,
    _jit_clear_class_registry,
    _jit_get_emit_hooks,
    _jit_override_can_fuse_on_cpu,
    _jit_override_can_fuse_on_gpu,
    _jit_set_emit_hooks,
    _jit_set_num_profiled_runs,
    _jit_set_nvfuser_enabled,
    _jit_set_nvfuser_guard_mode,
    _jit_set_profiling_executor,
    _jit_set_profiling_mode,
    _jit_set_texpr_fuser_enabled,
    _set_math_sdp_allow_fp16_bf16_reduction,
)
from ._tracing import _get_tracing_state, _log_api_usage_once

__all__ = [
    *(
        "DisableTorchFunction",
        "DisableTorchFunctionSubclass",
        "_LinAlgError",
        "_disabled_torch_function_impl",
    ),
    *("PyTorchFileReader", "PyTorchFileWriter"),
    *(
        "Block",
        "Code",
        "Gradient",
        "Graph",
        "Node",
        "TracingState",
        "Value",
        "ScriptClass",
        "ScriptDict",
        "ScriptFunction",
        "ScriptList",
        "ScriptMethod",
    ),
    *("ScriptModule", "ScriptObject"),
    *("_get_accelerator", "_get_default_device", "_get_privateuse1_backend_name"),
    *(
        "_get_deterministic_algorithms",
        "_get_deterministic_algorithms_warn_only",
        "_set_deterministic_algorithms",
    ),
    *("_get_deterministic_fill_uninitialized_memory", "_set_deterministic_fill_uninitialized_memory"),
    *("_debug_only_are_vmap_fallback_warnings_enabled", "_debug_only_display_vmap_fallback_warnings"),
    *("_jit_can_fuse_on_cpu", "_jit_can_fuse_on_gpu", "_jit_override_can_fuse_on_cpu"),
    *("_jit_override_can_fuse_on_gpu", "_jit_set_nvfuser_enabled", "_jit_set_nvfuser_guard_mode"),
    *("_jit_set_profiling_executor", "_jit_set_profiling_mode", "_jit_set_texpr_fuser_enabled"),
    *(
        "_get_graph_executor_optimize",
        "_jit_set_num_profiled_runs",
        "has_lapack",
        "has_mkl",
        "has_openmp",
        "has_spectral",
    ),
    *("_jit_clear_class_registry", "_jit_get_emit_hooks", "_jit_set_emit_hooks"),
    *("_set_math_sdp_allow_fp16_bf16_reduction", "_TensorMeta"),
    *("_get_tracing_state", "_log_api_usage_once"),
    *("DispatchKey", "DispatchKeySet", "Tag", "_AutoDispatchBelowAutograd", "_ExcludeDispatchKeyGuard"),
    *("Argument", "Future", "FunctionSchema", "_AliasInfo", "parse_schema", "Type", "_GeneratorType"),
    *(
        "AnyType",
        "AwaitType",
        "BoolType",
        "ClassType",
        "ComplexType",
        "DeviceObjType",
        "DictType",
        "FloatType",
    ),
    *(
        "FutureType",
        "IntType",
        "ListType",
        "NoneType",
        "NumberType",
        "OptionalType",
        "RRefType",
        "StreamObjType",
    ),
    *("StringType", "SymBoolType", "SymIntType", "TensorType", "TupleType"),
]

_TensorMeta = type(_Tensor)  # programs ask whether a class is one of tensors

# Names -> where they are, loaded when first used.
_LATER = {
    **dict.fromkeys(
        (
            *("_dispatch_keys", "_dispatch_key_set", "_parse_dispatch_key", "_dispatch_key_parse", "_dispatch_key_name"),
            *("_dispatch_has_kernel", "_dispatch_has_kernel_for_dispatch_key", "_dispatch_get_all_op_names"),
            *("_dispatch_has_computed_kernel_for_dispatch_key", "_jit_get_schemas_for_operator", "_jit_get_all_schemas"),
            "_get_schema",
        ),
        "_dispatch",
    ),
    **dict.fromkeys(
        (
            *("TensorBase", "_TensorBase", "_GLIBCXX_USE_CXX11_ABI", "_VariableFunctions", "_VariableFunctionsClass"),
            *("is_grad_enabled", "_set_grad_enabled", "get_num_threads", "set_num_threads", "_get_cpu_capability"),
            *("_is_torch_function_enabled", "_has_torch_function", "_has_torch_function_unary", "_is_tracing"),
            *("_has_torch_function_variadic", "_log_api_usage_metadata", "_is_alias_of", "_data_address"),
            *("_storage_address", "_is_cow_tensor", "_WeakTensorRef", "_current_graph_task_id", "_will_engine_execute_node"),
            *("_dispatch_isTensorSubclassLike", "_are_functorch_transforms_active", "_is_fwd_grad_enabled", "_set_fwd_grad_enabled"),
        ),
        "_process",
    ),
    **dict.fromkeys(
        (
            *("_TorchFunctionState", "_get_torch_function_state", "_set_torch_function_state", "_len_torch_function_stack"),
            *("_get_function_stack_at", "_push_on_torch_function_stack", "_pop_torch_function_stack"),
        ),
        "_torch_function",
    ),
}  # fmt: skip
__getattr__ = module_getattr(
    __name__,
    (
        "_autograd", "_distributed_c10d", "_fft", "_functions", "_functorch", "_linalg", "_nn",
        "_profiler", "_special",
    ),
    _LATER,
)  # fmt: skip

name_public(
    __name__,
    "_C._types",
    "_C._schema",
    "_C._keys",
    "_C._future",
    "_C._tracing",
    "_C._settings",
    "_C._archives",
)
