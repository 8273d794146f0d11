"""A stage: the part of a model that one rank computes, one microbatch after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from ...autograd.backward import backward
from ...autograd.halves import backward_inputs
from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...fx.graph import Graph
from ...nn.module import Module
from .._group import ProcessGroup
from .._world import _get_default_group
from ..data_parallel import DistributedDataParallel
from ..fsdp import FSDPModule

__all__ = ["PipeInfo", "PipelineStage", "PipeliningMetadataError", "build_stage"]


class PipeliningMetadataError(RuntimeError):
    """What a stage has or gives is not what its pipeline needs."""


class Pending(NamedTuple):
    """What a stage keeps of a microbatch from its forward to its backward pass."""

    inputs: tuple[Any, ...]
    results: tuple[Any, ...]


class PipelineStage:
    """A part of a model, for the schedules of this package.

    Stage `stage_index` of `num_stages` is computed by rank `stage_index % size` of `group`, unless the schedule says otherwise. The first stage gets the arguments of
    `schedule.step`, each other one the results of the stage before it, and all of them the named arguments. The results that go to the
    next stage are a tensor or a tuple of tensors. Their shapes and dtypes are sent with them: `input_args`, `output_args` and the like are accepted and
    not needed, and a batch may have another size than the one before.

    dw_builder: for modules whose backward pass leaves the gradients of weights out. It is called after each backward pass, and returns the function that
    computes them for the microbatch, which is called when the schedule wants these gradients.

    Raises: ValueError if there is no such stage; RuntimeError if there are fewer stages than ranks.
    """

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Tensor | tuple[Tensor, ...] | None = None,
        output_args: Tensor | tuple[Tensor, ...] | None = None,
        output_grads: Tensor | tuple[Tensor | None, ...] | None = None,
        input_grads: Tensor | tuple[Tensor | None, ...] | None = None,
        group: ProcessGroup | None = None,
        dw_builder: Callable[[], Callable[..., None]] | None = None,
        get_mesh: Callable[..., Any] | None = None,
    ):
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.device, self._dw_builder = submodule, device, dw_builder
        self.stage_index, self.num_stages = stage_index, num_stages
        self.group: ProcessGroup = _get_default_group() if group is None else group
        self.group_rank, self.group_size = self.group.rank(), self.group.size()
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self.stage_index_to_group_rank = {k: k % self.group_size for k in range(num_stages)}
        self.clear_runtime_states()

    def __repr__(self) -> str:
        return f"PipelineStage({self.stage_index} of {self.num_stages}, {type(self.submod).__name__})"

    @property
    def is_first(self) -> bool:
        """Whether no stage is before this one."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether no stage is behind this one."""
        return self.stage_index == self.num_stages - 1

    def clear_runtime_states(self) -> None:
        """Forget what is left of a step."""
        self.pending: dict[int, Pending] = {}
        self.output_chunks: list[Any] = []
        self._rest: dict[int, Callable[[], None]] = {}  # what adds the gradients of parameters, by microbatch

    def forward_one_chunk(
        self,
        fwd_chunk_id: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        save_forward_output: bool = True,
    ) -> Any:
        """Compute a microbatch. Returns what the module returns.

        Raises: PipeliningMetadataError if that is no tensor, and another stage is to get it.
        """
        with self._without_sync():
            output = self.submod(*args, **(kwargs or {}))
        results = tuple(output) if isinstance(output, (tuple, list)) else (output,)
        if self.is_last:
            if save_forward_output:
                self.output_chunks.append(output)
        elif others := [each for each in results if not isinstance(each, Tensor)]:
            raise PipeliningMetadataError(
                f"Stage {self.stage_index} must return a tensor or a tuple of tensors for the next stage, but there is "
                f"a value of type {type(others[0]).__name__}"
            )
        self.pending[fwd_chunk_id] = Pending(args, results)
        return output

    def backward_one_chunk(
        self,
        bwd_chunk_id: int,
        ends: Sequence[Tensor],
        gradients: Sequence[Tensor | None],
        full_backward: bool = True,
    ) -> tuple[Any, ...]:
        """Add the gradients of a microbatch, from those of `ends`. Returns the inputs of the stage, which have gradients now.

        full_backward: also add those of the parameters; without it `backward_weight_one_chunk` does so later.
        """
        inputs = self.pending.pop(bwd_chunk_id).inputs
        if self._dw_builder is not None:
            if ends:
                backward(ends, gradients)
            self._rest[bwd_chunk_id] = self._dw_builder()
        elif full_backward:
            if ends:
                backward(ends, gradients)
            return inputs
        else:
            wanted = [each for each in inputs if isinstance(each, Tensor) and each.requires_grad]
            self._rest[bwd_chunk_id] = backward_inputs(ends, gradients, wanted).run
        if full_backward:
            self.backward_weight_one_chunk(bwd_chunk_id)
        return inputs

    def backward_weight_one_chunk(self, bwd_chunk_id: int) -> None:
        """Add the gradients of the parameters of a microbatch, which `backward_one_chunk` has left."""
        self._rest.pop(bwd_chunk_id)()

    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divide the gradients of the parameters."""
        with no_grad():
            for parameter in self.submod.parameters():
                if parameter.grad is not None:
                    parameter.grad.div_(grad_scale_factor)

    # ---- Modules that several ranks have: gradients are averaged in the last backward pass only --------------------------------

    def _without_sync(self) -> AbstractContextManager[Any]:
        if isinstance(self.submod, DistributedDataParallel):
            return self.submod.no_sync()
        if isinstance(self.submod, FSDPModule):
            self.submod.set_requires_gradient_sync(False)
        return nullcontext()

    def sync_next_backward(self) -> None:
        """Let ranks that share the module average the gradients of all microbatches in the next backward pass."""
        if isinstance(self.submod, DistributedDataParallel):
            self.submod.average_next_backward()
        elif isinstance(self.submod, FSDPModule):
            self.submod.set_requires_gradient_sync(True)


class PipeInfo(NamedTuple):
    """What is known of a model that is cut into stages."""

    graph: Graph  # of the first stage
    num_stages: int
    has_loss_and_backward: bool


class _CutStage(PipelineStage):
    """A stage of a model that is cut: what it needs of the arguments of the model comes from the first stage."""

    def forward_one_chunk(
        self,
        fwd_chunk_id: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        save_forward_output: bool = True,
    ) -> Any:
        return super().forward_one_chunk(
            fwd_chunk_id, args, kwargs if self.is_first else {}, save_forward_output
        )


def build_stage(
    stage_module: Module,
    stage_index: int,
    pipe_info: PipeInfo,
    device: Any,
    group: ProcessGroup | None = None,
) -> PipelineStage:
    """A stage for a schedule, of a module that `Pipe.get_stage_module` has returned, and maybe something has changed."""
    return _CutStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)
