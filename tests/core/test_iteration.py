import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.dtype import float32
from weft.core.iteration import (
    aligned_shapes,
    broadcast_shapes,
    broadcast_stride,
    check_reach,
    loop_dims,
    result_spec,
)
from weft.core.size import Size
from weft.core.spec import make_spec


def test_broadcasting_fails_with_all_shapes_aligned():
    with pytest.raises(RuntimeError) as caught:
        broadcast_shapes("add", (4, 3, 2), (4, 3))
    first, _, *rows = str(caught.value).splitlines()
    assert (
        first == "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 2"
    )
    assert rows == ["  a: 4  3  2", "  b:    4  3", "           ^"]


def test_wide_sizes_stay_aligned():
    assert aligned_shapes("", [(100, 2), (3,)], 1).splitlines()[1:] == [
        "  a: 100  2",
        "  b:      3",
        "          ^",
    ]


@st.composite
def strided(draw, sizes):
    """Strides of a permuted, sliced or expanded tensor of these sizes."""
    order = draw(st.permutations(range(len(sizes))))
    strides, step = [0] * len(sizes), 1
    for dim in order:
        step *= draw(st.sampled_from([1, 1, 2]))
        strides[dim] = 0 if draw(st.integers(0, 5)) == 0 else step
        step *= sizes[dim]
    return tuple(strides)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_results_get_torchs_strides(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    operands = []
    for _ in range(data.draw(st.integers(1, 3))):
        own = [size if data.draw(st.integers(0, 3)) else 1 for size in sizes]
        operands.append((own, data.draw(strided(own))))
    theirs = [torch.empty(10_000).as_strided(own, stride) for own, stride in operands]
    want = theirs[0].neg() if len(theirs) == 1 else theirs[0] + theirs[1]
    if len(theirs) == 3:
        want = torch.addcmul(*theirs)
    ours = [make_spec(Size(own), stride, float32) for own, stride in operands]
    got = result_spec(ours, broadcast_shapes("op", *(o.shape for o in ours)), float32, ours[0].device)
    assert got.shape == tuple(want.shape)
    assert [a for a, size in zip(got.stride, got.shape) if size > 1] == [
        b for b, size in zip(want.stride(), want.shape) if size > 1
    ]


@given(data=st.data())
def test_merged_loops_visit_the_same_elements(data):
    sizes = Size(data.draw(st.lists(st.integers(1, 4), min_size=0, max_size=4)))
    rows = tuple(data.draw(strided(sizes)) for _ in range(2))
    merged_sizes, merged = loop_dims(sizes, rows)

    def visited(dims, strides):
        found = [(0, 0)]
        for size, a, b in zip(dims, *strides):
            found = [(x + i * a, y + i * b) for x, y in found for i in range(size)]
        return sorted(found)

    assert visited(sizes, rows) == visited(merged_sizes, merged)
    assert len(merged_sizes) <= max(len(sizes), 1)


def test_operands_that_do_not_broadcast_have_no_strides():
    own = make_spec(Size((2, 1)), (1, 1), float32)
    assert broadcast_stride(own, (3, 2, 4)) == (0, 1, 0)
    for sizes in ((2,), (4, 4), (1, 4), (0, 1)):
        with pytest.raises(RuntimeError, match="does not broadcast"):
            broadcast_stride(own, sizes)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3)), max_size=3),
    st.integers(-4, 12),
    st.integers(0, 12),
)
def test_a_loop_is_refused_exactly_if_it_leaves_its_operand(dims, start, length):
    sizes, strides = [size for size, _ in dims], [step for _, step in dims]
    operand = make_spec(Size((length,)), (1,), float32)
    places = [start]
    for size, step in dims:
        places = [place + k * step for place in places for k in range(size)]
    if all(0 <= place < length for place in places):
        check_reach("name", operand, sizes, strides, start)
    else:
        with pytest.raises(RuntimeError, match="reaches the elements"):
            check_reach("name", operand, sizes, strides, start)
