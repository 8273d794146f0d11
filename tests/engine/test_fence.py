"""The allocator that the tests run under with WEFT_FENCE: what it catches, and that it counts as the other one does."""

import signal

import pytest

SIDES = ("after", "before")
PRELUDE = "import ctypes, weft\nread = lambda address: ctypes.string_at(address, 1)\n"


def finished(run, side, code):
    return run("-c", PRELUDE + code, WEFT_FENCE=side)


@pytest.mark.parametrize("side", SIDES)
def test_inside_a_block_everything_can_be_read(run, side):
    code = """
for count in (1, 3, 1024, 100_000):
    t = weft.empty(count)
    read(t.data_ptr()), read(t.data_ptr() + 4 * count - 1)
"""
    assert finished(run, side, code).returncode == 0


@pytest.mark.parametrize("count", [0, 3])
@pytest.mark.parametrize("side, place", [("after", "at + 4 * t.numel()"), ("before", "at - 1")])
def test_outside_a_block_is_a_segmentation_fault(run, side, place, count):
    code = f"t = weft.empty({count}); at = t._storage.ptr; read({place})"
    assert finished(run, side, code).returncode == -signal.SIGSEGV


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_every_block_of_a_loop_has_both_sides_in_turn(run, step):
    code = f"""
kept = [weft.empty(3)._storage for _ in range({16 * step})]
ends = [(each.ptr + 12) % 4096 == 0 for each in kept]
print([len(set(ends[first::{step}])) for first in range({step})])
"""
    assert finished(run, "either", code).stdout == f"{[2] * step}\n"


@pytest.mark.parametrize("side", SIDES)
def test_a_freed_block_is_a_segmentation_fault(run, side):
    code = "t = weft.ones(3); at = t.data_ptr(); del t; kept = [weft.ones(3) for _ in range(9)]; read(at)"
    assert finished(run, side, code).returncode == -signal.SIGSEGV


@pytest.mark.parametrize("side", SIDES)
def test_arrays_of_numpy_are_copied_behind_the_fence(run, side):
    place = {"after": "at + 36", "before": "at - 1"}[side]
    code = f"t = weft.linalg.inv(weft.eye(3)); at = t.data_ptr(); read({place})"
    assert finished(run, side, code).returncode == -signal.SIGSEGV


@pytest.mark.parametrize("side", SIDES)
def test_new_memory_has_a_pattern(run, side):
    code = "print(weft.empty(3).isnan().all().item(), weft.empty(5000, dtype=weft.int8).unique().tolist())"
    assert finished(run, side, code).stdout.split() == ["True", "[-1]"]


@pytest.mark.parametrize("side", SIDES)
def test_memory_is_counted(run, side):
    code = """
stats = lambda: tuple(weft.cpu.memory_stats().values())
before = stats()
t, u = weft.empty(1000), weft.empty(3_000_000)
held = stats()
del t, u
print([b - a for a, b in zip(before, held)], [b - a for a, b in zip(held, stats())])
"""
    assert finished(run, side, code).stdout.split("] ") == [
        "[12004000, 12004000, 12004000",
        "[-12004000, 0, -12004000]\n",
    ]


def test_used_up_arenas_go_back_to_the_system(run):
    code = """
from weft.engine import fence
fence.ARENA, fence.RETIRED = 1 << 20, 2
kept = weft.ones(3)
for size in range(3000): weft.full((size,), 1.0)
weft.ones(1_000_000)
print(kept.tolist(), len(fence._retired) < 5)
"""
    assert finished(run, "after", code).stdout.split("] ") == ["[1.0, 1.0, 1.0", "True\n"]


def test_small_loops_are_shared(run):
    code = """
from weft.engine import workers
weft.set_num_threads(3)
assert (weft.arange(7) * 2).tolist() == [0, 2, 4, 6, 8, 10, 12]
print(len(workers._workers))
"""
    assert finished(run, "after", code).stdout.split() == ["2"]


def test_an_unknown_side_is_refused(run):
    assert (
        "WEFT_FENCE must be 'after', 'before' or 'either', not 'behind'" in finished(run, "behind", "").stderr
    )
