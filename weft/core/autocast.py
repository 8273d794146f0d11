"""Mixed precision: which public functions compute in a lower dtype, in float32, or in the widest of their arguments'."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from .dtype import DType, bfloat16, float16, float32
from .tensor import Tensor


class _State(threading.local):
    enabled = False
    dtype: DType = bfloat16


state = _State()
open_contexts: list[None] = []  # has an entry for each `autocast` that is open, in any thread

_FUNCTIONAL = "nn.functional."

# Products gain speed and memory and lose little. (What is composed of products is listed where PyTorch's consists of these.)
LOWERED = frozenset(
    (
        *("matmul", "linalg.matmul", "mm", "bmm", "addmm", "addbmm", "baddbmm"),
        *("einsum", "tensordot", "chain_matmul", "linalg.multi_dot", "linalg.vecdot", "matrix_exp"),
        *("matrix_power", "linalg.matrix_power", "linalg.matrix_exp"),
        *(_FUNCTIONAL + name for name in ("linear", "scaled_dot_product_attention")),
        *(f"{_FUNCTIONAL}conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)),
        f"{_FUNCTIONAL}conv_tbc",
        "mkldnn_rnn_layer",
    )
)

# Sums of many terms, and what libraries compute.
RAISED = frozenset(
    (
        *(
            "prod",
            "trace",
            "cdist",
            "quantile",
            "nanquantile",
            "stft",
            "polar",
            "view_as_complex",
            "pinverse",
        ),
        *("inverse", "cholesky", "cholesky_inverse", "cholesky_solve", "lu_solve", "orgqr", "ormqr", "geqrf"),
        *("qr", "svd", "logdet"),
        *(
            f"linalg.{name}"
            for name in (
                *(
                    "cholesky",
                    "cond",
                    "eig",
                    "eigh",
                    "eigvals",
                    "eigvalsh",
                    "householder_product",
                    "inv",
                    "lstsq",
                ),
                *("matrix_rank", "qr", "solve", "svd", "svdvals", "tensorinv", "tensorsolve"),
            )
        ),
        *(
            f"fft.{name}"
            for kind in ("", "2", "n")
            for name in (
                f"fft{kind}",
                f"ifft{kind}",
                f"rfft{kind}",
                f"irfft{kind}",
                f"hfft{kind}",
                f"ihfft{kind}",
            )
        ),
        *(
            _FUNCTIONAL + name
            for name in (
                *(
                    "avg_pool3d",
                    "adaptive_avg_pool3d",
                    "grid_sample",
                    "bilinear",
                    "mse_loss",
                    "l1_loss",
                    "nll_loss",
                ),
                *(
                    "smooth_l1_loss",
                    "huber_loss",
                    "cross_entropy",
                    "binary_cross_entropy",
                    "kl_div",
                    "ctc_loss",
                ),
                *("binary_cross_entropy_with_logits", "cosine_embedding_loss", "hinge_embedding_loss"),
                *("margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss", "poisson_nll_loss"),
                *("soft_margin_loss", "triplet_margin_loss"),
            )
        ),
    )
)

WIDENED = frozenset(("cat", "concat", "concatenate", "stack", "index_copy"))


def cast_arguments(function: Callable, *names: str) -> Callable:
    """`function`, which has these public names; within `autocast` its floating-point arguments are converted first."""
    if not LOWERED.isdisjoint(names):
        wanted: Callable[[tuple], DType] = lambda found: state.dtype  # noqa: E731
    elif not RAISED.isdisjoint(names):
        wanted = lambda found: float32  # noqa: E731
    elif not WIDENED.isdisjoint(names):
        wanted = lambda found: max(found, key=lambda dtype: dtype.itemsize, default=float32)  # noqa: E731
    else:
        return function

    @functools.wraps(function)
    def complete(*args: Any, **kwargs: Any) -> Any:
        if not open_contexts or not state.enabled or kwargs.get("out") is not None:
            return function(*args, **kwargs)
        found = tuple(_dtypes((*args, *kwargs.values())))
        args, kwargs = converted((args, kwargs), wanted(found))
        state.enabled = False  # what the function is made of runs as it is
        try:
            return function(*args, **kwargs)
        finally:
            state.enabled = True

    return complete


def _takes_part(value: Any) -> bool:
    return isinstance(value, Tensor) and value.spec.dtype in (float32, bfloat16, float16)


def _dtypes(values: Any):
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _dtypes(value)
        elif _takes_part(value):
            yield value.spec.dtype


def converted(value: Any, dtype: DType) -> Any:
    """`value`, with the float16, bfloat16 and float32 tensors in it, at any depth, converted to `dtype`."""
    if _takes_part(value):
        return value.to(dtype)
    if isinstance(value, dict):
        return {key: converted(each, dtype) for key, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(converted(each, dtype) for each in value)
    return value
