"""How many bytecodes calls cost: time without noise.

On small tensors nearly all of the time of a call is Python's, and bytecodes are a measure of it that depends neither on the
machine nor on its load. LIMITS holds the number of each call, in CPython 3.11, with every plan found in its cache. A change
that makes a call cheaper lowers its number there. No change raises one.

The numbers are those of the Python path: machine code, which takes its place later, has no bytecodes.

`WEFT_CALLS=python python tests/test_bytecodes.py` prints the numbers as they are, `python tests/test_bytecodes.py "x + b"` those of each
function that takes part in a call.
"""

import collections
import gc
import json
import os
import subprocess
import sys

import pytest

import weft as torch
from weft.engine.memory import FENCE

# Names of the calls: a, b, m, i take no part in autograd, x and w are leaves that require grad, y and n are results.
LIMITS = {
    # -- not recorded
    "a + b": 90,
    "a * 2.0": 98,
    "a.exp()": 73,
    "a.add_(b)": 92,
    "torch.add(a, b, out=o)": 159,
    "torch.exp(a, out=o)": 118,
    "a.sum(0)": 107,
    "F.softmax(m, -1)": 245,
    "m[0]": 75,
    "m[1:3]": 124,
    "m.t()": 67,
    "m.view(16)": 117,
    "m[i]": 183,
    "m @ m": 110,
    "F.linear(m, m, c)": 246,
    # -- recorded
    "x + b": 162,
    "x * b": 185,
    "x * x": 206,
    "x * 2.0": 166,
    "2.0 * x": 290,
    "x ** 2": 185,
    "x.exp()": 153,
    "F.relu(x)": 171,
    "x.clone()": 247,
    "x.sum(0)": 172,
    "x.sum()": 164,
    "x.mean()": 243,
    "F.softmax(w, -1)": 338,
    "w[0]": 185,
    "n[0]": 212,
    "w[1:3]": 239,
    "w.t()": 167,
    "n.t()": 194,
    "w.view(16)": 217,
    "w.transpose(0, 1)": 200,
    "w[i]": 285,
    "w @ m": 205,
    "layer(m)": 448,
    "torch.cat([x, y])": 380,
    "F.mse_loss(x, b)": 454,
    "F.cross_entropy(w, k)": 674,
    "(x * 1.0).add_(b)": 675,
    "(x * 1.0).mul_(b)": 693,
    # -- recorded, and backward
    "(x * b).sum().backward()": 1489,
    "x.exp().sum().backward()": 1437,
    "F.mse_loss(layer(m), m).backward()": 3440,
    # -- not recorded, although an operand requires grad
    "no_grad(lambda: x + b)": 188,
}


def names() -> dict:
    """What the calls are about."""
    x, w = torch.ones(16, requires_grad=True), torch.ones(4, 4, requires_grad=True)

    def no_grad(function):
        with torch.no_grad():
            function()

    return {
        "torch": torch,
        "F": torch.nn.functional,
        "a": torch.ones(16),
        "b": torch.ones(16),
        "c": torch.ones(4),
        "m": torch.ones(4, 4),
        "o": torch.empty(16),
        "i": torch.tensor([1, 2]),
        "k": torch.tensor([0, 1, 2, 3]),
        "x": x,
        "w": w,
        "y": x * 1.0,
        "n": w * 1.0,
        "layer": torch.nn.Linear(4, 4),
        "no_grad": no_grad,
    }


def bytecodes(call: str) -> collections.Counter:
    """How many bytecodes each function runs in a call, by the name of the function."""
    function = eval(f"lambda: {call}", names())
    for _ in range(3):  # gradients are there from the second time on: then they are added to
        function()
    counts: collections.Counter = collections.Counter()

    def trace(frame, event, arg):
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            code = frame.f_code
            counts[f"{code.co_filename.rpartition('/')[2]} {code.co_name}"] += 1
        return trace

    outer, collecting = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(outer)
        if collecting:
            gc.enable()
    return counts


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the numbers are those of CPython 3.11")
@pytest.mark.skipif(bool(FENCE), reason="plans make a block for each value under the fence")
@pytest.mark.parametrize("call", LIMITS)
def test_bytecodes(call, counted):
    counts = counted[call]
    assert sum(counts.values()) <= LIMITS[call], sorted(counts.items(), key=lambda each: -each[1])[:8]


@pytest.fixture(scope="module")
def counted():
    """The bytecodes of all calls, counted in a process of its own, because other tests define subclasses of Tensor: then
    functions ask for `__torch_function__`."""
    environment = {**os.environ, "WEFT_CALLS": "python"}  # machine code has no bytecodes
    done = subprocess.run(
        [sys.executable, __file__, "--json"], capture_output=True, text=True, check=True, env=environment
    )
    return json.loads(done.stdout)


def main() -> None:
    if sys.argv[1:] == ["--json"]:
        print(json.dumps({call: bytecodes(call) for call in LIMITS}))
        return
    if sys.argv[1:]:
        for call in sys.argv[1:]:
            counts = bytecodes(call)
            print(f"{sum(counts.values()):6} {call}")
            for name, count in counts.most_common():
                print(f"{count:12} {name}")
        return
    for call, limit in LIMITS.items():
        count = sum(bytecodes(call).values())
        print(f"{count:6} {count - limit or '':6} {call}")


if __name__ == "__main__":
    main()
