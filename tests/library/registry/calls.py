"""Calls the operators of torch.ops.aten as PyTorch's own functions call them, and compares.

    python tests/library/registry/calls.py

Records the operators, with arguments and results, that PyTorch's samples of its functions and of their gradients lead to,
calls those of weft with the same arguments, and prints those that differ or are missing. Takes half a minute.
"""

import collections
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

sys.path[:0] = [str(Path(__file__).parents[3]), str(Path(__file__).parents[2])]
import quick_torch  # noqa: E402

import weft  # noqa: E402

CALLS = 5  # of each operator
ELEMENTS = 5000  # of the tensors of a call
SAMPLES = 12  # of each function
# Operators whose results are random or not initialized.
RANDOM = """rand bernoulli dropout normal exponential cauchy geometric uniform multinomial poisson empty rrelu
fractional_max_pool random philox resize sobol""".split()

# Factorizations whose factors are unique but for the sign of each column, which depends on the library.
FACTORS = ("linalg_eig", "_linalg_eigh")


class Recording(TorchDispatchMode):
    """Keeps the calls of operators."""

    def __init__(self):
        super().__init__()
        self.calls = []
        self.count = collections.Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.name()
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        keep = (
            name.startswith("aten::")
            and self.count[name] < CALLS
            and sum(t.numel() for t in tensors) < ELEMENTS
        )
        if keep:
            given = tree_map(copied, (args, kwargs))
        result = func(*args, **kwargs)
        if keep:
            self.count[name] += 1
            self.calls.append((name, *given, tree_map(copied, result)))
        return result


def copied(value):
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def record():
    """The calls that the samples lead to."""
    recording = Recording()
    for op in quick_torch.op_db():
        if (
            any(word in op.name for word in ("sparse", "nested", "jiterator"))
            or torch.float32 not in op.dtypes
        ):
            continue
        try:
            samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd))[
                :SAMPLES
            ]
        except Exception:
            continue
        for place, sample in enumerate(samples):
            try:
                with recording:
                    run(op, sample, place < 3)
            except Exception:  # a sample that needs another device
                continue
    return recording.calls


def run(op, sample, in_place):
    result = op.op(sample.input, *sample.args, **sample.kwargs)
    outputs = [each for each in tree_leaves(result) if isinstance(each, torch.Tensor) and each.requires_grad]
    if outputs:
        torch.autograd.backward(outputs, [torch.ones_like(each) for each in outputs])
    if op.inplace_variant and in_place:
        op.inplace_variant(sample.input.detach().clone(), *sample.args, **sample.kwargs)


def ours(value):
    """An argument of PyTorch as one of weft."""
    if isinstance(value, torch.Tensor):
        value = value.resolve_conj().resolve_neg()
        if value.dtype is torch.bfloat16:
            return weft.from_numpy(value.float().numpy().copy()).to(weft.bfloat16)
        return weft.from_numpy(np.array(value.contiguous().numpy())).clone()  # in memory that can grow
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return getattr(weft, str(value)[6:])
    if isinstance(value, torch.device):
        return weft.device(str(value))
    return weft.default_generator if isinstance(value, torch.Generator) else value


def difference(mine, theirs, up_to_sign=False):
    """What is different, None if nothing is. up_to_sign: only absolute values count, those of eigenvectors say."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(mine, weft.Tensor) or (str(mine.dtype), tuple(mine.shape)) != (
            str(theirs.dtype),
            tuple(theirs.shape),
        ):
            shown = (mine.dtype, tuple(mine.shape)) if isinstance(mine, weft.Tensor) else type(mine)
            return f"{shown} instead of {theirs.dtype}, {tuple(theirs.shape)}"
        if not theirs.dtype.is_floating_point and not theirs.is_complex():
            return None if mine.tolist() == theirs.tolist() else "other values"
        wide = torch.complex128 if theirs.is_complex() else torch.float64
        values, wanted = torch.tensor(mine.tolist(), dtype=wide).reshape(theirs.shape), theirs.to(wide)
        if up_to_sign:
            values, wanted = values.abs(), wanted.abs()
        # Rounding errors are relative to the largest element, in exponentials of matrices say.
        largest = wanted[wanted.isfinite()].abs().max().item() if wanted.isfinite().any() else 0.0
        close = torch.allclose(values, wanted, rtol=1e-3, atol=max(1e-4, 1e-6 * largest), equal_nan=True)
        return None if close else "other values"
    if isinstance(theirs, (tuple, list)):
        if type(mine) is not type(theirs) or len(mine) != len(theirs):
            return f"{type(mine)} instead of {len(theirs)} results"
        return next(
            (found for pair in zip(mine, theirs, strict=True) if (found := difference(*pair, up_to_sign))),
            None,
        )
    if isinstance(theirs, float):
        return (
            None
            if math.isclose(mine, theirs, rel_tol=1e-3, abs_tol=1e-4) or mine != mine
            else f"{mine} instead of {theirs}"
        )
    return None if mine == theirs else f"{mine!r} instead of {theirs!r}"


def main():
    warnings.simplefilter("ignore")
    same, different, missing = set(), {}, set()
    for qualname, args, kwargs, wanted in record():
        name, _, overload = qualname.removeprefix("aten::").partition(".")
        try:
            operator = getattr(getattr(weft.ops.aten, name), overload or "default")
        except AttributeError:
            missing.add(qualname)
            continue
        try:
            args, kwargs = tree_map(ours, (args, kwargs))
            found = operator(*args, **kwargs)
            problem = (
                None if any(word in name for word in RANDOM) else difference(found, wanted, name in FACTORS)
            )
        except Exception as error:
            problem = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        if problem is None:
            same.add(qualname)
        else:
            different.setdefault(qualname, problem)
    for name, problem in sorted(different.items()):
        print(f"{name}: {problem}")
    print("missing:", *sorted(missing))
    print(
        f"{len(same - different.keys())} overloads agree, {len(different)} differ, {len(missing)} are missing"
    )


if __name__ == "__main__":
    main()
