import pytest
import torch
import torch.distributed.algorithms.ddp_comm_hooks.default_hooks
import torch.distributed.nn.functional
from one_rank import groups, same

import weft

CALLS = {
    "all_reduce": lambda f, x, zeros: f.all_reduce(x),
    "all_gather": lambda f, x, zeros: f.all_gather(x),
    "broadcast": lambda f, x, zeros: f.broadcast(x, 0),
    "gather": lambda f, x, zeros: f.gather(x),
    "scatter": lambda f, x, zeros: f.scatter([x]),
    "reduce": lambda f, x, zeros: f.reduce(x, 0),
    "reduce_scatter": lambda f, x, zeros: f.reduce_scatter(zeros, [x]),
    "all_to_all": lambda f, x, zeros: f.all_to_all([zeros], [x]),
    "all_to_all_single": lambda f, x, zeros: f.all_to_all_single(zeros, x),
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients_flow_through_collectives(name):
    def program(library):
        x = library.arange(3.0, requires_grad=True)
        result = CALLS[name](library.distributed.nn.functional, x, library.zeros(3))
        y = result[0] if isinstance(result, tuple) else result
        (y * library.tensor([1.0, 2.0, 3.0])).sum().backward()
        return isinstance(result, tuple), y.detach(), x.grad, y.data_ptr() == x.data_ptr()

    with groups():
        same(program)


@pytest.mark.parametrize("name", ["allreduce_hook", "fp16_compress_hook"])
def test_default_hooks(name):
    def program(library):
        hooks = library.distributed.algorithms.ddp_comm_hooks.default_hooks
        library.manual_seed(0)
        model = library.nn.parallel.DistributedDataParallel(library.nn.Linear(3, 1))
        model.register_comm_hook(None, getattr(hooks, name))
        model(library.tensor([[0.1, 0.2, 0.3]])).square().sum().backward()
        return [each.grad.tolist() for each in model.parameters()][:1]

    with groups():
        same(program)


def test_wrapped_hook():
    from weft.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks

    with groups():
        model = weft.nn.parallel.DistributedDataParallel(weft.nn.Linear(1, 1))
        model.register_comm_hook(None, default_hooks.bf16_compress_wrapper(debugging_hooks.noop_hook))
        model(weft.tensor([[0.1]])).sum().backward()
        assert model.module.weight.grad.item() == weft.tensor(0.1).bfloat16().item()


def test_collective_utils():
    def program(library):
        import importlib

        utils = importlib.import_module(f"{library.__name__}.distributed.collective_utils")
        return (
            utils.broadcast(5),
            utils.broadcast(lambda: 6),
            utils.all_gather(7),
            utils.all_gather(lambda: 8),
        )

    same(program)
    assert torch.distributed.is_available()
