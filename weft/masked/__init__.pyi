# Written by `make stubs` from the run time; tests/test_types.py compares. Do not edit.
from builtins import bool as _bool, int as _int
from typing import Any
from ..core.dtype import DType
from ..core.tensor import Tensor
def amax(input: Tensor, dim: Any = None, *, keepdim: _bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor: ...
def amin(input: Tensor, dim: Any = None, *, keepdim: _bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor: ...
def argmax(input: Tensor, dim: Any = None, *, keepdim: _bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor: ...
def argmin(input: Tensor, dim: Any = None, *, keepdim: _bool = False, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor: ...
from weft.ops.reductions.masked_reductions import cumprod as cumprod
from weft.ops.reductions.masked_reductions import cumsum as cumsum
def log_softmax(input: Tensor, dim: _int | None, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor: ...
from weft.ops.reductions.masked_reductions import logaddexp as logaddexp
from weft.ops.reductions.masked_reductions import logsumexp as logsumexp
from weft.ops.reductions.masked_reductions import mean as mean
from weft.ops.reductions.masked_reductions import median as median
from weft.ops.reductions.masked_reductions import norm as norm
from weft.ops.reductions.masked_reductions import normalize as normalize
from weft.ops.reductions.masked_reductions import prod as prod
def softmax(input: Tensor, dim: _int | None, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor: ...
def softmin(input: Tensor, dim: _int | None, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor: ...
from weft.ops.reductions.masked_reductions import std as std
from weft.ops.reductions.masked_reductions import sum as sum
from weft.ops.reductions.masked_reductions import var as var
from .maskedtensor.core import MaskedTensor as MaskedTensor
from .maskedtensor.creation import as_masked_tensor as as_masked_tensor
from .maskedtensor.core import is_masked_tensor as is_masked_tensor
from .maskedtensor.creation import masked_tensor as masked_tensor
from . import maskedtensor as maskedtensor
