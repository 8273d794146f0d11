"""Pipelines compute what they compute in PyTorch, on several processes; what a single process can say about mistakes."""

import pytest
from one_rank import groups
from several_ranks import assert_same_on_every_rank, programs

import weft
from weft.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    SplitPoint,
    pipe_split,
    pipeline,
)

MODULE = "pipeline_programs"


@pytest.mark.parametrize("name", programs(MODULE))
@pytest.mark.parametrize("size", [2, 3])
def test_same_on_every_rank(size, name):
    assert_same_on_every_rank(size, MODULE, name, absolute=1e-6)


@pytest.fixture
def one_rank():
    with groups():
        yield


def stage(module=None, count=1):
    return PipelineStage(module or weft.nn.Linear(2, 2), 0, count, weft.device("cpu"))


def test_a_batch_may_have_another_size_each_time(one_rank):
    schedule = ScheduleGPipe(stage(), 2, loss_fn=weft.nn.functional.mse_loss)
    for rows in (4, 8, 3):
        assert schedule.step(weft.ones(rows, 2), target=weft.ones(rows, 2)).shape == (rows, 2)


def test_the_passes_of_all_ranks_can_be_looked_at(one_rank):
    schedule = ScheduleInterleaved1F1B([stage()], 2, loss_fn=weft.nn.functional.mse_loss)
    assert str(schedule.pipeline_order) == "{0: [0F0, 0B0, 0F1, 0B1]}"


def test_mistakes(one_rank):
    with pytest.raises(ValueError, match="Stage index 1 is out of range of 1"):
        PipelineStage(weft.nn.Linear(2, 2), 1, 1, weft.device("cpu"))
    with pytest.raises(
        ValueError, match=r"microbatches \(1\) must be greater than or equal to the number of stages \(2\)"
    ):
        Schedule1F1B(stage(count=2), 1)
    schedule = ScheduleGPipe(stage(), 5, loss_fn=weft.nn.functional.mse_loss)
    with pytest.raises(ValueError, match="Expecting 5 arg_mbs but got 4"):
        schedule.step(weft.ones(4, 2), target=weft.ones(4, 2))
    with pytest.raises(RuntimeError, match="loss_fn and target required for last stage"):
        schedule.step(weft.ones(5, 2))
    with pytest.raises(TypeError, match="losses must be a list but got a <class 'int'>"):
        schedule.step(weft.ones(5, 2), target=weft.ones(5, 2), losses=3)
    with weft.no_grad(), pytest.raises(RuntimeError, match="call eval instead"):
        schedule.step(weft.ones(5, 2), target=weft.ones(5, 2))

    class Text(weft.nn.Module):
        def forward(self, x):
            return "text"

    with pytest.raises(RuntimeError, match="Stage 0 must return a tensor or a tuple of tensors .* type str"):
        ScheduleGPipe(stage(Text(), 2), 2).step(weft.ones(2, 2))


def test_models_are_cut_where_they_say_so():
    class Model(weft.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = weft.nn.Linear(3, 4), weft.nn.Linear(4, 2)

        def forward(self, x, *, scale):
            y = self.first(x)
            pipe_split()
            return self.second(y) * scale

    model, x, scale = Model(), weft.randn(5, 3), weft.randn(5, 1)
    pipe = pipeline(model, (x,), {"scale": scale})
    assert pipe.num_stages == 2
    assert [name for name, _ in pipe.get_stage_module(1).named_parameters()] == [
        "second.weight",
        "second.bias",
    ]
    assert weft.equal(pipe(x, scale=scale)[0], model(x, scale=scale))
    at_end = pipeline(model, (x,), {"scale": scale}, split_spec={"first": SplitPoint.END})
    assert at_end.num_stages == 2  # two cuts at the same place are one
    assert weft.equal(at_end(x, scale=scale)[0], model(x, scale=scale))
    assert "forward" not in vars(model.first)
    with pytest.raises(AttributeError, match="foo"):
        pipeline(model, (x,), {"scale": scale}, split_spec={"foo": SplitPoint.END})
    with pytest.raises(ValueError, match="Invalid stage index 2"):
        pipe.build_stage(2, weft.device("cpu"))
