"""Samples of PyTorch's operator database on a device give what they give on the CPU, with their gradients.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import itertools
import operator
import os
import warnings

import pytest
import torch
from oracle import converted
from quick_torch import op_db

import weft

HERE = weft.device(os.environ.get("TESTED_DEVICE", "reference:0"))

# Of each kind of op: kernels of elements, reductions, scans, gathers and scatters, masks, products, random numbers, arrays.
NAMES = """
add div sigmoid clamp nn.functional.gelu special.zeta ldexp lerp
sum mean amax var logsumexp argmin softmax norm
cumsum cummax logcumsumexp
gather take_along_dim index_select scatter scatter_add index_put index_add
masked_select masked_fill nonzero masked_scatter
matmul bmm mv addmm nn.functional.linear nn.functional.conv2d nn.functional.scaled_dot_product_attention
nn.functional.interpolate nn.functional.grid_sample nn.functional.cross_entropy nn.functional.layer_norm
cat roll tril unfold as_strided flip repeat_interleave
sort topk unique linalg.svd linalg.solve linalg.cholesky fft.rfft histc bincount
rand_like bernoulli multinomial
""".split()
# The numbers of a GPU are PyTorch's for GPUs. tests/cuda/test_random.py has their values.
DRAWS = () if HERE.type == "reference" else ("rand_like", "bernoulli", "multinomial")
DTYPES = (torch.float32, torch.complex64, torch.int64)
# Of each op at two dtypes. A driver of GPUs compiles each kernel, which takes up to a second.
SAMPLES = 2 if HERE.type == "reference" else 1
STEP = int(os.environ.get("TESTED_STEP", "1"))  # TESTED_STEP=3 takes every third op and dtype


def call(name):
    """The function of weft with this name, or the method."""
    try:
        return operator.attrgetter(name)(weft)
    except AttributeError:
        return getattr(weft.Tensor, name)


def on_device(value, where):
    if isinstance(value, weft.Tensor):
        return value.to(where).detach().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(on_device(each, where) for each in value)
    return value


def with_gradients(value):
    return value.requires_grad_() if isinstance(value, weft.Tensor) and value.is_floating_point() else value


def tensors(value):
    if isinstance(value, weft.Tensor):
        return [value]
    return [each for item in value for each in tensors(item)] if isinstance(value, (list, tuple)) else []


def run(function, where, args, kwargs):
    """The results, then the gradients of the arguments."""
    weft.manual_seed(7)
    args, kwargs = on_device(args, where), {key: on_device(value, where) for key, value in kwargs.items()}
    if "device" in kwargs:
        kwargs["device"] = where
    results = tensors(function(*args, **kwargs))
    leaves = [each for each in tensors(args) if each.requires_grad]
    smooth = [each for each in results if each.requires_grad]
    if smooth and leaves:
        sum((each.abs() ** 2).sum() for each in smooth).backward()
    return results + [leaf.grad for leaf in leaves if leaf.grad is not None]


def samples():
    for op in op_db():
        # Views of one storage would be copied apart.
        if op.name in NAMES and op.variant_test_name != "partial_views":
            first, *others = [dtype for dtype in DTYPES if dtype in op.supported_dtypes("cpu")]
            for dtype in (first, *others[len(op.name) % 2 :][:1]):
                yield pytest.param(op, dtype, id=f"{op.name}-{op.variant_test_name}-{dtype}")


@pytest.mark.parametrize(("op", "dtype"), list(samples())[::STEP])
def test_like_the_cpu(op, dtype):
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(itertools.islice(op.sample_inputs("cpu", dtype), 40))
        for sample in found[:: max(len(found) // SAMPLES, 1)][:SAMPLES]:
            args = converted((sample.input, *sample.args))
            if op.supports_autograd:
                args = (with_gradients(args[0]), *args[1:])
            kwargs = {key: converted(value) for key, value in sample.kwargs.items()}
            expected = run(call(op.name), weft.device("cpu"), args, kwargs)
            got = run(call(op.name), HERE, args, kwargs)
            for mine, theirs in zip(got, expected, strict=True):
                assert mine.device is HERE
                if op.name in DRAWS:
                    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
                    continue
                if op.name == "logcumsumexp" and dtype.is_complex:  # a logarithm may have made a turn more
                    mine, theirs = mine.exp(), theirs.exp()
                weft.testing.assert_close(mine.cpu(), theirs, rtol=2e-4, atol=1e-3, equal_nan=True)


def test_all_names_have_samples():
    assert set(NAMES) <= {op.name for op in op_db()}
