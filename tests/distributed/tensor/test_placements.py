"""Placements and styles of plans, beside PyTorch's."""

import pickle

import pytest
import torch.distributed.tensor.parallel
import torch.distributed.tensor.placement_types

import weft.distributed.tensor.parallel
import weft.distributed.tensor.placement_types

EXPRESSIONS = [
    "Shard(1), Replicate(), Partial(), Partial('avg'), _StridedShard(1, split_factor=2)",
    "str(Shard(-1)), str(Replicate()), str(Partial('max')), str(_StridedShard(1, split_factor=2))",
    "Shard(1) == Shard(1), Shard(1) == Shard(0), Replicate() == Partial(), len({Shard(1), Shard(1)})",
    "Shard(1).is_shard(), Shard(1).is_shard(0), Shard(1).is_replicate(), Replicate().is_replicate()",
    "Partial().is_partial(), Partial().is_partial('avg'), Partial('avg').reduce_op, Shard(2).dim",
    "[Shard.local_shard_size_and_offset(size, 4, rank) for size in (10, 3, 8) for rank in range(4)]",
    "pickle.loads(pickle.dumps([Shard(1), Replicate(), Partial('avg')]))",
    "isinstance(_StridedShard(1, split_factor=2), Shard), isinstance(Shard(0), Placement)",
    "Shard('a')",
    "parallel.ColwiseParallel(), parallel.RowwiseParallel(), parallel.SequenceParallel(sequence_dim=2)",
    "vars(parallel.ColwiseParallel(input_layouts=Shard(0), use_local_output=False))",
    "parallel.PrepareModuleInput(input_layouts=(Shard(0),), desired_input_layouts=(Replicate(),))",
    "parallel.PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=(Replicate(), None))",
    "parallel.PrepareModuleInput(input_layouts=(Shard(0),))",
    "vars(parallel.PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate()))",
    "parallel.PrepareModuleInputOutput(output_layouts=Shard(0), desired_output_layouts=Replicate())",
    "parallel.ParallelStyle()",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_placements_and_styles_are_pytorchs(expression):
    def evaluate(library):
        names = vars(library.distributed.tensor.placement_types)
        try:
            return repr(
                eval(expression, {**names, "parallel": library.distributed.tensor.parallel, "pickle": pickle})
            )
        except Exception as error:
            return type(error)

    assert evaluate(weft) == evaluate(torch)


def test_a_plan_is_not_carried_out():
    with pytest.raises(NotImplementedError, match="ColwiseParallel"):
        weft.distributed.tensor.parallel.ColwiseParallel()._apply(weft.nn.ReLU(), None)
