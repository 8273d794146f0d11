"""The names of grad_fn over PyTorch's operator database."""

import operator
import warnings

import torch
from oracle import name_of, to_weft
from quick_torch import op_db

import weft

STEP = 3  # every third op, because all of them take 6 s on AMD Zen 4

# Functions whose last step is another one than PyTorch's.
COMPOSED_OTHERWISE = """
_native_batch_norm_legit _softmax_backward_data _unsafe_masked_index _unsafe_masked_index_put_accumulate torch.ops.aten._safe_softmax.default
combinations cumulative_trapezoid diff fill kron linalg.cond linalg.lstsq linalg.tensorinv linalg.vecdot masked.prod
nanquantile narrow_copy nn.functional.cross_entropy nn.functional.ctc_loss nn.functional.linear_cross_entropy
nn.functional.pairwise_distance nn.functional.scaled_dot_product_attention quantile __rsub__ rsub sort special.ndtr stft
trapezoid trapz
""".split()
# The database calls these by a wrapper with other arguments, or the sample needs a layout or a device that weft lacks.
NOT_CALLED = """
T H mT mH bfloat16 double float half cdouble cfloat chalf to where zero_ einsum normal pca_lowrank svd_lowrank polygamma
special.polygamma nn.functional.embedding nn.functional.triplet_margin_with_distance_loss sparse.mm sparse.sampled_addmm to_sparse
""".split()


def converted(value, device):
    if isinstance(value, torch.Tensor):
        same = {"dtype": getattr(weft, name_of(value.dtype)), "device": "meta"}
        mine = (
            to_weft(value.detach())
            if device == "cpu"
            else weft.empty_strided(value.shape, value.stride(), **same)
        )
        return mine.requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        return getattr(weft, name_of(value))
    if isinstance(value, dict):
        return {key: converted(each, device) for key, each in value.items()}
    return type(value)([converted(each, device) for each in value]) if type(value) in (list, tuple) else value


def function_of(name):
    try:
        return operator.attrgetter(name)(weft)
    except AttributeError:
        return getattr(weft.Tensor, name, None)


def names(result):
    if isinstance(result, (tuple, list)):
        return [names(each) for each in result]
    return type(result.grad_fn).__name__ if isinstance(result, (torch.Tensor, weft.Tensor)) else None


def differ(op):
    """The names of the first sample of an op in PyTorch and here, if they differ.

    Tensors on meta compile no kernels. Functions that read values need tensors on the CPU.
    """
    sample = next(iter(op.sample_inputs("cpu", torch.float32, requires_grad=True)))
    args = (sample.input, *sample.args)
    try:
        mine, named = converted((args, sample.kwargs), "meta")
        got = names(function_of(op.name)(*mine, **named))
    except (NotImplementedError, RuntimeError):
        mine, named = converted((args, sample.kwargs), "cpu")
        got = names(function_of(op.name)(*mine, **named))
    expected = names(op.op(*args, **sample.kwargs))
    return None if got == expected else (op.name, expected, got)


def test_nodes_of_the_op_table_have_pytorchs_names():
    ops = [
        op
        for op in op_db()
        if op.supports_autograd
        and torch.float32 in op.dtypes
        and function_of(op.name)
        and op.name not in (*COMPOSED_OTHERWISE, *NOT_CALLED)
    ]
    assert len(ops) > 400
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [found for op in ops[::STEP] if (found := differ(op))] == []
