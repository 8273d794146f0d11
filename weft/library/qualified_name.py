"""The names under which PyTorch keeps the functions of weft: generated code is written with them.

PyTorch's functions live where they were bound: `torch.nn.functional.linear` is `torch._C._nn.linear`, for example. Programs
compare the text of graphs, and weft has its functions under those names as well (`weft/compat/torch/_C`).
"""

from __future__ import annotations

import functools
import inspect
import sys
from types import FunctionType
from typing import Any

from ..core.overrides import full_name
from ..core.registry import DEFINED_AS, FUNCTIONS
from ..core.tensor import Tensor

# Functions of `nn.functional` that PyTorch binds in `torch` itself and in `torch._C._nn`.
_IN_TORCH = frozenset(
    "adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d "
    "conv_transpose2d conv_transpose3d cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist "
    "pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ selu_ threshold_".split()
)
_IN_C_NN = frozenset(
    "avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear logsigmoid one_hot scaled_dot_product_attention softplus "
    "softshrink".split()
)
# Functions of `torch` that PyTorch writes in Python, by the module that holds them.
_IN_PYTHON = {
    name: module
    for module, names in {
        "torch": "_assert _check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_tensor_all_with "
        "_check_type _check_value _check_with _is_device_backend_autoload_enabled _running_with_deploy _sym_acos _sym_asin "
        "_sym_atan _sym_cos _sym_cosh _sym_log2 _sym_sin _sym_sinh _sym_sqrt _sym_tan _sym_tanh is_storage is_tensor "
        "set_default_tensor_type sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum typename",
        "torch.functional": "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod "
        "cdist chain_matmul einsum lu meshgrid norm split stft tensordot unique unique_consecutive unravel_index",
        "torch._linalg_utils": "eig lstsq matrix_rank solve symeig",
        "torch._lowrank": "pca_lowrank svd_lowrank",
        "torch._lobpcg": "lobpcg",
        "torch.random": "get_rng_state initial_seed manual_seed seed set_rng_state",
        "torch.utils.dlpack": "from_dlpack",
    }.items()
    for name in names.split()
}


def public_name(function: Any) -> str | None:
    """The name of a function of weft behind `torch.`: "relu", "nn.functional.relu"; None for functions of others."""
    return _names(len(FUNCTIONS)).get(id(function))


@functools.lru_cache(maxsize=1)
def _names(count: int) -> dict[int, str]:
    """Functions by identity. `count` makes it anew after functions were added."""
    found: dict[int, str] = {}
    for name, function in FUNCTIONS.items():
        previous = found.get(id(function))
        # Of several names of one function, the one that it calls itself comes first.
        if previous is None or (name == function.__name__ and previous != name):
            found[id(function)] = name
    return found


def torch_name(name: str) -> str:
    """Where PyTorch keeps the function that is public as `name`.

    >>> torch_name("relu"), torch_name("nn.functional.linear"), torch_name("fft.rfft")
    ('torch.relu', 'torch._C._nn.linear', 'torch._C._fft.fft_rfft')
    """
    space, _, last = name.rpartition(".")
    if space == "nn.functional":
        if last in _IN_TORCH:
            return f"torch.{last}"
        return f"torch.{'_C._nn' if last in _IN_C_NN else space}.{DEFINED_AS.get(name, last)}"
    if space in ("fft", "linalg", "special"):
        return f"torch._C._{space}.{space}_{last}"
    if space == "masked":
        return f"torch.masked._ops.{last}"
    return f"{_IN_PYTHON.get(name, 'torch') if not space else 'torch.' + space}.{last}"


def is_written_in_python(name: str) -> bool:
    """Whether PyTorch writes the function that is public as `name` in Python.

    `__torch_function__` of such a function sees its arguments sorted: those with a default as keywords.
    """
    where = torch_name(name)
    return where.startswith("torch.nn.functional.") or name in _IN_PYTHON


def is_from_torch(obj: Any) -> bool:
    """Whether an object is one of weft's, which generated code reaches through the name `torch`."""
    if public_name(obj) is not None or is_operator(obj):
        return True
    module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
    if (
        not isinstance(module, str)
        or not isinstance(name, str)
        or module.partition(".")[0] not in ("torch", "weft")
    ):
        return False
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is obj


def is_operator(obj: Any) -> bool:
    """Whether an object is one of the operators of `torch.ops`."""
    kind = type(obj)
    return kind.__name__ in _OPERATORS or any(base.__name__ in _OPERATORS for base in kind.__mro__)


_OPERATORS = ("OpOverload", "OpOverloadPacket", "HigherOrderOperator")


def method_of_torch(function: Any) -> str | None:
    """`torch.Tensor.add` for a method of Tensor, None for everything else."""
    if isinstance(function, FunctionType) and vars(Tensor).get(function.__name__) is function:
        return full_name(function)  # type: ignore[arg-type]
    return None


def torch_path(obj: Any) -> str | None:
    """The path of a function or class of weft, as PyTorch writes it; None for objects of others."""
    if (name := public_name(obj)) is not None:
        return torch_name(name)
    if (method := method_of_torch(obj)) is not None:
        return method
    if is_operator(obj):
        return f"torch.ops.{obj}" if "." in str(obj) else f"torch.ops.higher_order.{obj}"
    module = getattr(obj, "__module__", None)
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    root, _, rest = module.partition(".")
    if root not in ("torch", "weft"):
        return None
    if inspect.isclass(obj) and getattr(sys.modules["weft"], name, None) is obj:
        return f"torch.{name}"
    return ".".join(filter(None, ("torch", rest, name)))
