"""Fills tensors with random numbers in place: the same numbers as PyTorch's for the same seed."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.arguments import integer
from ...core.batched import (
    BatchedStorage,
    Level,
    NoBatchingRule,
    batched_at,
    beneath,
    open_levels,
    physical,
    suspended,
)
from ...core.derivative import Derivative
from ...core.device import device
from ...core.dtype import (
    LEGACY_NAMES,
    DType,
    bfloat16,
    bool_,
    complex32,
    complex64,
    complex128,
    cpp_name,
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
from ...core.generator import Generator, default_generator, generator_on
from ...core.iteration import broadcast_shapes
from ...core.layout import preserve_format
from ...core.limits import largest
from ...core.nearest import note_parameter, unknown_keyword
from ...core.op import Op
from ...core.outputs import check_inplace
from ...core.plans import PlanCache
from ...core.public import add_inplace
from ...core.recording import needs_recording, record_inplace
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, address
from ...core.tensor import empty as empty_of
from ...core.warn import user_level
from ...families.array_op import host_array
from ..assembly.copying import copy_values, formatted_spec

FLOATS = (float16, bfloat16, float32, float64)
CONTINUOUS = (*FLOATS, complex32, complex64, complex128)
INTEGERS = (uint8, int8, int16, int32, int64)
COMMON = (*FLOATS, *INTEGERS, bool_)
WIDE_UNSIGNED = (uint16, uint32, uint64)


# Functions that draw in an order of their own: in a batch, each sample draws for itself.
_ONE_BY_ONE = frozenset("randperm multinomial poisson binomial _standard_gamma _sample_dirichlet".split())


def check_randomness(name: str) -> None:
    """Raises: RuntimeError within a function that `vmap` maps if its argument `randomness` forbids random numbers."""
    if not open_levels.stack:
        return
    randomness = open_levels.stack[-1].randomness
    if randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
            "'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )
    if randomness == "different" and name in _ONE_BY_ONE:
        raise NoBatchingRule(f"vmap: {name} draws different numbers for each sample")


def generator_or_default(generator: Any, name: str) -> Generator:
    check_randomness(name)
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(
            f"{name}(): argument 'generator' must be torch.Generator, not {type(generator).__name__}"
        )
    return generator


def drawing_generator(generator: Any, name: str, where: device) -> Generator:
    """The generator that draws for a tensor of a device: one of the CPU if the device has none of its own."""
    return generator_on(where, generator_or_default(generator, name))


@PlanCache
def _order(spec: Spec) -> tuple[bool, int, DType] | None:
    """Whether elements are filled where they lie, how many numbers of which real dtype that takes; None for nothing."""
    if not spec.device.backend.has_memory or spec.numel == 0:
        return None
    plain = (spec.is_contiguous or spec.is_dense) and not spec.conj and not spec.neg
    return plain, spec.numel * (2 if spec.dtype.is_complex else 1), spec.dtype.to_real()


# What fills a tensor in place of the device: a function `(distribution, generator, tensor, count, dtype, parameters)`.
drawers: list[Callable] = []


def _fill(target: Tensor, generator: Generator, distribution: str, **parameters: Any) -> Tensor:
    """Let the device fill the elements in the order in which they lie in memory; see `Backend.fill`.

    Complex elements are two of the real dtype.
    """
    if open_levels.stack:
        return _fill_samples(target, generator, distribution, parameters, open_levels.stack[-1])
    spec = target.spec
    order = _order[(spec,)]
    if order is None:
        return target
    plain, count, dtype = order
    if generator.device is not spec.device:
        generator = generator_on(spec.device, generator)
    into = target if plain else empty_of(formatted_spec(spec, preserve_format, spec.dtype, spec.device))
    if plain:
        target._storage.version += 1  # first, because it may raise
    if drawers:
        drawers[-1](distribution, generator, into, count, dtype, parameters)
    else:
        spec.device.backend.fill(distribution, generator, address(into), count, dtype, **parameters)
    if not plain:
        copy_values(target, into)
    return target


def _fill_samples(
    target: Tensor, generator: Generator, distribution: str, parameters: dict[str, Any], level: Level
) -> Tensor:
    """Fill the tensor of a function that `vmap` maps: with one draw for the batch, or with the same for all samples."""
    spec = target.spec
    with suspended(level):
        if level.randomness == "same" and batched_at(target, level):
            sample = empty_of(contiguous_spec(spec.shape, spec.dtype, spec.device))
            copy_values(physical(target, level), _fill(sample, generator, distribution, **parameters))
            return target
        if level.randomness != "same" and not batched_at(target, level):
            storage = target._storage
            if not (isinstance(storage, BatchedStorage) and storage.level is level and storage.fresh):
                raise RuntimeError(
                    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
                    "randomness."
                )
            storage.become_batch()
        _fill(physical(target, level), generator, distribution, **parameters)
    return target


def check_implemented(target: Tensor, dtypes: tuple[DType, ...], kernel: str) -> None:
    if target.dtype not in dtypes and target.spec.device.backend.has_memory:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{LEGACY_NAMES[target.dtype]}'")


def _check_continuous(target: Tensor, name: str, kind: str) -> None:
    if not target.is_floating_point():
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {kind}"
        )


def _number(value: Any, name: str, argument: str, position: int) -> float:
    """Return a float from a number or a tensor with one element."""
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be float, not {type(value).__name__}"
        )
    return float(value)


def _constant(name: str) -> Callable[[Callable], Callable]:
    """Decorator: autograd records that the fill writes constants, so the overwritten values get a cotangent of zero."""
    op = Op(name, Derivative(), name)

    def decorate(fill: Callable) -> Callable:
        @functools.wraps(fill)
        def complete(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            if self._autograd is not None and needs_recording((self,)):
                return record_inplace(op, self, (), (), functools.partial(fill, **kwargs), self, *args)
            try:
                return fill(self, *args, **kwargs)
            except TypeError as error:
                note_parameter(error, fill)
                raise

        return complete

    return decorate


@_constant("UniformBackward0")
def uniform_(self: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill with uniform numbers from [from, to); (from, to) is (0, 1) unless given.

    >>> import weft as torch
    >>> (torch.empty(100).uniform_(2, 3).sub(2.5).abs() <= 0.5).all().item()
    True
    """
    low, high = _bounds("uniform_", bounds, named)
    low, high = _number(low, "uniform_", "from", 1), _number(high, "uniform_", "to", 2)
    generator = generator_or_default(generator, "uniform_")
    check_inplace(self, "uniform")
    return fill_uniform(self, generator, low, high)


