"""Defines the state of random numbers, and random tensors: the same numbers as PyTorch's for the same seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.arguments import no_form, number
from ...core.batched import beneath
from ...core.device import CPU
from ...core.dtype import LEGACY_NAMES, DType, float32, float64, int64, uint8
from ...core.generator import Generator, default_generator, seed_devices
from ...core.iteration import broadcast_shapes
from ...core.layout import MemoryFormat, contiguous_format, preserve_format
from ...core.limits import overflow
from ...core.nearest import unknown_keyword
from ...core.outputs import check_inplace, check_unrecorded, resize_out
from ...core.public import public
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, as_new
from ...core.tensor import empty as empty_of
from ...engine import distributions, rejection
from ...families.array_op import array, host_array, inside, on_device, runs_inside, tensor_of
from ...families.custom_vjp import custom_vjp
from ...families.iterated import has_iterations, iterated
from ..assembly.copying import copy_values
from ..tensor.rules import zero_grad
from . import device_draws
from .creation import check_dtype, empty_as, new, resized_out, size_arguments, with_grad
from .random_filling import (
    FLOATS,
    INTEGERS,
    bernoulli_,
    check_implemented,
    drawing_generator,
    fill_integers,
    fill_normal,
    fill_uniform,
    generator_or_default,
    integer_argument,
    last_integer,
    normal_,
    random_,
)

# ---- The generator -------------------------------------------------------------------------------------------------


@public("function")
def manual_seed(seed: Any) -> Generator:
    """Restart the default generators of the CPU and of all devices at `seed`, in [-2**63, 2**64), and return the CPU's.

    >>> import weft as torch
    >>> _ = torch.manual_seed(0); torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    seed = int(seed)
    default_generator.manual_seed(seed)
    seed_devices(seed)
    return default_generator


@public("function")
def seed() -> int:
    """Restart the default generators of the CPU and of all devices at a seed from the operating system, and return it."""
    found = default_generator.seed()
    seed_devices(found)
    return found


@public("function")
def initial_seed() -> int:
    """Return the last seed of the default generator."""
    return default_generator.initial_seed()


@public("function")
def get_rng_state() -> Tensor:
    """Return the state of the default generator: 5056 bytes."""
    return _get_state(default_generator)


@public("function", checks=False)
def set_rng_state(new_state: Tensor) -> None:
    """Continue the default generator from a state that `get_rng_state` returned."""
    _set_state(default_generator, new_state)


def _get_state(self: Generator) -> Tensor:
    """Return the state as a tensor of 5056 bytes."""
    return tensor_of(self.state_bytes())


def _set_state(self: Generator, new_state: Tensor) -> Generator:
    """Continue from a state that `get_state` returned."""
    if not isinstance(new_state, Tensor):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
    if new_state.dtype is not uint8 or new_state.device is not CPU:
        raise TypeError("RNG state must be a torch.ByteTensor")
    self.load_state_bytes(np.ascontiguousarray(host_array(new_state)))
    return self


Generator.get_state, Generator.set_state = _get_state, _set_state


# ---- New tensors -----------------------------------------------------------------------------------------------------


def _target(sizes, name, out, dtype, layout, where, default: DType | None = None) -> Tensor:
    """What a constructor fills: `out`, resized to fit, or a new tensor."""
    if out is None:
        return new(sizes, default if dtype is None else dtype, where, layout=layout)
    result = resized_out(out, sizes, name, check_dtype(dtype, name), layout, where)
    check_inplace(result, name)
    return result


def _first_version(result: Tensor, out: Tensor | None) -> Tensor:
    """The result of a constructor; filling a new tensor is no in-place operation."""
    return as_new(result) if out is None else result


_OPTIONS = ("generator", "dtype", "layout", "device", "requires_grad", "pin_memory", "out")
_KEYWORDS = ", ".join(_OPTIONS)
_OPTIONS_LIKE = (*_OPTIONS[:-1], "memory_format")
_RANGE = ("low", "high", "size")


