"""Samples of PyTorch's operator database with DTensors for arguments, for several_ranks.py: which of them go wrong.

What is right is what plain tensors give. A rank that finds a difference tells the others, so that all go on with the next call.
"""

import itertools
import operator
import random
import warnings

DIMS = (0, -1)  # of each tensor, the dim that is cut; the samples take turns
SAMPLES = 1  # of each operator
# Their results are not defined (`empty`), are random numbers that the whole decides, have other signs, or are no strided tensors.
# DTensors refuse to be resized.
LEFT_OUT = "empty rand normal bernoulli multinomial dropout sparse qr resize_".split()


def op_table(torch, rank, size):
    from oracle import converted
    from quick_torch import op_db

    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (size,))
    turns, wrong = itertools.cycle(DIMS), {}
    for op in op_db():
        function = _function(torch, op.name)
        if function is None or any(each in op.name for each in LEFT_OUT) or not _takes_floats(op):
            continue
        for sample in _samples(op):
            arguments = (
                converted((sample.input, *sample.args)),
                {k: converted(v) for k, v in sample.kwargs.items()},
            )
            said = _compared(torch, mesh, function, arguments, next(turns), op.supports_autograd)
            if said:
                wrong.setdefault(op.name, said)
    return wrong


def _takes_floats(op):
    import torch as oracle

    return oracle.float32 in op.dtypes


def _samples(op):
    import numpy as np
    import torch as oracle

    for seed in (oracle.manual_seed, random.seed, np.random.seed):  # the same samples on each rank
        seed(0)
    try:
        found = list(itertools.islice(op.sample_inputs("cpu", oracle.float32), 12))
    except Exception:  # samples of other devices
        return []
    return found[:: max(len(found) // SAMPLES, 1)][:SAMPLES]


def _function(torch, name):
    try:
        return operator.attrgetter(name)(torch)
    except AttributeError:
        if not hasattr(torch.Tensor, name):
            return None
        return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def _tensors(torch, value):
    if isinstance(value, torch.Tensor):
        return [value]
    return (
        [each for item in value for each in _tensors(torch, item)] if isinstance(value, list | tuple) else []
    )


def _changed(torch, value, change):
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_changed(torch, each, change) for each in value)
    return {k: _changed(torch, v, change) for k, v in value.items()} if isinstance(value, dict) else value


def _compared(torch, mesh, function, arguments, dim, differentiable):
    """What is wrong with a call, on any rank; "" if all is right, or if the call fails for plain tensors, too."""
    tensor = torch.distributed.tensor

    def leaf(x):
        x = x.detach().clone()
        return x.requires_grad_() if differentiable and x.is_floating_point() else x

    def laid_out(x):
        place = tensor.Shard(dim % x.ndim) if x.ndim and x.numel() > 1 else tensor.Replicate()
        made = tensor.distribute_tensor(x.detach(), mesh, [place], src_data_rank=None)
        return made.requires_grad_(x.requires_grad)

    plain = _changed(torch, arguments, leaf)
    if not _tensors(torch, plain[0]):
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = _results(torch, function, plain)
        except Exception:
            return ""
        try:
            found = _results(torch, function, _changed(torch, plain, laid_out))
            said = _difference(torch, expected, [each.full_tensor() for each in found])
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    return _agreed(torch, said)


def _results(torch, function, arguments):
    """The results, then the gradients."""
    torch.manual_seed(1)
    args, kwargs = arguments
    results = _tensors(torch, function(*args, **kwargs))
    smooth = [each for each in results if each.requires_grad and each.is_floating_point()]
    if smooth:
        sum(each.square().sum() for each in smooth).backward()
    return [each.detach() for each in results] + [x.grad for x in _tensors(torch, args) if x.grad is not None]


def _difference(torch, expected, found):
    for want, got in itertools.zip_longest(expected, found):
        try:
            torch.testing.assert_close(got, want, rtol=1e-2, atol=1e-3, equal_nan=True)
        except Exception as error:
            return str(error)
    return ""


def _agreed(torch, said):
    """What any rank says. Ranks that failed half-way catch up with the collectives of the others."""
    for _ in range(8):
        try:
            everybody = [None] * torch.distributed.get_world_size()
            torch.distributed.all_gather_object(everybody, said)
            return next(filter(None, everybody), "")
        except RuntimeError:
            continue
    return said or "the ranks lost each other"
