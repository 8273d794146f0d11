"""Translates between the globals of PyTorch's pickles and weft's objects, and holds the default allowlist."""

from __future__ import annotations

import collections
import functools
import importlib
from collections.abc import Callable
from typing import Any

from ..core import dtype as dt
from ..core import layout as layouts
from ..core.device import device
from ..core.qscheme import SCHEMES
from ..core.registry import FUNCTIONS
from ..core.size import Size
from ..core.storage import Storage
from ..core.tensor import Tensor
from ..ops.tensor.storage import TypedStorage
from . import nested, rebuild

# ---- The table -------------------------------------------------------------------------------------------------------

# fmt: off
_FUNCTIONS: dict[str, Callable] = {
    "torch._utils._rebuild_tensor":                     rebuild.rebuild_tensor,
    "torch._utils._rebuild_tensor_v2":                  rebuild.rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3":                  rebuild.rebuild_tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage":     rebuild.rebuild_meta_tensor,
    "torch._utils._rebuild_parameter":                  rebuild.rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state":       rebuild.rebuild_parameter_with_state,
    "torch._utils._rebuild_nested_tensor":              nested.rebuild_nested_tensor,
    "torch.nested._internal.nested_tensor._rebuild_njt": nested.rebuild_jagged_tensor,
    "torch._tensor._rebuild_from_type_v2":              rebuild.rebuild_from_type,
    "torch._utils._rebuild_wrapper_subclass":           rebuild.rebuild_wrapper_subclass,
    "torch._utils._rebuild_qtensor":                    rebuild.rebuild_qtensor,
    "torch._utils._rebuild_sparse_tensor":              rebuild.rebuild_sparse_tensor,
    "torch.serialization._get_layout":                  rebuild.rebuild_layout,
}

# Callables, and the functions that are called in their place because they check their arguments.
_CALLS: dict[str, tuple[Any, Callable]] = {
    "torch.Size":                (Size,                      rebuild.rebuild_size),
    "torch.device":              (device,                    rebuild.rebuild_device),
    "collections.OrderedDict":   (collections.OrderedDict,   rebuild.rebuild_dict),
    "collections.Counter":       (collections.Counter,       rebuild.rebuild_counter),
    "builtins.set":              (set,                       rebuild.rebuild_set),
    "builtins.complex":          (complex,                   rebuild.rebuild_complex),
    "builtins.bytearray":        (bytearray,                 rebuild.rebuild_bytearray),
    "torch._dynamo.decorators._DimRange": (nested.DimRange,  nested.DimRange),
    "_codecs.encode":            (importlib.import_module("_codecs").encode, rebuild.rebuild_bytes),
}
# fmt: on

