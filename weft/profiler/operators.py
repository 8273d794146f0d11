"""The operators that profiles note: calls of public functions, calls of ops, the nodes of backward passes, fused kernels.

While a profile is open, the short ways of plain tensors are off, and each call passes the places where modes and watchers stand:
`core/entry.py` tells `_called` of public functions, `core/dispatch.py` tells `_watched` of ops, and backward passes are of the
class `_TimedPass`. While no profile is open, none of this exists. docs/profiling.md says what the times mean.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from typing import Any

from ..autograd import engine
from ..autograd.event_recorder import Range, Recorder, recording
from ..autograd.graph import Leaf, Node, endpoint
from ..autograd.hooks import running
from ..autograd.profiler_util import BACKWARD_SCOPE, FunctionEvent
from ..core import entry
from ..core.batched import function_hooks
from ..core.dispatch import PLAIN, unwatch, watch
from ..core.modes import unwatch_functions, watch_functions
from ..core.overrides import public_function
from ..core.tensor import Tensor
from ..engine import defer
from ..families.kernel_graph import KernelGraph
from ..families.traced import Traced
from .flops import flops
from .memory_timeline import MemoryTimeline
from .operator_names import name_of_function, name_of_op, prepare


class _Thread(threading.local):
    passing: Any = (
        None  # the public function, or the op and the method, that an observer calls and that asks it again
    )


_thread = _Thread()


def start(recorder: Recorder) -> None:
    """Note operators, in all threads."""
    prepare()
    entry.observe(_called)
    options = recorder.options
    if options.memory and options.shapes and options.stack and recorder.timeline is None:
        recorder.timeline = MemoryTimeline(lambda: int(1000 * recorder.since_start()))
    watch_functions()
    watch(_watched, plain=True)
    engine.set_pass_type(_TimedPass)
    defer.observers.append(_kernels)
    function_hooks.insert(0, _applied)
    if recorder.options.collections:
        gc.callbacks.append(_collected)


def stop() -> None:
    """Note no more operators."""
    if _collected in gc.callbacks:
        gc.callbacks.remove(_collected)
    function_hooks.remove(_applied)
    defer.observers.remove(_kernels)
    engine.set_pass_type(_UntimedPass)
    unwatch(_watched)
    entry.observe(None)
    unwatch_functions()


# ---- Forward ----------------------------------------------------------------------------------------------------------


def _called(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Observer of entries: run the call of a public function that is an operator as an event."""
    recorder = recording()
    if _thread.passing is function or recorder is None or any(type(each) is Traced for each in args):
        _thread.passing = None
        return PLAIN
    name = name_of_function(public_function(function))
    if name is not None and kwargs.get("inplace") is True:
        name += "_"
    if name is None or _is_open(recorder, name):
        return PLAIN
    inputs = (*args, *kwargs.values())
    event = recorder.begin(name, inputs)
    _thread.passing = function
    try:
        return _noted(recorder, event, inputs, function(*args, **kwargs))
    finally:
        _thread.passing = None
        recorder.end(event)


