import pytest
import torch
import torch.distributed.optim
from one_rank import groups, outcome, same
from torch.distributed.optim import zero_redundancy_optimizer

import weft


def train(library, consolidate=True):
    library.manual_seed(0)
    model = library.nn.Linear(2, 1)
    optimizer = library.distributed.optim.ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=library.optim.Adam, lr=0.1
    )
    schedule = library.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(2):
        optimizer.zero_grad()
        model(library.ones(1, 2)).square().sum().backward()
        optimizer.step()
        schedule.step()
    if consolidate:
        optimizer.consolidate_state_dict()
    state = optimizer.state_dict()
    rates = [group["lr"] for group in optimizer.param_groups]
    optimizer.load_state_dict(state)
    return (
        rates,
        [sorted(each) for each in state["state"].values()],
        [round(x, 4) for x in model.weight[0].tolist()],
    )


def test_zero_redundancy_optimizer():
    with groups():
        same(train)
        same(lambda library: train(library, consolidate=False))
    assert torch.distributed.is_available()


def overlapped(library):
    """What an optimizer says whose hook has not seen the buckets yet."""
    optim = library.distributed.optim
    zero = optim.ZeroRedundancyOptimizer(
        library.nn.Linear(1, 1).parameters(), library.optim.SGD, overlap_with_ddp=True
    )
    calls = {
        "step": zero.step,
        "consolidate": zero.consolidate_state_dict,
        "load": lambda: zero.load_state_dict({}),
        "group": lambda: zero.add_param_group({"params": [library.ones(1)]}),
        "state": zero.state_dict,
    }
    return {name: outcome(lambda library, call=call: call(), library) for name, call in calls.items()}


def test_an_optimizer_within_hooks():
    with groups():
        same(overlapped)
        for overlap in (False, True):
            kind = "_FunctionalSGD" if not overlap else "LBFGS"
            same(lambda library, kind=kind, overlap=overlap: kind_of_zero(library, kind, overlap))
        parameters = list(weft.nn.Linear(1, 1).parameters())
        ordinary = weft.distributed.optim.ZeroRedundancyOptimizer(parameters, weft.optim.SGD)
        hooks = weft.distributed.algorithms.ddp_comm_hooks
        with pytest.raises(ValueError, match="overlap_with_ddp=True"):
            hooks.ddp_zero_hook.hook_with_zero_step(hooks.default_hooks.allreduce_hook, None, ordinary)


def kind_of_zero(library, kind, overlap):
    optim = library.distributed.optim
    kind = getattr(library.optim, kind, None) or getattr(optim, kind)
    return optim.ZeroRedundancyOptimizer(
        library.nn.Linear(1, 1).parameters(), kind, overlap_with_ddp=overlap, lr=1.0
    )


def test_functional_optimizers():
    optim = weft.distributed.optim
    with pytest.raises(ValueError, match="functional counterpart"):
        optim.as_functional_optim(weft.optim.LBFGS)
    with pytest.raises(ValueError, match="empty parameter list"):
        optim._FunctionalSGD([])
    with pytest.raises(TypeError, match="momentums"):
        optim._FunctionalSGD([weft.ones(1)], 0.1, momentums=0.5)
    with pytest.raises(TypeError, match="settings"):
        optim._FunctionalSGD([weft.ones(1)], *range(9))
    x, y = weft.ones(1, requires_grad=True), weft.ones(1, requires_grad=True)
    x.grad = weft.full((1,), 7.0)
    optimizer = optim._FunctionalSGD([x, y], 0.5, 0.5, foreach=True)
    with pytest.raises(ValueError, match="Gradients length: 1"):
        optimizer.step([None])
    optimizer.step([weft.ones(1), None])
    assert (x.item(), y.item(), x.grad.item()) == (0.5, 1.0, 7.0)
    assert list(optimizer.state) == [x] and list(optimizer.state[x]) == ["momentum_buffer"]
    optimizer.defaults["lr"] = 0.0
    optimizer.step_param(x, weft.ones(1))
    assert x.item() == 0.5


