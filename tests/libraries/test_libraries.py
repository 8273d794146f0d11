"""The five libraries that are quick to install and run; `make libraries` runs all of them."""

import importlib.util
import json
from importlib.metadata import version
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _runner():
    spec = importlib.util.spec_from_file_location("libraries_run", HERE / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = _runner()


@pytest.mark.parametrize("name", ["einops", "gpytorch", "pyro", "safetensors", "torchmetrics"])
def test_a_library_gives_pytorchs_numbers(name):
    recorded = json.loads((HERE / "expected" / f"{name}.json").read_text())["versions"]
    assert {each: version(each) for each in recorded} == recorded, "pin these versions in pyproject.toml"
    text, passed = runner.check(name, [], verbose=True)
    assert passed, text


def test_versions_are_those_of_the_recorded_numbers():
    pins = dict(
        line.lower().replace("_", "-").split("==")
        for line in (HERE / "requirements.txt").read_text().splitlines()
        if "==" in line
    )
    for name in runner.names():
        recorded = json.loads((HERE / "expected" / f"{name}.json").read_text())
        if (
            "torchvision" in recorded["versions"]
        ):  # no PyTorch 2.13 runs beside its PyPI build: see docs/libraries.md
            assert recorded["versions"].pop("torchvision") == "0.29.1"
        else:
            assert recorded["torch"].startswith("2.13.0")
        for library, recorded_version in recorded["versions"].items():
            assert pins[library.lower().replace("_", "-")] == recorded_version


@pytest.mark.parametrize(
    "expected, got, problem",
    [
        ([1.0, 2.0], [1.0, 2.001], None),
        ([1.0, 2.0], [1.0, 2.01], "2.01 where PyTorch has 2"),
        ([1.0, 0.0], [1.0, 1e-5], None),
        (float("nan"), float("nan"), None),
        (3, 3, None),
        (3, 4, "4 where"),
        (True, 1, "1 where"),
        ("a", "b", "'b' where"),
        ([1.0], [1.0, 2.0], "2 entries"),
        ({"a": 1}, {"b": 1}, "where PyTorch has"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "in PyTorch's order"),
        # A gradient that is zero but for rounding is measured by the others of the model.
        ({"w": [1.0, 5.0], "b": [1e-9, 1e-9]}, {"w": [1.0, 5.0], "b": [-3e-8, 3e-8]}, None),
    ],
)
def test_differences(expected, got, problem):
    found = runner.difference(expected, got)
    assert found is None if problem is None else problem in found
