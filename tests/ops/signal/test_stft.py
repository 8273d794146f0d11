"""stft and istft against PyTorch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check, to_torch, to_weft

import weft


@st.composite
def calls(draw):
    n_fft = draw(st.integers(2, 8))
    win_length = draw(st.one_of(st.none(), st.integers(1, n_fft)))
    window = torch.rand(win_length or n_fft) + 0.1 if draw(st.booleans()) else None
    return n_fft, draw(st.one_of(st.none(), st.integers(1, n_fft))), win_length, window


@pytest.mark.may_raise(least=0.65)
@settings(max_examples=100, deadline=None)
@pytest.mark.filterwarnings("ignore")
@given(
    calls(),
    st.lists(st.integers(1, 2), max_size=1),
    st.booleans(),
    st.sampled_from(("reflect", "constant", "replicate", "circular", "other")),
    st.booleans(),
    st.sampled_from((None, True, False)),
    st.sampled_from((True, False)),
    st.sampled_from((torch.float32, torch.float64, torch.complex64)),
)
def test_stft(call, batch, center, pad_mode, normalized, onesided, return_complex, dtype):
    signal = torch.randn(*batch, 20, dtype=dtype)
    check("stft", signal, *call, center, pad_mode, normalized, onesided, return_complex)


@pytest.mark.may_raise(least=0.35)
@settings(max_examples=60, deadline=None)
@pytest.mark.filterwarnings("ignore")
@given(
    calls(),
    st.lists(st.integers(1, 2), max_size=1),
    st.booleans(),
    st.booleans(),
    st.sampled_from((None, 5, 40)),
    st.booleans(),
)
def test_istft(call, batch, center, normalized, length, onesided):
    n_fft = call[0]
    spectra = torch.randn(*batch, n_fft // 2 + 1 if onesided else n_fft, 6, dtype=torch.complex64)
    check("istft", spectra, *call, center, normalized, onesided, length)
    check("istft", spectra, *call, center, normalized, onesided, length, not onesided)


def test_there_and_back():
    signal = torch.randn(2, 100)
    window = weft.hann_window(16)
    spectra = weft.stft(to_weft(signal), 16, window=window, return_complex=True)
    torch.testing.assert_close(to_torch(weft.istft(spectra, 16, window=window, length=100)), signal)


X = torch.randn(16)


@pytest.mark.refuses(
    [
        "arguments0-options0", "arguments1-options1", "arguments2-options2", "arguments3-options3",
        "arguments4-options4", "arguments5-options5", "arguments6-options6", "arguments7-options7",
        "arguments8-options8", "arguments9-options9",
    ]
)  # fmt: skip
@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((X, 4), {}),
        ((X, 4), {"return_complex": True, "hop_length": 0}),
        ((X, 4), {"return_complex": True, "win_length": 5}),
        ((X, 4), {"return_complex": True, "window": torch.ones(3)}),
        ((X, 40), {"return_complex": True}),
        ((X, 40), {"return_complex": True, "center": False}),
        ((X.long(), 4), {"return_complex": True}),
        ((torch.randn(2, 2, 16), 4), {"return_complex": True}),
        ((X.to(torch.complex64), 4), {"onesided": True}),
        ((X, 4), {"return_complex": True, "align_to_window": True}),
        ((X, 6), {"return_complex": True, "align_to_window": True, "center": False, "win_length": 4}),
    ],
)
def test_stft_errors(arguments, options):
    check("stft", *arguments, **options)


S = torch.ones(3, 5, dtype=torch.complex64)


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((S.real, 4), {}),
        ((S, 6), {}),
        ((S, 4), {"hop_length": 0}),
        ((S, 4), {"hop_length": 5}),
        ((S, 4), {"win_length": 5}),
        ((S, 4), {"window": torch.ones(3)}),
        ((S, 4), {"window": torch.zeros(4)}),
        ((S, 4), {"window": torch.ones(4, dtype=torch.complex64)}),
        ((S, 4), {"return_complex": True}),
        ((S[:0], 4), {}),
    ],
)
def test_istft_errors(arguments, options):
    check("istft", *arguments, **options)
