import pytest
import torch
import torch.distributed.optim
from one_rank import groups, same

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
        with pytest.raises(NotImplementedError):
            weft.distributed.optim.ZeroRedundancyOptimizer(
                weft.nn.Linear(1, 1).parameters(), weft.optim.SGD, overlap_with_ddp=True
            )
    assert torch.distributed.is_available()