def fill_uniform(target: Tensor, generator: Generator, low: float = 0.0, high: float = 1.0) -> Tensor:
    check_implemented(target, CONTINUOUS, "check_uniform_bounds")
    if (low, high) != (0.0, 1.0) and target.spec.device.backend.has_memory:
        _check_uniform_bounds(low, high, target.dtype.to_real())
    return _fill(target, generator, "uniform", low=low, high=high)


def _bounds(name: str, positional: tuple, named: dict) -> tuple[Any, Any]:
    """Return the arguments `from` and `to`, the first of which Python cannot name."""
    if not named and len(positional) < 3:
        return (*positional, *(0.0, 1.0)[len(positional) :])
    values = dict(zip(("from", "to"), positional, strict=False))
    unknown = named.keys() - {"from", "to"} or named.keys() & values.keys()
    if len(positional) > 2:
        raise TypeError(f"{name}() takes from 0 to 2 positional arguments but {len(positional)} were given")
    if unknown:
        raise unknown_keyword(name, min(unknown), ("from", "to", "generator"))
    values |= named
    return values.get("from", 0.0), values.get("to", 1.0)


def _check_uniform_bounds(low: float, high: float, dtype: DType) -> None:
    limit = largest(dtype)
    for bound, name in ((low, "from"), (high, "to")):
        if not -limit <= bound <= limit:
            raise RuntimeError(f"{name} is out of bounds for {cpp_name(dtype)}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    if high - low > limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{LEGACY_NAMES[dtype]}>::max(), but found to={high:g} "
            f"and from={low:g} which result in to-from to exceed the limit"
        )


