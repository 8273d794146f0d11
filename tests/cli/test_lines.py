"""Scripts whose statements tell when they begin and end do what they did before."""

import contextlib
import io
import linecache
import traceback

import pytest

from weft.cli.lines import Lines

PROGRAMS = {
    "assignments": "a, (b, *c) = 1, (2, 3, 4)\na += 1\nd: int = a\nprint(a, b, c, d)",
    "branches": "for k in range(3):\n    if k == 1: print('one')\n    elif k > 1:\n        print('two')\n    else: print('none')",
    "loops": "for k in range(5):\n    if k == 1:\n        continue\n    if k == 3:\n        break\n    print(k)\nelse:\n    print('all')",
    "a loop to its end": "k = 3\nwhile k:\n    k -= 1\nelse:\n    print('all', k)",
    "an assignment in a head": "while (n := len([1])) > 1: pass\nif (m := n + 1) == 2: print(n, m)",
    "functions": "def f(n):\n    'text'\n    return 1 if n < 2 else n * f(n - 1)\nprint(f(5), f.__doc__)",
    "scopes": "n = 1\ndef f():\n    global n\n    n = 2\n    k = 3\n    def g():\n        nonlocal k\n        k += 1\n    g()\n    return k\nprint(f(), n)",
    "classes": "class A:\n    'text'\n    k = 1\n    if k: j = [0 for _ in range(k)]\n    def f(self):\n        return __class__.__name__\n"
    "class B(A):\n    def f(self):\n        return super().f() + '!'\nprint(B().f(), A.__doc__, sorted(k for k in vars(A) if k[0] != '_'))",
    "generators": "def f():\n    for k in range(3):\n        got = yield k\n        print(got)\n    yield from 'ab'\ng = f()\nprint(next(g), g.send('x'), list(g))",
    "interleaved": "def f(n):\n    for k in range(n):\n        k = k * 2\n        yield k\nfor a, b in zip(f(2), f(3)):\n    print(a, b)",
    "coroutines": "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return n\nasync def g():\n    async with c() as x:\n        pass\n"
    "    return [await f(1), x, [k async for k in h()]]\nimport contextlib\n@contextlib.asynccontextmanager\nasync def c():\n    yield 5\n"
    "async def h():\n    for k in range(2):\n        yield k\nprint(asyncio.run(g()))",
    "errors": "try:\n    if {}['a']: pass\nexcept KeyError as e:\n    print('caught', e)\nfinally:\n    print('done')\nx = 1\nprint(x)",
    "an error in a loop": "def f(k):\n    for j in range(3):\n        if 1 / (k - j): pass\nfor k in range(5):\n    try: f(k)\n    except ZeroDivisionError: print(k)",
    "contexts": "import contextlib\n@contextlib.contextmanager\ndef c(n):\n    print('in', n)\n    try: yield n\n    finally: print('out', n)\n"
    "with c(1) as a, c(2) as b:\n    print(a, b)\nwith contextlib.suppress(ValueError):\n    raise ValueError\nprint('on')",
    "groups of errors": "try:\n    raise ExceptionGroup('a', [KeyError(1)])\nexcept* KeyError as e:\n    print(e.exceptions)",
    "patterns": "match (1, 'a'):\n    case (n, str() as s) if n:\n        print(n, s)\n    case _:\n        print('other')",
    "imports": "'text'\nfrom __future__ import annotations\nfrom math import *\nimport os.path as p\nprint(sqrt(4), p.basename('a/b'), __doc__)",
    "other statements": "a = [1, 2]\ndel a[0]\nassert a, 'no'\nprint(a, (lambda x: x + 1)(1), f'{a!r}')\npass",
}


def output(run, names):
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        run(names)
    return shown.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_what_they_did(name):
    source = PROGRAMS[name]
    expected = output(lambda names: exec(compile(source, "a.py", "exec"), names), {"__name__": "__main__"})
    lines = Lines(source, "a.py")
    assert output(lines.run, {"__name__": "__main__"}) == expected
    assert lines.current is None


def test_calls():
    source = "total = 0\nfor k in range(4):\n    if k % 2:\n        total += k\n"
    lines = Lines(source, "a.py")
    lines.run({})
    assert lines.calls == {1: 1, 2: 4, 3: 4, 4: 2}
    assert sorted(lines.seconds) == [1, 2, 3, 4]
    assert min(lines.seconds.values()) >= 0
    lines.clear()
    assert lines.calls == lines.seconds == {}


def test_a_line_has_its_own_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("weft.cli.lines.perf_counter", lambda: now[0])

    def work(seconds):
        now[0] += seconds
        return True

    source = (
        "def f():\n"
        "    work(3)\n"
        "    return work(4)\n"
        "work(1), f()\n"
        "for k in (work(n) for n in (5, 6)):\n"
        "    work(10)\n"
        "if work(100): work(200)\n"
        "try:\n"
        "    if work(1000) and f() and 1 / 0: pass\n"
        "except ZeroDivisionError:\n"
        "    work(2000)\n"
    )
    lines = Lines(source, "a.py")
    assert lines.run({"work": work}) == now[0]
    assert lines.seconds == {2: 6, 3: 8, 4: 1, 5: 11, 6: 20, 7: 300, 9: 1000, 11: 2000}


def test_tracebacks_show_the_line(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("def f(x):\n    return (1 +\n            x)\n\nf('')\n")
    linecache.checkcache()
    with pytest.raises(TypeError) as raised:
        Lines(path.read_text(), str(path)).run({})
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert [(each.lineno, each.line) for each in frames if each.filename == str(path)] == [
        (5, "f('')"),
        (2, "return (1 +"),
    ]
