"""`torch._logging` beside PyTorch's, and what weft's refuses."""

import importlib
import logging

import pytest
import torch
import torch._logging

import weft
import weft._logging


@pytest.mark.parametrize("library", [torch, weft])
def test_warnings_are_given_once_for_the_same_arguments(library, logged):
    log = logging.getLogger("tests._logging")
    for name in ("a", "b", "a"):
        library._logging.warning_once(log, "%s of %s", name, library.__name__)
    assert logged == [f"{name} of {library.__name__}" for name in "ab"]


@pytest.mark.parametrize("library", [torch, weft])
def test_lazy_strings_are_made_when_they_are_needed(library):
    made = []
    text = library._logging.LazyString(lambda *args, **kwargs: made.append(1) or f"{args} {kwargs}", 1, a=2)
    assert not made
    assert str(text) == "(1,) {'a': 2}" and made == [1]


@pytest.mark.parametrize("library", [torch, weft])
def test_loggers_of_artifacts_are_named_after_their_module(library):
    assert library._logging.getArtifactLogger("torch.a", "graph_code").name == "torch.a.__graph_code"


def test_levels_of_components():
    names = {"all": "torch", "dynamo": "torch._dynamo", "onnx": "torch._onnx"}
    before = {name: logging.getLogger(name).level for name in names.values()}
    try:
        for component, name in names.items():
            weft._logging.set_logs(**{component: logging.ERROR})
            assert logging.getLogger(name).level == logging.ERROR
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
    with pytest.raises(NotImplementedError, match="no records of the kind 'graph_code'"):
        weft._logging.set_logs(graph_code=True)


def test_reports_are_dropped():
    scribe = importlib.import_module("weft._logging.scribe")
    assert scribe.open_source_signpost(subsystem="a", name="b", parameters="c") is None
