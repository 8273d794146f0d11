"""Schedules: each rank carries out its list of passes, and a pass waits for what it needs from other stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.grad_mode import is_grad_enabled, no_grad
from ...core.tensor import Tensor
from ...ops.views.splitting import tensor_split
from ._messages import Messages
from ._orders import (
    Action,
    Order,
    all_forward,
    breadth_first,
    gpipe,
    interleaved,
    one_forward_one_backward,
)
from .microbatch import TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks
from .stage import PipelineStage, PipeliningMetadataError

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS",
    "get_schedule_class",
]


class _Step:
    """One step of a schedule: what this rank has of the batch, and the losses so far."""

    def __init__(self, messages: Messages, arguments: list[tuple], named: list[dict], targets: list[Tensor]):
        self.messages, self.arguments, self.named, self.targets = messages, arguments, named, targets
        self.losses: list[Tensor] = []


class _Schedule:
    """What all schedules do."""

    _order: Order

    def __init__(
        self,
        stages: Sequence[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None,
        output_merge_spec: Any,
        scale_grads: bool,
    ):
        self._stages = {each.stage_index: each for each in stages}
        self._n_microbatches, self._loss_fn = n_microbatches, loss_fn
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec, self.scale_grads = output_merge_spec, scale_grads
        self._first = stages[0]
        order = type(self)._order
        rank, ranks, count = self._first.group_rank, self._first.group_size, self._first.num_stages
        self.pipeline_order: dict[int, list[Action]] = {
            each: order(each, ranks, range(each, count, ranks), n_microbatches) for each in range(ranks)
        }
        self._actions = self.pipeline_order[rank]
        self._evaluated = all_forward(rank, ranks, [*self._stages], n_microbatches)

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Send a batch through the pipeline, forward and backward.

        args: the arguments of the first stage, on its rank; each is cut into microbatches.
        kwargs: named arguments of the stages of this rank, cut alike.
        target: what `loss_fn` gets beside the results, on the rank of the last stage. losses: a list that gets the loss of each microbatch there.
        Returns the results of the last stage on its rank, None on others.

        Raises: RuntimeError without gradients (use `eval`) or without a target; TypeError if `losses` is no list.
        """
        if self._loss_fn is not None and not is_grad_enabled():
            raise RuntimeError(
                "step: it computes gradients, and gradients are switched off (torch.no_grad): call eval instead"
            )
        actions = self._evaluated if self._loss_fn is None else self._actions
        return self._run(actions, args, kwargs, target, losses, return_outputs, loss_kwargs)

    def eval(self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any) -> Any:
        """Send a batch through the pipeline without gradients. The arguments are those of `step`, and so is what it returns."""
        with no_grad():
            return self._run(self._evaluated, args, kwargs, target, losses, True, None)

    def _run(
        self,
        actions: Sequence[Action],
        args: tuple,
        kwargs: dict[str, Any],
        target: Any,
        losses: list | None,
        return_outputs: bool,
        loss_kwargs: dict[str, Any] | None,
    ) -> Any:
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        step = self._begun(args, kwargs, target)
        left = {stage: sum(action[:2] == (stage, "B") for action in actions) for stage in self._stages}
        for action in actions:
            stage = self._stages[action.stage_index]
            if action.computation_type == "F":
                self._forward(stage, action.microbatch_index, step, loss_kwargs or {}, any(left.values()))
            else:
                left[stage.stage_index] -= 1
                self._backward(stage, action.microbatch_index, step, not left[stage.stage_index])
        step.messages.finish()
        if losses is not None:
            losses[:] = step.losses
        if self.scale_grads and any(action.computation_type == "B" for action in actions):
            for stage in self._stages.values():
                stage.scale_grads(self._n_microbatches)
        last = self._stages.get(self._first.num_stages - 1)
        return merge_chunks(last.output_chunks, self._output_merge_spec) if last and return_outputs else None

    def _begun(self, args: tuple, kwargs: dict[str, Any], target: Any) -> _Step:
        """Cut what this rank has of the batch."""
        count = self._n_microbatches
        for stage in self._stages.values():
            stage.clear_runtime_states()
        arguments: list[tuple] = [()] * count
        named: list[dict[str, Any]] = [{}] * count
        if args or kwargs:
            arguments, named = split_args_kwargs_into_chunks(
                args, kwargs, count, self._args_chunk_spec, self._kwargs_chunk_spec
            )
            if len(arguments) != count:
                raise ValueError(f"Expecting {count} arg_mbs but got {len(arguments)}")
        targets = [] if target is None else [*tensor_split(target, count)]
        rank_of = [*self._first.stage_index_to_group_rank.values()]
        return _Step(Messages(self._first.group, rank_of), arguments, named, targets)

    def _forward(
        self, stage: PipelineStage, chunk: int, step: _Step, loss_kwargs: dict[str, Any], keeps: bool
    ) -> None:
        index, messages = stage.stage_index, step.messages
        inputs = (
            step.arguments[chunk] if stage.is_first else messages.receive_results(index - 1, index, chunk)
        )
        output = stage.forward_one_chunk(chunk, inputs, step.named[chunk])
        if not stage.is_last:
            messages.send_results(index + 1, chunk, stage.pending[chunk].results)
        elif self._loss_fn is not None:
            if not step.targets:
                raise PipeliningMetadataError(f"Stage {index}: loss_fn and target required for last stage")
            step.losses.append(self._loss_fn(output, step.targets[chunk], **loss_kwargs))
        if not keeps:
            del stage.pending[chunk]

    def _backward(self, stage: PipelineStage, chunk: int, step: _Step, last: bool) -> None:
        index, messages = stage.stage_index, step.messages
        if stage.is_last:
            inputs = stage.backward_one_chunk(chunk, [step.losses[chunk]], None, last)
        else:
            results = stage.pending[chunk].results
            gradients = messages.receive_gradients(index + 1, index, chunk, results)
            ends = [each for each in results if each.requires_grad]
            inputs = stage.backward_one_chunk(chunk, ends, gradients, last)
        if not stage.is_first:
            messages.send_gradients(index - 1, chunk, inputs)


