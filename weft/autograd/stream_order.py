"""Backward passes of programs with several streams: each node runs on the stream of its forward operation, as in PyTorch.

The nodes that were recorded while a thread had chosen a stream have numbers in an interval, so nodes need not store their streams. The list of
nodes of a pass is cut where the stream changes. The stream of a part waits for the parts that have computed or added to what it reads or adds to, and
for the stream that called `backward`, which waits for all parts at the end. Parts that need nothing from each other may overlap on the device.

This module does nothing before a thread chooses a stream that is not the default one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import get_ident
from typing import Any

from ..core import streams
from ..core.device import CPU, device
from ..core.tensor import Tensor
from ..engine.background import has_threads
from . import engine
from .graph import Node, Output, next_order

# Intervals of which the oldest half is forgotten. Nodes that are as old run on the stream that calls `backward`, after all work of the device.
MOST_INTERVALS = 4096


class _Interval:
    """The numbers of the nodes that were recorded while a thread had chosen a stream."""

    __slots__ = ("first", "last", "thread", "stream")

    def __init__(self, first: int, thread: int, stream: streams.Stream):
        self.first, self.thread, self.stream = first, thread, stream
        self.last: int | None = None  # None as long as the stream is the current one


_intervals: list[_Interval] = []  # in the order of their first numbers
_open: dict[tuple[int, device], _Interval] = {}  # by thread and device
_forgotten = -1  # the last number of which it is no longer known which stream was the current one


def note(stream: streams.Stream) -> None:
    """Called when a stream has become the current one of this thread."""
    global _forgotten
    engine.follow_streams(_ordered)
    place, number = (get_ident(), stream.device), next_order()
    before = _open.pop(place, None)
    if before is not None:
        before.last = number
        if before.first + 1 == number:  # no node was recorded
            _intervals.remove(before)
    if not stream.stream_id:
        return
    latest = _intervals[-1] if _intervals else None
    if (
        latest is not None
        and latest.last == number - 1
        and (latest.thread, latest.stream) == (place[0], stream)
    ):
        latest.last, _open[place] = None, latest  # no node was recorded since the thread left the stream
        return
    _open[place] = _Interval(number, place[0], stream)
    _intervals.append(_open[place])
    if len(_intervals) > MOST_INTERVALS:
        gone = _intervals[: MOST_INTERVALS // 2]
        del _intervals[: len(gone)]
        _forgotten = max(_forgotten, *(each.last for each in gone if each.last is not None))
        _intervals[:0] = [each for each in gone if each.last is None]


streams.observers.append(note)


class _Part:
    """Neighbouring nodes of a pass that run on one stream (None: any), and the parts that it waits for."""

    def __init__(self, stream: streams.Stream | None):
        self.stream = stream
        self.nodes: list[Node] = []
        self.after: set[int] = set()
        self.waits: set[streams.Stream] = set()  # for all work of these streams
        self.mark: Any = None  # behind the work of the part

    def is_of_current(self) -> bool:
        """Whether the part runs on the current stream, and waits for no other one."""
        return (
            self.stream is None
            or not self.waits
            and self.stream == streams.current_stream(self.stream.device)
        )


class _StreamPass(engine._Pass):
    """A backward pass whose nodes run on the streams of their forward operations."""

    def _run_nodes(self, nodes: Sequence[Node], usual: bool) -> None:
        parts = _parts(nodes)
        if all(part.is_of_current() for part in parts):
            super()._run_nodes(nodes, usual)
            return
        callers = {
            part.stream.device: streams.current_stream(part.stream.device) for part in parts if part.stream
        }
        starts = {where: where.backend.mark() for where in callers}
        for part in parts:
            if part.stream is None:
                super()._run_nodes(part.nodes, usual)
                continue
            with part.stream:
                self._wait(part, parts, starts[part.stream.device])
                super()._run_nodes(part.nodes, usual)
                part.mark = part.stream.device.backend.mark()
        for stream, mark in {
            part.stream: part.mark for part in parts if part.stream
        }.items():  # the last mark of each
            stream.device.backend.wait(callers[stream.device].stream_id, mark)
        self._lend_gradients(callers)

    def _wait(self, part: _Part, parts: Sequence[_Part], start: Any) -> None:
        """Let the stream of a part, which is the current one, wait for what it reads."""
        stream = part.stream
        assert stream is not None
        backend = stream.device.backend
        for mark in (start, *[parts[k].mark for k in part.after]):
            if mark is not None:
                backend.wait(stream.stream_id, mark)
        for other in part.waits:
            stream.wait_stream(other)
        for node in part.nodes:
            _lend(self.pending.get(node), stream)

    def _lend_gradients(self, callers: dict[device, streams.Stream]) -> None:
        """Tell the allocator that the streams that called `backward` use the gradients."""
        for ct in self.captured.values():
            _lend(ct, callers)
        for leaf in self.uses:
            tensor = leaf.tensor()
            if tensor is not None:
                _lend(tensor._grad, callers)
            if leaf in self.leaves:
                _lend(self.leaves[leaf][0], callers)


_kinds: dict[type[engine._Pass], type[engine._Pass]] = {engine._Pass: _StreamPass}


def _ordered(kind: type[engine._Pass]) -> type[engine._Pass]:
    """The class of passes that does what `kind` does, on the streams of the forward operations."""
    if issubclass(kind, _StreamPass):
        return kind
    if kind not in _kinds:
        _kinds[kind] = type(kind.__name__, (_StreamPass, kind), {})
    return _kinds[kind]


def _parts(nodes: Sequence[Node]) -> list[_Part]:
    """The nodes, which come newest first, cut where the stream changes."""
    parts = [_Part(None)]
    known = [each for each in _intervals if nodes and each.first < nodes[0]._order]
    finished: set[device] = set()  # devices that nodes have waited for whose streams are forgotten
    touched: dict[Any, set[int]] = {}  # the parts that bring cotangents to a node or a leaf
    for node in nodes:
        where = _place(node)
        if where is not None:
            if node._order <= _forgotten and where not in finished:
                where.backend.synchronize()
                finished.add(where)
            stream, others = _stream_of(node, where, known)
            if parts[-1].stream is None and len(parts) == 1:
                parts[-1].stream = stream
            elif stream != parts[-1].stream:
                parts.append(_Part(stream))
            parts[-1].waits |= others
        number, part = len(parts) - 1, parts[-1]
        part.nodes.append(node)
        for target in (node, *_targets(node)):
            before = touched.setdefault(target, set())
            part.after |= before
            if target is not node:
                before.add(number)
    for number, part in enumerate(parts):
        part.after.discard(number)
    return parts


def _targets(node: Node) -> Iterator[Any]:
    """The nodes and leaves that get cotangents of a node."""
    for edge in node._edges:
        if edge is not None:
            yield edge.node if type(edge) is Output else edge


def _place(node: Node) -> device | None:
    """The device of the forward operation of a node; None if it has no streams."""
    result = node._spec.result
    for spec in result if type(result) is tuple else (result,):
        where = None if spec is None else spec.device
        if where is not None and where is not CPU and where.backend.has_events:
            return where
    return None


def _stream_of(
    node: Node, where: device, known: Sequence[_Interval]
) -> tuple[streams.Stream, set[streams.Stream]]:
    """The stream of the forward operation of a node, and others of which it may be one, because several threads record nodes."""
    number, thread = node._order, get_ident()
    if number <= _forgotten:
        return streams.current_stream(where), set()
    found = [
        each
        for each in known
        if each.stream.device is where and each.first < number and (each.last is None or number < each.last)
    ]
    default = streams.named_stream(where, 0)
    own = next((each.stream for each in found if each.thread == thread), default)
    others = {each.stream for each in found if each.thread != thread}
    if has_threads():  # another one may have recorded the node on the default stream
        others.add(default)
    return own, others - {own}


def _lend(ct: Any, users: Any) -> None:
    """Tell the allocator that a stream uses the memory of a cotangent. users: the stream, or streams by device."""
    if type(ct) is list:
        for each in ct:
            _lend(each, users)
        return
    tensor = ct.tensor if type(ct) is engine._Sum else ct
    if not isinstance(tensor, Tensor):
        return
    storage = tensor._storage
    for part in getattr(storage, "parts", ()):
        _lend(part, users)
    user = users.get(tensor.spec.device) if type(users) is dict else users
    if user is not None and user.device is tensor.spec.device and hasattr(storage, "bin"):
        user.device.backend.record_use(storage, user.stream_id)
