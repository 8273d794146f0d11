"""Headless Chromium, for tests of pages: it is told what to do through a pipe, in the DevTools protocol."""

import base64
import itertools
import json
import os
import shutil
import subprocess

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-pipe"
).split()


class Browser:
    """A tab of a new browser with a profile in `folder`."""

    def __init__(self, folder, width=1280, height=900):
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # Chromium reads from file descriptor 3 and writes to 4.
        arguments = [CHROMIUM, *_OPTIONS, f"--user-data-dir={folder}", f"--window-size={width},{height}"]
        self._process = subprocess.Popen(
            ["sh", "-c", f'exec "$0" "$@" 3</dev/fd/{theirs_in} 4>/dev/fd/{theirs_out}', *arguments],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        self._numbers = itertools.count(1)
        self._session = {}
        self.events = []
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        session = self.tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._session = {"sessionId": session}
        for domain in ("Page", "Network", "Runtime"):
            self.tell(f"{domain}.enable")

    def tell(self, method, **parameters):
        """The answer to a command."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters, **self._session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 16)
            assert more, "Chromium has ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, address):
        self.tell("Page.navigate", url=address)
        self.run(
            "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))"
        )

    def run(self, script):
        """The value of an expression of JavaScript, after its promise is kept."""
        found = self.tell("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def requests(self):
        """The addresses that the tab has asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def photograph(self, path):
        """Write the whole page as a PNG, to look at it."""
        found = self.tell("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(found["data"]))

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