@_constant("NormalBackward0")
def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with normal numbers. A complex number has variance std**2 in all, half of it in each part.

    Raises: RuntimeError for a negative std.
    """
    mean, std = _number(mean, "normal_", "mean", 1), _number(std, "normal_", "std", 2)
    generator = generator_or_default(generator, "normal_")
    check_inplace(self, "normal")
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    return fill_normal(self, generator, mean, std)


def fill_normal(target: Tensor, generator: Generator, mean: float = 0.0, std: float = 1.0) -> Tensor:
    check_implemented(target, CONTINUOUS, "normal_kernel_cpu")
    if target.dtype.is_complex:
        std /= math.sqrt(2)
    return _fill(target, generator, "normal", mean=mean, std=std, contiguous=target.spec.is_contiguous)


@_constant("ExponentialBackward0")
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with waiting times of an event that happens `lambd` times per unit of time."""
    rate = _number(lambd, "exponential_", "lambd", 1)
    generator = generator_or_default(generator, "exponential_")
    check_inplace(self, "exponential")
    _check_continuous(self, "Exponential", LEGACY_NAMES[self.dtype])
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}")
    check_implemented(self, FLOATS, "exponential_cpu")
    return _fill(self, generator, "exponential", rate=rate)


@_constant("GeometricBackward0")
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with the number of trials until the first success, each of probability `p`."""
    p = _number(p, "geometric_", "p", 1)
    generator = generator_or_default(generator, "geometric_")
    check_inplace(self, "geometric")
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    check_implemented(self, FLOATS + INTEGERS, "geometric_cpu")
    return _fill(self, generator, "geometric", p=p)


@_constant("CauchyBackward0")
def cauchy_(
    self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with numbers from the Cauchy distribution."""
    median, sigma = _number(median, "cauchy_", "median", 1), _number(sigma, "cauchy_", "sigma", 2)
    generator = generator_or_default(generator, "cauchy_")
    check_inplace(self, "cauchy")
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _check_continuous(self, "Cauchy", cpp_name(self.dtype))
    check_implemented(self, FLOATS, "cauchy_cpu")
    return _fill(self, generator, "cauchy", median=median, sigma=sigma)


@_constant("LogNormalBackward0")
def log_normal_(
    self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
) -> Tensor:
    """Fill with exp(x), where x is normal with this mean and std."""
    mean, std = _number(mean, "log_normal_", "mean", 1), _number(std, "log_normal_", "std", 2)
    generator = generator_or_default(generator, "log_normal_")
    check_inplace(self, "log_normal")
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    check_implemented(self, FLOATS, "log_normal_cpu")
    return _fill(self, generator, "log_normal", mean=mean, std=std)