def _sized(name: str, fill: Callable, what: str) -> Callable:
    @public("function", name=name, words={"what": what})
    def constructor(
        *size: Any,
        generator: Generator | None = None,
        out: Tensor | None = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool | None = False,
        **size_by_name: Any,
    ) -> Tensor:
        """Return a tensor of the given size filled with {what}.

        Sizes are ints or one tuple. dtype: the default float unless given. `out` is resized to fit.

        >>> import weft as torch
        >>> torch.{name}(2, 3).shape
        torch.Size([2, 3])
        """
        names = size_by_name.pop("names", None)
        if "size" in size_by_name and not size:
            size = (size_by_name.pop("size"),)
        if size_by_name:
            raise unknown_keyword(name, next(iter(size_by_name)), ("size", "names", *_OPTIONS))
        if not size or len(size) > 1 and isinstance(size[0], (tuple, list)):
            raise no_form(name, size, {}, f"*size, {_KEYWORDS}", f"size, *, {_KEYWORDS}")
        result = _target(size_arguments(size, name), name, out, dtype, layout, device)
        fill(result, generator_or_default(generator, name))
        result = _first_version(result, out)
        return with_grad(result, requires_grad, names)

    return constructor


def _like(name: str, fill: Callable, what: str) -> Callable:
    @public("function", name=name, words={"what": what})
    def constructor(
        input: Tensor,
        *,
        generator: Generator | None = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool | None = False,
        memory_format: MemoryFormat = preserve_format,
    ) -> Tensor:
        """Return a tensor of the size, dtype and device of `input`, filled with {what} in its memory order."""
        result = empty_as(input, dtype, layout, device, False, memory_format)
        return with_grad(as_new(fill(result, generator_or_default(generator, name))), requires_grad)

    return constructor


rand = _sized("rand", fill_uniform, "uniform numbers from [0, 1)")
randn = _sized("randn", fill_normal, "standard normal numbers")
rand_like = _like("rand_like", fill_uniform, "uniform numbers from [0, 1)")
randn_like = _like("randn_like", fill_normal, "standard normal numbers")


@public("function")
def randint(
    *arguments: Any,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    names: Any = None,
    **named: Any,
) -> Tensor:
    """Draw integers with low <= value < high: randint(low=0, high, size). dtype: int64 unless given.

    Raises: RuntimeError if there is no integer in the range, or the dtype cannot represent all of them.

    >>> import weft as torch
    >>> torch.randint(5, (2, 3)).shape
    torch.Size([2, 3])
    """
    if unknown := named.keys() - _RANGE:
        raise unknown_keyword("randint", min(unknown), (*_RANGE, *_OPTIONS))
    parameters = _RANGE[3 - len(arguments) - len(named) :]
    values = dict(zip(parameters, arguments, strict=False))
    if len(arguments) + len(named) not in (2, 3) or named.keys() | values.keys() != set(parameters):
        raise no_form(
            "randint", arguments, named, f"high, size, *, {_KEYWORDS}", f"low, high, size, *, {_KEYWORDS}"
        )
    values |= named
    if not isinstance(values["size"], (tuple, list)):
        raise TypeError(
            f"randint(): argument 'size' (position {len(parameters)}) must be tuple of ints, not "
            f"{type(values['size']).__name__}"
        )
    low = integer_argument(values.get("low", 0), "randint", "low", 1)
    high = integer_argument(values["high"], "randint", "high", len(parameters) - 1)
    sizes = size_arguments((values["size"],), "randint")
    result = _target(sizes, "randint", out, dtype, layout, device, int64)
    fill_integers(result, generator_or_default(generator, "randint"), low, high)
    return with_grad(_first_version(result, out), requires_grad, names)


