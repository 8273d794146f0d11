"""Computes short-time Fourier transforms: the spectra of overlapping pieces of a signal, and the signal from them."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.checking import check_tensor
from ...core.public import public
from ...core.tensor import Tensor
from ...core.warn import user_level
from ..assembly.padding import constant_pad, pad
from ..creation.creation import ones, zeros
from ..creation.ranges import arange
from ..views.complex_views import view_as_real
from .spectral import signal, spectrum


def _centred(window: Tensor | None, win_length: int, n_fft: int, like: Tensor) -> Tensor | None:
    """The window with zeros on both sides, `n_fft` long; None if it is rectangular and of that length."""
    if win_length == n_fft:
        return window
    if window is None:
        window = ones(win_length, dtype=like.spec.dtype.to_real(), device=like.spec.device)
    left = (n_fft - win_length) // 2
    return constant_pad(window, (left, n_fft - win_length - left))


def _is_complex(*tensors: Tensor | None) -> bool:
    return any(each is not None and each.spec.dtype.is_complex for each in tensors)


@public("function method", autocast="raise")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return the spectra of pieces of `n_fft` samples, `hop_length` (n_fft // 4) apart, times a window.

    Shapes: input [batch, samples] or [samples] -> [batch, frequencies, pieces] or [frequencies, pieces]; n_fft // 2 + 1
    frequencies if `onesided` (the default for real signals). The real and the imaginary part come as one more dim
    unless `return_complex`, which must be given for real signals. `center`: piece k is around sample k * hop_length.

    >>> import weft as torch
    >>> torch.stft(torch.ones(16), 4, return_complex=True).shape
    torch.Size([3, 17])
    """
    check_tensor(input, "stft")
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        sizes = input.spec.shape
        wide = input.reshape(*(1,) * (3 - len(sizes)), *sizes)
        input = pad(wide, (n_fft // 2, n_fft // 2), pad_mode)
        input = input.reshape(*input.spec.shape[3 - max(len(sizes), 1) :]) if len(sizes) < 3 else input
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    complex_result = _is_complex(input, window)
    _check_stft(input, n_fft, hop_length, win_length, window, return_complex)
    if onesided and complex_result:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    batch = input if len(input.spec.shape) == 2 else input.unsqueeze(0)
    left = (n_fft - win_length) // 2
    if align_to_window:
        batch = constant_pad(batch, (left, n_fft - win_length - left))
    frames = batch.unfold(-1, n_fft, hop_length)
    weights = _centred(window, win_length, n_fft, input)
    frames = frames if weights is None else frames * weights
    found = spectrum(
        frames.to(frames.spec.dtype.to_complex()) if complex_result else frames,
        "ortho" if normalized else "backward",
        not complex_result if onesided is None else onesided,
    ).transpose(1, 2)
    found = found if len(input.spec.shape) == 2 else found.squeeze(0)
    wants_complex = complex_result if return_complex is None else return_complex
    return found if wants_complex else view_as_real(found)


def _check_stft(
    input: Tensor, n_fft: int, hop: int, win_length: int, window: Tensor | None, return_complex
) -> None:
    sizes = input.spec.shape
    if return_complex is None and not _is_complex(input, window):
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    call = f"stft({list(sizes)}, n_fft={n_fft}, hop_length={hop}, win_length={win_length})"
    if input.spec.dtype.category < 2:
        raise RuntimeError(f"{call} : expected a tensor of floating point or complex values")
    if not 1 <= len(sizes) <= 2:
        raise RuntimeError(f"{call} : expected a 1D or 2D tensor")
    if not 0 < n_fft <= sizes[-1]:
        raise RuntimeError(f"{call} : expected 0 < n_fft < {sizes[-1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{call} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{call} : expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if window is not None and window.spec.shape != (win_length,):
        raise RuntimeError(
            f"{call} : expected a 1D window tensor of size equal to win_length={win_length}, but got window with size "
            f"{list(window.spec.shape)}"
        )


@public("function method")
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of which `stft` gives these spectra: the least-squares estimate, from overlapping pieces.

    Shapes: [batch, frequencies, pieces] or [frequencies, pieces] -> [batch, samples] or [samples]; `length` samples.

    Raises: RuntimeError where the windows do not cover the signal.

    >>> import weft as torch
    >>> x = torch.arange(8.0)
    >>> torch.istft(torch.stft(x, 4, return_complex=True), 4)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    check_tensor(input, "istft")
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    onesided = _check_istft(input, n_fft, hop_length, win_length, window, onesided, return_complex)
    batch = input if len(input.spec.shape) == 3 else input.unsqueeze(0)
    norm = "ortho" if normalized else "backward"
    spectra = batch.transpose(1, 2)
    if return_complex:
        frames = signal(spectra, norm, None)
    else:
        frames = signal(spectra if onesided else spectra.narrow(-1, 0, n_fft // 2 + 1), norm, n_fft)
    weights = _centred(window, win_length, n_fft, frames)
    if weights is None:
        weights = ones(n_fft, dtype=frames.spec.dtype.to_real(), device=frames.spec.device)
    n_frames = frames.spec.shape[1]
    total = n_fft + hop_length * (n_frames - 1)
    summed = _overlap_add(frames * weights, hop_length, total)
    envelope = _overlap_add((weights * weights).expand(1, n_frames, n_fft), hop_length, total)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    kept = max(min(end, total) - start, 0)
    summed, envelope = summed.narrow(-1, start, kept), envelope.narrow(-1, start, kept)
    lowest = envelope.abs().min() if kept else 0
    is_known = not kept or envelope.spec.device.backend.has_memory
    if is_known and not bool(lowest > 1e-11):
        raise RuntimeError(
            f"istft({list(input.spec.shape)}, n_fft={n_fft}, hop_length={hop_length}, win_length={win_length}) window "
            f"overlap add min: {float(lowest):g}\nthe squares of the windows must add up to more than 1e-11 everywhere"
        )
    result = summed / envelope
    if end > total:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please check your center and hop_length settings.",
            stacklevel=user_level(),
        )
        result = constant_pad(result, (0, end - total))
    return result if len(input.spec.shape) == 3 else result.squeeze(0)


def _overlap_add(frames: Tensor, hop_length: int, total: int) -> Tensor:
    """Pieces [batch, pieces, n], `hop_length` apart, added up: [batch, total]."""
    batch, n_frames, n = frames.spec.shape
    where = frames.device
    starts = arange(n_frames, device=where).unsqueeze(1) * hop_length
    positions = (starts + arange(n, device=where)).reshape(-1)
    empty = zeros(batch, total, dtype=frames.spec.dtype, device=frames.spec.device)
    return empty.index_add(1, positions, frames.reshape(batch, -1))


def _check_istft(
    input: Tensor,
    n_fft: int,
    hop: int,
    win_length: int,
    window: Tensor | None,
    onesided: Any,
    return_complex: bool,
) -> bool:
    """Whether the spectra are onesided.

    Raises: RuntimeError for arguments that do not fit each other.
    """
    sizes = input.spec.shape
    call = f"istft({list(sizes)}, n_fft={n_fft}, hop_length={hop}, win_length={win_length})"
    if not input.spec.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if not input.spec.numel:
        raise RuntimeError(f"{call} : input tensor cannot be empty.")
    if len(sizes) not in (2, 3):
        raise RuntimeError(
            f"{call} : expected a tensor with 3 dimensions, or 2 without a batch, but got {len(sizes)}"
        )
    n_bins = sizes[-2]
    onesided = n_bins != n_fft if onesided is None else onesided
    expected, half = (
        (n_fft // 2 + 1, "n_fft / 2 + 1 when onesided=True")
        if onesided
        else (n_fft, "n_fft when onesided=False")
    )
    if n_bins != expected:
        raise RuntimeError(
            f"{call} : expected the frequency dimension (3rd to the last) of the input tensor to match {half}, but got "
            f"{n_bins}"
        )
    if not 0 < hop <= win_length:
        raise RuntimeError(f"{call} : expected 0 < hop_length <= win_length")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{call} : expected 0 < win_length <= n_fft")
    if window is not None and window.spec.shape != (win_length,):
        raise RuntimeError(f"{call} : Invalid window shape. window has to be 1D and length of `win_length`")
    if return_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and _is_complex(window):
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    return onesided
