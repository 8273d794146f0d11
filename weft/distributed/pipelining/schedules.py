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
    check_rounds,
    dual_pipe,
    gpipe,
    in_a_loop,
    in_a_v,
    interleaved,
    one_forward_one_backward,
    zero_bubble,
)
from .microbatch import TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks
from .stage import PipelineStage, PipeliningMetadataError

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "get_schedule_class",
]


class _Step:
    """One step of a schedule: what this rank has of the batch, and the losses so far."""

    def __init__(self, messages: Messages, arguments: list[tuple], named: list[dict], targets: list[Tensor]):
        self.messages, self.arguments, self.named, self.targets = messages, arguments, named, targets
        self.losses: list[Tensor] = []


class _PipelineSchedule:
    """What all schedules do."""

    _order: Order
    _owned = staticmethod(in_a_loop)  # the stages of a rank

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
        rank, ranks, count = self._first.group_rank, self._first.group_size, self._first.num_stages
        owned = [self._owned(each, ranks, count) for each in range(ranks)]
        rank_of = {stage: each for each in range(ranks) for stage in owned[each]}
        for stage in stages:
            stage.stage_index_to_group_rank = dict(sorted(rank_of.items()))
        self.pipeline_order: dict[int, list[Action]] = dict(enumerate(self._orders(owned)))
        self._actions = self.pipeline_order[rank]
        self._evaluated = all_forward(rank, ranks, sorted(self._stages), n_microbatches)

    def _orders(self, owned: Sequence[Sequence[int]]) -> list[list[Action]]:
        """What each rank computes, if these are its stages."""
        each = enumerate(owned)
        return [self._order(rank, len(owned), stages, self._n_microbatches) for rank, stages in each]

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
        left = {
            stage: sum(index == stage and kind in "BW" for index, kind, _ in actions)
            for stage in self._stages
        }
        trains = any(left.values())
        for index, kind, chunk in actions:
            stage = self._stages[index]
            if kind in "BW":
                left[index] -= 1
                if not left[index]:
                    stage.sync_next_backward()
            if kind == "F":
                self._forward(stage, chunk, step, loss_kwargs or {}, trains)
            elif kind == "W":
                stage.backward_weight_one_chunk(chunk)
            else:
                self._backward(stage, chunk, step, whole=kind == "B")
        step.messages.finish()
        if losses is not None:
            losses[:] = step.losses
        if self.scale_grads and trains:
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

    def _backward(self, stage: PipelineStage, chunk: int, step: _Step, whole: bool) -> None:
        """whole: compute the gradients of the parameters, too, and not only those of the inputs."""
        index, messages = stage.stage_index, step.messages
        ends: Sequence[Tensor] = [step.losses[chunk]] if stage.is_last else []
        gradients: Sequence[Tensor | None] = [None] * len(ends)
        if not stage.is_last:
            results = stage.pending[chunk].results
            gradients = messages.receive_gradients(index + 1, index, chunk, results)
            ends = [each for each in results if each.requires_grad]
        inputs = stage.backward_one_chunk(chunk, ends, gradients, whole)
        if not stage.is_first:
            messages.send_gradients(index - 1, chunk, inputs)


class PipelineScheduleSingle(_PipelineSchedule):
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


class PipelineScheduleMulti(_PipelineSchedule):
    """The base of schedules with several stages on each rank: those whose numbers differ by the number of ranks, unless a schedule says otherwise.

    Raises: ValueError for other stages than those of the rank.
    """

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
        expected = {action.stage_index for action in self._actions}
        if set(self._stages) != expected:
            raise ValueError(
                f"{type(self).__name__}: rank {self._first.group_rank} of {self._first.group_size} has stages {sorted(expected)} of "
                f"{self._first.num_stages}, but was given {sorted(self._stages)}"
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


class _Interleaved(PipelineScheduleMulti):
    """The arguments of schedules whose ranks pass from stage to stage."""

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


class ScheduleInterleaved1F1B(_Interleaved):
    """1F1B with several stages on each rank, so that ranks wait less at the beginning and at the end.

    Raises: ValueError if rounds of as many microbatches as there are ranks do not fill up.
    """

    _order = staticmethod(interleaved)


class ScheduleInterleavedZeroBubble(_Interleaved):
    """Backward passes in two halves: ranks that would wait compute the gradients of weights, which no other rank needs.

    Raises: ValueError as ScheduleInterleaved1F1B does.
    """

    def _orders(self, owned: Sequence[Sequence[int]]) -> list[list[Action]]:
        check_rounds("Zero bubble", len(owned), self._n_microbatches)
        return zero_bubble(owned, self._n_microbatches)


class _InAV(_Interleaved):
    """Two stages on each rank. They go from the first rank to the last and back, so that the first rank has the loss.

    Raises: ValueError for another number of stages on a rank.
    """

    _owned = staticmethod(in_a_v)

    def _check_two_stages(self, owned: Sequence[Sequence[int]]) -> None:
        if len(self._stages) != 2:
            raise ValueError(
                f"{type(self).__name__} requires exactly 2 stages per rank, but got {len(self._stages)}."
            )


class ScheduleZBVZeroBubble(_InAV):
    """Two stages on each rank, of R ranks: rank r has stages r and 2 R - 1 - r. Backward passes are in two halves, as in ScheduleInterleavedZeroBubble.

    Raises: ValueError for another number of stages.
    """

    def _orders(self, owned: Sequence[Sequence[int]]) -> list[list[Action]]:
        self._check_two_stages(owned)
        return zero_bubble(owned, self._n_microbatches)


class ScheduleDualPipeV(_InAV):
    """The stages of ScheduleZBVZeroBubble, with whole backward passes while there are forward passes left.

    Raises: ValueError for another number of stages, or for fewer microbatches than stages.
    """

    def _orders(self, owned: Sequence[Sequence[int]]) -> list[list[Action]]:
        self._check_two_stages(owned)
        if self._n_microbatches < self._first.num_stages:
            raise ValueError(
                "DualPipeV requires at least as many microbatches as stages, but got "
                f"{self._n_microbatches} microbatches and {self._first.num_stages} stages."
            )
        return dual_pipe(owned, self._n_microbatches)


_SCHEDULES = {
    "1F1B": Schedule1F1B,
    "Interleaved1F1B": ScheduleInterleaved1F1B,
    "GPipe": ScheduleGPipe,
    "LoopedBFS": ScheduleLoopedBFS,
    "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
    "ZBVZeroBubble": ScheduleZBVZeroBubble,
    "DualPipeV": ScheduleDualPipeV,
    "PipelineScheduleSingle": PipelineScheduleSingle,
    "PipelineScheduleMulti": PipelineScheduleMulti,
}


def get_schedule_class(schedule_name: str) -> type[_PipelineSchedule]:
    """The schedule of a name, in capitals or not.

    Raises: ValueError if there is none.

    >>> get_schedule_class("1f1b").__name__
    'Schedule1F1B'
    """
    for name, kind in _SCHEDULES.items():
        if name.lower() == schedule_name.lower():
            return kind
    raise ValueError(f"Unknown schedule name {schedule_name!r}. The valid options are {[*_SCHEDULES]}")
