"""Random tensors, and tensors filled with random numbers: the same numbers as PyTorch's for the same seed."""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.device import CPU
from ..core.dtype import (
    LEGACY_NAMES,
    DType,
    bfloat16,
    bool_,
    complex32,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ..core.generator import Generator, default_generator
from ..core.iteration import broadcast_shapes
from ..core.layout import MemoryFormat, contiguous_format, preserve_format
from ..core.op import add_inplace, check_inplace, public, resize_out
from ..core.spec import contiguous_spec
from ..core.tensor import Tensor, address
from ..core.tensor import empty as empty_of
from ..engine import distributions, rejection
from ..families.library import array, tensor_of
from .copying import copy_values, formatted_spec
from .creation import check_dtype, empty_as, new, size_arguments

FLOATS = (float16, bfloat16, float32, float64)
CONTINUOUS = (*FLOATS, complex32, complex64, complex128)
INTEGERS = (uint8, int8, int16, int32, int64)
WIDE_UNSIGNED = (uint16, uint32, uint64)
# How messages about ranges name the types.
_C_NAMES = {
    bool_: "bool", uint8: "unsigned char", int8: "signed char", int16: "short int", int32: "int", int64: "long int",
    uint16: "short unsigned int", uint32: "unsigned int", uint64: "long unsigned int",
    float16: "c10::Half", bfloat16: "c10::BFloat16", float32: "float", float64: "double",
}  # fmt: skip


# ---- The generator -------------------------------------------------------------------------------------------------


@public("function")
def manual_seed(seed: int) -> Generator:
    """Restart the default generator at `seed`, in [-2**63, 2**64), and return it.

    >>> import weft as torch
    >>> _ = torch.manual_seed(0); torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(int(seed))


@public("function")
def seed() -> int:
    """Restart the default generator at a seed from the operating system, and return it."""
    return default_generator.seed()


@public("function")
def initial_seed() -> int:
    """The last seed of the default generator."""
    return default_generator.initial_seed()


@public("function")
def get_rng_state() -> Tensor:
    """The state of the default generator: 5056 bytes."""
    return _get_state(default_generator)


@public("function")
def set_rng_state(new_state: Tensor) -> None:
    """Continue the default generator from what `get_rng_state` returned."""
    _set_state(default_generator, new_state)


def _get_state(self: Generator) -> Tensor:
    """The state as a tensor of 5056 bytes."""
    return tensor_of(self.state_bytes())


def _set_state(self: Generator, new_state: Tensor) -> Generator:
    """Continue from what `get_state` returned."""
    if not isinstance(new_state, Tensor):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
    if new_state.dtype is not uint8 or new_state.device is not CPU:
        raise TypeError("RNG state must be a torch.ByteTensor")
    self.load_state_bytes(np.ascontiguousarray(array(new_state)))
    return self


Generator.get_state, Generator.set_state = _get_state, _set_state  # type: ignore[attr-defined]


def _generator(generator: Any, name: str) -> Generator:
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(
            f"{name}(): argument 'generator' must be torch.Generator, not {type(generator).__name__}"
        )
    return generator


# ---- Filling in place ------------------------------------------------------------------------------------------------


def _fill(target: Tensor, write: Callable[[int, int, DType], None]) -> Tensor:
    """Let `write(address, n, dtype)` fill the elements in the order in which they lie in memory.

    Complex elements are two of the real dtype.
    """
    own = target.spec
    if own.device.type == "meta" or own.numel == 0:
        return target
    if own.device is not CPU:
        raise NotImplementedError(f"random numbers on device {own.device}")
    plain = (own.is_contiguous or own.is_dense) and not own.conj and not own.neg
    into = target if plain else empty_of(formatted_spec(own, preserve_format, own.dtype, own.device))
    write(address(into), own.numel * (2 if own.dtype.is_complex else 1), own.dtype.to_real())
    if plain:
        target._storage.version += 1
    else:
        copy_values(target, into)
    return target


def _check_implemented(target: Tensor, dtypes: tuple[DType, ...], kernel: str) -> None:
    if target.dtype not in dtypes and not target.is_meta:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{LEGACY_NAMES[target.dtype]}'")


def _check_continuous(target: Tensor, name: str, kind: str) -> None:
    if not target.is_floating_point():
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {kind}"
        )


def _number(value: Any, name: str, argument: str, position: int) -> float:
    """A float from a number or a tensor with one element."""
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be float, not {type(value).__name__}"
        )
    return float(value)


def uniform_(self: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill with uniform numbers from [from, to); (from, to) is (0, 1) unless given.

    >>> import weft as torch
    >>> all(2 <= x < 3 for x in torch.empty(100).uniform_(2, 3).tolist())
    True
    """
    low, high = _bounds("uniform_", bounds, named)
    low, high = _number(low, "uniform_", "from", 1), _number(high, "uniform_", "to", 2)
    generator = _generator(generator, "uniform_")
    check_inplace(self, "uniform")
    return _uniform(self, generator, low, high)


def _uniform(target: Tensor, generator: Generator, low: float = 0.0, high: float = 1.0) -> Tensor:
    _check_implemented(target, CONTINUOUS, "check_uniform_bounds")
    if not target.is_meta:
        _check_uniform_bounds(low, high, target.dtype.to_real())
    return _fill(target, lambda out, n, dtype: distributions.uniform(generator, out, n, low, high, dtype))


def _bounds(name: str, positional: tuple, named: dict) -> tuple[Any, Any]:
    """The arguments `from` and `to`, the first of which Python cannot name."""
    if not named and len(positional) < 3:
        return (*positional, *(0.0, 1.0)[len(positional) :])
    values = dict(zip(("from", "to"), positional, strict=False))
    unknown = named.keys() - {"from", "to"} or named.keys() & values.keys()
    if len(positional) > 2:
        raise TypeError(f"{name}() takes from 0 to 2 positional arguments but {len(positional)} were given")
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument '{min(unknown)}'")
    values |= named
    return values.get("from", 0.0), values.get("to", 1.0)


@functools.cache
def _largest(dtype: DType) -> float:
    if dtype is bfloat16:
        return (2 - 2.0**-7) * 2.0**127
    return float(np.finfo(dtype.numpy).max)


def _check_uniform_bounds(low: float, high: float, dtype: DType) -> None:
    largest = _largest(dtype)
    for bound, name in ((low, "from"), (high, "to")):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{name} is out of bounds for {_C_NAMES[dtype]}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{LEGACY_NAMES[dtype]}>::max(), but found to={high:g} "
            f"and from={low:g} which result in to-from to exceed the limit"
        )


