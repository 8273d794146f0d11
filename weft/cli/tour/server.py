"""`Tour`: the server of the tour. It listens on the loopback interface, and answers only requests that know its token."""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Generator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .document import document
from .reader import Reader

MOST_READERS = 4  # processes; the one that was used least recently ends when a new reader comes
_MOST_BYTES = 1 << 20  # of a request
_LOOPBACK = "127.0.0.1"
# Nothing is loaded from elsewhere, and only the script of the page runs, even if the output of a cell contains another one.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


class Tour(ThreadingHTTPServer):
    """Serves the pages at `address`, and runs cells for readers, who are the tabs of a browser.

    Any program and any web page of this machine can send requests to a port of it. So the address contains a random token, requests
    without it are refused, and so are those that a page of another origin has sent, or that reached us under another name.
    """

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(32)
        self._readers: OrderedDict[str, Reader] = OrderedDict()
        self._lock = threading.Lock()
        super().__init__((_LOOPBACK, port), _Handler)

    @property
    def hosts(self) -> tuple[str, str]:
        """The names under which browsers reach the server."""
        return f"{_LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def address(self) -> str:
        return f"http://{self.hosts[0]}/?token={self.token}"

    def reader(self, name: str) -> Reader:
        """The reader of this name, perhaps a new one."""
        with self._lock:
            found = self._readers.setdefault(name, Reader())
            self._readers.move_to_end(name)
            dropped = self._readers.popitem(last=False)[1] if len(self._readers) > MOST_READERS else None
        if dropped is not None:
            dropped.close()
        return found

    def restart(self, name: str) -> None:
        """End the process of a reader; the next cell starts a new one."""
        with self._lock:
            found = self._readers.pop(name, None)
        if found is not None:
            found.close()

    def server_close(self) -> None:
        super().server_close()
        for name in list(self._readers):
            self.restart(name)


def _nothing() -> Generator[dict[str, Any], None, None]:
    yield from ()


class _Handler(BaseHTTPRequestHandler):
    server: Tour
    timeout = 60  # seconds without a byte of a request
    server_version, sys_version = "weft", ""

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        token = parse_qs(target.query).get("token", [""])[0]
        if not self._is_allowed(token):
            return
        if target.path != "/":
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing at this address")
            return
        nonce = secrets.token_urlsafe(16)
        content = document(nonce).encode()
        self.send_response(HTTPStatus.OK)
        headers = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(content))}
        self._send_headers({**headers, "Content-Security-Policy": f"{_POLICY}; script-src 'nonce-{nonce}'"})
        self.wfile.write(content)

    def do_POST(self) -> None:
        if not self._is_allowed(self.headers.get("X-Token", "")):
            return
        given = self._body()
        if given is None:
            return
        if self.path == "/run":
            self._answer(self.server.reader(given["reader"]).run(given["code"]))
        elif self.path == "/stop":
            self.server.reader(given["reader"]).stop()
            self._answer(_nothing())
        elif self.path == "/restart":
            self.server.restart(given["reader"])
            self._answer(_nothing())
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing at this address")

    def _is_allowed(self, token: str) -> bool:
        """Whether the request comes from the page of the tour; if not, it is refused."""
        origin = self.headers.get("Origin")
        # A name of another site can lead to this machine (DNS rebinding), and then its pages are of the origin of this server.
        if self.headers.get("Host") not in self.server.hosts:
            self._refuse(HTTPStatus.FORBIDDEN, "this host is not served")
        elif origin is not None and origin not in [f"http://{host}" for host in self.server.hosts]:
            self._refuse(HTTPStatus.FORBIDDEN, "pages of other origins are not served")
        elif not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(
                HTTPStatus.FORBIDDEN, "the token is missing or wrong: open the address that weft tour printed"
            )
        else:
            return True
        return False

    def _body(self) -> dict[str, str] | None:
        """The strings "reader" and "code" of the request; None after it was refused."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {_MOST_BYTES} bytes")
            return None
        try:
            given: Any = json.loads(self.rfile.read(int(length)))
            found = {"reader": given["reader"], "code": given.get("code", "")}
        except (ValueError, KeyError, TypeError, AttributeError):
            found = {}
        if not found or not all(isinstance(each, str) for each in found.values()):
            self._refuse(
                HTTPStatus.BAD_REQUEST, 'the request must be JSON with the strings "reader" and "code"'
            )
            return None
        return found

    def _answer(self, events: Generator[dict[str, Any], None, None]) -> None:
        """Send events as lines of JSON, each at once. The end of the connection is the end of the answer."""
        self.send_response(HTTPStatus.OK)
        self._send_headers({"Content-Type": "application/x-ndjson"})
        # When the tab is closed, writing fails, and closing the events ends the process of the cell.
        with contextlib.closing(events), contextlib.suppress(ConnectionError):
            for event in events:
                self.wfile.write(json.dumps(event).encode() + b"\n")
                self.wfile.flush()

    def _refuse(self, status: HTTPStatus, words: str) -> None:
        content = f"weft tour: {words}\n".encode()
        self.send_response(status)
        self._send_headers({"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(content))})
        self.wfile.write(content)

    def _send_headers(self, headers: dict[str, str]) -> None:
        common = {
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Connection": "close",
        }
        for name, value in (common | headers).items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the token would be in the log."""
