"""TCPStore: a store that one process keeps in its memory and others reach through a socket.

A request is a JSON line with the name of a method of HashStore and its arguments (bytes in base64); so is the answer. This is
not PyTorch's protocol: all processes have to use weft.
"""

from __future__ import annotations

import base64
import json
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from ._errors import DistNetworkError, DistStoreError, QueueEmptyError
from ._store import DEFAULT_TIMEOUT, HashStore, Store, encoded

_ERRORS = {error.__name__: error for error in (DistStoreError, QueueEmptyError, TypeError, ValueError)}
_METHODS = frozenset(
    "set get add compare_set delete_key check wait append multi_get multi_set num_keys list_keys "
    "queue_push queue_pop queue_len".split()
)


class TCPStore(Store):
    """A store at `host_name`:`port`. With `is_master` this process keeps it (port 0: any free port); others connect.

    >>> from weft.distributed import TCPStore
    >>> store = TCPStore("127.0.0.1", 0, 1, is_master=True)
    >>> other = TCPStore("127.0.0.1", store.port)
    >>> other.set("epoch", "3")
    >>> store.get("epoch")
    b'3'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self._timeout = timeout
        self._host = host_name
        self._server = _listen(host_name, port, multi_tenant, master_listen_fd) if is_master else None
        self._port = self._server.server_address[1] if self._server else port
        self._lock = threading.Lock()
        self._join(world_size if wait_for_workers else None, time.monotonic() + timeout.total_seconds())

    @property
    def host(self) -> str:
        return self._host

    @property
    def port(self) -> int:
        return self._port

    @property
    def libuvBackend(self) -> bool:  # noqa: N802 (PyTorch's name)
        return True

    def __repr__(self) -> str:
        return f"TCPStore(host={self._host}, port={self._port}, is_master={self._server is not None})"

    def _join(self, world_size: int | None, end: float) -> None:
        """Connect. The process that keeps the store waits here for all of `world_size` processes, as in PyTorch; the others do not."""
        joined = None
        while joined is None:
            self._connection = _connect(self._host, self._port, self._timeout)
            self._stream = self._connection.makefile("rwb")
            if world_size is None:
                return
            try:
                joined = self._ask("add", "init/", 1)
            except (ConnectionError, DistNetworkError):  # an earlier group has just closed its store
                if time.monotonic() > end:
                    raise
        while self._server is not None and joined < world_size:
            if time.monotonic() > end:
                raise DistStoreError(
                    f"Timed out after {self._timeout.total_seconds():g} seconds waiting for clients. {joined}/{world_size} clients joined."
                )
            time.sleep(0.01)  # seconds
            joined = self._ask("add", "init/", 0)

    def _ask(self, method: str, *arguments: Any, timeout: timedelta | None = None) -> Any:
        """The answer of the process that keeps the store."""
        seconds = (timeout or self._timeout).total_seconds()
        with self._lock:
            self._stream.write(_line([method, seconds, _packed(arguments)]))
            self._stream.flush()
            answer = self._stream.readline()
        if not answer:
            raise DistNetworkError(f"TCPStore: {self._host}:{self._port} has closed the connection")
        try:
            error, result = json.loads(answer)
        except (ValueError, TypeError):
            raise DistStoreError(
                f"TCPStore: what listens at {self._host}:{self._port} is no TCPStore of weft (it answered {answer[:40]!r}). "
                "Choose another port; all processes have to use weft"
            ) from None
        if error is not None:
            raise _ERRORS.get(error, DistStoreError)(result)
        return _unpacked(result)

    def set(self, key: str, value: str | bytes) -> None:
        self._ask("set", key, encoded(value))

    def get(self, key: str) -> bytes:
        return self._ask("get", key)

    def add(self, key: str, amount: int) -> int:
        return self._ask("add", key, amount)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        return self._ask("compare_set", key, encoded(expected), encoded(desired))

    def delete_key(self, key: str) -> bool:
        return self._ask("delete_key", key)

    def check(self, keys: Sequence[str]) -> bool:
        return self._ask("check", list(keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._ask("wait", list(keys), timeout=timeout)

    def append(self, key: str, value: str | bytes) -> None:
        self._ask("append", key, encoded(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._ask("multi_get", list(keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        self._ask("multi_set", list(keys), [encoded(value) for value in values])

    def num_keys(self) -> int:
        return len(self._ask("list_keys"))

    def list_keys(self) -> list[str]:
        return [key for key in self._ask("list_keys") if not key.startswith("init/")]

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._ask("queue_push", key, encoded(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._ask("queue_pop", key, block)

    def queue_len(self, key: str) -> int:
        return self._ask("queue_len", key)

    def has_extended_api(self) -> bool:
        return True

    def clone(self) -> TCPStore:
        return TCPStore(self._host, self._port, timeout=self._timeout)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_finalizing():  # modules that closing needs may be gone, and the system closes everything anyway
            return
        if "_stream" in self.__dict__:
            self._stream.close()
            self._connection.close()
        if self.__dict__.get("_server") is not None:
            self._server.release()  # type: ignore[union-attr]


class _Server(socketserver.ThreadingTCPServer):
    """Serves one HashStore; a thread for each connection.

    It closes when no store of this process uses it and nobody is connected: the other processes of a group may connect once more, for
    the next group, before this process has left the last one.
    """

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], listening: int | None) -> None:
        super().__init__(address, _Handler, bind_and_activate=listening is None)
        if listening is not None:
            self.socket.close()
            self.socket = socket.socket(fileno=listening)
            self.server_address = self.socket.getsockname()
        self.values = HashStore()
        self.users = 0  # stores of this process, and connections
        self.is_open = True
        self.closed = threading.Event()
        self.lock = threading.RLock()
        self.threads = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.threads.start()

    def acquire(self) -> bool:
        """Whether it is still open, and so stays open until `release`."""
        with self.lock:
            self.users += self.is_open
            return self.is_open

    def release(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users:
                return
            self.is_open = False  # a process that connects now has to look for the next store at this address
        self.close_soon()

    def close_soon(self) -> None:
        """Stop listening. `shutdown` waits for the loop, so another thread calls it."""

        def close() -> None:
            self.shutdown()
            self.server_close()
            self.closed.set()
            for key in [key for key, server in list(_servers.items()) if server is self]:
                del _servers[key]

        threading.Thread(target=close, daemon=True).start()


class _Handler(socketserver.StreamRequestHandler):
    """Answers the requests of one connection."""

    server: _Server

    def handle(self) -> None:
        if not self.server.acquire():
            return
        try:
            for line in self.rfile:
                self.wfile.write(_line(self._answer(*json.loads(line))))
        except (ConnectionError, ValueError):  # the other side has gone
            return
        finally:
            self.server.release()

    def _answer(self, method: str, seconds: float, arguments: Any) -> list[Any]:
        if method not in _METHODS:
            return ["ValueError", f"no such method: {method}"]
        # A view of the shared values with the timeout of this request.
        store = HashStore()
        store._values, store._queues, store._changed = (
            self.server.values._values,
            self.server.values._queues,
            self.server.values._changed,
        )
        store._timeout = timedelta(seconds=seconds)
        try:
            return [None, _packed(getattr(store, method)(*_unpacked(arguments)))]
        except Exception as error:
            return [type(error).__name__, str(error)]


_LOOPBACK = ("localhost", "127.0.0.1")

# For multi_tenant: the stores of one process at one (host, port) share a server.
_servers: dict[tuple[str, int], _Server] = {}


def _listen(host: str, port: int, multi_tenant: bool, listening: int | None) -> _Server:
    known = _servers.get((host, port)) if multi_tenant else None
    if known is not None and known.acquire():
        return known
    if known is not None:
        known.closed.wait()
    try:
        # Loopback only, unless another address is asked for: that may be a name of this machine that others know.
        server = _Server((host if host in _LOOPBACK else "", port), listening)
    except OSError as error:
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {port}: {error}. "
            "Choose another port, or port 0, for which the system finds a free one"
        ) from None
    if multi_tenant:
        _servers[host, server.server_address[1]] = server
    server.acquire()
    return server


def _connect(host: str, port: int, timeout: timedelta) -> socket.socket:
    end = time.monotonic() + timeout.total_seconds()
    while True:
        try:
            connection = socket.create_connection((host, port), max(end - time.monotonic(), 0.01))
        except OSError as error:
            if time.monotonic() + 0.05 > end:
                milliseconds = int(timeout.total_seconds() * 1000)
                raise DistNetworkError(
                    f"The client socket has timed out after {milliseconds}ms while trying to connect to "
                    f"({host}, {port}): {error}"
                ) from None
            time.sleep(0.05)  # seconds; the process that keeps the store may still be starting
        else:
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _packed(value: Any) -> Any:
    """`value` as JSON can have it: bytes as {"bytes": base64}."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    return [_packed(item) for item in value] if isinstance(value, list | tuple) else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        return base64.b64decode(value["bytes"])
    return [_unpacked(item) for item in value] if isinstance(value, list) else value


TCPStore.__module__ = __name__.rpartition(".")[0]  # where it is public
