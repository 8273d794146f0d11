"""Two tiers of machine code, so that a program does not wait for LLVM when it runs a kernel for the first time.

LLVM compiles a kernel that the disk cache does not have without any passes: the *baseline* code. On AMD Zen 4 this takes 0.3 s for
the 117 modules of `bench/first_use.py`, and 2.0 s with the passes. The baseline code takes 2 to 40 times as long as the
optimized code. So a thread compiles the kernel once more, with the passes, as soon as the program asks for no new kernels, or calls
it often, and replaces the code. Kernels for much work are optimized before their first call (`optimize_now`).

Both tiers compute the same bits, because LLVM neither contracts nor reorders floating-point operations. Only the sign and the payload
of a NaN may differ: the sum of two NaNs is one of them, and LLVM may exchange the operands of an addition.

Callers keep addresses for ever. Therefore the address of a baseline function is that of a *stub*, a function that jumps
to the code that a word of memory, its *slot*, refers to. Processes that find a kernel in the disk cache use no stubs.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from ..core.locks import new_lock
from . import host, image
from .background import Background, in_background

BASELINE = host.Tier("; baseline\n", None, 0)

QUIET_S = 0.05  # without a new kernel, before the thread starts: a program that asks for its first kernels needs the processor
LONGEST_S = 1.0  # after which the thread compiles a kernel that is hot even if the program asks for more
HOT = 100  # calls, in which most baseline functions lose less time than LLVM needs (20 ms)
_STUBS = 64  # that are made at once; they take a page

_optimizer = Background("weft-optimizer")
_last_request = 0.0


class _Module(NamedTuple):
    """A module whose baseline code runs."""

    ir: host.IR
    names: tuple[str, ...]
    tier: host.Tier  # the one that shall replace the baseline code
    slots: tuple[int, ...]  # addresses, one for each name, see `_SLOT`
    stubs: tuple[int, ...]
    requested: float  # time.monotonic()


_pending: dict[int, _Module] = {}  # by the address of each stub


def compile_ir(ir: host.IR, *names: str, vectorize: bool = True) -> tuple[int, ...]:
    """Like `host.compile_ir`, at first perhaps with baseline code.

    The functions take addresses and integers, and return an address, an integer or nothing. A stub passes on the arguments that are in registers,
    and leaves the others on the stack. The module has no variables, because there may be two of each.
    """
    global _last_request
    tier = host.OPTIMIZED if vectorize else host.SIMPLIFIED
    code = host.cached(ir, tier)
    if code is not None:
        return host.link(code, names)
    if in_background() or not _optimizer.start():  # nobody waits for the code of a background thread
        return host.compile_ir(ir, *names, vectorize=vectorize)
    start = time.monotonic()
    stubs, slots = zip(*map(_new_stub, _baseline(ir, names)), strict=True)
    _last_request = time.monotonic()
    module = _Module(ir, names, tier, slots, stubs, _last_request)
    _pending.update(dict.fromkeys(stubs, module))
    host.announce(_last_request - start)
    _optimizer.submit(_optimize_one)
    return stubs


# The functions of baseline sources, which several kernels may share.
_linked: dict[tuple, tuple[int, ...]] = {}


def _baseline(ir: host.IR, names: Sequence[str]) -> tuple[int, ...]:
    if isinstance(ir, str):
        return _link_baseline(ir, names)
    ir = ir.baseline()
    key = ir.description(), *names
    if key not in _linked:
        _linked[key] = _link_baseline(ir, names)
    return _linked[key]


def _link_baseline(ir: host.IR, names: Sequence[str]) -> tuple[int, ...]:
    return host.link(host.cached(ir, BASELINE) or host.compiled(ir, BASELINE), names)


def optimize_now(*addresses: int) -> None:
    """Replace the baseline code of these functions before this returns. Addresses of other functions are ignored."""
    for address in addresses:
        if (module := _pending.get(address)) is not None:
            start = time.monotonic()
            _optimize(module)
            host.announce(time.monotonic() - start)


def finish() -> None:
    """Replace all baseline code, and wait until the thread has nothing left to do."""
    optimize_now(*list(_pending))
    _optimizer.wait()


def _optimize_one() -> None:
    """Wait until a module should be optimized, and do it."""
    while _pending:
        module = _most_urgent()
        if module is None:
            if _optimizer.stopped.wait(min(QUIET_S, LONGEST_S)):
                return
            continue
        try:
            _optimize(module)
        except Exception:  # if there is no memory, for example; the baseline code continues to run
            _forget(module)
        return


def _most_urgent() -> _Module | None:
    """The module that was called most often; while the program asks for kernels, only one that is hot."""
    now = time.monotonic()
    is_quiet = now >= _last_request + QUIET_S
    modules = [each for each in list(_pending.values()) if is_quiet or now >= each.requested + LONGEST_S]
    module = max(modules, key=_calls, default=None)
    return module if module is not None and (is_quiet or _calls(module) >= HOT) else None


def _calls(module: _Module) -> int:
    return sum(ctypes.c_size_t.from_address(slot + 8).value for slot in module.slots)


def _optimize(module: _Module) -> None:
    """Compile a module with passes and let its stubs jump there. Two threads may do it at the same time."""
    code = host.cached(module.ir, module.tier) or host.compiled(module.ir, module.tier)
    for slot, address in zip(module.slots, host.link(code, module.names), strict=True):
        _set_slot(slot, address)
    _forget(module)


def _forget(module: _Module) -> None:
    for stub in module.stubs:
        _pending.pop(stub, None)


# ---- Stubs ---------------------------------------------------------------------------------------------------------------


def stub_ir(machine: str, system: str) -> str:
    """The functions of a stub, which name the arguments that calls have in registers: 8 on ARM, 4 on Windows, else 6.

    machine: what `platform.machine()` says. system: `sys.platform`.
    """
    count = 8 if machine in ("aarch64", "arm64") else 4 if system == "win32" else 6
    names = "abcdefgh"[:count]
    arguments = ", ".join(f"i64 %{name}" for name in names)
    return f"""@"weft.slot" = external global i8