def _watched(op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
    """Watcher of ops: run the call of an op as an event."""
    recorder = recording()
    if _thread.passing == (op, method) or recorder is None:
        _thread.passing = None
        return PLAIN
    name = name_of_op(op, method, args)
    if _is_open(recorder, name):
        return PLAIN
    inputs = args[0] if isinstance(op, KernelGraph) else args
    event = recorder.begin(name, inputs)
    _thread.passing = op, method
    try:
        return _noted(
            recorder, event, inputs, (op if method == "run" else getattr(op, method))(*args, **static)
        )
    finally:
        _thread.passing = None
        recorder.end(event)


def _applied(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Hook of `autograd.Function.apply`: run it as an event with the name of the class."""
    recorder = recording()
    others = function_hooks[1:]
    if recorder is None:
        return others[0](function, args, kwargs) if others else PLAIN
    event = recorder.begin(function.__name__, args)
    try:
        answer = others[0](function, args, kwargs) if others else PLAIN
        result = function.apply_unbatched(args, kwargs) if answer is PLAIN else answer
        return _noted(recorder, event, args, result)
    finally:
        recorder.end(event)


def _is_open(recorder: Recorder, name: str) -> bool:
    """Whether this operator is the event that is open already: `F.relu` calls `torch.relu`, and that calls the op.

    An operator in place, `fill_`, may call an op of another name, `fill`.
    """
    enclosing = recorder.enclosing()
    return enclosing is not None and enclosing.name in (name, name + "_")


def _noted(recorder: Recorder, event: FunctionEvent, inputs: Sequence[Any], result: Any) -> Any:
    """The result of an operator, after the event has got the number of its node, and its number of operations."""
    first = result[0] if isinstance(result, (tuple, list)) and result else result
    node = endpoint(first._autograd)[0] if isinstance(first, Tensor) else None
    if isinstance(node, Node):
        event.sequence_nr = node._order
        recorder.threads[node._order] = event.thread
    if recorder.timeline is not None:
        recorder.timeline.note(inputs, result, running.now is not None)
    if recorder.options.flops:
        event.flops = flops(event, inputs, first)
    return result


# ---- Backward ---------------------------------------------------------------------------------------------------------

_UntimedPass = engine.watched_pass_type
_EVALUATE = "autograd::engine::evaluate_function: "
_ACCUMULATE = "torch::autograd::AccumulateGrad"


class _TimedPass(_UntimedPass):  # type: ignore[valid-type, misc]
    """A backward pass whose nodes are events."""

    def _run_nodes(self, nodes: Sequence[Node], usual: bool) -> None:
        super()._run_nodes(nodes, False)

    def _run_node(self, node: Node) -> Any:
        with _of_node(_EVALUATE, node):
            return super()._run_node(node)

    def _cotangents(self, node: Node, ct: Any, edges: tuple, spare: bool) -> Any:
        cts = ct if type(ct) is tuple else (ct,)
        with _of_node("", node, inputs=cts, scope=BACKWARD_SCOPE):
            return super()._cotangents(node, ct, edges, spare)

    def _finish(self, leaf: Leaf, ct: Tensor, lone: bool) -> None:
        with Range(_EVALUATE + _ACCUMULATE), Range(_ACCUMULATE, inputs=(ct,), scope=BACKWARD_SCOPE):
            super()._finish(leaf, ct, lone)
        recorder = recording()
        if recorder is not None and recorder.timeline is not None:
            recorder.timeline.note_gradient(leaf.variable)


def _of_node(prefix: str, node: Node, **details: Any) -> Range:
    recorder = recording()
    thread = 0 if recorder is None else recorder.threads.get(node._order, 0)
    return Range(prefix + node.name(), sequence_nr=node._order, fwd_thread=thread, **details)


# ---- Garbage ----------------------------------------------------------------------------------------------------------


def _collected(phase: str, info: dict[str, int]) -> None:
    """Callback of Python's collector: a collection is an event."""
    recorder = recording()
    if recorder is None:
        return
    if phase == "start":
        _thread.collection = recorder.begin("Python GC")
    elif _thread.collection is not None:
        recorder.end(_thread.collection)
        _thread.collection = None


# ---- Deferred work ----------------------------------------------------------------------------------------------------


class _Kernels:
    """Observer of deferred work: the kernels that compute it are events of the call that reads the result."""

    def promised(self, promise: Any) -> None:
        """The call that promises a result is an event itself."""

    def ran(
        self, chain: Sequence[Any], stored: Sequence[bool], end: Any, kernels: int, seconds: float
    ) -> None:
        """`kernels` have computed the chain, and the reduction `end` if it is not None."""
        recorder = recording()
        if recorder is not None:
            names = [each.plan.deferred.name for each in chain] + ([end] if end else [])
            kind = "fused" if kernels == 1 < len(names) else "deferred"
            event = recorder.begin(f"weft::{kind}({', '.join(names)})")
            event.time_range.start -= seconds * 1e6
            recorder.end(event)


_kernels = _Kernels()