class PipelineScheduleSingle(_Schedule):
    """The base of schedules with one stage on each rank."""

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
        scale_grads: bool = True,
    ):
        if n_microbatches < stage.num_stages:
            raise ValueError(
                f"Number of microbatches ({n_microbatches}) must be greater than or equal to the number of stages "
                f"({stage.num_stages})."
            )
        super().__init__(
            [stage],
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )


class ScheduleGPipe(PipelineScheduleSingle):
    """All forward passes, then all backward passes: simple, and the results of all microbatches are in memory at once.

    schedule = ScheduleGPipe(stage, 4, loss_fn=F.mse_loss)
    schedule.step(x) on the rank of the first stage, schedule.step(target=y) on that of the last, schedule.step() on others
    """

    _order = staticmethod(gpipe)


class Schedule1F1B(PipelineScheduleSingle):
    """After a few forward passes, a backward pass follows each: at most as many microbatches as there are stages are in memory."""

    _order = staticmethod(one_forward_one_backward)


class PipelineScheduleMulti(_Schedule):
    """The base of schedules with several stages on each rank: those whose numbers differ by the number of ranks."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
        use_full_backward: bool | None = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
    ):
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """Each stage computes all microbatches before the next stage of the rank begins."""

    _order = staticmethod(breadth_first)

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ):
        super().__init__(
            stages, n_microbatches, loss_fn, output_merge_spec=output_merge_spec, scale_grads=scale_grads
        )


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """1F1B with several stages on each rank, so that ranks wait less at the beginning and at the end."""

    _order = staticmethod(interleaved)

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable | None = None,
        args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
    ):
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads=scale_grads,
        )


_MISSING = ("InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV")
_SCHEDULES = {
    "1F1B": Schedule1F1B,
    "Interleaved1F1B": ScheduleInterleaved1F1B,
    "GPipe": ScheduleGPipe,
    "LoopedBFS": ScheduleLoopedBFS,
    "PipelineScheduleSingle": PipelineScheduleSingle,
    "PipelineScheduleMulti": PipelineScheduleMulti,
}


def get_schedule_class(schedule_name: str) -> type[_Schedule]:
    """The schedule of a name, in capitals or not.

    Raises: ValueError if there is none; NotImplementedError for those that weft does not have.

    >>> get_schedule_class("1f1b").__name__
    'Schedule1F1B'
    """
    for name in _MISSING:
        if name.lower() == schedule_name.lower():
            raise NotImplementedError(f"get_schedule_class: weft has no schedule {name} yet")
    for name, kind in _SCHEDULES.items():
        if name.lower() == schedule_name.lower():
            return kind
    raise ValueError(f"Unknown schedule name {schedule_name!r}. The valid options are {[*_SCHEDULES]}")
