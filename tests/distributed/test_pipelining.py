"""Pipelines compute what they compute in PyTorch, on several processes; what a single process can say about mistakes."""

import pytest
from one_rank import groups
from several_ranks import assert_same_on_every_rank, programs

import weft
from weft.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleZBVZeroBubble,
    SplitPoint,
    pipe_split,
    pipeline,
)
from weft.distributed.pipelining._orders import dual_pipe, in_a_v, zero_bubble

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


@pytest.mark.parametrize("kind", [ScheduleInterleavedZeroBubble, ScheduleInterleaved1F1B])
def test_weight_gradients_of_the_module(one_rank, kind):
    """The backward pass of the module leaves its weight to the function that `dw_builder` returns."""

    class Product(weft.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, left):
            ctx.weight, ctx.x, ctx.left = weight, x, left
            return x @ weight

        @staticmethod
        def backward(ctx, gradient):
            ctx.left.append((ctx.x, gradient))
            return gradient @ ctx.weight.T, None, None

    class Late(weft.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.left = weft.nn.Parameter(weft.ones(2, 3)), []

        def forward(self, x):
            return Product.apply(x, self.weight, self.left)

        def built(self):
            (found,) = (x.T @ gradient for x, gradient in [self.left.pop()])

            def run():
                self.weight.grad = found if self.weight.grad is None else self.weight.grad + found

            return run

    module, x = Late(), weft.arange(8.0).reshape(4, 2)
    stage = PipelineStage(module, 0, 1, weft.device("cpu"), dw_builder=module.built)
    schedule = kind([stage], 2, loss_fn=lambda output, target: output.square().sum(), scale_grads=False)
    x.requires_grad_()
    schedule.step(x, target=x)
    weight = weft.ones(2, 3, requires_grad=True)
    (x.detach() @ weight).square().sum().backward()
    assert weft.equal(module.weight.grad, weight.grad) and not module.left


def test_ranks_hardly_wait_in_zero_bubble_orders():
    """Steps until all is computed, of orders whose ranks have 48 or 96 passes."""
    loop = zero_bubble([[0], [1], [2]], 16)
    v = zero_bubble([in_a_v(rank, 3, 6) for rank in range(3)], 16)
    assert [steps(order) for order in (loop, v)] == [50, 100]
    assert steps(dual_pipe([in_a_v(rank, 3, 6) for rank in range(3)], 6)) == 37


def steps(orders):
    """How many steps ranks need that each wait for what their next pass needs."""
    last = max(action.stage_index for order in orders for action in order)
    queues, done, found = [[*order] for order in orders], set(), 0
    while any(queues):
        ready = [queue for queue in queues if queue and needs(queue[0], last) <= done]
        assert ready, "all ranks wait"
        for queue in ready:
            stage, kind, chunk = queue.pop(0)
            done |= {(stage, each, chunk) for each in ("IW" if kind == "B" else kind)}
        found += 1
    return found


def needs(action, last):
    stage, kind, chunk = action
    if kind == "F":
        return {(stage - 1, "F", chunk)} if stage else set()
    if kind == "W":
        return {(stage, "I", chunk)}
    return {(stage, "F", chunk)} | ({(stage + 1, "I", chunk)} if stage < last else set())


def test_evaluation_in_a_v(one_rank):
    layers = [weft.nn.Linear(2, 2) for _ in range(2)]
    stages = [PipelineStage(layer, k, 2, weft.device("cpu")) for k, layer in enumerate(layers)]
    x = weft.arange(8.0).reshape(4, 2)
    found = ScheduleZBVZeroBubble(stages, 2, loss_fn=weft.nn.functional.mse_loss).eval(x, target=x)
    assert weft.equal(found, layers[1](layers[0](x))) and layers[0].weight.grad is None


def test_mistakes_with_stages(one_rank):
    loss = weft.nn.functional.mse_loss
    with pytest.raises(ValueError, match="DualPipeV requires exactly 2 stages per rank, but got 1"):
        ScheduleDualPipeV([stage()], 2, loss_fn=loss)
    two = [PipelineStage(weft.nn.Linear(2, 2), k, 2, weft.device("cpu")) for k in range(2)]
    with pytest.raises(ValueError, match="at least as many microbatches as stages, but got 1 .* and 2"):
        ScheduleDualPipeV(two, 1, loss_fn=loss)
    with pytest.raises(ValueError, match=r"rank 0 of 1 has stages \[0, 1\] of 2, but was given \[0\]"):
        ScheduleInterleavedZeroBubble(two[:1], 2, loss_fn=loss)


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
