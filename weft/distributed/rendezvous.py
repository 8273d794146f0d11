"""`torch.distributed.rendezvous`: how processes find each other: through a file, an address, or the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NoReturn
from urllib.parse import SplitResult, parse_qsl, urlsplit

from ..compat.missing import module_getattr
from ._file_store import FileStore
from ._store import PrefixStore, Store
from .constants import default_pg_timeout

__all__ = ["register_rendezvous_handler", "rendezvous"]

Meeting = tuple[Store, int, int]  # the store, the rank of this process, the number of processes

_handlers: dict[str, Callable[..., Iterator[Meeting]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[Meeting]]) -> None:
    """Let `handler(url)` serve URLs that begin with `scheme`; it yields (store, rank, world_size).

    Raises: RuntimeError if there is a handler for `scheme` already.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[Meeting]:
    """An iterator of (store, rank, world_size) for the processes that meet at `url`."""
    for name, value, kind, words in (
        ("url", url, str, "a string"),
        ("rank", rank, int, "an integer"),
        ("world_size", world_size, int, "an integer"),
    ):
        if not isinstance(value, kind):
            given = f"{type(value)}: {value}" if name == "url" else value
            raise RuntimeError(f"`{name}` must be {words}. {given}")
    return _rendezvous_helper(url, rank, world_size, **kwargs)


def _rendezvous_helper(url: str, rank: int, world_size_opt: int | None, **kwargs: Any) -> Iterator[Meeting]:
    parts = urlsplit(url)
    known = {"rank": rank, "world_size": -1 if world_size_opt is None else world_size_opt}
    known = {name: value for name, value in known.items() if value != -1}
    if known:
        query = dict(parse_qsl(parts.query))
        assert not query.keys() & {"rank", "world_size"}, (
            f"The url: {url} has node-specific arguments(rank, world_size) already."
        )
        text = "&".join(f"{name}={value}" for name, value in {**query, **known}.items())
        url = parts._replace(query=text).geturl()
        # urlunsplit leaves out the empty host of env://.
        url = url if "://" in url else url.replace(":", "://", 1)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return _handlers[parts.scheme](url, **kwargs)


def _fail(scheme: str, reason: str) -> NoReturn:
    raise ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {reason}")


def _numbers(scheme: str, parts: SplitResult) -> tuple[int, int]:
    query = dict(parse_qsl(parts.query))
    for name, words in (("rank", "rank"), ("world_size", "world size")):
        if name not in query:
            _fail(scheme, f"{words} parameter missing")
    return int(query["rank"]), int(query["world_size"])


def _file_rendezvous_handler(url: str, **kwargs: Any) -> Iterator[Meeting]:
    parts = urlsplit(url)
    path = parts.path
    if os.name == "nt":
        from urllib.request import url2pathname

        path = url2pathname(parts.netloc + parts.path)
    if not path:
        _fail("file", "path missing")
    rank, world_size = _numbers("file", parts)
    yield FileStore(path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _tcp_rendezvous_handler(
    url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any
) -> Iterator[Meeting]:
    parts = urlsplit(url)
    if parts.port is None:
        _fail("tcp", "port number missing")
    rank, world_size = _numbers("tcp", parts)
    yield _create_c10d_store(parts.hostname or "", parts.port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _env_rendezvous_handler(
    url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any
) -> Iterator[Meeting]:
    query = dict(parse_qsl(urlsplit(url).query))

    def variable(name: str) -> str:
        value = os.environ.get(name)
        if value is None:
            _fail("env", f"environment variable {name} expected, but not set")
        return value

    rank = int(query["rank"] if "rank" in query else variable("RANK"))
    world_size = int(query["world_size"] if "world_size" in query else variable("WORLD_SIZE"))
    address, port = variable("MASTER_ADDR"), int(variable("MASTER_PORT"))
    yield _create_c10d_store(address, port, rank, world_size, timeout), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


def _create_c10d_store(
    hostname: str, port: int, rank: int, world_size: int, timeout: timedelta, use_libuv: bool = True
) -> Store:
    """The store at an address: rank 0 keeps it, unless torchrun does."""
    from ._tcp_store import TCPStore  # sockets take a while to import

    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return PrefixStore(f"/worker/attempt_{attempt}", TCPStore(hostname, port, None, False, timeout))
    return TCPStore(hostname, port, world_size, rank == 0, timeout, multi_tenant=True)


register_rendezvous_handler("tcp", _tcp_rendezvous_handler)
register_rendezvous_handler("env", _env_rendezvous_handler)
register_rendezvous_handler("file", _file_rendezvous_handler)


def __getattr__(name: str) -> Any:
    if name == "TCPStore":
        from ._tcp_store import TCPStore

        return TCPStore
    return _missing(name)


_missing = module_getattr(__name__)
