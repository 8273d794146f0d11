"""The names of PyTorch's C++ part that Python code uses: schemas, dispatch keys, types of schemas, and small settings."""

from __future__ import annotations

from ..compat.missing import module_getattr
from ..core.modes import DisableTorchFunction
from ..core.names import name_public
from ..core.overrides import DisableTorchFunctionSubclass
from ..core.overrides import disabled as _disabled_torch_function_impl
from ..families.lapack import LinAlgError as _LinAlgError
from . import _keys, _schema, _types
from ._future import Future
from ._keys import (
    DispatchKey,
    DispatchKeySet,
    Tag,
    _AutoDispatchBelowAutograd,
    _ExcludeDispatchKeyGuard,
)
from ._schema import Argument, FunctionSchema, _AliasInfo, parse_schema
from ._tracing import _get_tracing_state, _log_api_usage_once
from ._types import (
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

__all__ = [
    *(
        "DisableTorchFunction",
        "DisableTorchFunctionSubclass",
        "_LinAlgError",
        "_disabled_torch_function_impl",
    ),
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

__getattr__ = module_getattr(__name__, ("_fft", "_linalg", "_nn", "_special"))

name_public(__name__, "_C._types", "_C._schema", "_C._keys", "_C._future", "_C._tracing")
