"""weft beside PyTorch on a GPU: `python -m bench.gpu [PAGE]` measures both and prints a table, or writes it into a page.

The two run one after the other in processes of their own, because each keeps the memory that it has had. A row is run REPEATS times without
waiting and then waited for; the time is the least of ROUNDS. The time of issuing is what the host takes for a call.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROUNDS = 3
LONG_S = 1.0  # a first call that takes longer is repeated less often
SMALL = 16
LARGE = 200_000_000  # elements
SIDE = 8192


class Row(NamedTuple):
    """What is measured."""

    name: str
    run: Callable[[], Any]
    repeats: int


def elementwise(torch: Any) -> Iterator[Row]:
    a = torch.ones(SMALL, device="cuda")
    b = torch.ones(SMALL, device="cuda")
    yield Row("add, 16 elements", lambda: a + b, 2000)
    yield Row("relu(a * b + a), 16 elements", lambda: torch.relu(a * b + a), 1000)
    yield Row("softmax, 16 elements", lambda: torch.softmax(a, 0), 500)
    x, y, z = (torch.ones(LARGE, device="cuda") for _ in range(3))
    out = torch.empty(LARGE, device="cuda")
    yield Row("add, 2e8", lambda: torch.add(x, y, out=out), 20)
    yield Row("relu(a * b + c), 2e8", lambda: torch.relu(x * y + z).data_ptr(), 20)
    yield Row("exp, 2e8", lambda: torch.exp(x, out=out), 20)
    yield Row("gelu, 2e8", lambda: torch.nn.functional.gelu(x).data_ptr(), 10)


def reductions(torch: Any) -> Iterator[Row]:
    x = torch.ones(LARGE, device="cuda")
    yield Row("sum, 2e8", lambda: x.sum(), 20)
    yield Row("max with index, 2e8", lambda: x.max(0), 10)
    yield Row("var, 2e8", lambda: x.var(), 10)
    m = torch.ones(SIDE, SIDE, device="cuda")
    yield Row("sum over rows, 8192x8192", lambda: m.sum(0), 20)
    yield Row("sum over columns, 8192x8192", lambda: m.sum(1), 20)
    yield Row("cumsum, 8192x8192", lambda: m.cumsum(1), 10)


def rows_of_matrices(torch: Any) -> Iterator[Row]:
    functional = torch.nn.functional
    m = torch.ones(SIDE, SIDE, device="cuda")
    weight = torch.ones(SIDE, device="cuda")
    yield Row("softmax, 8192x8192", lambda: torch.softmax(m, 1), 20)
    yield Row("log_softmax, 8192x8192", lambda: torch.log_softmax(m, 1), 20)
    yield Row("layer_norm, 8192x8192", lambda: functional.layer_norm(m, (SIDE,), weight, weight), 20)
    yield Row("matrix + row, 8192x8192", lambda: (m + weight).data_ptr(), 20)
    yield Row("transposed copy, 8192x8192", lambda: m.t().contiguous(), 20)


def indices(torch: Any) -> Iterator[Row]:
    table = torch.ones(SIDE, 256, device="cuda")
    source = torch.ones(4 * SIDE, 256, device="cuda")
    where = (torch.arange(4 * SIDE, device="cuda") * 7) % SIDE
    yield Row("index_select, 32768 rows of 256", lambda: table.index_select(0, where), 20)
    yield Row("index_add, 32768 rows of 256", lambda: table.index_add(0, where, source), 20)
    million = torch.sin(torch.arange(1_000_000, device="cuda") * 1.0)
    yield Row("sort, 1e6", lambda: million.sort(), 5)
    yield Row("topk 10, 1e6", lambda: million.topk(10), 5)


def products(torch: Any) -> Iterator[Row]:
    for side, repeats in ((1000, 50), (5000, 5)):
        for dtype in (torch.float32, torch.bfloat16):
            m = torch.ones(side, side, device="cuda", dtype=dtype)
            name = str(dtype).removeprefix("torch.")
            yield Row(f"product {side}^3, {name}", lambda m=m: m @ m, repeats)  # type: ignore[misc]


def networks(torch: Any) -> Iterator[Row]:
    functional = torch.nn.functional
    query = torch.ones(8, 12, 1024, 64, device="cuda", dtype=torch.bfloat16)
    attend = functional.scaled_dot_product_attention
    yield Row(
        "causal attention, 8x12x1024x64, bfloat16", lambda: attend(query, query, query, is_causal=True), 3
    )
    convolution = torch.nn.Conv2d(64, 64, 3, padding=1).to("cuda")
    images = torch.ones(16, 64, 56, 56, device="cuda")
    yield Row("convolution 3x3, 16x64x56x56", lambda: convolution(images), 5)
    yield Row("training step of an MLP, batch 256", _training_of_mlp(torch), 20)
    yield Row("training step of a transformer layer, 16x256x512", _training_of_layer(torch), 5)


def _training_of_mlp(torch: Any) -> Callable[[], None]:
    nn = torch.nn
    net = nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )
    net.to("cuda")
    optimizer = torch.optim.AdamW(net.parameters())
    images = torch.ones(256, 784, device="cuda")
    labels = torch.zeros(256, dtype=torch.int64, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()

    return step


def _training_of_layer(torch: Any) -> Callable[[], None]:
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0).to("cuda")
    optimizer = torch.optim.AdamW(layer.parameters())
    texts = torch.ones(16, 256, 512, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        layer(texts).square().mean().backward()
        optimizer.step()

    return step


SECTIONS = (elementwise, reductions, rows_of_matrices, indices, products, networks)


# ---- One implementation ----------------------------------------------------------------------------------------------------


def measure(name: str) -> None:
    """Print a line of JSON for each row: its name, and microseconds of a call, of issuing it, and of the first call, or the error."""
    torch = importlib.import_module(name)
    facts = {"name": torch.cuda.get_device_name(0), "version": torch.__version__}
    print(json.dumps(facts), flush=True)
    for section in SECTIONS:
        for row in section(torch):
            try:
                print(json.dumps([row.name, *_timed(torch, row)]), flush=True)
            except Exception as error:  # the other rows can be measured all the same
                print(json.dumps([row.name, f"{type(error).__name__}: {error}"]), flush=True)


def _timed(torch: Any, row: Row) -> tuple[float, float, float]:
    first = _run(torch, row, 1)[0]
    repeats = row.repeats if first < LONG_S * 1e6 else 1
    _run(torch, row, 2)
    total, issued = min(_run(torch, row, repeats) for _ in range(ROUNDS))
    return total, issued, first


def _run(torch: Any, row: Row, repeats: int) -> tuple[float, float]:
    """Microseconds of a call, and of issuing it."""
    start = time.perf_counter()
    for _ in range(repeats):
        row.run()
    issued = time.perf_counter() - start
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats * 1e6, issued / repeats * 1e6


# ---- Both ------------------------------------------------------------------------------------------------------------------


def main() -> None:
    found = {name: _measured(name) for name in ("torch", "weft")}
    text = "\n".join(_table(found))
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text + "\n")
    print(text)


def _measured(name: str) -> tuple[dict[str, str], dict[str, list]]:
    """The facts and the rows that a process prints."""
    command = [sys.executable, "-c", f"from bench.gpu import measure; measure({name!r})"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    facts, *rows = [json.loads(line) for line in lines]
    return facts, {name: values for name, *values in rows}


def _table(found: dict[str, tuple[dict[str, str], dict[str, list]]]) -> Iterator[str]:
    (facts, theirs), (own_facts, ours) = found["torch"], found["weft"]
    yield "# weft beside PyTorch on a GPU"
    yield ""
    yield (
        f"{facts['name']}; PyTorch {facts['version']}, weft {own_facts['version']}; {time.strftime('%Y-%m-%d')}. "
        "`make test-gpu` measures the GPU at hand and writes this page anew; "
        "[bench/gpu.py](../bench/gpu.py) says what each row is."
    )
    yield ""
    yield "Microseconds of a call. Ratios are PyTorch's time over weft's: above 1, weft is faster. The first call compiles weft's kernels."
    yield ""
    yield "| | PyTorch | weft | ratio | first call, PyTorch | first call, weft |"
    yield "| :-- | --: | --: | --: | --: | --: |"
    for name, own in ours.items():
        yield _line(name, theirs[name], own)


def _line(name: str, theirs: list, ours: list) -> str:
    if len(theirs) == 1 or len(ours) == 1:
        return f"| {name} | {theirs[0]} | {ours[0]} | | | |"
    ratio = theirs[0] / ours[0]
    shown = f"{ratio:.2f}" if ratio >= 1 else f"**{ratio:.2f}**"
    return f"| {name} | {theirs[0]:,.0f} | {ours[0]:,.0f} | {shown} | {theirs[2]:,.0f} | {ours[2]:,.0f} |"


if __name__ == "__main__":
    main()
