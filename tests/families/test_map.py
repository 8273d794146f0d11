"""The memory order of what elementwise ops and their relatives make."""

import pytest
import torch
from oracle import strides_that_count

import weft
from weft.engine import tiers

FUNCTIONS = {
    "masked_fill": lambda lib, t: t.masked_fill(t > 2, 0.0),
    "softmax": lambda lib, t: t.softmax(0),
    "log_softmax": lambda lib, t: t.log_softmax(0),
    "logsigmoid": lambda lib, t: lib.nn.functional.logsigmoid(t),
    "renorm": lambda lib, t: lib.renorm(t, 2, 0, 1.0),
    "number ** tensor": lambda lib, t: 2.0**t,
    "tensor ** number": lambda lib, t: t**1.7,
    "0-dim ** tensor": lambda lib, t: lib.tensor(2.0) ** t,
    "add into nothing": lambda lib, t: lib.add(t, t, out=lib.empty(0)),
    "exp into nothing": lambda lib, t: lib.exp(t, out=lib.empty(0)),
    "add another into nothing": lambda lib, t: lib.add(t, lib.zeros(t.shape), out=lib.empty(0)),
    "silu": lambda lib, t: lib.nn.functional.silu(t),
    "relu6": lambda lib, t: lib.nn.functional.relu6(t),
    "isreal": lambda lib, t: t.isreal(),
}
INPUTS = {
    "transposed": lambda lib: lib.arange(24.0).reshape(2, 3, 4).transpose(0, 2),
    "permuted": lambda lib: lib.arange(24.0).reshape(2, 3, 4).permute(1, 0, 2),
    "with gaps": lambda lib: lib.arange(48.0).reshape(6, 8)[::2, ::2].t(),
    "expanded": lambda lib: lib.arange(3.0).expand(2, 3).t(),
    "with a dim of size 1": lambda lib: lib.arange(24.0).reshape(2, 3, 4)[:, 1:2].transpose(0, 2),
}


@pytest.mark.parametrize("given", sorted(INPUTS))
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_results_have_the_strides_of_pytorchs(name, given):
    mine, theirs = (FUNCTIONS[name](lib, INPUTS[given](lib)) for lib in (weft, torch))
    assert strides_that_count(mine) == strides_that_count(theirs)
    torch.testing.assert_close(torch.tensor(mine.tolist()), torch.tensor(theirs.tolist()))


def test_new_tensors_count_no_write():
    for lib in (torch, weft):
        made = [
            lib.tensor([1.0]),
            lib.full((2,), 3),
            lib.eye(2),
            lib.ones(2).new_full((1,), 2),
            lib.ones(2).to(lib.int64),
        ]
        assert [each._version for each in made] == [0] * len(made)


@pytest.mark.parametrize("dtype", [weft.float32, weft.uint8, weft.complex64], ids=str)
@pytest.mark.parametrize("step", range(2, 6))
def test_elements_that_lie_apart(step, dtype):
    """Vectors read whole stretches of memory, and nothing behind the last element."""
    for count in (1, 2, 7, 16, 33, 100):
        memory = (weft.arange(step * (count - 1) + 1) % 100).to(dtype)
        x, y = memory[::step], weft.ones(count, dtype=dtype)
        for _ in range(2):
            found = x * 2 + y
            assert found.tolist() == [each * 2 + 1 for each in memory.tolist()[::step]]
            found = weft.stack([memory, memory])[:, ::step] + y
            assert found.tolist() == [[each + 1 for each in memory.tolist()[::step]]] * 2
            tiers.finish()


def test_a_write_between_elements_that_lie_apart():
    pairs = weft.arange(100.0).reshape(50, 2)
    pairs[:, 0] += pairs[:, 1]
    tiers.finish()
    pairs[:, 0] += pairs[:, 1]
    assert pairs.tolist() == [[2 * k + 2 * (2 * k + 1), 2 * k + 1] for k in range(50)]
