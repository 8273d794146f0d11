"""The files about the project agree with each other."""

import re
import tomllib
from pathlib import Path

import weft

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", weft.version.weft)
    assert PROJECT["version"] == weft.version.weft
    assert f"version: {weft.version.weft}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1]
    assert newest == weft.version.weft


def test_the_version_of_pytorch_stays():
    assert weft.__version__ == weft.version.__version__ == "2.13.0+weft"


def test_ci_runs_the_python_versions_of_the_metadata():
    stated = {
        each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", each)
    }
    workflow = (ROOT / ".github/workflows/tests.yml").read_text()
    assert set(re.findall(r'"(3\.\d+)"', workflow.partition("matrix:")[2].partition("runs-on")[0])) == stated
    assert PROJECT["requires-python"] == f">={min(stated, key=lambda version: int(version[2:]))}"


def test_paths_of_the_files_about_the_project():
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text()):
            assert (ROOT / target).exists(), f"{name}: {target}"
    for target in re.findall(r"make (\w+)", (ROOT / ".github/workflows/tests.yml").read_text()):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
