"""Recordings by NVIDIA's driver, with functions of the test in its place."""

import ctypes

import pytest

from weft.devices._gpu import driver_graphs, nvidia

STREAM, GRAPH, RUNNABLE = 11, 22, 33


class Library:
    """Notes what it is asked for, and gives numbers for its objects."""

    def __init__(self):
        self.calls = []
        self.answers = {}

    def __getattr__(self, name):
        made = {
            "cuStreamCreate": STREAM,
            "cuStreamEndCapture": GRAPH,
            "cuGraphInstantiateWithFlags": RUNNABLE,
        }

        def function(*arguments):
            code = self.answers.get(name, 0)
            values = [getattr(each, "value", each) for each in arguments if not hasattr(each, "_obj")]
            self.calls.append((name, *values))
            for each in arguments:
                if hasattr(each, "_obj") and not code:  # from ctypes.byref
                    each._obj.value = made.get(name, b"text")
            return code

        return function


@pytest.fixture
def library():
    return Library()


@pytest.fixture
def driver(library):
    return nvidia.Driver(library)


def test_a_recording_becomes_a_graph(driver, library):
    recorder = driver_graphs.Recorder(driver)
    assert recorder.stream.value == STREAM
    graph = recorder.end()
    del recorder
    graph.launch(None)
    graph.launch(ctypes.c_void_p(44))
    del graph
    assert library.calls == [
        ("cuStreamCreate", 1),
        ("cuStreamBeginCapture_v2", STREAM, 2),
        ("cuStreamEndCapture", STREAM),
        ("cuGraphInstantiateWithFlags", GRAPH, 0),
        ("cuGraphDestroy", GRAPH),
        ("cuStreamDestroy_v2", STREAM),
        ("cuGraphLaunch", RUNNABLE, None),
        ("cuGraphLaunch", RUNNABLE, 44),
        ("cuGraphExecDestroy", RUNNABLE),
    ]


def test_what_the_driver_has_made_is_destroyed_after_an_error(driver, library):
    library.answers["cuStreamEndCapture"] = 901
    recorder = driver_graphs.Recorder(driver)
    with pytest.raises(nvidia.DriverError, match=r"\(901\) in cuStreamEndCapture"):
        recorder.end()
    del recorder
    assert library.calls[-1] == ("cuStreamDestroy_v2", STREAM)