def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normal numbers. A complex number has variance std**2 in all, half of it in each part.

    Raises: RuntimeError for a negative std.
    """
    mean, std = _number(mean, "normal_", "mean", 1), _number(std, "normal_", "std", 2)
    generator = _generator(generator, "normal_")
    check_inplace(self, "normal")
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    return _normal(self, generator, mean, std)


def _normal(target: Tensor, generator: Generator, mean: float = 0.0, std: float = 1.0) -> Tensor:
    _check_implemented(target, CONTINUOUS, "normal_kernel_cpu")
    if target.dtype.is_complex:
        std /= math.sqrt(2)
    contiguous = target.spec.is_contiguous
    return _fill(
        target, lambda out, n, dtype: distributions.normal(generator, out, n, mean, std, dtype, contiguous)
    )


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with waiting times of an event that happens `lambd` times per unit of time."""
    rate = _number(lambd, "exponential_", "lambd", 1)
    generator = _generator(generator, "exponential_")
    check_inplace(self, "exponential")
    _check_continuous(self, "Exponential", LEGACY_NAMES[self.dtype])
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    _check_implemented(self, FLOATS, "exponential_cpu")
    return _fill(self, lambda out, n, dtype: distributions.exponential(generator, out, n, rate, dtype))


def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials until the first success, each of probability `p`."""
    p = _number(p, "geometric_", "p", 1)
    generator = _generator(generator, "geometric_")
    check_inplace(self, "geometric")
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    _check_implemented(self, FLOATS + INTEGERS, "geometric_cpu")
    return _fill(self, lambda out, n, dtype: distributions.geometric(generator, out, n, p, dtype))


def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers from the Cauchy distribution."""
    median, sigma = _number(median, "cauchy_", "median", 1), _number(sigma, "cauchy_", "sigma", 2)
    generator = _generator(generator, "cauchy_")
    check_inplace(self, "cauchy")
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _check_continuous(self, "Cauchy", _C_NAMES.get(self.dtype, str(self.dtype)))
    _check_implemented(self, FLOATS, "cauchy_cpu")
    return _fill(self, lambda out, n, dtype: distributions.cauchy(generator, out, n, median, sigma, dtype))


