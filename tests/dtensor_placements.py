"""Which placements PyTorch's DTensor gives for calls of its operator database, and which weft's gives.

PYTHONPATH=tests:. python tests/dtensor_placements.py [operator ...]    prints the calls that differ, and counts

This process is rank 0 of two in a group without the other one, so no values are right. In each call one tensor is cut along one dim, and all
others are whole on both ranks.
"""

import collections
import itertools
import operator
import sys
import warnings

from oracle import converted, torch
from quick_torch import op_db
from torch.testing._internal.distributed import fake_pg  # noqa: F401 (registers the backend)

import weft

RANKS = 2
SAMPLES = 2  # of each operator
REFUSED = "refused"


def start():
    """Begin the groups of both libraries.

    Returns: the meshes of PyTorch and of weft.
    """
    torch.distributed.init_process_group(
        "fake", rank=0, world_size=RANKS, store=torch.distributed.HashStore()
    )
    weft.distributed.init_process_group("fake", rank=0, world_size=RANKS)
    return tuple(
        library.distributed.device_mesh.init_device_mesh("cpu", (RANKS,)) for library in (torch, weft)
    )


def calls(names=()):
    """Each call: its name, the function's name, the arguments of PyTorch, which of their tensors is cut, and along which dim."""
    for op in op_db():
        if names and op.name not in names or torch.float32 not in op.dtypes:
            continue
        torch.manual_seed(0)
        try:
            samples = list(itertools.islice(op.sample_inputs("cpu", torch.float32), 12))
        except Exception:  # samples of other devices
            continue
        label = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        for number, sample in enumerate(samples[:: max(len(samples) // SAMPLES, 1)][:SAMPLES]):
            arguments = (sample.input, *sample.args), sample.kwargs
            tensors = tensors_in(arguments)
            if any(each.layout is not torch.strided for each in tensors) or _has_module(sample):
                continue
            for place, tensor in enumerate(tensors):
                if tensor.numel():
                    for dim in range(tensor.dim()):
                        yield f"{label} {number}: tensor {place}, dim {dim}", op.name, arguments, place, dim


def _has_module(sample):
    return any(isinstance(each, torch.nn.Module) for each in (*sample.args, *sample.kwargs.values()))


def tensors_in(value):
    if isinstance(value, torch.Tensor | weft.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [each for item in value for each in tensors_in(item)] if isinstance(value, list | tuple) else []


def changed(value, change):
    """The arguments with each tensor changed."""
    if isinstance(value, torch.Tensor | weft.Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(changed(each, change) for each in value)
    return {k: changed(v, change) for k, v in value.items()} if isinstance(value, dict) else value


def function_of(library, name):
    try:
        return operator.attrgetter(name)(library)
    except AttributeError:
        return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def placements(library, mesh, name, arguments, place, dim):
    """The placement of each tensor in the result; REFUSED and why, if the call raises."""
    tensor = library.distributed.tensor
    order = itertools.count()

    def laid_out(x):
        lies = tensor.Shard(dim) if next(order) == place else tensor.Replicate()
        return tensor.distribute_tensor(x.detach(), mesh, [lies], src_data_rank=None)

    try:
        args, kwargs = changed(arguments[0], laid_out), changed(arguments[1], laid_out)
        found = function_of(library, name)(*args, **kwargs)
        return " | ".join(str(each.placements[0]) for each in tensors_in([found]))
    except Exception as error:
        return (
            f"{REFUSED}: {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
        )


def compared(names=()):
    """Pairs of a call's name and (PyTorch's placements, weft's)."""
    meshes = start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for label, name, arguments, place, dim in calls(names):
            theirs = placements(torch, meshes[0], name, arguments, place, dim)
            ours = placements(weft, meshes[1], name, _converted(arguments), place, dim)
            yield label, (theirs.replace(".0)", ")"), ours.replace(".0)", ")"))  # _NormP(2.0) is _NormP(2)


def _converted(arguments):
    args, kwargs = arguments

    def own(value):
        return (
            getattr(weft, str(value).rpartition(".")[2])
            if isinstance(value, torch.memory_format)
            else converted(value)
        )

    return converted(args), {k: own(v) for k, v in kwargs.items()}


def kind_of(theirs, ours):
    if theirs.startswith(REFUSED):
        return "both refuse" if ours.startswith(REFUSED) else "only PyTorch refuses"
    if ours.startswith(REFUSED):
        return "only weft refuses"
    if ours == theirs:
        return "same"
    pairs = list(zip(theirs.split(" | "), ours.split(" | "), strict=True))
    return "only weft gathers" if any(b == "R" != a for a, b in pairs) else "weft gathers less"


def main(names):
    counts = collections.Counter()
    for label, pair in compared(names):
        kind = kind_of(*pair)
        counts[kind] += 1
        if kind in ("only weft gathers", "only weft refuses", "weft gathers less"):
            print(f"{kind}: {label}: {pair[0]} in PyTorch, {pair[1]} in weft")
    print(dict(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
