import torch

import weft
import weft.nn as nn


def test_data_parallel_without_devices_is_the_module():
    ours, theirs = nn.DataParallel(nn.Linear(2, 1)), torch.nn.DataParallel(torch.nn.Linear(2, 1))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours(weft.ones(3, 2)).equal(ours.module(weft.ones(3, 2)))