_STEMS = ("Double", "Float", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
_STORAGES = (*_STEMS, "ComplexDouble", "ComplexFloat")

# Globals that PyTorch allows and weft does not have. A file may name them; using them raises NotImplementedError.
_ABSENT = frozenset(
    [
        *(f"torch._utils._rebuild_device_tensor_from_{what}" for what in ("cpu_tensor", "numpy")),
        *(
            f"torch.{place}sparse.{stem}Tensor"
            for place in ("", "cuda.")
            for stem in _STEMS
            if stem != "Bool"
        ),
        *(f"torch.{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)),
        *(f"torch.bits{kind}" for kind in ("8", "16", "1x8", "2x4", "4x2")),
        *("torch.float4_e2m1fn_x2", "torch.float8_e8m0fnu"),
    ]
)


@functools.cache
def torch_globals() -> dict[str, Any]:
    """Return the default allowlist of objects with names of PyTorch, such as "torch.float32"."""
    from ..autograd.parameter import Parameter

    named = [value for value in vars(layouts).values() if isinstance(value, layouts.MemoryFormat)]
    return {
        **_FUNCTIONS,
        **{name: found for name, (found, _) in _CALLS.items() if name.startswith("torch.")},
        **{f"torch.{dtype.name}": dtype for dtype in dt.DTYPES.values()},
        **{f"torch.{dtype.name}": dtype for dtype in dt.QUANTIZED},
        **{
            f"torch.{dt.LEGACY_NAMES[each]}Storage": FUNCTIONS[f"{dt.LEGACY_NAMES[each]}Storage"]
            for each in dt.QUANTIZED
        },
        **{f"torch.{name}": scheme for name, scheme in SCHEMES.items()},
        **{f"torch.{each.name}": each for each in named},
        **{f"torch.cuda.{kind}Storage": FUNCTIONS[f"{kind}Storage"] for kind in _STORAGES},
        **{f"torch.{kind}Storage": FUNCTIONS[f"{kind}Storage"] for kind in _STORAGES},
        **{f"torch.{stem}Tensor": FUNCTIONS[f"{stem}Tensor"] for stem in _STEMS},
        "torch.storage.UntypedStorage": Storage,
        "torch.storage.TypedStorage": TypedStorage,
        "torch.Tensor": Tensor,
        "torch.nested._internal.nested_tensor.NestedTensor": nested.NestedTensor,
        "torch.nn.parameter.Parameter": Parameter,
    }


@functools.cache
def default_globals() -> dict[str, Any]:
    """Return the default allowlist: full name -> object."""
    return {**{name: found for name, (found, _) in _CALLS.items()}, **torch_globals()}


@functools.cache
def checked_calls() -> dict[int, Callable]:
    """The checked function to call in place of an allowed callable, by the id of the callable."""
    functions = {id(function): function for function in _FUNCTIONS.values()}
    return functions | {id(found): call for found, call in _CALLS.values()}


@functools.cache
def tensor_types() -> dict[int, Any]:
    """The classes of tensors that the oldest files create empty and fill later, by their id."""
    classes = [Tensor, *(torch_globals()[f"torch.{stem}Tensor"] for stem in _STEMS)]
    return {id(each): each for each in classes}


def is_known(name: str) -> bool:
    """Whether PyTorch allows this global by default."""
    return name in default_globals() or name in _ABSENT


def is_absent(name: str) -> bool:
    """Whether PyTorch allows this global and weft does not have it."""
    return name in _ABSENT


# ---- From objects to names -------------------------------------------------------------------------------------------


@functools.cache
def _names() -> dict[int, str]:
    return {id(found): name for name, found in torch_globals().items()}


def torch_name(value: Any) -> tuple[str, str] | None:
    """Return the module and the name of an object of weft in PyTorch; None for other objects.

    Most classes are in a module with the same path.
    """
    name = _names().get(id(value))
    if name is not None:
        module, _, last = name.rpartition(".")
        return module, last
    path, own = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(path, str) or not isinstance(own, str):
        return None
    top, _, rest = path.partition(".")
    if top not in ("weft", "torch"):
        return None
    # A pickle of PyTorch names the public module of a function, and the defining module of a class.
    if isinstance(value, type):
        return (f"torch.{rest}".removesuffix("."), own) if _resolve(rest, own) is value else None
    found = next((place for place in ("nn.functional", "", rest) if _member(place, own) is value), None)
    return None if found is None else (f"torch.{found}".removesuffix("."), own)


# ---- From names to objects -------------------------------------------------------------------------------------------


# The modules in weft of PyTorch's C functions. The other C functions are attributes of classes.
_BUILT_IN = {"torch._C._nn": "nn.functional"}
_BUILT_IN_CLASS = "torch._C", "_VariableFunctionsClass"


def find_torch(module: str, name: str) -> Any:
    """The object of weft that PyTorch calls `module.name`, for trusted files.

    Raises: AttributeError if weft does not have it.
    """
    if (module, name) == _BUILT_IN_CLASS:
        return importlib.import_module("weft")
    found = torch_globals().get(f"{module}.{name}")
    if found is None:
        found = _resolve(_BUILT_IN.get(module, module.partition(".")[2]), name)
    if found is None:
        raise AttributeError(f"the file needs {module}.{name}, which weft does not have")
    return found


def _resolve(module: str, name: str) -> Any:
    """Look a name up in the module of weft with the same path, then in the packages around it.

    PyTorch often defines classes in submodules of their public module, for example torch.nn.modules.linear.Linear.
    """
    while (found := _member(module, name)) is None and module:
        module = module.rpartition(".")[0]
    return found


def _member(module: str, name: str) -> Any:
    """An object in one module of weft, None if there is none."""
    try:
        place = importlib.import_module(f"weft.{module}".removesuffix("."))
        return functools.reduce(getattr, name.split("."), place)
    except (ImportError, AttributeError):
        return None
