"""The page of the tour in a browser."""

import threading

import browser
import pytest

from weft.cli.tour import reader
from weft.cli.tour.server import Tour

pytestmark = pytest.mark.skipif(browser.CHROMIUM is None, reason="needs Chromium, which is not installed")


@pytest.fixture
def tab(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "PATIENCE", 60.0)  # for machines with much else to do
    tour = Tour()
    threading.Thread(target=tour.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    found = browser.Browser(tmp_path)
    found.tour = tour
    found.open(tour.address)
    yield found
    found.close()
    tour.shutdown()
    tour.server_close()


def test_run_a_page_change_a_cell_and_stop_a_loop(tab):
    assert tab.run("document.title") == "Numbers in a row · weft tour"
    tab.run("runAll(document.getElementById('storage'))")
    shown = tab.run("[...document.querySelectorAll('#storage .output')].map(each => each.innerText)")
    assert "48 bytes for 12 numbers of 4 bytes" in shown[1]
    assert tab.run("document.querySelectorAll('#storage svg').length") == 2

    write = "const area = document.querySelector('#storage textarea'); area.value = {!r};"
    tab.run(f"{{{write.format('print(6 * 7)')} run(area.closest('.cell'))}}")
    tab.run("new Promise(done => setTimeout(done, 0))")
    wait = "(async () => { while (document.querySelector('.busy')) await new Promise(done => setTimeout(done, 20)); })()"
    tab.run(wait)
    assert tab.run("document.querySelector('#storage .output').innerText").strip() == "42"

    tab.run(f"{{{write.format('while True: pass')} document.querySelector('#storage .run').click()}}")
    stop = "document.querySelector('#storage .stop').click()"  # in vain before the cell has begun
    tab.run(wait.replace("await", f"{stop}, await"))
    assert "The cell was stopped" in tab.run("document.querySelector('#storage .error').innerText")

    tab.run("location.hash = '#views'")
    assert tab.run("new Promise(done => setTimeout(() => done(document.title), 50))") == "Views · weft tour"
    # No request leaves the page.
    assert all(each.startswith(f"http://{tab.tour.hosts[0]}/") for each in tab.requests())


def test_scripts_in_outputs_do_not_run(tab):
    tab.run(
        "tell(document.querySelector('.output'), "
        "{svg: '<svg onload=\"window.bad = 1\"><script>window.bad = 1</' + 'script></svg><img src=x onerror=\"window.bad = 1\">'})"
    )
    assert tab.run("new Promise(done => setTimeout(() => done(window.bad === undefined), 100))")