@_constant("BernoulliBackward2")
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 with probability `p`, else 0; p is a number, or a tensor that broadcasts to this shape."""
    generator = generator_or_default(generator, "bernoulli_")
    check_inplace(self, "bernoulli")
    if isinstance(p, Tensor):
        check_implemented(self, COMMON, "bernoulli_tensor_cpu_self_")
        return _fill_bernoulli_each(self, p, generator)
    p = _number(p, "bernoulli_", "p", 1)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    check_implemented(self, COMMON, "bernoulli_scalar_cpu_")
    return _fill(self, generator, "bernoulli", p=p)


def _fill_bernoulli_each(self: Tensor, p: Tensor, generator: Generator) -> Tensor:
    check_implemented(p, FLOATS, "bernoulli_tensor_cpu_p_")
    if broadcast_shapes("bernoulli_", self.shape, p.shape) != self.shape:
        raise RuntimeError(
            f"The expanded size of the tensor {list(self.shape)} must match the existing size {list(p.shape)}: p must "
            "broadcast to the tensor that is filled"
        )
    if not self.spec.device.backend.has_memory or self.numel() == 0:
        return self
    _check_probabilities(p)
    # Uniform numbers in the memory order of the target.
    dtype = float64 if p.dtype is float64 else float32
    uniform = empty_of(formatted_spec(self.spec, preserve_format, dtype, self.spec.device))
    copy_values(self, fill_uniform(uniform, generator) < p)
    return self


def _check_probabilities(p: Tensor) -> None:
    values = host_array(beneath(p))
    if not (values.min() >= 0 and values.max() <= 1):  # NaN is neither
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  "
            "If so, please report an enhancement request to PyTorch.)"
        )


@_constant("RandomBackward2")
def random_(self: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill with integers: random_(), random_(to) or random_(from, to) with from <= value < to.

    Without bounds: 0 to the largest of an integer dtype, or to 2**p for floats of p significant bits.
    """
    generator = generator_or_default(generator, "random_")
    check_inplace(self, "random")
    if not bounds and not named:
        check_implemented(self, COMMON, "random_kernel_cpu")
        return _fill(self, generator, "any_integers")
    if len(bounds) == 1 and not named:
        bounds = (0, *bounds)
    elif named.keys() == {"to"} and not bounds:
        bounds = (0,)
    low, high = _bounds("random_", bounds, named)
    low, high = (
        integer_argument(low, "random_", "from", 1),
        None if high is None else integer_argument(high, "random_", "to", 2),
    )
    return fill_integers(self, generator, low, high)


def fill_integers(target: Tensor, generator: Generator, low: int, high: int | None) -> Tensor:
    """Fill with integers from `low` to the one before `high`, or to the last of the dtype.

    Raises: RuntimeError if there are none, or if the dtype cannot hold them.
    """
    low, span = _integer_range(low, high, target)
    return _fill(target, generator, "integers", low=low, span=span)


def integer_argument(value: Any, name: str, argument: str, position: int) -> int:
    value = integer(value, name, argument, position)
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
    check_implemented(target, (*FLOATS, *INTEGERS, *WIDE_UNSIGNED, bool_), "random_update_from_to")
    if high is None:
        if low == -(2**63):
            _check_all_64_bits(target)
            return low, 2**64
        last = last_integer(dtype)
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
    check_implemented(target, (int64, float64, float32, bfloat16), kernel)


def last_integer(dtype: DType) -> int:
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
        if abs(low) > largest(dtype) or high - 1 > largest(dtype):
            return low, high  # refused by the check of the range
        if rounded(low + 1) < low:
            low = rounded(low + 1) + gap(low + 1)
        if rounded(high - 1) >= high:
            high = rounded(high - 1) - gap(high - 1)
    return low, high


def _check_integers(low: int, last: int, dtype: DType) -> None:
    if dtype.is_floating_point:
        lowest, highest = -largest(dtype), largest(dtype)
    else:
        highest = 2**64 - 1 if dtype is uint64 else last_integer(dtype)
        lowest = -highest - 1 if dtype.is_signed else 0
    for value, name in ((low, "from"), (last, "to - 1")):
        if not lowest <= value <= highest:
            raise RuntimeError(f"{name} is out of bounds for {cpp_name(dtype)}")
        if dtype.is_floating_point and abs(value) > 2 ** (digits := dtype.mantissa_bits + 1):
            warnings.warn(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {cpp_name(dtype)} "
                "can support discrete uniform distribution only within this range. This warning will become an error "
                "in version 1.7 release, please fix the code in advance",
                UserWarning,
                stacklevel=user_level(),
            )


for _method in (uniform_, normal_, exponential_, geometric_, cauchy_, log_normal_, bernoulli_, random_):
    add_inplace(_method.__name__.rstrip("_"), _method)