@public("function")
def randint_like(
    input: Tensor,
    *bounds: Any,
    generator: Generator | None = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool | None = False,
    memory_format: MemoryFormat = preserve_format,
    **named: Any,
) -> Tensor:
    """Draw integers with low <= value < high, in the dtype of `input` unless given: randint_like(input, low=0, high)."""
    if unknown := named.keys() - {"low", "high"}:
        raise unknown_keyword("randint_like", min(unknown), ("low", "high", *_OPTIONS_LIKE))
    names = ("low", "high")[2 - len(bounds) - len(named) :]
    values = dict(zip(names, bounds, strict=False)) | named
    if values.keys() != set(names) or "high" not in values:
        keywords = ", ".join(_OPTIONS_LIKE)
        raise no_form(
            "randint_like",
            (input, *bounds),
            named,
            f"input, high, *, {keywords}",
            f"input, low, high, *, {keywords}",
        )
    low = integer_argument(values.get("low", 0), "randint_like", "low", 2)
    high = integer_argument(values["high"], "randint_like", "high", len(names) + 1)
    result = empty_as(input, dtype, layout, device, False, memory_format)
    return with_grad(as_new(random_(result, low, high, generator=generator)), requires_grad)


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
    pin_memory: bool | None = False,
    names: Any = None,
) -> Tensor:
    """Return the integers from 0 to n - 1 in random order. dtype: int64 unless given.

    >>> import weft as torch
    >>> sorted(torch.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    n = integer_argument(n, "randperm", "n", 1)
    result = _target(size_arguments((n,), "randperm"), "randperm", out, dtype, layout, device, int64)
    if result.spec.device.backend.has_memory:
        _check_permutation(n, result)
        where = result.spec.device
        own = drawing_generator(generator, "randperm", where)
        if where.backend.prefers_kernels:
            copy_values(result, device_draws.permutation(own, n, where))
        else:
            copy_values(result, on_device(distributions.permutation(own, n), where))
    return with_grad(_first_version(result, out), requires_grad, names)


def _check_permutation(n: int, result: Tensor) -> None:
    check_implemented(result, FLOATS + INTEGERS, "randperm")
    dtype = result.dtype
    if dtype.is_floating_point and n > (largest := last_integer(dtype) + 1):
        raise RuntimeError(f"n cannot be greater than {largest} for {LEGACY_NAMES[dtype]} type.")
    if not dtype.is_floating_point and n - 1 > last_integer(dtype):
        raise overflow(dtype)


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
    pin_memory: bool | None = False,
) -> Tensor:
    """Normal numbers: with a mean and a std for each element (either is a tensor), or of a size.

    Shapes: mean and std broadcast. The dtype is that of mean, or of std if mean is a number.

    Raises: RuntimeError for a negative std.

    >>> import weft as torch
    >>> torch.normal(torch.zeros(2, 1), torch.ones(3)).shape
    torch.Size([2, 3])
    """
    if size is not None:
        mean, std = number(mean, "normal", "mean", 1), number(std, "normal", "std", 2)
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    if bool(tensors) == (size is not None):
        raise TypeError(
            "normal() received an invalid combination of arguments: it takes (Tensor mean, std=1), (mean, Tensor std) "
            f"or (mean, std, size), but got ({type(mean).__name__}, {type(std).__name__}, {type(size).__name__})"
        )
    if not tensors:
        result = _target(size_arguments((size,), "normal"), "normal", out, dtype, layout, device)
        normal_(result, mean, std, generator=generator)
        return with_grad(_first_version(result, out), requires_grad)
    if isinstance(std, Tensor):
        _check_std(std)
    if out is not None:
        check_unrecorded("normal", (out, *tensors))
    sizes = broadcast_shapes("normal", *(x.shape for x in tensors))
    result = empty_of(contiguous_spec(sizes, tensors[0].dtype, tensors[0].device)) if out is None else out
    if result.shape != sizes:
        resize_out(result, sizes, "normal")
    return _first_version(_normal(mean, std, generator, result), out)


def _normal_node(inputs: Sequence[Any], static: tuple) -> str:
    mean, std = inputs[:2]
    return f"NormalBackward{isinstance(mean, Tensor) + 2 * isinstance(std, Tensor)}"


@custom_vjp(zero_grad, zero_grad, node_name=_normal_node)
def _normal(mean: Any, std: Any, generator: Generator | None, result: Tensor) -> Tensor:
    if not isinstance(std, Tensor):
        normal_(result, 0.0, std, generator=generator)
    else:
        normal_(result, generator=generator).mul_(std)
    return result.add_(mean)


def _check_std(std: Tensor) -> None:
    if std.is_complex():
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std.spec.device.backend.has_memory and np.any(host_array(beneath(std)) < 0):
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
    return _first_version(_bernoulli(input, p, generator, result), out)


@custom_vjp(zero_grad)
def _bernoulli(input: Tensor, p: Any, generator: Generator | None, result: Tensor) -> Tensor:
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
    """Compute `num_samples` indices from each row of `input`, weighted by it.

    Shapes: [categories] -> [num_samples], [rows, categories] -> [rows, num_samples]; dtype int64.

    Raises: RuntimeError for weights that are negative, not finite or all zero, and for more samples than categories
    without replacement.

    >>> import weft as torch
    >>> torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
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
    sizes = (*input.shape[:-1], num_samples)
    if out is not None:
        out = _target(sizes, "multinomial", out, None, None, input.device, int64)
    if input.size(-1) == 0:
        raise RuntimeError("multinomial: there are no categories to sample from")
    if not input.spec.device.backend.has_memory or input.numel() == 0:
        return new(sizes, int64, input.device) if out is None else out
    where = input.spec.device
    draw = _drawn_by_kernels if where.backend.prefers_kernels else _drawn_on_host
    found = draw(input, num_samples, replacement, generator)
    if out is None:
        return found
    copy_values(out, found)
    return out


