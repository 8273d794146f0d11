"""A process that carries out calls on one library: `python -m wrong_calls.worker torch|weft`.

Requests and answers are pickles on standard input and output. The process may die: that is an answer, too.
"""

from __future__ import annotations

import importlib
import os
import pickle
import resource
import sys
import traceback
import warnings
from typing import Any

import numpy as np

from .calls import Array, Call, Named, Outcome, contiguous

ROOM = 3 << 30  # bytes of memory for tensors: larger allocations fail

# Exceptions that no check raises.
DEFECTS = (
    SystemError,
    AssertionError,
    AttributeError,
    NameError,
    KeyError,
    ZeroDivisionError,
    RecursionError,
)
# Messages of Python and NumPy about what weft did inside.
INSIDE = (
    "tuple index", "list index", "tuple indices", "list indices", "unsupported operand", "not supported between",
    "is not subscriptable", "is not iterable", "is not callable", "has no len", "bad operand type", "must be real number",
    "object cannot be interpreted", "not enough values", "too many values", "zip() argument", "unhashable type",
    "could not be broadcast", "unexpected keyword", "positional argument", "invalid literal", "must be a string",
    "ufunc", "numpy", "internal",
)  # fmt: skip


class Library:
    """PyTorch or weft."""

    def __init__(self, name: str):
        self.name = name
        self.torch = importlib.import_module(name)

    def find(self, path: str) -> Any:
        found = self.torch
        for part in path.split("."):
            try:
                found = getattr(found, part)
            except AttributeError:
                found = importlib.import_module(f"{found.__name__}.{part}")
        return found

    # -- values ----------------------------------------------------------------------------------------------------

    def tensor(self, array: Array) -> Any:
        torch, dtype = self.torch, getattr(self.torch, array.dtype)
        if array.data:
            # A clone, because the library's own allocator is to be watched.
            memory = torch.frombuffer(bytearray(array.data), dtype=torch.uint8).clone().view(dtype)
            plain = array.stride == contiguous(array.shape) and not array.offset
            result = (
                memory.view(array.shape)
                if plain and memory.numel() == _count(array.shape)
                else (memory.as_strided(array.shape, array.stride, array.offset))
            )
        else:
            result = torch.empty_strided(array.shape, array.stride, dtype=dtype)
        return result.requires_grad_() if array.requires_grad else result

    def given(self, value: Any, tensors: list) -> Any:
        """Plain data as the library's objects; tensors are noted."""
        if isinstance(value, Array):
            tensors.append(self.tensor(value))
            return tensors[-1]
        if isinstance(value, Named):
            return self.find(value.path)
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            return type(value)(self.given(each, tensors) for each in value)
        if isinstance(value, dict):
            return {name: self.given(each, tensors) for name, each in value.items()}
        if isinstance(value, slice):
            return slice(*(self.given(each, tensors) for each in (value.start, value.stop, value.step)))
        return value

    def plain(self, value: Any) -> Any:
        """The opposite: results as plain data."""
        torch = self.torch
        if isinstance(value, torch.Tensor):
            return self.array(value)
        if isinstance(value, torch.dtype):
            return Named(str(value).rpartition(".")[2])
        if isinstance(value, (tuple, list)):
            return [self.plain(each) for each in value]
        if isinstance(value, dict):
            return {name: self.plain(each) for name, each in value.items()}
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            return value
        return type(value).__name__

    def array(self, tensor: Any) -> Array:
        dtype, shape = str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape)
        tensor = tensor.detach()
        if tensor.numel() > 1 << 20:
            return Array(dtype, shape, contiguous(shape), 0, b"")
        data = b""
        if tensor.numel():
            dense = self.torch.empty(shape, dtype=tensor.dtype).copy_(tensor)
            data = dense.reshape(-1).view(self.torch.uint8).numpy().tobytes()
        return Array(dtype, shape, contiguous(shape), 0, data, False)

    # -- calls -----------------------------------------------------------------------------------------------------

    def run(self, call: Call) -> Outcome:
        torch = self.torch
        tensors: list = []
        torch.manual_seed(0)
        try:
            args, kwargs = self.given(call.args, tensors), self.given(call.kwargs, tensors)
            inputs = None if call.inputs is None else self.given(call.inputs, tensors)
            function = self.function(call, args)
        except Exception as error:
            return Outcome("harness", message=f"{type(error).__name__}: {error}")
        leaves = [each for each in tensors if each.requires_grad]
        try:
            value = function(*args, **kwargs)
            if inputs is not None:
                value = value(*inputs)
            if call.path.endswith("__setitem__"):
                value = args[0]
        except Exception as error:
            return raised("raised", error)
        outcome = Outcome("value")
        try:
            if leaves:
                outcome.grads = self.grads(value, leaves)
            outcome.value = self.plain(value)
            outcome.after = [self.array(each) for each in tensors]
        except Exception as error:
            failed = raised("backward", error)
            outcome.kind, outcome.error, outcome.message = failed.kind, failed.error, failed.message
            outcome.internal = failed.internal
        return outcome

    def function(self, call: Call, args: tuple) -> Any:
        if not call.path.startswith("Tensor."):
            return self.find(call.path)
        method = call.path.removeprefix("Tensor.")
        return lambda self, *rest, **kwargs: getattr(self, method)(*rest, **kwargs)

    def grads(self, value: Any, leaves: list) -> list:
        results = [each for each in self._tensors(value) if each.requires_grad and each.grad_fn is not None]
        if not results:
            return []
        found = self.torch.autograd.grad(
            results, leaves, [self.torch.ones_like(each) for each in results], allow_unused=True
        )
        return [None if each is None else self.array(each) for each in found]

    def _tensors(self, value: Any) -> list:
        if isinstance(value, self.torch.Tensor):
            return [value]
        if isinstance(value, (tuple, list)):
            return [each for item in value for each in self._tensors(item)]
        return []


def raised(kind: str, error: Exception) -> Outcome:
    builtin = next(cls for cls in type(error).__mro__ if cls.__module__ == "builtins")
    message = str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    internal = isinstance(error, DEFECTS) or any(text in message for text in INSIDE)
    where = f" ({place.filename.rpartition('weft/')[2]}:{place.lineno})"
    return Outcome(kind, error=builtin.__name__, message=message[:300] + where, internal=internal)


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=object)) if shape else 1


def limit_memory() -> None:
    """From now on this process gets no more than ROOM, not counting addresses that are only reserved."""
    with open("/proc/self/status") as file:
        used = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + ROOM, resource.RLIM_INFINITY))


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    requests = sys.stdin.buffer
    warnings.simplefilter("ignore")
    library = Library(sys.argv[1])
    if sys.argv[1] == "torch":
        library.torch.set_num_threads(1)
        from . import samples
    ready = False
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        if isinstance(request, Call):
            if not ready:
                limit_memory()
                ready = True
            answer: Any = library.run(request)
        else:
            answer = getattr(samples, request[0])(*request[1:])
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