define i64 @stub({arguments}) {{
%code = load atomic ptr, ptr @"weft.slot" acquire, align 8
%result = musttail call i64 %code({arguments})
ret i64 %result
}}
define i64 @counted({arguments}) {{
%calls = getelementptr i8, ptr @"weft.slot", i64 8
%before = load i64, ptr %calls, align 8
%now = add i64 %before, 1
store i64 %now, ptr %calls, align 8
%baseline = getelementptr i8, ptr @"weft.slot", i64 16
%code = load ptr, ptr %baseline, align 8
%result = musttail call i64 %code({arguments})
ret i64 %result
}}
"""


_STUB = stub_ir(platform.machine(), sys.platform)
# A slot: the code that the stub jumps to, the number of calls, and the baseline code, to which `counted` jumps. Optimized code is not
# counted, because the threads that share a loop would wait for each other's writes.
_SLOT = 24  # bytes
_making = new_lock()
_free: list[tuple[int, int, int]] = []  # (stub, counted, slot)


def _new_stub(address: int) -> tuple[int, int]:
    """Make a stub that jumps to `address`, and its slot."""
    while True:
        try:
            stub, counted, slot = _free.pop()
        except IndexError:
            with _making:
                _make_stubs()
        else:
            _set_slot(slot + 16, address)
            _set_slot(slot, counted)
            return stub, slot


def _make_stubs() -> None:
    # Without code generation of level 3, the functions would use the registers of arguments.
    code = host.cached(_STUB, host.SIMPLIFIED) or host.compiled(_STUB, host.SIMPLIFIED)
    found = image.unpacked(code)
    count = _STUBS if found else 1
    slots = ctypes.addressof(host.keepalive((ctypes.c_char * (_SLOT * count))()))
    host.add_symbol("weft.slot", slots)
    if found is None:
        stub, counted = host.link(code, ("stub", "counted"))
        step = 0
    else:
        many = image.repeated(found, count, _SLOT)
        start, step = image.loaded(many, host.address_of), len(many.code) // count
        stub, counted = (start + found.functions[name] for name in ("stub", "counted"))
    _free.extend((stub + step * k, counted + step * k, slots + _SLOT * k) for k in range(count))


def _set_slot(slot: int, address: int) -> None:
    """Let the stub jump to `address`. This is one store, so that other threads see a whole address."""
    ctypes.c_size_t.from_address(slot).value = address
