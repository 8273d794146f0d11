"""IR is written only if the disk cache knows nothing of its description; descriptions differ where kernels differ."""

import os
import subprocess
import sys

import pytest

from weft.core.dtype import float32, float64, int32
from weft.engine import host, source, tiers
from weft.engine.diskcache import DiskCache
from weft.engine.expr import cast, const, load, param, select, slow_path
from weft.engine.loops import MapKernel, Result, map_ir

X, Y = load(0, float32), load(1, float32)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    cache = DiskCache(tmp_path, "salt")
    monkeypatch.setattr(host, "disk_cache", lambda: cache)
    return cache


def kernel(expr, strides="ccc"):
    return MapKernel((Result((expr,)),), (float32, float32), (), strides)


KERNELS = [
    kernel(X + Y),
    kernel(Y + X),
    kernel(X + Y, "ccs"),
    kernel(X + X),
    kernel(X - Y),
    kernel(X + param(0, float32)),
    kernel(X + const(0.0, float32)),
    kernel(X + const(-0.0, float32)),
    kernel(cast(X, float64)),
    kernel(cast(X, int32)),
    kernel(select(X < Y, X, Y)),
    kernel(slow_path(X, X + 1.0, X < 0.0, X - 1.0)),
    kernel(slow_path(X, X + 1.0, X < 0.0, X - 2.0)),
    kernel(load((0, 0), float32)),
    kernel(load((0, 1), float32)),
    MapKernel((Result((X,)), Result((Y,))), (float32, float32), (), "cccc"),
    MapKernel((Result((X, Y)),), (float32, float32), (), "cccc"),
]


def test_descriptions_differ_where_kernels_differ():
    assert len({source.describe(each) for each in KERNELS}) == len(KERNELS)
    assert len({map_ir(each).key() for each in KERNELS}) == len(KERNELS)


def test_graphs_may_be_deep():
    deep = X
    for _ in range(5000):
        deep = deep + Y
    assert len(source.describe(kernel(deep))) < 1000


def test_an_object_without_a_description_is_refused():
    with pytest.raises(TypeError, match="float has no description"):
        source.describe((1.5,))


DESCRIBE = """
from weft.core.dtype import float32
from weft.engine import source
from weft.engine.expr import load, slow_path
x = load(0, float32)
print(source.describe((slow_path(x, x + 1.0, x < 0.0, x - 1.0), float32, "c", None, True)), source.fingerprint())
"""


def test_descriptions_are_the_same_in_all_processes():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", DESCRIBE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
        ).stdout
        for seed in "12"
    }
    assert len(outputs) == 1 and "" not in outputs


def test_a_hit_writes_no_ir(cache, monkeypatch):
    ir = map_ir(KERNELS[0])
    host.compiled(ir, tiers.BASELINE)
    other = source.Source(lambda kernel: pytest.fail("written"), KERNELS[0])
    other.write.__qualname__ = ir.write.__qualname__
    assert host.cached(other, tiers.BASELINE) == host.cached(ir, tiers.BASELINE) is not None


def test_code_is_found_by_its_ir_after_a_change_of_weft(cache, monkeypatch):
    host.compiled(map_ir(KERNELS[0]), tiers.BASELINE)
    monkeypatch.setattr(source, "fingerprint", lambda: "changed")
    monkeypatch.setattr(host, "_object_code", lambda *_: pytest.fail("compiled again"))
    assert host.cached(map_ir(KERNELS[0]), tiers.BASELINE)
    monkeypatch.setattr(source.Source, "text", lambda self: "other text")
    monkeypatch.setattr(source, "fingerprint", lambda: "changed again")
    assert host.cached(map_ir(KERNELS[0]), tiers.BASELINE) is None
