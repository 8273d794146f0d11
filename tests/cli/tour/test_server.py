import http.client
import json
import threading

import pytest

from weft.cli import tour as command
from weft.cli.tour import server as servers


@pytest.fixture
def tour():
    found = servers.Tour()
    threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


def asked(tour, method, path, headers=(), body=None):
    """(status, headers, text) of an answer."""
    connection = http.client.HTTPConnection(*tour.server_address, timeout=60)
    connection.request(method, path, body, dict(headers))
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read().decode()
    connection.close()
    return found


def ran(tour, code, reader="r", **headers):
    body = json.dumps({"reader": reader, "code": code})
    status, _, text = asked(tour, "POST", "/run", {"X-Token": tour.token, **headers}, body)
    assert status == 200, text
    return [json.loads(line) for line in text.splitlines()]


def test_the_page_and_its_cells(tour):
    status, headers, text = asked(tour, "GET", f"/?token={tour.token}")
    assert status == 200
    assert "Numbers in a row" in text
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    assert "; script-src 'nonce-" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    assert ran(tour, "x = 1; print(x)") == [{"text": "1"}, {"text": "\n"}, {"done": True}]
    assert "".join(each.get("text", "") for each in ran(tour, "x", "another")) == ""
    assert ran(tour, "x")[0] == {"text": "1"}


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/?token=ü", "/page.html?token=x"])
def test_pages_without_the_token_are_refused(tour, path):
    status, _, text = asked(tour, "GET", path.replace("ü", "%C3%BC"))
    assert status == 403
    assert "token" in text
    assert tour.token not in text


@pytest.mark.parametrize("path", ["/run", "/stop", "/restart"])
def test_commands_without_the_token_are_refused(tour, path):
    body = json.dumps({"reader": "r", "code": "open('/tmp/x', 'w')"})
    for headers in ({}, {"X-Token": "wrong"}):
        assert asked(tour, "POST", path, headers, body)[0] == 403
    assert asked(tour, "POST", f"{path}?token={tour.token}", {}, body)[0] == 403
    assert not tour._readers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "0.0.0.0"])
def test_other_names_of_this_machine_are_refused(tour, host):
    """So that a page whose name leads to 127.0.0.1 (DNS rebinding) reaches nothing."""
    headers = {"Host": host, "X-Token": tour.token}
    assert asked(tour, "GET", f"/?token={tour.token}", headers)[0] == 403
    assert asked(tour, "POST", "/run", headers, "{}")[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_pages_of_other_origins_are_refused(tour, origin):
    headers = {"Origin": origin, "X-Token": tour.token}
    assert asked(tour, "POST", "/run", headers, json.dumps({"reader": "r", "code": "1"}))[0] == 403
    ran(tour, "1", Origin=f"http://localhost:{tour.server_port}", Host=f"localhost:{tour.server_port}")


def test_it_listens_on_the_loopback_interface_only(tour):
    assert tour.server_address[0] == "127.0.0.1"
    assert len(tour.token) >= 40
    other = servers.Tour()
    assert other.token != tour.token
    other.server_close()


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "3", '{"code": "1"}', '{"reader": 1, "code": "1"}', '{"reader": "r", "code": null}'],
)
def test_wrong_requests(tour, body):
    assert asked(tour, "POST", "/run", {"X-Token": tour.token}, body)[0] == 400


def test_requests_for_nothing_and_large_ones(tour):
    headers = {"X-Token": tour.token}
    assert asked(tour, "GET", f"/other?token={tour.token}")[0] == 404
    assert asked(tour, "POST", "/other", headers, '{"reader": "r"}')[0] == 404
    assert asked(tour, "POST", "/run", {**headers, "Content-Length": str(1 << 30)})[0] == 413
    assert asked(tour, "DELETE", "/", headers)[0] == 501


def test_stop_and_restart(tour):
    found = []
    cell = threading.Thread(target=lambda: found.extend(ran(tour, "print('go')\nwhile True: pass")))
    cell.start()
    while not tour._readers or tour.reader("r")._idle.is_set():
        pass
    command = json.dumps({"reader": "r"})
    while cell.is_alive():
        assert asked(tour, "POST", "/stop", {"X-Token": tour.token}, command)[0] == 200
        cell.join(1)
    assert "stopped" in str(found) or "ended" in str(found)
    ran(tour, "x = 1")
    assert asked(tour, "POST", "/restart", {"X-Token": tour.token}, command)[0] == 200
    assert "NameError" in str(ran(tour, "x"))


def test_few_processes_are_kept(tour, monkeypatch):
    monkeypatch.setattr(servers, "MOST_READERS", 2)
    ran(tour, "x = 1", "first")
    process = tour.reader("first")._process
    for name in ("second", "third"):
        ran(tour, "1", name)
    assert process.poll() is not None
    assert list(tour._readers) == ["second", "third"]


def test_the_command(monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(command.webbrowser, "open", opened.append)

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(servers.Tour, "serve_forever", interrupted)
    assert command.main([]) == 0
    (address,) = opened
    assert address in capsys.readouterr().out
    assert command.main(["--no-browser"]) == 0
    assert len(opened) == 1
    taken = servers.Tour()
    for arguments, words in {
        ("--port", "70000"): "--port must be from 0 to 65535, not 70000",
        ("--port", str(taken.server_port)): f"port {taken.server_port} cannot be used",
        ("--prot",): "unrecognized arguments",
    }.items():
        with pytest.raises(SystemExit, match="2"):
            command.main(arguments)
        assert words in capsys.readouterr().err
    taken.server_close()
