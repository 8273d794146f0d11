import pytest
import torch
from one_rank import groups, same

import weft


@pytest.fixture(autouse=True, scope="module")
def one_rank():
    with groups():
        yield


REDUCTIONS = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
DTYPES = ["float32", "float64", "bfloat16", "int16", "int64", "uint8", "bool", "complex64", "uint16"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_of_one_rank(op, dtype):
    def program(library):
        dist = library.distributed
        x = library.ones(3).to(getattr(library, dtype))
        y = library.zeros(3).to(getattr(library, dtype))
        reduction = getattr(dist.ReduceOp, op)
        return (
            dist.all_reduce(x, op=reduction),
            dist.reduce(x, 0, op=reduction),
            x,
            dist.reduce_scatter(y, [x]),
            y,
        )

    same(program)


def call(name, *arguments):
    """A program that calls a collective with arguments made from a library, and returns what it wrote."""

    def program(library):
        made = [argument(library) if callable(argument) else argument for argument in arguments]
        return getattr(library.distributed, name)(*made), made

    program.__name__ = name
    return program


def numbers(*shape):
    return lambda library: library.arange(int(torch.tensor(shape).prod()) * 1.0).reshape(shape)


def empty(*shape):
    return lambda library: library.zeros(shape)


def listed(*makers):
    return lambda library: [maker(library) for maker in makers]


CALLS = [
    call("broadcast", numbers(3), 0),
    call("broadcast", numbers(3), 1),
    call("broadcast", numbers(3)),
    call("broadcast", [1.0], 0),
    call("all_reduce", listed(numbers(3))),
    call("all_gather", listed(empty(3)), numbers(3)),
    call("all_gather", listed(empty(3), empty(3)), numbers(3)),
    call("all_gather", listed(empty(4)), numbers(3)),
    call("all_gather", [], numbers(3)),
    call("all_gather", listed(empty(2, 3)), numbers(3)),
    call("scatter", empty(2, 3), listed(numbers(3))),
    call("all_gather", empty(3), numbers(3)),
    call("all_gather", listed(lambda library: library.zeros(3, dtype=library.int32)), numbers(3)),
    call("all_gather_into_tensor", empty(2, 3), numbers(2, 3)),
    call("all_gather_into_tensor", empty(6), numbers(3)),
    call("all_gather_coalesced", listed(listed(empty(3), empty(2))), listed(numbers(3), numbers(2))),
    call("gather", numbers(3), listed(empty(3))),
    call("gather", numbers(3), listed(empty(3)), 0),
    call("gather", numbers(3), None, 0),
    call("gather", numbers(3), None, 1),
    call("gather", numbers(3), listed(empty(3)), 1),
    call("gather", numbers(3), listed(empty(3), empty(3))),
    call("scatter", empty(3), listed(numbers(3))),
    call("scatter", empty(3)),
    call("scatter", empty(3), None, 1),
    call("scatter", empty(3), listed(numbers(4))),
    call("scatter", empty(3), listed(numbers(3), numbers(3))),
    call("reduce_scatter", empty(3), listed(numbers(3))),
    call("reduce_scatter", empty(3), listed(numbers(3), numbers(3))),
    call("reduce_scatter_tensor", empty(3), numbers(3)),
    call("all_to_all", listed(empty(3)), listed(numbers(3))),
    call("all_to_all", listed(empty(3), empty(3)), listed(numbers(3))),
    call("all_to_all_single", empty(3), numbers(3)),
    call("all_to_all_single", empty(3), numbers(3), [3], [3]),
    call("all_to_all_single", empty(3), numbers(3), [2], [2]),
    call("all_to_all_single", empty(3), numbers(3), [2, 1], [2, 1]),
    call("all_to_all_single", empty(2, 3), lambda library: library.zeros(3, 2).t()),
    call("all_reduce_coalesced", listed(numbers(3), numbers(2))),
    call("all_gather_object", [None], {"a": 1}),
    call("all_gather_object", [], {"a": 1}),
    call("gather_object", 5, [None]),
    call("gather_object", 5),
    call("broadcast_object_list", [1, "a"], 0),
    call("broadcast_object_list", [1, "a"], 1),
    call("scatter_object_list", [None], [7]),
    call("scatter_object_list", [None], [7, 8]),
    call("scatter_object_list", [], [7]),
    call("scatter_object_list", [None], None),
    call("barrier"),
    call("monitored_barrier"),
    call("send", numbers(3), 0),
    call("isend", numbers(3), 0),
    call("recv", numbers(3), 0),
    call("irecv", numbers(3), 0),
    call("send_object_list", [1], 0),
    call("batch_isend_irecv", []),
    call("all_reduce", numbers(3), "sum"),
]


@pytest.mark.parametrize("program", CALLS, ids=lambda program: program.__name__)
def test_collective_of_one_rank(program):
    same(program)


def test_objects_are_copied():
    mine, gathered = {"a": [1]}, [None]
    weft.distributed.all_gather_object(gathered, mine)
    assert gathered == [mine] and gathered[0] is not mine


def test_all_gather_copies():
    x, outputs = weft.ones(2, requires_grad=True), [weft.zeros(2)]
    weft.distributed.all_gather(outputs, x)
    assert outputs[0] is not x and not outputs[0].requires_grad
    with pytest.raises(RuntimeError, match="leaf"):
        weft.distributed.all_gather([weft.ones(2, requires_grad=True)], weft.ones(2))


def test_async_collective_is_complete():
    def program(library):
        x = library.ones(2)
        work = library.distributed.all_reduce(x, async_op=True)
        work.wait()
        return work.is_completed(), work.is_success(), work.exception(), work.result()

    same(program)
    assert isinstance(weft.distributed.barrier(async_op=True), weft.distributed.Work)


def test_group_that_this_process_is_not_in():
    dist = weft.distributed
    outside = dist.GroupMember.NON_GROUP_MEMBER
    with pytest.warns(UserWarning, match="does not belong"):
        assert dist.all_reduce(weft.ones(2), group=outside) is None
    assert dist.get_rank(outside) == dist.get_world_size(outside) == -1


def test_point_to_point_operation_prints():
    def program(library):
        return library.distributed.P2POp(library.distributed.isend, library.ones(4), 0)

    same(program)
    same(lambda library: library.distributed.P2POp(library.distributed.send, library.ones(4), 0))


def test_coalescing_manager():
    dist = weft.distributed
    with dist._coalescing_manager() as manager:
        dist.all_reduce(weft.ones(2))
    manager.wait()
