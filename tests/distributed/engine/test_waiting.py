import os
import subprocess
import sys

import pytest

from weft.distributed.engine import waiting
from weft.distributed.engine.peers import Peer
from weft.distributed.engine.segment import Segment
from weft.distributed.engine.steps import Steps

HERE = Peer(os.getpid())


def ended():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    peer = Peer(process.pid)
    assert not peer.has_ended()
    process.communicate()
    return peer


def patient(missing, peers=(HERE, HERE, HERE), timeout=60.0, **options):
    return waiting.Waiting(Segment(3), peers, 0, "barrier()", lambda: list(missing), timeout, **options)


def test_long_waits_are_reported_once(monkeypatch, capsys):
    monkeypatch.setattr(waiting, "REPORT_S", 0.0)
    wait = patient([1, 2])
    wait.look(), wait.look()
    assert capsys.readouterr().err == "weft: rank 0 has waited 0 s for ranks 1, 2 in barrier()\n"


def test_a_timeout_names_the_ranks():
    with pytest.raises(RuntimeError, match=r"barrier\(\): timed out after 0 s: rank 0 waited for rank 2"):
        patient([2], timeout=0.0).look()
    patient([], timeout=0.0).look()


def test_processes_that_have_ended():
    peers = HERE, ended(), HERE
    with pytest.raises(RuntimeError, match=r"rank 1 \(process \d+\) has ended, while rank 0 waited for it"):
        patient([1, 2], peers).look()
    patient([2], peers).look()
    patient([1, 2], peers, any_of=True).look()  # rank 2 may still come
    with pytest.raises(RuntimeError, match="rank 1"):
        patient([1], peers, any_of=True).look()


def test_ranks_that_have_left():
    wait = patient([1])
    steps = Steps()
    steps.arrive(wait.segment.left(1), 1)
    steps.carry_out()
    with pytest.raises(RuntimeError, match="has left the group"):
        wait.look()
