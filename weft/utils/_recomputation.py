"""What a checkpointed call saves: metadata at first, and recomputed tensors when backward needs the first one."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..amp.autocast_mode import autocast_of_now
from ..autograd.hooks import saved_tensors_hooks
from ..core.generator import load_states, states
from ..core.grad_mode import enable_grad
from ..core.modes import TorchFunctionMode
from ..core.restoring import contextmanager
from ..core.tensor import Tensor


class CheckpointError(RuntimeError):
    """The second run of a function computed other tensors than the first."""


class _Enough(Exception):
    """Raised to stop the second run, because every tensor that backward needs has been computed again."""


class _State(threading.local):
    # The checkpointed call that runs in this thread, in its first or second run.
    run: Recomputation | None = None


state = _State()


class Recomputation:
    """One checkpointed call."""

    def __init__(
        self, call: Callable, context: Any, keep_random: bool, check: str, early_stop: bool, debug: bool
    ):
        self._call, self._context, self._check, self._early_stop = call, context, check, early_stop
        self._autocast = autocast_of_now()
        self._random = states() if keep_random else None
        self._facts: list[dict[str, Any]] = []  # the metadata of each saved tensor
        self._tensors: dict[int, Tensor] = {}
        self._logs: list[_Log] | None = [_Log(), _Log()] if debug else None
        # While a selective checkpoint watches a step, the tensors that the step saves are also appended here.
        self.watched: list[Tensor] | None = None
        self.keep: Callable[[Tensor], int] | None = None  # receives the tensors that the second run saves
        # Whether the first run has ended. Backward passes within it run the function again as well.
        self.complete = False

    def first_time(self) -> contextlib.ExitStack:
        """Return the context of the first run."""
        stack = contextlib.ExitStack()
        stack.enter_context(_running(self))
        if self._logs is not None:
            stack.enter_context(self._logs[0])
        return stack

    def pack(self, tensor: Tensor) -> int:
        self._facts.append(_facts_of(tensor))
        if self.watched is not None:
            self.watched.append(tensor)
        return len(self._facts) - 1

    def unpack(self, position: int) -> Tensor:
        if position not in self._tensors:
            try:
                self._run_again()
            except CheckpointError as error:
                if self._logs is None:
                    raise
                raise CheckpointError(f"{error}\n\n{_comparison(*self._logs)}") from None
        return self._tensors.pop(position)

    def _run_again(self) -> None:
        found: list[Tensor] = []

        def keep(tensor: Tensor) -> int:
            found.append(tensor.detach())  # its graph would refer to this object, which keeps the tensor
            if self._early_stop and len(found) == len(self._facts):
                raise _Enough
            return len(found) - 1

        self.keep = keep
        with (
            contextlib.suppress(_Enough),
            random_state(self._random),
            enable_grad(),
            self._autocast,
            self._context,
            _running(self),
            contextlib.nullcontext() if self._logs is None else self._logs[1],
            saved_tensors_hooks(keep, found.__getitem__),
        ):
            self._call()
        self.keep = None
        self._compare(found)

    def _compare(self, found: list[Tensor]) -> None:
        """Use the tensors of the second run if they match those of the first, or those that the first has reached so far."""
        if not self.complete:
            del found[len(self._facts) :]
        if len(found) != len(self._facts):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self._facts)}\nNumber of tensors saved during "
                f"recomputation: {len(found)}.{_TIP * (self._logs is None)}"
            )
        differing = [
            f"tensor at position {position}:\nsaved metadata: {facts}\nrecomputed metadata: {_facts_of(tensor)}"
            for position, (tensor, facts) in enumerate(zip(found, self._facts, strict=True))
            if self._check != "none" and _facts_of(tensor) != facts
        ]
        if differing:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
                f"forward pass.\n{chr(10).join(differing)}\n.{_TIP * (self._logs is None)}"
            )
        self._tensors.update(enumerate(found))


_TIP = (
    "\n\nTip: checkpoint(..., debug=True) lists the functions that were called the first time and the second."
)


def _facts_of(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


@contextmanager
def _running(run: Recomputation) -> Iterator[None]:
    outer, state.run = state.run, run
    try:
        yield
    finally:
        state.run = outer


@contextmanager
def random_state(random: Any) -> Iterator[None]:
    """Set the states of the generators within the context, and restore them afterwards; None changes nothing."""
    if random is None:
        yield
        return
    outer = states()
    load_states(random)
    try:
        yield
    finally:
        load_states(outer)


class _Log(TorchFunctionMode):
    """Notes which functions are called."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs or {})
        if func.__name__ not in ("__get__", "__set__"):
            shapes = ", ".join(str(list(each.shape)) for each in args if isinstance(each, Tensor))
            self.lines.append(f"{func.__name__}({shapes})")
        return result


def _comparison(first: _Log, second: _Log) -> str:
    listed = [
        "\n".join(f"  {number:3}  {line}" for number, line in enumerate(log.lines)) for log in (first, second)
    ]
    return (
        f"Operations executed during the original forward:\n\n{listed[0]}\n\n"
        f"Operations executed during recomputation:\n\n{listed[1]}"
    )
