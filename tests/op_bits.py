"""Digests of the results of PyTorch's database of operations, to compare the bits of two processors, systems or Pythons.

    python tests/op_bits.py calls CALLS [SAMPLES]        where PyTorch is: write SAMPLES calls (2) of each operation and dtype
    python tests/op_bits.py digests CALLS DIGESTS [PART]    where only weft is: run the calls whose names contain PART, such as "[int8]"
    python tests/op_bits.py compare DIGESTS DIGESTS...   where both digests are: list the calls whose bits differ

A digest has two parts: the results, and the gradients of the inputs where the operation has a derivative. It holds dtypes, shapes,
strides and bits. All NaN count as one, because x86 makes negative ones of invalid operations, and ARM positive ones.
`digests` writes line by line. If a call ends the process, the same command goes on behind it.
"""

import hashlib
import pickle
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


class Values(NamedTuple):
    """A tensor of a call: its memory, and how the elements lie in it."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    memory: bytes
    requires_grad: bool


class Name(NamedTuple):
    """A dtype, layout or memory format of a call."""

    name: str


class Call(NamedTuple):
    name: str  # operation, dtype and number of the sample
    path: str
    args: tuple
    options: dict[str, Any]


# Operations whose results are memory that nothing was written to.
_WITHOUT_VALUES = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_",
}  # fmt: skip


class Unwritable(TypeError):
    """A call has an argument that `Values` and `Name` cannot describe, such as a function or a sparse tensor."""


# ---- Where PyTorch is --------------------------------------------------------------------------------------------------------


def write_calls(path: str, samples: str = "2") -> None:
    import torch
    from quick_torch import op_db

    calls, unwritable = [], 0
    for op in op_db():
        if op.name in _WITHOUT_VALUES:
            continue
        for dtype in DTYPES:
            if getattr(torch, dtype) not in op.supported_dtypes("cpu"):
                continue
            torch.manual_seed(0)
            differentiable = getattr(torch, dtype) in op.supported_backward_dtypes("cpu")
            given = list(op.sample_inputs("cpu", getattr(torch, dtype), requires_grad=differentiable))
            # The samples of an operation begin with usual ones and end with rare ones.
            count = min(int(samples), len(given))
            for k in sorted({round(each) for each in np.linspace(0, len(given) - 1, count)}):
                sample, name = given[k], f"{op.full_name}[{dtype}]{k}"
                try:
                    args = _written((sample.input, *sample.args))
                    calls.append(Call(name, op.name, args, _written(sample.kwargs)))
                except Unwritable:
                    unwritable += 1
    Path(path).write_bytes(pickle.dumps(calls))
    print(
        f"{len(calls)} calls of {len({call.path for call in calls})} operations; {unwritable} cannot be written"
    )


def _written(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return _values(value)
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return Name(str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, tuple | list):
        return (list if isinstance(value, list) else tuple)(_written(each) for each in value)
    if isinstance(value, dict):
        return {key: _written(each) for key, each in value.items()}
    if value is None or value is ... or isinstance(value, bool | int | float | complex | str | slice):
        return value
    raise Unwritable(type(value).__name__)


def _values(tensor: Any) -> Values:
    import torch

    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided or tensor.is_quantized or dtype not in DTYPES:
        raise Unwritable(f"{tensor.layout} {dtype}")
    plain = tensor.detach().resolve_conj().resolve_neg()
    whole = torch.empty(0, dtype=plain.dtype).set_(plain.untyped_storage())
    return Values(
        dtype,
        tuple(plain.shape),
        plain.stride(),
        plain.storage_offset(),
        whole.view(torch.uint8).numpy().tobytes(),
        tensor.requires_grad,
    )


# ---- Where only weft is ------------------------------------------------------------------------------------------------------


def write_digests(calls: str, path: str, part: str = "") -> None:
    output = Path(path)
    before = output.read_text() if output.exists() else ""
    done = {line.partition("\t")[0] for line in before.splitlines()}
    with output.open("a") as file:
        if before.endswith("\t"):
            file.write("\n")  # the call of this line ended the process
        for call in pickle.loads(Path(calls).read_bytes()):
            if call.name not in done and part in call.name:
                file.write(f"{call.name}\t")
                file.flush()
                file.write(" ".join(digests(call)) + "\n")


def digests(call: Call) -> tuple[str, str]:
    """The digests of the results of a call, and of the gradients of its inputs; the type of an error instead."""
    import weft

    inputs: list[Any] = []
    try:
        weft.manual_seed(0)
        result = _function(call.path)(*_read(call.args, inputs), **_read(call.options, inputs))
        results = [each for each in _leaves(result) if isinstance(each, weft.Tensor)]
        first = _digest(results or [result])
    except (AttributeError, RuntimeError, TypeError, ValueError, NotImplementedError, IndexError) as error:
        return type(error).__name__, "-"
    recorded = [each for each in results if each.requires_grad]
    if not inputs or not recorded:
        return first, "-"
    try:
        cotangents = [weft.full_like(each, 0.3) for each in recorded]  # not 1, which hides rounding
        return first, _digest(weft.autograd.grad(recorded, inputs, cotangents, allow_unused=True))
    except (RuntimeError, NotImplementedError) as error:
        return first, type(error).__name__


# The database calls these with the tensor first.
_SECOND_FIRST = {"einsum", "nn.functional.embedding", "polygamma", "special.polygamma", "where"}


def _function(path: str) -> Any:
    """The function or method of an operation of the database; where there is none, the property or in-place method."""
    import weft

    found: Any = weft
    for name in path.split("."):
        found = getattr(found, name, None)
    if callable(found) and not isinstance(found, weft.dtype):
        if path in _SECOND_FIRST:
            return lambda first, second, *rest, **options: found(second, first, *rest, **options)
        return found
    method = getattr(weft.Tensor, path, None) or getattr(weft.Tensor, f"{path}_")
    return method.fget if isinstance(method, property) else method


def _read(value: Any, inputs: list) -> Any:
    """An argument of weft from a written one. inputs: gets the tensors that require grad."""
    import weft

    if isinstance(value, Name):
        return getattr(weft, value.name)
    if isinstance(value, Values):
        memory = weft.empty(len(value.memory), dtype=weft.uint8)
        memory.numpy()[:] = np.frombuffer(value.memory, np.uint8)
        flat = memory.view(getattr(weft, value.dtype))
        tensor = flat.as_strided(value.shape, value.stride, value.offset)
        if value.requires_grad:
            inputs.append(tensor.requires_grad_())
        return tensor
    if isinstance(value, dict):
        return {key: _read(each, inputs) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_read(each, inputs) for each in value)
    return value


def _leaves(value: Any) -> list:
    if isinstance(value, tuple | list):
        return [leaf for each in value for leaf in _leaves(each)]
    return [value]


def _digest(values: Any) -> str:
    import weft

    found = hashlib.sha256()
    for each in values:
        if not isinstance(each, weft.Tensor):
            found.update(repr(each).encode())
            continue
        each = each.detach().resolve_conj().resolve_neg()
        found.update(f"{each.dtype} {tuple(each.shape)} {each.layout}".encode())
        if each.layout is weft.strided:
            found.update(str(each.stride()).encode())
        found.update(_bits(each.to_dense() if each.layout is not weft.strided else each))
    return found.hexdigest()[:16]


def _bits(tensor: Any) -> bytes:
    import weft

    flat = tensor.clone(memory_format=weft.contiguous_format).reshape(-1)
    if flat.is_complex():
        flat = weft.view_as_real(flat).reshape(-1)
    if flat.is_floating_point():
        flat = flat.masked_fill(flat != flat, float("nan"))
    return flat.view(weft.uint8).numpy().tobytes()


# ---- Where both digests are --------------------------------------------------------------------------------------------------


def compare(first: str, *others: str) -> None:
    """Print the calls whose digests differ. Exits with 1 if there are some."""
    expected = _lines(first)
    differ = False
    for other in others:
        found = _lines(other)
        both = expected.keys() & found.keys()
        different = sorted(name for name in both if found[name] != expected[name])
        for name in different:
            print(f"{name}: {expected[name]} in {first}, {found[name] or 'the process ended'} in {other}")
        errors = Counter(text.split()[0] for text in found.values() if text[:1].isupper())
        print(
            f"{other}: {len(both) - len(different)} of {len(both)} calls have the same bits; errors: {dict(errors)}"
        )
        differ = differ or bool(different) or not both
    sys.exit(differ)


def _lines(path: str) -> dict[str, str]:
    lines = (line.partition("\t") for line in Path(path).read_text().splitlines())
    return {name: digests for name, tab, digests in lines if tab}


if __name__ == "__main__":
    import op_bits  # so that pickled calls have the classes of this module under its name

    command, *arguments = sys.argv[1:]
    {"calls": op_bits.write_calls, "digests": op_bits.write_digests, "compare": op_bits.compare}[command](
        *arguments
    )