def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with exp(x), where x is normal with this mean and std."""
    mean, std = _number(mean, "log_normal_", "mean", 1), _number(std, "log_normal_", "std", 2)
    generator = _generator(generator, "log_normal_")
    check_inplace(self, "log_normal")
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    _check_implemented(self, FLOATS, "log_normal_cpu")
    return _fill(self, lambda out, n, dtype: distributions.log_normal(generator, out, n, mean, std, dtype))


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 with probability `p`, else 0; p is a number, or a tensor that broadcasts to this shape."""
    generator = _generator(generator, "bernoulli_")
    check_inplace(self, "bernoulli")
    if isinstance(p, Tensor):
        _check_implemented(self, (*FLOATS, *INTEGERS, bool_), "bernoulli_tensor_cpu_self_")
        return _fill_bernoulli_each(self, p, generator)
    p = _number(p, "bernoulli_", "p", 1)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    _check_implemented(self, (*FLOATS, *INTEGERS, bool_), "bernoulli_scalar_cpu_")
    return _fill(self, lambda out, n, dtype: distributions.bernoulli(generator, out, n, p, dtype))


def _fill_bernoulli_each(self: Tensor, p: Tensor, generator: Generator) -> Tensor:
    _check_implemented(p, FLOATS, "bernoulli_tensor_cpu_p_")
    if broadcast_shapes("bernoulli_", self.shape, p.shape) != self.shape:
        raise RuntimeError(
            f"The expanded size of the tensor {list(self.shape)} must match the existing size {list(p.shape)}: p must "
            "broadcast to the tensor that is filled"
        )
    if self.is_meta or self.numel() == 0:
        return self
    dtype = float64 if p.dtype is float64 else float32
    probabilities = array(p).astype(dtype.numpy, copy=False)
    if not np.all((probabilities >= 0) & (probabilities <= 1)):
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  "
            "If so, please report an enhancement request to PyTorch.)"
        )
    # Uniform numbers in the memory order of what is filled.
    uniform = empty_of(formatted_spec(self.spec, preserve_format, dtype, CPU))
    uniform_(uniform, generator=generator)
    copy_values(self, tensor_of(array(uniform) < probabilities))
    return self


