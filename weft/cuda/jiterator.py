"""`torch.cuda.jiterator`: elementwise functions in C++ for GPUs. Programs may define them; weft does not run them."""

from __future__ import annotations

from typing import Any, NoReturn

from ._devices import DEVICES


class _JittedFunction:
    """A function with its source.

    Raises: when it is called, AssertionError without a CUDA device as PyTorch does, NotImplementedError with one.
    """

    def __init__(self, code_string: str, return_by_ref: bool, num_outputs: int, **kwargs: Any):
        self.code_string = code_string
        self.return_by_ref = return_by_ref
        self.num_outputs = num_outputs
        self.kwargs_dict = kwargs
        self.is_cuda_available = DEVICES.is_available()

    def __call__(self, *tensors: Any, **kwargs: Any) -> NoReturn:
        if self.is_cuda_available:
            raise NotImplementedError("torch.cuda.jiterator: weft does not compile functions in C++")
        raise AssertionError("Jiterator is only supported on CUDA and ROCm GPUs, none are available.")


def _create_jit_fn(code_string: str, **kwargs: Any) -> _JittedFunction:
    """A function of one result, which its source returns. kwargs: defaults of its parameters that are numbers."""
    return _JittedFunction(code_string, return_by_ref=False, num_outputs=1, **kwargs)


def _create_multi_output_jit_fn(code_string: str, num_outputs: int, **kwargs: Any) -> _JittedFunction:
    """A function of several results, which its source writes into references."""
    return _JittedFunction(code_string, return_by_ref=True, num_outputs=num_outputs, **kwargs)
