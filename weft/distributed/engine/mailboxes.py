"""Messages from one rank to another through mailboxes in shared memory.

There is a mailbox for each pair of ranks. A message is cut into parcels, and a mailbox has room for a few of them. The sender and the
receiver each count parcels in a line, and ring the bell of the other rank. Messages that nobody has asked for yet are put aside, so that
tags may be received in any order.

Messages make progress whenever this rank waits for one. A thread sees to those that nobody waits for.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections import deque
from collections.abc import Sequence
from datetime import timedelta

from ...core.dtype import DTYPES
from ...core.tensor import Tensor, address
from .engine import Request
from .peers import Peer
from .segment import ENVELOPE, MAIL, PLACES, Segment, number_at
from .steps import DONE, LINE, Steps
from .waiting import Waiting

_DTYPES = list(DTYPES.values())
_envelope = struct.Struct("3q")  # tag, number of the dtype, bytes of the whole message


class _Message(Request):
    """A message on its way. `address` is where its bytes lie or go to, `moved` how many have been copied."""

    def __init__(self, mail: Mail, tensor: Tensor, peer: int | None, tag: int, timeout: timedelta):
        self.mail = mail
        self.tensor = tensor  # keeps the memory alive
        self.address = address(tensor)
        self.nbytes = tensor.spec.nbytes
        self.dtype = _DTYPES.index(tensor.spec.dtype)
        self.peer = peer
        self.tag = tag
        self.timeout = timeout
        self.moved = 0
        self.done = False
        self.error: str | None = None

    def is_done(self) -> bool:
        if not self.done:
            with self.mail.lock:
                self.mail.progress()
        return self.done

    def wait(self, timeout: timedelta | None = None) -> None:
        self.mail.wait(self, timeout or self.timeout)
        if self.error is not None:
            raise RuntimeError(f"{self}: {self.error}")

    def go_on(self) -> None:
        self.mail.start_thread()

    def fits(self, tag: int, source: int) -> bool:
        return self.tag == tag and self.peer in (None, source)

    def __str__(self) -> str:
        verb = "send to" if isinstance(self, _Sent) else "recv from"
        peer = "any rank" if self.peer is None else f"rank {self.peer}"
        return f"{verb} {peer} ({self.tensor.dtype}, size {tuple(self.tensor.shape)}, tag {self.tag})"


class _Sent(_Message):
    """A message that this rank sends."""


class _Received(_Message):
    """A message that this rank has asked for."""


class _Arriving:
    """A message of which the first parcel has come."""

    def __init__(self, tag: int, dtype: int, nbytes: int, wanted: _Received | None):
        self.tag, self.dtype, self.nbytes = tag, dtype, nbytes
        self.moved = 0
        self.wanted = wanted
        # Where nobody has asked for the message, or has asked for another size, it is put aside.
        kept = wanted is None or wanted.nbytes != nbytes
        self.aside = ctypes.create_string_buffer(max(nbytes, 1)) if kept else None

    @property
    def address(self) -> int:
        if self.aside is not None:
            return ctypes.addressof(self.aside)
        assert self.wanted is not None
        return self.wanted.address

    def is_whole(self) -> bool:
        return self.moved == self.nbytes


class Mail:
    """All messages of this rank in one group."""

    def __init__(self, segment: Segment, peers: Sequence[Peer], rank: int):
        self.segment = segment
        self.peers = peers
        self.rank = rank
        self.lock = threading.RLock()
        self.outgoing: dict[int, deque[_Sent]] = {}  # by receiver
        self.wanted: list[_Received] = []  # in the order in which programs asked
        self.arriving: dict[int, _Arriving] = {}  # by sender
        self.aside: dict[int, list[_Arriving]] = {}  # by sender, whole or still arriving
        self.thread: threading.Thread | None = None
        self.work = threading.Event()  # set while there is something for the thread to do
        self.closed = False

    def send(self, tensor: Tensor, dst: int, tag: int, timeout: timedelta) -> Request:
        message = _Sent(self, tensor, dst, tag, timeout)
        with self.lock:
            self.outgoing.setdefault(dst, deque()).append(message)
        return self._begun(message)

    def recv(self, tensor: Tensor, src: int | None, tag: int, timeout: timedelta) -> Request:
        message = _Received(self, tensor, src, tag, timeout)
        with self.lock:
            if not self._take_from_aside(message):
                self.wanted.append(message)
        return self._begun(message)

    def _begun(self, message: _Message) -> _Message:
        if not message.is_done():
            self.work.set()
        return message

    def start_thread(self) -> None:
        """Let a thread see to the messages that nobody waits for."""
        if self.thread is None and self.work.is_set():
            self.thread = threading.Thread(target=self._serve, name="weft-mail", daemon=True)
            self.thread.start()

    # ---- Progress; the caller holds the lock

    def progress(self) -> None:
        """Move the parcels that can be moved now."""
        for dst, messages in self.outgoing.items():
            while messages and self._post(dst, messages[0]):
                if messages[0].done:
                    messages.popleft()
        for src in range(len(self.peers)):
            if src != self.rank:
                while self._collect(src):
                    pass
        if not self.wanted and not any(self.outgoing.values()):
            self.work.clear()

    def _post(self, dst: int, message: _Sent) -> bool:
        """Put the next parcel of a message into a mailbox; whether there was room."""
        box = self.segment.mailbox(self.rank, dst)
        written = number_at(box)
        if written - number_at(box + LINE) == PLACES:
            return False
        place = self._place(box, written)
        _envelope.pack_into(
            (ctypes.c_char * ENVELOPE).from_address(place), 0, message.tag, message.dtype, message.nbytes
        )
        length = min(MAIL, message.nbytes - message.moved)
        steps = Steps()
        steps.copy(place + ENVELOPE, message.address + message.moved, length)
        steps.arrive(box, written + 1)
        steps.ring(self.segment.bell(dst))
        steps.carry_out()
        message.moved += length
        message.done = message.moved == message.nbytes
        return True

    def _collect(self, src: int) -> bool:
        """Take a parcel from a mailbox; whether there was one."""
        box = self.segment.mailbox(src, self.rank)
        read = number_at(box + LINE)
        steps = Steps()
        steps.wait(box, 1, read + 1)
        if number_at(box) <= read or steps.carry_out() != DONE:
            return False
        place = self._place(box, read)
        message = self.arriving.get(src)
        if message is None:
            message = self._announced(src, *_envelope.unpack(ctypes.string_at(place, _envelope.size)))
        length = min(MAIL, message.nbytes - message.moved)
        steps = Steps()
        steps.copy(message.address + message.moved, place + ENVELOPE, length)
        steps.arrive(box + LINE, read + 1)
        steps.ring(self.segment.bell(src))
        steps.carry_out()
        message.moved += length
        if message.is_whole():
            del self.arriving[src]
            if message.wanted is not None:
                self._deliver(message, message.wanted, src)
        return True

    @staticmethod
    def _place(box: int, number: int) -> int:
        return box + 2 * LINE + number % PLACES * (ENVELOPE + MAIL)

    def _announced(self, src: int, tag: int, dtype: int, nbytes: int) -> _Arriving:
        wanted = next((each for each in self.wanted if each.fits(tag, src)), None)
        message = self.arriving[src] = _Arriving(tag, dtype, nbytes, wanted)
        if wanted is None:
            self.aside.setdefault(src, []).append(message)
        else:
            self.wanted.remove(wanted)
        return message

    def _take_from_aside(self, wanted: _Received) -> bool:
        """Give a message that was put aside to a call that asks for it."""
        for src, messages in self.aside.items():
            for message in messages:
                if wanted.fits(message.tag, src):
                    messages.remove(message)
                    message.wanted = wanted
                    if message.is_whole():
                        self._deliver(message, wanted, src)
                    return True
        return False

    def _deliver(self, message: _Arriving, wanted: _Received, src: int) -> None:
        if message.dtype != wanted.dtype or message.nbytes != wanted.nbytes:
            wanted.error = f"rank {src} has sent {message.nbytes} bytes of {_DTYPES[message.dtype]}"
        elif message.aside is not None:
            ctypes.memmove(wanted.address, message.aside, message.nbytes)
        wanted.source = src
        wanted.done = True
        steps = Steps()
        steps.ring(self.segment.bell(self.rank))  # another thread may wait for this message
        steps.carry_out()

    # ---- Waiting

    def wait(self, message: _Message, timeout: timedelta) -> None:
        """Return when a message is done. Raises: RuntimeError as `Waiting.look`."""
        others = [rank for rank in range(len(self.peers)) if rank != self.rank]
        awaited = others if message.peer is None else [message.peer]
        waiting = None
        while True:
            heard = number_at(self.segment.bell(self.rank))
            if message.is_done():
                return
            if self._listen(heard):
                continue
            if waiting is None:
                waiting = Waiting(
                    self.segment,
                    self.peers,
                    self.rank,
                    message,
                    lambda: [] if message.is_done() else awaited,
                    timeout.total_seconds(),
                    any_of=message.peer is None,
                )
            waiting.look()

    def _listen(self, heard: int) -> bool:
        """Wait until the bell is rung once more than `heard` times, or for a slice; whether it was."""
        steps = Steps()
        steps.wait(self.segment.bell(self.rank), 1, heard + 1)
        return steps.carry_out() == DONE

    def _serve(self) -> None:
        while not self.closed:
            self.work.wait()
            heard = number_at(self.segment.bell(self.rank))
            with self.lock:
                self.progress()
            if self.work.is_set():
                self._listen(heard)

    def close(self) -> None:
        self.closed = True
        self.work.set()