def random_(self: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill with integers: random_(), random_(to) or random_(from, to) with from <= value < to.

    Without bounds: 0 to the largest of an integer dtype, or to 2**p for floats of p significant bits.
    """
    generator = _generator(generator, "random_")
    check_inplace(self, "random")
    if not bounds and not named:
        _check_implemented(self, (*FLOATS, *INTEGERS, bool_), "random_kernel_cpu")
        return _fill(self, lambda out, n, dtype: distributions.any_integers(generator, out, n, dtype))
    if len(bounds) == 1 and not named:
        bounds = (0, *bounds)
    elif named.keys() == {"to"} and not bounds:
        bounds = (0,)
    low, high = _bounds("random_", bounds, named)
    low, high = (
        _integer(low, "random_", "from", 1),
        None if high is None else _integer(high, "random_", "to", 2),
    )
    low, span = _integer_range(low, high, self)
    return _fill(self, lambda out, n, dtype: distributions.integers(generator, out, n, low, span, dtype))


def _integer(value: Any, name: str, argument: str, position: int) -> int:
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be int, not {type(value).__name__}"
        ) from None
    if not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    return value


def _integer_range(low: int, high: int | None, target: Tensor) -> tuple[int, int]:
    """The first integer and how many there are; `high` is excluded, None means up to the last of the dtype."""
    dtype = target.dtype
    if high is not None and low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if dtype.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    _check_implemented(target, (*FLOATS, *INTEGERS, *WIDE_UNSIGNED, bool_), "random_update_from_to")
    if high is None:
        if low == -(2**63):
            _check_all_64_bits(target)
            return low, 2**64
        last = _last_integer(dtype)
        _check_integers(low, last, dtype)
        return low, last - low + 1
    if dtype.is_floating_point:
        low, high = _reachable(low, high, dtype)
        if low >= high:
            raise RuntimeError(
                f"random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from={low} >= "
                f"to={high}"
            )
    _check_integers(low, high - 1, dtype)
    return low, high - low


def _check_all_64_bits(target: Tensor) -> None:
    kernel = "random_full_64_bits_range_kernel_cpu"
    if target.dtype in (uint8, int8, int16, int32):
        raise RuntimeError(f"{kernel} handles only int64, double, float and bfloat16")
    _check_implemented(target, (int64, float64, float32, bfloat16), kernel)


def _last_integer(dtype: DType) -> int:
    if dtype.is_floating_point:
        return 2 ** (dtype.mantissa_bits + 1)
    if dtype is uint64:
        return -1  # PyTorch takes the largest number as an int64, and then finds it out of bounds
    return 1 if dtype is bool_ else 2 ** (8 * dtype.itemsize - dtype.is_signed) - 1


def _reachable(low: int, high: int, dtype: DType) -> tuple[int, int]:
    """Bounds moved inwards where the float dtype would round an integer inside to one outside."""

    def rounded(value: int) -> int:
        return int(np.float32(value).astype(dtype.numpy) if dtype is not float64 else float(value))

    def gap(value: int) -> int:
        return 1 << (abs(value).bit_length() - 1 - dtype.mantissa_bits)

    with np.errstate(over="ignore"):
        if abs(low) > _largest(dtype) or high - 1 > _largest(dtype):
            return low, high  # refused by the check of the range
        if rounded(low + 1) < low:
            low = rounded(low + 1) + gap(low + 1)
        if rounded(high - 1) >= high:
            high = rounded(high - 1) - gap(high - 1)
    return low, high


def _check_integers(low: int, last: int, dtype: DType) -> None:
    if dtype.is_floating_point:
        smallest, largest = -_largest(dtype), _largest(dtype)
    else:
        largest = 2**64 - 1 if dtype is uint64 else _last_integer(dtype)
        smallest = -largest - 1 if dtype.is_signed else 0
    for value, name in ((low, "from"), (last, "to - 1")):
        if not smallest <= value <= largest:
            raise RuntimeError(f"{name} is out of bounds for {_C_NAMES[dtype]}")
        if dtype.is_floating_point and abs(value) > 2 ** (digits := dtype.mantissa_bits + 1):
            warnings.warn(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {_C_NAMES[dtype]} "
                "can support discrete uniform distribution only within this range. This warning will become an error "
                "in version 1.7 release, please fix the code in advance",
                UserWarning,
                stacklevel=4,
            )


for _method in (uniform_, normal_, exponential_, geometric_, cauchy_, log_normal_, bernoulli_, random_):
    add_inplace(_method.__name__.rstrip("_"), _method)


# ---- New tensors -----------------------------------------------------------------------------------------------------


def _target(sizes, name, out, dtype, layout, where, default: DType | None = None) -> Tensor:
    """What a constructor fills: `out`, resized to fit, or a new tensor."""
    if out is None:
        return new(sizes, dtype or default, where, layout=layout)
    wanted = check_dtype(dtype) or out.dtype
    if wanted is not out.dtype:
        raise RuntimeError(
            f"dtype {LEGACY_NAMES[wanted]} does not match dtype of out parameter ({LEGACY_NAMES[out.dtype]})"
        )
    if out.shape != tuple(sizes):
        resize_out(out, sizes, name)
    return out


def _finished(result: Tensor, requires_grad: bool) -> Tensor:
    return result.requires_grad_() if requires_grad else result


def _sized(name: str, fill: Callable, what: str) -> Callable:
    def constructor(
        *size: Any,
        generator: Generator | None = None,
        out: Tensor | None = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        **size_by_name: Any,
    ) -> Tensor:
        if "size" in size_by_name and not size:
            size = (size_by_name.pop("size"),)
        if not size or size_by_name:
            raise TypeError(f"{name}() received an invalid combination of arguments: {size} {size_by_name}")
        result = _target(size_arguments(size, name), name, out, dtype, layout, device)
        return _finished(fill(result, _generator(generator, name)), requires_grad)

    constructor.__name__ = constructor.__qualname__ = name
    constructor.__doc__ = f"""A tensor of the given size filled with {what}.

    Sizes are ints or one tuple. dtype: the default float unless given. `out` is resized to fit.

    >>> import weft as torch
    >>> torch.{name}(2, 3).shape
    torch.Size([2, 3])
    """
    return public("function")(constructor)


def _like(name: str, fill: Callable, what: str) -> Callable:
    def constructor(
        input: Tensor,
        *,
        generator: Generator | None = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: MemoryFormat = preserve_format,
    ) -> Tensor:
        result = empty_as(input, dtype, layout, device, False, memory_format)
        return _finished(fill(result, _generator(generator, name)), requires_grad)

    constructor.__name__ = constructor.__qualname__ = name
    constructor.__doc__ = (
        f"A tensor of the size, dtype and device of `input`, filled with {what} in its memory order."
    )
    return public("function")(constructor)


rand = _sized("rand", _uniform, "uniform numbers from [0, 1)")
randn = _sized("randn", _normal, "standard normal numbers")
rand_like = _like("rand_like", _uniform, "uniform numbers from [0, 1)")
randn_like = _like("randn_like", _normal, "standard normal numbers")


@public("function")
def randint(
    *arguments: Any,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **named: Any,
) -> Tensor:
    """randint(low=0, high, size): integers with low <= value < high. dtype: int64 unless given.

    Raises: RuntimeError if there is no such integer, or the dtype has not all of them.

    >>> import weft as torch
    >>> torch.randint(5, (2, 3)).shape
    torch.Size([2, 3])
    """
    names = ("low", "high", "size")[3 - len(arguments) - len(named) :]
    values = dict(zip(names, arguments, strict=False))
    if len(arguments) + len(named) not in (2, 3) or named.keys() | values.keys() != set(names):
        raise TypeError(f"randint() received an invalid combination of arguments: {arguments} {named}")
    values |= named
    if not isinstance(values["size"], (tuple, list)):
        raise TypeError(
            f"randint(): argument 'size' (position {len(names)}) must be tuple of ints, not "
            f"{type(values['size']).__name__}"
        )
    low = _integer(values.get("low", 0), "randint", "low", 1)
    high = _integer(values["high"], "randint", "high", len(names) - 1)
    sizes = size_arguments((values["size"],), "randint")
    result = _target(sizes, "randint", out, dtype, layout, device, int64)
    return _finished(random_(result, low, high, generator=generator), requires_grad)


@public("function")
def randint_like(
    input: Tensor,
    *bounds: Any,
    generator: Generator | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: MemoryFormat = preserve_format,
    **named: Any,
) -> Tensor:
    """randint_like(input, low=0, high): integers with low <= value < high, in the dtype of `input` unless given."""
    names = ("low", "high")[2 - len(bounds) - len(named) :]
    values = dict(zip(names, bounds, strict=False)) | named
    if values.keys() != set(names) or "high" not in values:
        raise TypeError(f"randint_like() received an invalid combination of arguments: {bounds} {named}")
    low = _integer(values.get("low", 0), "randint_like", "low", 2)
    high = _integer(values["high"], "randint_like", "high", len(names) + 1)
    result = empty_as(input, dtype, layout, device, False, memory_format)
    return _finished(random_(result, low, high, generator=generator), requires_grad)


@public("function")
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The integers from 0 to n - 1 in random order. dtype: int64 unless given.

    >>> import weft as torch
    >>> sorted(torch.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    n = _integer(n, "randperm", "n", 1)
    generator = _generator(generator, "randperm")
    result = _target(size_arguments((n,), "randperm"), "randperm", out, dtype, layout, device, int64)
    if not result.is_meta:
        _check_permutation(n, result)
        copy_values(result, tensor_of(distributions.permutation(generator, n)))
    return _finished(result, requires_grad)


def _check_permutation(n: int, result: Tensor) -> None:
    _check_implemented(result, FLOATS + INTEGERS, "randperm")
    dtype = result.dtype
    if dtype.is_floating_point and n > (largest := _last_integer(dtype) + 1):
        raise RuntimeError(f"n cannot be greater than {largest} for {LEGACY_NAMES[dtype]} type.")
    if not dtype.is_floating_point and n - 1 > _last_integer(dtype):
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")


@public("function")
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Normal numbers: with a mean and a std for each element (either is a tensor), or of a size.

    Shapes: those of mean and std broadcast. dtype: that of mean, or of std if mean is a number.

    Raises: RuntimeError for a negative std.

    >>> import weft as torch
    >>> torch.normal(torch.zeros(2, 1), torch.ones(3)).shape
    torch.Size([2, 3])
    """
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    if bool(tensors) == (size is not None):
        raise TypeError(
            "normal() received an invalid combination of arguments: it takes (Tensor mean, std=1), (mean, Tensor std) "
            f"or (mean, std, size), but got ({type(mean).__name__}, {type(std).__name__}, {type(size).__name__})"
        )
    if not tensors:
        result = _target(size_arguments((size,), "normal"), "normal", out, dtype, layout, device)
        return _finished(normal_(result, mean, std, generator=generator), requires_grad)
    if isinstance(std, Tensor):
        _check_std(std)
    sizes = broadcast_shapes("normal", *(x.shape for x in tensors))
    result = empty_of(contiguous_spec(sizes, tensors[0].dtype, tensors[0].device)) if out is None else out
    if result.numel() == 0 and result.shape != sizes:
        resize_out(result, sizes, "normal")
    if not isinstance(std, Tensor):
        normal_(result, 0.0, std, generator=generator)
    else:
        normal_(result, generator=generator).mul_(std)
    return result.add_(mean)


def _check_std(std: Tensor) -> None:
    if std.is_complex():
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if not std.is_meta and np.any(array(std) < 0):
        raise RuntimeError("normal expects all elements of std >= 0.0")


@public("function method")
def bernoulli(
    input: Tensor, p: Any = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """1 with the probability that each element of `input` says, else 0; or with probability `p` for all elements.

    >>> import weft as torch
    >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    result = _target(input.shape, "bernoulli", out, None, None, input.device, input.dtype)
    return bernoulli_(result, input if p is None else p, generator=generator)


@public("function method")
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """`num_samples` indices from each row of `input`, weighted by it.

    Shapes: [categories] -> [num_samples], [rows, categories] -> [rows, num_samples]; dtype int64.

    Raises: RuntimeError for weights that are negative, not finite or all zero, and for more samples than categories
    without replacement.

    >>> import weft as torch
    >>> torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    generator = _generator(generator, "multinomial")
    if out is not None and out.dtype is not int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {LEGACY_NAMES[out.dtype]}")
    if input.dim() not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not input.is_floating_point():
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {LEGACY_NAMES[input.dtype]}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.size(-1):
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if input.size(-1) > 2**24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    result = _target((*input.shape[:-1], num_samples), "multinomial", out, None, None, input.device, int64)
    if input.size(-1) == 0:
        raise RuntimeError("multinomial: there are no categories to sample from")
    if input.is_meta or input.numel() == 0:
        return result
    rows = np.atleast_2d(array(input))
    _check_weights(rows, replacement and num_samples > 1)
    indices = distributions.multinomial(generator, rows, num_samples, replacement, input.dtype)
    copy_values(result, tensor_of(indices.reshape(result.shape)))
    return result


def _check_weights(rows: np.ndarray, replacement: bool) -> None:
    finite, positive = bool(np.all(np.isfinite(rows))), bool(np.all(rows >= 0))
    if replacement and np.any(rows < 0):
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
    if replacement and not finite:
        raise RuntimeError(
            "invalid multinomial distribution (encountering probability entry = infinity or NaN)"
        )
    if not finite or not positive:
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not np.all(np.any(rows > 0, axis=1)):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


@public("function")
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """A Poisson number for each rate in `input`.

    Raises: RuntimeError for a negative rate.
    """
    generator = _generator(generator, "poisson")
    _check_implemented(input, FLOATS, "poisson_cpu")
    if input.is_meta:
        return empty_as(input, memory_format=contiguous_format)
    rates = array(input).astype(np.float64, order="C")
    if not np.all(rates >= 0):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    values = np.empty_like(rates)
    rejection.poisson(generator, values.ctypes.data, rates.ctypes.data, rates.size)
    return tensor_of(values, input.dtype)


@public("function")
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """For each count and probability, how many of that many trials succeed. Shapes broadcast.

    Raises: ValueError for counts that are no floats, RuntimeError if the dtypes differ.
    """
    generator = _generator(generator, "binomial")
    if not count.is_floating_point():
        raise ValueError(
            f"binomial only supports floating-point dtypes for count, got: {LEGACY_NAMES[count.dtype]}"
        )
    if prob.dtype is not count.dtype:
        raise RuntimeError(f"Found dtype {LEGACY_NAMES[prob.dtype]} but expected {LEGACY_NAMES[count.dtype]}")
    _check_implemented(count, (float32, float64), "binomial_cpu")
    sizes = broadcast_shapes("binomial", count.shape, prob.shape)
    if count.is_meta:
        return empty_of(contiguous_spec(sizes, count.dtype, count.device))
    counts, p = (np.broadcast_to(array(x), sizes).astype(np.float64, order="C") for x in (count, prob))
    values = np.empty_like(counts)
    rejection.binomial(
        generator, values.ctypes.data, counts.ctypes.data, p.ctypes.data, values.size, count.dtype
    )
    return tensor_of(values, count.dtype)
