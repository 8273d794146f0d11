"""The benchmarks run, and pages have the numbers that were measured; how fast anything is, is not for tests to say."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench import levels, machine, pages, publish, report
from bench.__main__ import IMPLEMENTATIONS
from bench.limit import Limit
from bench.new_sizes import rows as new_sizes
from bench.new_sizes.calls import CALLS, sizes_of
from bench.new_sizes.programs import PROGRAMS
from bench.new_sizes.setting import MEASURED, OTHER, Setting
from bench.report import Result
from bench.rounds import QUICK, Row
from bench.sections import SECTIONS
from bench.worker import namespace

ROOT = Path(__file__).resolve().parents[1]
MACHINE = {
    "processor": "Some CPU",
    "model": "znver9, family 1, model 2",
    "vectors": ["avx2"],
    "cores": 2,
    "cache": "1 MB",
    "memory": 2**30,
    "system": "Linux",
    "versions": {"torch": "2.13"},
    "commit": "abc",
    "date": "2026-01-01",
    "load": 0.0,
}


def bench(tmp_path, *options):
    numbers = tmp_path / "numbers.json"
    command = [sys.executable, "-m", "bench", "--quick", "--json", str(numbers), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(numbers.read_text())


def row(name, torch=2.0, weft=1.0, **more):
    return Row("calls", name, "s", values={"torch": torch, "weft": weft}, **more)


def a_run(load=0.0):
    rows = [row("add", 8.0), row("view", 0.5, floor=1.0)]
    sizes = [Row("sizes", f"chain 1e{k}", "s", values={"weft": 10.0**-k, "numpy": 10.0**-k}) for k in (2, 3)]
    return MACHINE | {"load": load}, [
        Result("calls", "calls", 1.5, 1.0, True, rows),
        Result("sizes", "sizes", None, None, False, sizes),
    ]


def test_all_implementations_run_a_case_and_its_limit(tmp_path):
    text, numbers = bench(tmp_path, "--only", "chains small/swish 1e4", "--impl", "torch,weft,numpy,limit")
    [section] = numbers["sections"]
    [measured] = section["rows"]
    assert not measured["errors"]
    assert min(measured["values"][name] for name in ("torch", "weft", "numpy", "limit")) > 0
    assert numbers["machine"]["processor"] in text
    assert "| swish 1e4 |" in text
    assert "Geometric mean" in text
    assert "| chains at 10^4 | 1 |" in text


def test_memory_of_a_chain_is_its_temporaries_and_its_result(tmp_path):
    _, numbers = bench(tmp_path, "--only", "memory/relu(a[*]b+c) 1e7", "--impl", "torch")
    assert numbers["sections"][0]["rows"][0]["values"]["torch"] == pytest.approx(8e7, rel=0.05)


def test_a_case_that_an_implementation_cannot_run_has_an_empty_cell(tmp_path):
    text, numbers = bench(tmp_path, "--only", "calls/detach", "--impl", "numpy")
    [measured] = numbers["sections"][0]["rows"]
    assert (measured["values"], measured["errors"]) == ({}, {})
    assert "| detach |  |  |" in text


@pytest.mark.parametrize(
    "options, message",
    [
        (["--only", "no/such row"], "no row is named no/such row"),
        (["--only", "calls/add", "--json", "."], "so --impl and rows need a file"),
        (["--only", "calls/add", "--json", "no/such/folder.json"], "there is no folder no/such"),
        (["--impl", "weft,tinygrad"], "there is no implementation tinygrad"),
    ],
)
def test_options_that_cannot_work_are_refused(options, message):
    command = [sys.executable, "-m", "bench", "--impl", "limit", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_a_program_with_new_sizes_is_measured_in_fresh_processes(tmp_path):
    _, numbers = bench(tmp_path, "--only", "new sizes programs/boxes*", "--impl", "torch,weft")
    [measured] = numbers["sections"][0]["rows"]
    assert not measured["errors"]
    assert min(measured["values"].values()) > 0


@pytest.mark.parametrize("program", [name for name in PROGRAMS if name not in ("calls", "memory")])
def test_programs_with_new_sizes_compute_the_same(program):
    expected, found = (PROGRAMS[program](setting(name, share=0.02)).results for name in ("torch", "weft"))
    assert found == pytest.approx(expected, rel=1e-4)


def test_calls_with_new_sizes_have_a_first_time_and_later_ones():
    numbers = PROGRAMS["calls"](setting("weft", share=0.05))
    assert numbers.errors == {}
    assert len(numbers.values) == 2 * len(CALLS)


@pytest.mark.parametrize("implementation", ["torch", "weft"])
def test_the_memory_of_new_sizes_is_a_number_of_bytes(implementation):
    assert PROGRAMS["memory"](setting(implementation, share=1e-4)).values[""] >= 0


def setting(implementation, share):
    return Setting(namespace(implementation)["torch"], MEASURED, share)


def test_all_calls_of_a_process_have_different_sizes_and_warm_ups_have_others():
    sizes = [size for index in range(len(CALLS)) for size in sizes_of(index, MEASURED)]
    assert len(sizes) == len(set(sizes))
    assert all(not set(sizes_of(k, MEASURED)) & set(sizes_of(k, OTHER)) for k in range(len(CALLS)))


def test_a_call_that_fails_is_an_error_of_its_rows():
    section = new_sizes.CALLED[new_sizes.FIRST]
    numbers = {"values": {"first/add": 1.0}, "errors": {"first/exp": "no exp"}}
    runs = [{"torch": numbers, "weft": numbers}] * 2
    added, failed = (new_sizes.call_row(lambda: runs, section, f"first/{name}") for name in ("add", "exp"))
    assert (added.name, added.values) == ("add", {"torch": 1.0, "weft": 1.0})
    assert failed.errors == {"torch": "no exp", "weft": "no exp"}


def test_a_level_has_numbers_of_its_own(monkeypatch):
    for name in levels._VARIABLES:
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("WEFT_CPU", "x86-64-v3")
    levels.limit()
    assert os.environ["ATEN_CPU_CAPABILITY"] == "avx2" and os.environ["OPENBLAS_CORETYPE"] == "Haswell"
    here, results = a_run()
    of_level = here | {"level": "x86-64-v3"}
    assert machine.slug(of_level) == f"{machine.slug(here)}-x86-64-v3"
    page = pages.pages([(here, results), (of_level, results)])[pages.PAGE]
    assert page.count("of which all libraries use x86-64-v3 only") == 1 and ", only x86-64-v3)" in page
    monkeypatch.setenv("WEFT_CPU", "x86-64")
    with pytest.raises(
        ValueError, match="WEFT_CPU: the levels that can be measured are x86-64-v2, x86-64-v3, not 'x86-64'"
    ):
        levels.limit()


def test_sections_can_be_replaced_in_published_numbers(tmp_path):
    path = tmp_path / "some-cpu.json"
    here, [calls, sizes] = a_run()
    path.write_text(report.to_json(here, [calls, sizes]))
    later = here | {"commit": "def", "load": 1.5}
    added = Result("rows", "rows", None, None, True, [row("softmax")])
    publish.update(path, later, [replace(calls, rows=[row("add", 3.0)]), added], ["calls", "rows", "sizes"])
    machine, results = report.from_json(path.read_text())
    assert machine == here
    assert [result.key for result in results] == ["calls", "rows", "sizes"]
    assert results[0].ratios == [3.0]
    assert results[2] == sizes
    page = pages.pages([(machine, results)])[pages.PAGE]
    assert (
        '"calls", "rows": measured apart from the other sections, on 2 cores: commit def, 2026-01-01' in page
    )


def test_names_of_rows_are_unique():
    ids = [f"{section.key}/{case.name}" for section in SECTIONS for case in section.cases]
    for section, rows in new_sizes.sections(IMPLEMENTATIONS, QUICK):
        ids += [f"{section.key}/{name}" for name in rows]
    assert len(ids) == len(set(ids))


def test_statements_are_python():
    for section in SECTIONS:
        for case in section.cases:
            for code in (case.setup, case.stmt, case.numpy or ""):
                compile(code, case.name, "exec")


def test_slow_statements_get_fewer_rounds():
    assert QUICK.rounds_of(QUICK.seconds) == QUICK.rounds
    assert QUICK.rounds_of(100.0) == QUICK.fewest


@pytest.mark.parametrize("read, written", [(4000, 0), (0, 4000), (12000, 4000), (4000, 8000), (2**20, 2**20)])
def test_the_limit_of_any_traffic_can_be_measured(read, written):
    assert Limit(read, written).time(2) > 0


def test_a_row_is_met_by_its_ratio_or_by_its_value():
    assert row("add", floor=2.0).met
    assert row("add", floor=2.5).met is False
    assert row("add", most=1.0).met
    assert row("add", most=0.5).met is False
    assert row("add").met is None


def test_times_have_three_figures_and_the_unit_that_fits():
    assert [report.quantity(each, "s") for each in (2.5e-7, 9.999e-4, 1.234e-2, 3.0)] == [
        "250 ns",
        "1 ms",
        "12.3 ms",
        "3 s",
    ]


def test_a_section_has_its_mean_and_its_worst_row():
    _, [calls, _] = a_run()
    assert report.geometric_mean(calls.ratios) == pytest.approx(2.0)
    assert report.verdict(calls) == "Geometric mean 2.00 (wanted: 1.50); worst row 0.50 (wanted: 1.00), view."
    assert "| calls | 2 | 2.00 | 1.50 | **0.50** | 1.00 | view |" in report.summary([calls])


def test_numbers_survive_json():
    here, results = a_run()
    assert report.from_json(report.to_json(here, results)) == (here, results)


def test_a_page_has_the_losing_rows_and_says_whether_other_programs_ran():
    page = pages.pages([a_run()])[pages.PAGE]
    losses = page.partition("### Rows on which weft loses")[2].partition("### All rows")[0]
    assert "calls/view" in losses
    assert "calls/add" not in losses
    assert "The load average was" not in page
    assert "The load average was 3.0" in pages.pages([a_run(load=3.0)])[pages.PAGE]


def test_a_loss_has_its_reason_once_and_its_distance_to_the_limit(monkeypatch):
    monkeypatch.setattr(pages, "REASONS", {"calls/*": "Because."})
    given = [  # section, name, seconds of PyTorch, weft and the limit
        ("calls", "view", 2.0, 4.0, 1.0),
        ("calls", "slice", 2.0, 3.0, 0.0),
        ("layout", "no reason", 2.0, 2.5, 0.0),
        ("layout", "below the limit", 2.0, 2.1, 3.0),
    ]
    rows = [
        Row(section, name, "s", values={"torch": torch, "weft": weft} | ({"limit": limit} if limit else {}))
        for section, name, torch, weft, limit in given
    ]
    _, _, *lines = pages.losses([Result("calls", "calls", None, None, False, rows)]).splitlines()
    assert [line.split("|")[-2].strip() for line in lines] == [
        "Because. weft takes 4.00 times the limit, PyTorch 2.00.", "See calls/view.", "", "",
    ]  # fmt: skip
    found = pages.unexplained([(MACHINE, [Result("calls", "calls", None, None, False, rows)])])
    assert found == ["layout/below the limit", "layout/no reason"]


def test_the_machine_is_described_where_git_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.describe()["commit"] == ""


def test_a_page_has_the_remark_on_its_numbers():
    here, results = a_run()
    page = pages.pages([(here | {"remark": "One row is older."}, results)])[pages.PAGE]
    assert "One row is older." in page


def test_the_picture_has_a_line_for_each_implementation():
    picture = pages.pages([a_run()])[pages.PAGE.with_name("performance-some-cpu-znver9.svg")]
    assert picture.count("<polyline") == 2


def test_pages_are_made_from_the_numbers():
    for path, text in pages.pages(pages.read()).items():
        assert path.read_text() == text, f"{path.name}: python -m bench.pages writes it anew"
