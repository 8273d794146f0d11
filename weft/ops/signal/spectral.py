"""Fourier transforms, `torch.fft`: three leaves (complex to complex, real to complex and back), the rest composed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.arguments import integer, integers, wrong_type
from ...core.checking import check_tensor
from ...core.derivative import differentiate
from ...core.device import as_device
from ...core.dtype import FLOAT8, LEGACY_NAMES, DType, bfloat16, get_default_dtype
from ...core.layout import preserve_format
from ...core.plans import PlanCache
from ...core.public import public
from ...core.spec import Spec, contiguous_spec, make_spec, strides_in_order
from ...core.tensor import Tensor, wrap_dim
from ...engine.blas import scipy
from ...engine.workers import get_num_threads
from ...families.array_op import array_op, on_device, tensor_in, tensor_of, wide_array
from ..assembly.copying import formatted_spec
from ..assembly.padding import constant_pad
from ..creation.creation import check_dtype, check_layout, check_storage_size, size_arguments, with_grad
from .device_transforms import complex_transform, half_transform, kernels_for, real_transform, scale_of

# Elements: below this, SciPy's second thread costs more than it saves. 16384 complex64 take 67 us on one thread and 102 on two, 65536
# take 1.0 ms and 0.8 (AMD EPYC with 2 cores).
PARALLEL_NUMEL = 1 << 16

# ---- The leaves ----------------------------------------------------------------------------------------------------


def _result_spec(spec: Spec, dims: Sequence[int], sizes: Sequence[int], dtype: DType) -> Spec:
    """The dims that are not transformed lie outside, in memory order; the transformed ones, as listed, inside."""
    return _result_specs[spec, tuple(dims), tuple(sizes), dtype]


@PlanCache
def _result_specs(spec: Spec, dims: tuple[int, ...], sizes: tuple[int, ...], dtype: DType) -> Spec:
    other_dims = [dim for dim in range(len(spec.shape)) if dim not in dims]
    other_dims.sort(key=lambda dim: -spec.stride[dim])
    return make_spec(sizes, strides_in_order(sizes, (*other_dims, *dims)), dtype, spec.device)


def _as_read(spec: Spec) -> Spec:
    """The spec of the memory that a transform reads: a dense copy, if a conjugation is pending."""
    return formatted_spec(spec, preserve_format, spec.dtype, spec.device) if spec.conj else spec


def _by_stride(spec: Spec, dims: Sequence[int]) -> list[int]:
    return sorted(dims, key=lambda dim: -spec.stride[dim])


def _transformed(values: np.ndarray, result: Spec) -> Tensor:
    """The result of a transform (float32 or wider) with the strides and dtype that PyTorch gives it."""
    if result.is_contiguous or values.dtype != result.dtype.numpy:
        return tensor_of(values, result.dtype)
    return tensor_in(values, result)


def _workers(values: np.ndarray) -> int:
    return get_num_threads() if values.size >= PARALLEL_NUMEL else 1


@array_op(node_name="FftC2CBackward0")
def _fft_c2c(input: Tensor, dims: tuple[int, ...], norm: str, forward: bool) -> Tensor:
    """Return complex to complex over some dims."""
    result = _c2c_spec(input.spec, dims, norm, forward)
    if (kernels := kernels_for(result)) is not None and result.numel:
        scale = scale_of(norm, forward, math.prod(result.shape[dim] for dim in dims))
        return complex_transform(kernels, input, dims, result, scale, forward)
    fft, values = scipy("fft"), wide_array(input)
    if result.numel == 0:
        return tensor_in(values, result)
    transform = fft.fftn if forward else fft.ifftn
    return _transformed(transform(values, axes=dims, norm=norm, workers=_workers(values)), result)


@_fft_c2c.spec_rule
def _c2c_spec(input: Spec, dims: tuple[int, ...], norm: str, forward: bool) -> Spec:
    spec = _as_read(input)
    return _result_spec(spec, _by_stride(spec, dims), spec.shape, spec.dtype)


@array_op(node_name="FftR2CBackward0")
def _fft_r2c(input: Tensor, dims: tuple[int, ...], norm: str, onesided: bool) -> Tensor:
    """Real to complex; `onesided` keeps the half n // 2 + 1 of the last of the dims that determines the rest."""
    spec, result = input.spec, _r2c_spec(input.spec, dims, norm, onesided)
    if (kernels := kernels_for(result)) is not None and spec.numel:
        scale = scale_of(norm, True, math.prod(spec.shape[dim] for dim in dims))
        if onesided:
            return half_transform(kernels, input, dims, result, scale)
        return complex_transform(kernels, input, dims, result, scale, forward=True)
    fft, values = scipy("fft"), wide_array(input)
    if spec.numel == 0:
        return tensor_in(0, result)
    if onesided:
        return _transformed(fft.rfftn(values, axes=dims, norm=norm, workers=_workers(values)), result)
    spectrum = fft.fftn(values, axes=dims, norm=norm, workers=_workers(values))
    # SciPy fills the half that symmetry determines and goes over the terms that are their own mirror images, such as
    # the constant one: they come out conjugated, with an imaginary part of -0.
    mirrored = tuple(
        slice(None) if dim not in dims else slice(0, None, n // 2) if n % 2 == 0 else slice(1)
        for dim, n in enumerate(spec.shape)
    )
    np.conjugate(spectrum[mirrored], out=spectrum[mirrored])
    return _transformed(spectrum, result)


@_fft_r2c.spec_rule
def _r2c_spec(input: Spec, dims: tuple[int, ...], norm: str, onesided: bool) -> Spec:
    spec, sizes = _as_read(input), list(input.shape)
    if onesided:
        sizes[dims[-1]] = sizes[dims[-1]] // 2 + 1
    return _result_spec(spec, [*_by_stride(spec, dims[:-1]), dims[-1]], sizes, spec.dtype.to_complex())


@array_op(node_name="FftC2RBackward0")
def _fft_c2r(input: Tensor, dim: int, norm: str, size: int) -> Tensor:
    """The half along `dim` of a Hermitian signal to the `size` real numbers that it is the spectrum of."""
    result = _c2r_spec(input.spec, dim, norm, size)
    if (kernels := kernels_for(result)) is not None and result.numel:
        return real_transform(kernels, input, dim, result, scale_of(norm, False, size))
    fft, values = scipy("fft"), wide_array(input)
    if result.numel == 0:
        return tensor_in(0, result)
    return _transformed(fft.irfft(values, size, dim, norm, workers=_workers(values)), result)


@_fft_c2r.spec_rule
def _c2r_spec(input: Spec, dim: int, norm: str, size: int) -> Spec:
    spec = _as_read(input)
    sizes = (*spec.shape[:dim], size, *spec.shape[dim + 1 :])
    return _result_spec(spec, (dim,), sizes, spec.dtype.to_real())


# ---- Derivatives: the adjoint of a transform is the opposite one, scaled alike ------------------------------------------


def _weights(spec: Spec, dim: int, size: int, inner: float) -> Tensor:
    """1 for the frequencies that are their own mirror images, `inner` for the others, along the half of `dim`."""
    if not spec.numel:  # the sizes may be far beyond any memory
        return on_device(np.ones((), spec.dtype.to_real().numpy), spec.device)
    half = size // 2 + 1
    values = np.full((half, *(1,) * (len(spec.shape) - 1 - dim)), inner)
    values[0] = 1
    if size % 2 == 0:
        values[-1] = 1
    return on_device(values, spec.device, spec.dtype.to_real())


def _c2c_rule(ct, out, input, dims, norm, forward):
    return _fft_c2c(ct, dims, SWAPPED[norm], not forward)


def _r2c_rule(ct, out, input, dims, norm, onesided, *, specs):
    norm = SWAPPED[norm]
    if not onesided:
        return _fft_c2c(ct, dims, norm, False)  # the real part of it
    if len(dims) > 1:
        ct = _fft_c2c(ct, dims[:-1], norm, False)
    # `_fft_c2r` adds the contributions of mirror images, and the input has none.
    size = specs[0].shape[dims[-1]]
    return _fft_c2r(ct * _weights(ct.spec, dims[-1], size, 0.5), dims[-1], norm, size)


def _c2r_rule(ct, out, input, dim, norm, size):
    half = _fft_r2c(ct, (dim,), SWAPPED[norm], True)
    return half * _weights(half.spec, dim, size, 2)


differentiate(_fft_c2c, _c2c_rule)
differentiate(_fft_r2c, _r2c_rule)
differentiate(_fft_c2r, _c2r_rule)


# ---- Arguments -----------------------------------------------------------------------------------------------------

SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _norm(norm: str | None, swapped: bool = False) -> str:
    """SciPy's name of a normalisation, which is PyTorch's; `swapped` for a transform computed by its opposite."""
    norm = "backward" if norm is None else norm
    if norm not in SWAPPED:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return SWAPPED[norm] if swapped else norm


def _check_input(input: Any, name: str) -> None:
    check_tensor(input, f"fft_{name}")


def _floating(input: Tensor) -> Tensor:
    """Integers and bools in the default float dtype. float16, which PyTorch transforms on GPUs only, is welcome."""
    dtype = input.spec.dtype
    if dtype is bfloat16 or dtype in FLOAT8:
        raise RuntimeError(f"Unsupported dtype {LEGACY_NAMES[dtype]}")
    return input.to(get_default_dtype()) if dtype.category < 2 else input


def _complex(input: Tensor) -> Tensor:
    input = _floating(input)
    return input.to(input.spec.dtype.to_complex())


def _real(input: Tensor, name: str, what: str = "expects a real input tensor") -> Tensor:
    if input.spec.dtype.is_complex:
        raise RuntimeError(f"{name} {what}, but got {LEGACY_NAMES[input.spec.dtype]}")
    return _floating(input)


def _check_size(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _position(dim: int, ndim: int) -> int:
    """`dim` counted from the front. Raises: IndexError if there is none, as in a 0-dim tensor."""
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def _one_dim(input: Tensor, n: Any, dim: Any, name: str) -> tuple[int, int]:
    """`n` (-1: as it is) and `dim` of a transform of one dim, checked."""
    dim = _position(integer(dim, f"fft_{name}", "dim"), len(input.spec.shape))
    if n is None:
        return -1, dim
    n = integer(n, f"fft_{name}", "n")
    _check_size(n)
    return n, dim


def _dims_and_sizes(input: Tensor, s: Any, dim: Any, name: str) -> tuple[list[int], list[int]]:
    """The dims to transform and their sizes (-1: as they are), from the arguments of a transform of several."""
    ndim = len(input.spec.shape)
    if s is not None:
        s = integers((s,), f"fft_{name}", "s")
    if dim is None and name.endswith("2"):
        raise wrong_type(dim, f"fft_{name}", "dim", "tuple of ints")
    if dim is not None:
        dim = integers((dim,), f"fft_{name}", "dim")
        dims = [_position(each, ndim) for each in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is None:
        dims = list(range(ndim))
    elif len(s) > ndim:
        raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
    else:
        dims = list(range(ndim - len(s), ndim))
    return dims, [-1] * len(dims) if s is None else list(s)


def _resized(input: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Cut off or zero-padded at the end of some dims; -1 leaves a size as it is."""
    lengths = list(input.spec.shape)
    pad = [0] * (2 * len(lengths))
    for dim, n in zip(dims, sizes, strict=True):
        size = input.spec.shape[dim]
        n = size if n == -1 else n
        _check_size(n)
        if n < size:
            input = input.narrow(dim, 0, n)
        lengths[dim] = n
        pad[2 * (len(input.spec.shape) - 1 - dim) + 1] = max(n - size, 0)
    # This is an error also if another dim is empty.
    if math.prod(max(n, 1) for n in lengths) * input.spec.dtype.itemsize >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={lengths}")
    return constant_pad(input, pad) if any(pad) else input


# ---- One dim -------------------------------------------------------------------------------------------------------
# What scales the other way round is computed by its opposite: the backward transform of real numbers is the conjugate
# of the forward one.


def _fft1(input: Tensor, n: Any, dim: Any, norm: str | None, forward: bool, name: str) -> Tensor:
    n, dim = _one_dim(input, n, dim, name)
    input = _resized(_floating(input), [dim], [n])
    if input.spec.dtype.is_complex:
        return _fft_c2c(input, (dim,), _norm(norm), forward)
    spectrum = _fft_r2c(input, (dim,), _norm(norm, swapped=not forward), False)
    return spectrum if forward else spectrum.conj()


def _rfft1(input: Tensor, n: Any, dim: Any, norm: str | None, forward: bool, name: str) -> Tensor:
    input = _real(input, name)
    n, dim = _one_dim(input, n, dim, name)
    spectrum = _fft_r2c(_resized(input, [dim], [n]), (dim,), _norm(norm, swapped=not forward), True)
    return spectrum if forward else spectrum.conj()


def _irfft1(input: Tensor, n: Any, dim: Any, norm: str | None, forward: bool, name: str) -> Tensor:
    n, dim = _one_dim(input, n, dim, name)
    n = 2 * (input.spec.shape[dim] - 1) if n == -1 else n
    _check_size(n)
    input = _resized(_complex(input), [dim], [n // 2 + 1])
    return _fft_c2r(input.conj() if forward else input, dim, _norm(norm, swapped=forward), n)


# ---- Several dims --------------------------------------------------------------------------------------------------


def _fftn(input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool, name: str) -> Tensor:
    dims, sizes = _dims_and_sizes(input, s, dim, name)
    input, norm = _resized(_complex(input), dims, sizes), _norm(norm)
    return _fft_c2c(input, tuple(dims), norm, forward) if dims else input.clone()


def _some_dims(input: Tensor, s: Any, dim: Any, name: str) -> tuple[list[int], list[int]]:
    dims, sizes = _dims_and_sizes(input, s, dim, name)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return dims, sizes


def _rfftn(input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool, name: str) -> Tensor:
    input = _real(input, name, "expects a real-valued input tensor")
    dims, sizes = _some_dims(input, s, dim, name)
    return _fft_r2c(_resized(input, dims, sizes), tuple(dims), _norm(norm), True)


def _ihfftn(input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool, name: str) -> Tensor:
    dims, sizes = _some_dims(input, s, dim, name)
    if input.spec.dtype.is_complex:
        raise RuntimeError(
            f"Only supports floating-point dtypes, but found: {LEGACY_NAMES[input.spec.dtype]}"
        )
    input = _resized(_floating(input), dims, sizes)
    half = _fft_r2c(input, (dims[-1],), _norm(norm, swapped=True), True).conj()
    return _fft_c2c(half.resolve_conj(), tuple(dims[:-1]), _norm(norm), False) if len(dims) > 1 else half


def _irfftn(input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool, name: str) -> Tensor:
    dims, sizes = _some_dims(input, s, dim, name)
    last = 2 * (input.spec.shape[dims[-1]] - 1) if sizes[-1] == -1 else sizes[-1]
    _check_size(last)
    spectrum = _resized(_complex(input), dims, [*sizes[:-1], last // 2 + 1])
    if len(dims) > 1:
        spectrum = _fft_c2c(spectrum, tuple(dims[:-1]), _norm(norm), forward)
    return _fft_c2r(spectrum.conj() if forward else spectrum, dims[-1], _norm(norm, swapped=forward), last)


# ---- Public names --------------------------------------------------------------------------------------------------

# name, transform of one dim, of several dims, forward, description
# fmt: off
TRANSFORMS: tuple[tuple[str, Callable, Callable, bool, str], ...] = (
    ("fft",   _fft1,   _fftn,   True,  "the discrete Fourier transform"),
    ("ifft",  _fft1,   _fftn,   False, "the inverse discrete Fourier transform"),
    ("rfft",  _rfft1,  _rfftn,  True,  "the Fourier transform of real numbers: the half (n // 2 + 1) that determines the rest"),
    ("irfft", _irfft1, _irfftn, False, "the inverse of `rfft`: real numbers, 2 * (size - 1) in the last dim unless given"),
    ("hfft",  _irfft1, _irfftn, True,  "the real Fourier transform of a signal of which the second half is the conjugate of the first"),
    ("ihfft", _rfft1,  _ihfftn, False, "the inverse of `hfft`"),
)
# fmt: on


def _define_one(name: str, transform: Callable, forward: bool, what: str) -> None:
    of = "input" if name in ("fft", "ifft", "rfft", "ihfft") else "result"

    @public(name=f"fft.{name}", out=True, autocast="raise", words={"what": what, "of": of})
    def function(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        """Compute {what}, along one dim.

        n: the size of the {of} along `dim`, cut off or padded with zeros; norm: where to divide by n: "backward" (in inverse
        transforms), "forward" or "ortho" (by its root in both).
        """
        _check_input(input, name)
        return transform(input, n, dim, norm, forward, name)


def _define_many(
    name: str, transform: Callable, forward: bool, what: str, default: tuple[int, ...] | None
) -> None:
    over = "the last two dims, or those given" if default else "all dims, or the last len(s), or those given"

    @public(name=f"fft.{name}", out=True, autocast="raise", words={"what": what, "over": over})
    def function(input: Tensor, s: Any = None, dim: Any = default, norm: str | None = None) -> Tensor:
        """Compute {what}, over {over}.

        s: a size for each of the dims (-1: as it is), cut off or padded with zeros; norm: as in the transform of one dim.
        """
        _check_input(input, name)
        return transform(input, s, dim, norm, forward, name)


for _name, _one, _many, _forward, _what in TRANSFORMS:
    _define_one(_name, _one, _forward, _what)
    _define_many(f"{_name}n", _many, _forward, _what, None)
    _define_many(f"{_name}2", _many, _forward, _what, (-2, -1))


# ---- Frequencies and shifts ----------------------------------------------------------------------------------------


def _frequencies(name: str, positions: Callable[[int], np.ndarray]) -> None:
    @public(name=f"fft.{name}", out=True, words={"transform": name.removesuffix("freq")})
    def function(
        n: int,
        d: float = 1.0,
        *,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool | None = False,
    ) -> Tensor:
        """Return the frequencies of the results of `{transform}` of `n` samples, `d` apart.

        Units: cycles per unit of `d`.
        """
        n = integer(n, f"fft_{name}", "n")
        dtype = check_dtype(dtype) or get_default_dtype()
        check_layout(layout)
        if dtype.category < 2:
            raise RuntimeError(f"{name} requires a floating point or complex dtype")
        check_storage_size(contiguous_spec(size_arguments((n,), name), dtype))
        with np.errstate(all="ignore"):
            step = np.float64(1.0) / (np.float64(n) * d)
        result = on_device(positions(n).astype(np.float64), as_device(device), dtype) * float(step)
        return with_grad(result, requires_grad)


_frequencies("fftfreq", lambda n: np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)]))
_frequencies("rfftfreq", lambda n: np.arange(n // 2 + 1))


def _define_shift(name: str, extra: int, what: str) -> None:
    @public(name=f"fft.{name}", words={"what": what})
    def function(input: Tensor, dim: Any = None) -> Tensor:
        """Return {what} in `dim` (an int or several; all unless given)."""
        _check_input(input, name)
        ndim = len(input.spec.shape)
        dims = range(ndim) if dim is None else integers((dim,), f"fft_{name}", "dim")
        dims = tuple(_position(each, ndim) for each in dims)
        return input.roll(tuple((input.spec.shape[each] + extra) // 2 for each in dims), dims)


_define_shift("fftshift", 0, "frequencies reordered so that zero is in the middle,")
_define_shift("ifftshift", 1, "the inverse of `fftshift`")


def spectrum(input: Tensor, norm: str, onesided: bool) -> Tensor:
    """Return the transform of the last dim: onesided or not for real input, complex to complex else."""
    last = (len(input.spec.shape) - 1,)
    if input.spec.dtype.is_complex:
        return _fft_c2c(input, last, norm, True)
    return _fft_r2c(_floating(input), last, norm, onesided)


def signal(input: Tensor, norm: str, size: int | None) -> Tensor:
    """The inverse of `spectrum`; `size` real numbers from a half, or complex ones if it is None."""
    last = len(input.spec.shape) - 1
    return _fft_c2c(input, (last,), norm, False) if size is None else _fft_c2r(input, last, norm, size)
