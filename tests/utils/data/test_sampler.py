import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import weft


def outcome(expression, module):
    """What an expression gives after a seed, and the next number of the default generator."""
    module.manual_seed(11)
    generator = module.Generator().manual_seed(5)
    names = {**vars(module.utils.data), "t": module, "generator": generator}
    try:
        result = repr(eval(expression, names))
    except Exception as error:
        return type(error), str(error)
    return result, module.rand(1).item(), module.rand(1, generator=generator).item()


@pytest.mark.parametrize(
    "expression",
    [
        "iter(Sampler())",
        "len(Sampler())",
        "Sampler('abc')",
        "list(SequentialSampler('abc'))",
        "len(SequentialSampler('abc'))",
        "RandomSampler([])",
        "RandomSampler('abc', replacement=3)",
        "RandomSampler('abc', num_samples=0)",
        "RandomSampler('abc', num_samples=1.5)",
        "RandomSampler('abc', num_samples=True).num_samples",
        "RandomSampler(3)",
        "list(SubsetRandomSampler(3))",
        "list(SubsetRandomSampler([5, 8, 13, 21]))",
        "list(SubsetRandomSampler([5, 8, 13, 21], generator))",
        "list(SubsetRandomSampler([]))",
        "len(SubsetRandomSampler('abc'))",
        "WeightedRandomSampler([1, 2], 0)",
        "WeightedRandomSampler([1, 2], True)",
        "WeightedRandomSampler([1, 2], 2, 3)",
        "WeightedRandomSampler([[1, 2]], 2)",
        "WeightedRandomSampler(t.ones(2, 2), 2)",
        "WeightedRandomSampler(3, 2)",
        "len(WeightedRandomSampler([1, 2], 7))",
        "WeightedRandomSampler([1, 2], 7).weights",
        "list(WeightedRandomSampler([1, 2, 0.5], 7))",
        "list(WeightedRandomSampler([1, 2, 0.5], 3, False))",
        "list(WeightedRandomSampler([1, 2, 0.5], 4, False))",
        "list(WeightedRandomSampler(t.rand(100), 500, generator=generator))",
        "list(WeightedRandomSampler(t.rand(100), 50, False, generator))",
        "list(WeightedRandomSampler([-1, 2], 3))",
        "BatchSampler('abc', 0, False)",
        "BatchSampler('abc', 2, 3)",
        "BatchSampler('abc', True, False)",
        "BatchSampler('abc', 2.0, False)",
        "len(BatchSampler(iter('abc'), 2, False))",
        "list(BatchSampler(iter('abcde'), 2, False))",
        "DistributedSampler('abc', 2, 2)",
        "DistributedSampler('abc', 2, -1)",
        "DistributedSampler('abc', 0, 0)",
    ],
)
def test_samplers_do_what_pytorch_does(expression):
    assert outcome(expression, weft) == outcome(expression, torch)


@given(
    st.integers(1, 70),
    st.booleans(),
    st.one_of(st.none(), st.integers(1, 150)),
    st.booleans(),
    st.integers(1, 3),
)
def test_random_sampler_draws_the_same_numbers(count, replacement, num_samples, own_generator, passes):
    generator = "generator" if own_generator else "None"
    sampler = f"RandomSampler(range({count}), {replacement}, {num_samples}, {generator})"
    expression = f"(lambda s: (len(s), [list(s) for _ in range({passes})]))({sampler})"
    assert outcome(expression, weft) == outcome(expression, torch)


@given(st.integers(0, 40), st.integers(1, 10), st.booleans())
def test_batch_sampler(count, batch_size, drop_last):
    expression = f"(lambda s: (len(s), list(s)))(BatchSampler(range({count}), {batch_size}, {drop_last}))"
    assert outcome(expression, weft) == outcome(expression, torch)


@given(st.integers(0, 40), st.integers(1, 9), st.booleans(), st.booleans(), st.integers(0, 3))
def test_distributed_sampler(count, replicas, shuffle, drop_last, epoch):
    samplers = f"[DistributedSampler(range({count}), {replicas}, rank, {shuffle}, 9, {drop_last}) for rank in range({replicas})]"
    expression = f"[(len(s), s.set_epoch({epoch}), list(s), s.total_size) for s in {samplers}]"
    assert outcome(expression, weft) == outcome(expression, torch)


def test_distributed_sampler_without_processes():
    with pytest.raises((RuntimeError, ValueError)):
        weft.utils.data.DistributedSampler(range(3))


@pytest.mark.parametrize("module", [torch, weft])
def test_a_batch_takes_no_more_indices_than_it_has(module):
    taken = []

    def indices():
        for index in range(10):
            taken.append(index)
            yield index

    next(iter(module.utils.data.BatchSampler(indices(), 3, False)))
    assert taken == [0, 1, 2]
