"""IR is written only if the disk cache knows nothing of its description; descriptions differ where kernels differ."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from weft.core.dtype import float32, float64, int32
from weft.engine import host, source, tiers
from weft.engine.diskcache import DiskCache
from weft.engine.expr import cast, const, load, param, select, slow_path
from weft.engine.loops import MapKernel, Result
from weft.engine.map_rows import map_ir

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
    assert len({map_ir(each).description() for each in KERNELS}) == len(KERNELS)


def test_graphs_may_be_deep():
    deep = X
    for _ in range(5000):
        deep = deep + Y
    assert len(source.describe(kernel(deep))) < 1000


def test_the_text_describes_a_kernel_with_other_objects(cache):
    with pytest.raises(TypeError, match="float has no description"):
        source.describe((1.5,))
    one, other = (source.Source(lambda kernel: f"; {kernel}", (number,)) for number in (1.5, 2.5))
    assert one.description() != other.description()


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
    host.compiled(map_ir(KERNELS[0]), tiers.BASELINE)
    monkeypatch.setattr(source.Source, "text", lambda *_, **__: pytest.fail("written"))
    assert host.cached(map_ir(KERNELS[0]), tiers.BASELINE)
    assert host.cached(map_ir(KERNELS[1]), tiers.BASELINE) is None
    assert host.cached(map_ir(KERNELS[0]), host.OPTIMIZED) is None


def test_a_change_of_weft_makes_descriptions_void(cache, monkeypatch):
    host.compiled(map_ir(KERNELS[0]), tiers.BASELINE)
    monkeypatch.setattr(source, "fingerprint", lambda: "changed")
    assert host.cached(map_ir(KERNELS[0]), tiers.BASELINE) is None


def imported(path):
    """The modules of weft that a module imports."""
    found = set()
    for each in ast.walk(ast.parse(path.read_text())):
        if isinstance(each, ast.ImportFrom) and each.level:
            folder = path.parents[each.level - 1] / (each.module or "").replace(".", "/")
            found |= {folder.with_suffix(".py"), *(folder / f"{name.name}.py" for name in each.names)}
    return {path.resolve() for path in found if path.exists()}


def test_the_fingerprint_covers_all_modules_that_write_ir():
    folder = Path(source.__file__).resolve().parent
    known = {
        path
        for path in folder.rglob("*.py")
        if "@source_of" in (text := path.read_text()) or "(source_of" in text
    }
    while new := set().union(*map(imported, known)) - known:
        known |= new
    assert known == {(folder / f"{name}.py").resolve() for name in source._WRITERS}


# ---- Baseline IR of its own ---------------------------------------------------------------------------------------------

ANY_ORDER = """
import weft as torch
from weft.engine import tiers
tiers.QUIET_S = tiers.LONGEST_S = 1e9
torch.set_num_threads(2)
torch.manual_seed(0)
results = []
for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool):
    for shape in ((3, 5), (70, 33), (1, 100), (9, 4, 130), (2000, 3), (3, 2000)):
        x = torch.randint(0, 2 if dtype is torch.bool else 120, shape).to(dtype)
        for each in (x, x.transpose(0, 1), x[::2], x[:, 1:]):
            for dims in (0, 1, (0, 1)):
                results += [lambda x=each, d=dims: x.sum(d), lambda x=each, d=dims: x.amax(d)]
            for function in (torch.prod, *(() if dtype is torch.bool else (torch.argmax, torch.argmin)), torch.cumsum):
                results.append(lambda x=each, f=function: f(x, 1))
            results += [each.sum, each.prod, lambda x=each: x.max(0)[1]]
for dtype in (torch.float32, torch.float64, torch.bfloat16):
    x = torch.randint(-2, 3, (70, 130)).to(dtype) * -0.0 ** torch.randint(0, 2, (70, 130)).to(dtype)
    x[3, 5] = x[9, 5] = x[20, 40] = float("nan")
    for each in (x, x.t(), x[::2], x[:, 1:], x[40:]):
        results += [lambda x=each, f=f, d=d: f(x, d) for f in (torch.argmax, torch.argmin) for d in (0, 1, None)]
huge = torch.randint(-9, 9, (5_000_001,), dtype=torch.int8)
results += [huge.sum, lambda: huge[1:].argmax(), lambda: huge.to(torch.int64)[::2].sum(), lambda: huge[:5_000_000].view(-1, 2).sum(0)]
first = [each().tolist() for each in results]
assert len(tiers._pending) > 50, len(tiers._pending)
tiers.optimize_now(*tiers._pending.copy())
for number, (a, each) in enumerate(zip(first, results, strict=True)):
    assert a == each().tolist(), number
"""


def test_both_tiers_agree_where_baseline_code_reduces_in_another_order(tmp_path):
    environment = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path / "kernels")}
    run = subprocess.run([sys.executable, "-c", ANY_ORDER], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