def _drawn_by_kernels(input: Tensor, count: int, replacement: bool, generator: Generator | None) -> Tensor:
    own = drawing_generator(generator, "multinomial", input.spec.device)
    weights = input.detach()
    if not bool((weights.amin() >= 0) & (weights.amax(-1).amin() > 0) & (weights.amax() < math.inf)):
        _check_weights(np.atleast_2d(host_array(weights)), replacement and count > 1)
    return device_draws.multinomial(own, weights, count, replacement)


def _drawn_on_host(input: Tensor, count: int, replacement: bool, generator: Generator | None) -> Tensor:
    own = drawing_generator(generator, "multinomial", input.spec.device)
    with inside("multinomial", (input,)):
        rows = np.atleast_2d(array(input))
        _check_weights(rows, replacement and count > 1)
        indices = distributions.multinomial(own, rows, count, replacement, input.dtype)
        return tensor_of(indices.reshape(*input.shape[:-1], count))


def _check_weights(rows: np.ndarray, replacement: bool) -> None:
    tops = rows.max(axis=1)
    if rows.min() >= 0 and tops.min() > 0 and tops.max() < np.inf:  # false for NaN
        return
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
    """Return a Poisson number for each rate in `input`.

    Raises: RuntimeError for a negative rate.
    """
    return _poisson(input, drawing_generator(generator, "poisson", input.spec.device))


@custom_vjp(zero_grad)
def _poisson(input: Tensor, generator: Generator) -> Tensor:
    check_implemented(input, FLOATS, "poisson_cpu")
    if not input.spec.device.backend.has_memory:
        return empty_as(input, memory_format=contiguous_format)
    if has_iterations(input.spec.device):
        if not bool((input >= 0).all()):
            raise RuntimeError(_NEGATIVE_RATE)
        return iterated(rejection.POISSON, input, input, generator).to(input.dtype)
    return _poisson_of(input, generator)


_NEGATIVE_RATE = "invalid Poisson rate, expected rate to be non-negative"


@runs_inside
def _poisson_of(input: Tensor, generator: Generator) -> Tensor:
    rates = array(input).astype(np.float64, order="C")
    if not np.all(rates >= 0):
        raise RuntimeError(_NEGATIVE_RATE)
    values = np.empty_like(rates)
    rejection.poisson(generator, values.ctypes.data, rates.ctypes.data, rates.size)
    return tensor_of(values, input.dtype)


@public("function")
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """For each count and probability, how many of that many trials succeed. Shapes broadcast.

    Raises: ValueError for counts that are not floats, RuntimeError if the dtypes differ.
    """
    generator = drawing_generator(generator, "binomial", count.spec.device)
    if not count.is_floating_point():
        raise ValueError(
            f"binomial only supports floating-point dtypes for count, got: {LEGACY_NAMES[count.dtype]}"
        )
    if prob.dtype is not count.dtype:
        raise RuntimeError(f"Found dtype {LEGACY_NAMES[prob.dtype]} but expected {LEGACY_NAMES[count.dtype]}")
    check_implemented(count, (float32, float64), "binomial_cpu")
    sizes = broadcast_shapes("binomial", count.shape, prob.shape)
    if not count.spec.device.backend.has_memory:
        return empty_of(contiguous_spec(sizes, count.dtype, count.device))
    if has_iterations(count.spec.device):
        return iterated(rejection.binomial_cases(count.dtype), count, prob, generator).to(count.dtype)
    return _binomial_of(count, prob, sizes, generator)


@runs_inside
def _binomial_of(count: Tensor, prob: Tensor, sizes: Sequence[int], generator: Generator) -> Tensor:
    counts, p = (np.broadcast_to(array(x), sizes).astype(np.float64, order="C") for x in (count, prob))
    values = np.empty_like(counts)
    rejection.binomial(
        generator, values.ctypes.data, counts.ctypes.data, p.ctypes.data, values.size, count.dtype
    )
    return tensor_of(values, count.dtype)
