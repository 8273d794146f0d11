"""Random matrices, and results of linear algebra in both libraries side by side."""

import torch
from hypothesis import strategies as st
from oracle import converted, name_of, strides_that_count, to_torch

import weft

BATCHES = st.sampled_from([(), (2,), (0,), (2, 1)])
DTYPES = st.sampled_from([torch.float32, torch.float64, torch.complex64, torch.complex128])


def random(*shape, dtype=torch.float64, seed=0):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def definite(*shape, dtype=torch.float64):
    a = random(*shape, dtype=dtype)
    return a @ a.mH + shape[-1] * torch.eye(shape[-1], dtype=dtype)


def close(got, expected):
    single = expected.dtype in (torch.float32, torch.complex64)
    rtol, atol = (1e-3, 1e-4) if single else (1e-8, 1e-9)
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, equal_nan=True)


def metadata(results):
    tensors = (results,) if isinstance(results, (torch.Tensor, weft.Tensor)) else results
    strides = [strides_that_count(t) for t in tensors]
    return type(results).__name__, [(tuple(t.shape), name_of(t.dtype)) for t in tensors], strides


def both(name, *args, **kwargs):
    """The results of both libraries, as tensors of torch; metadata must agree."""
    theirs, ours = torch, weft
    for part in name.split("."):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    theirs, ours = theirs(*args, **kwargs), ours(*converted(args), **kwargs)
    assert metadata(ours) == metadata(theirs)
    if isinstance(theirs, torch.Tensor):
        return to_torch(ours.resolve_conj()), theirs
    return [to_torch(t.resolve_conj()) for t in ours], list(theirs)