def test_another_functional_optimizer_can_be_registered():
    utils = weft.distributed.optim.utils

    class Half:
        def __init__(self, params, _allow_empty_param_list=False):
            pass

        def step_param(self, param, gradient):
            param.data.mul_(0.5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "functional_optim_map", dict(utils.functional_optim_map))
        utils.register_functional_optim("half", Half)
        with groups():
            model = weft.nn.parallel.DistributedDataParallel(weft.nn.Linear(1, 1))
            before = model.module.weight.item()
            model._register_fused_optim("half")
            model(weft.ones(1, 1)).sum().backward()
            assert model.module.weight.item() == before / 2
            with pytest.raises(RuntimeError, match="once"):
                model._register_fused_optim("half")


def test_optimizers_without_several_processes_update_in_backward():
    x = weft.nn.Parameter(weft.ones(2))
    for rate in (0.5, 0.25):  # two optimizers of one parameter
        weft.distributed.optim._apply_optimizer_in_backward(weft.optim.SGD, [x], {"lr": rate})
    x.sum().backward()
    assert x.grad is None and x.tolist() == [0.25, 0.25]


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_buckets_are_divided_as_in_pytorch(ranks):
    overlap = weft.distributed.optim._overlap
    zero = torch.distributed.optim.ZeroRedundancyOptimizer
    for seed in range(20):
        sizes = [
            torch.randint(1, 60, (int(count),)).tolist()
            for count in torch.randint(1, 7, (4,), generator=torch.Generator().manual_seed(seed))
        ]
        theirs = zero.__new__(zero)
        theirs.world_size, theirs.global_rank, theirs._overlap_with_ddp = ranks, 0, True
        theirs._bucket_assignments_per_rank_cache = []
        info = theirs._overlap_info = zero_redundancy_optimizer._OverlapInfo(ranks)
        info.status, info.shard_buckets = zero_redundancy_optimizer._OverlapStatus.INITIALIZED, True
        info.total_size = sum(map(sum, sizes))
        info.params_per_bucket = [[torch.empty(size) for size in bucket] for bucket in sizes]
        ours = overlap._split([[weft.empty(size) for size in bucket] for bucket in sizes], ranks)
        assert [sum(len(share.params) for share in shares) for shares in ours] == list(map(len, sizes))
        try:
            expected = theirs._bucket_assignments_per_rank
        except AssertionError:  # there are more runs than ranks
            assert any(len(shares) > ranks for shares in ours)
            continue
        for index, shares in enumerate(ours):
            assert {share.rank: (share.start, len(share.params)) for share in shares} == {
                rank: (each[index].offset, len(each[index].parameters))
                for rank, each in enumerate(expected)
                if index in each
            }


def test_updates_begin_earlier_where_buckets_never_change():
    hooks = weft.distributed.algorithms.ddp_comm_hooks
    with groups():
        model = weft.nn.parallel.DistributedDataParallel(weft.nn.Linear(1, 1), find_unused_parameters=True)
        zero = weft.distributed.optim.ZeroRedundancyOptimizer(
            model.parameters(), weft.optim.SGD, overlap_with_ddp=True, lr=0.5
        )
        hook = hooks.ddp_zero_hook.hook_with_zero_step(hooks.default_hooks.allreduce_hook, model, zero)
        model.register_comm_hook(None, hook)
        values = [model.module.bias.item()]
        for _ in range(3):
            model.zero_grad()
            model(weft.ones(1, 1)).sum().backward()
            values.append(model.module.bias.item())
        assert [round(a - b, 4) for a, b in zip(values, values[1:])] == [0.0, 0.5, 0.5]
        with pytest.raises(NotImplementedError, match="consolidate_state_dict"):
            zero.consolidate_state_dict()
