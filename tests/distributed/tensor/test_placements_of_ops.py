"""Operations on DTensors keep the cuts that PyTorch keeps. `python tests/dtensor_placements.py` compares the whole database of operators."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]
OPERATORS = """
    argsort cat column_stack cross cummax cumsum fft.fft2 fft.fftshift fft.hfftn fft.irfft flip fliplr gather grid_sampler_2d hstack index_add
    index_copy index_select isin kthvalue linalg.cholesky linalg.det linalg.inv linalg.solve linalg.svd linalg.vecdot logcumsumexp max.reduction_no_dim
    median mode msort nansum nn.functional.adaptive_avg_pool2d nn.functional.embedding nn.functional.interpolate.bicubic nn.functional.interpolate.bilinear
    nn.functional.interpolate.nearest nn.functional.max_pool2d nn.functional.pad.constant norm nn.functional.pairwise_distance repeat
    repeat_interleave roll rot90 searchsorted softmax sort stack take_along_dim tile topk aminmax amax
""".split()


def test_weft_gathers_only_where_pytorch_does():
    paths = f"{TESTS.parent}{os.pathsep}{TESTS}"
    command = [sys.executable, str(TESTS / "dtensor_placements.py"), *OPERATORS]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=TESTS, env={**os.environ, "PYTHONPATH": paths}
    )
    assert "'same': " in done.stdout, done.stderr
    assert "only weft" not in done.stdout, done.stdout
