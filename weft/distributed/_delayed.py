"""DelayedAverage: gradients that are averaged all at once, when the gradient of another parameter is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..autograd.current_pass import ExecutionEngine
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..ops.creation.creation import zeros
from ._coalesced import broadcast_coalesced
from ._collectives import all_reduce
from ._group import ProcessGroup


class DelayedAverage:
    """Averages the gradients of `parameters`, which are views of one buffer, when that of `trigger` is there.

    `is_wanted`: whether the backward pass that runs averages.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        trigger: Tensor,
        group: ProcessGroup,
        is_wanted: Callable[[], bool],
    ) -> None:
        self.parameters, self.group, self.is_wanted = parameters, group, is_wanted
        counts = [each.numel() for each in parameters]
        self.buffer = zeros(sum(counts), dtype=parameters[0].dtype, device=parameters[0].device)
        self.views = [part.view(each.shape) for part, each in zip(self.buffer.split(counts), parameters)]
        broadcast_coalesced(group, parameters, 0)
        trigger.register_hook(self._average)

    @no_grad()
    def prepare(self) -> None:
        """Let the gradients that were set to None be zeros in the buffer."""
        for parameter, view in zip(self.parameters, self.views):
            if parameter.grad is None:
                view.zero_()
                parameter.grad = view

    def _average(self, gradient: Tensor) -> None:
        if not self.is_wanted():
            return
        self.prepare()
        with no_grad():
            for parameter, view in zip(self.parameters, self.views):
                if parameter.grad is not view:
                    view.copy_(parameter.grad)
                    parameter.grad = view
            self.buffer.div_(self.group.size())
            work = all_reduce(self.buffer, group=self.group, async_op=True)
        assert work is not None
        ExecutionEngine().queue_callback(work.wait)
