"""ShardedTensors of several processes are PyTorch's."""

import pytest
from several_ranks import assert_same_on_every_rank, programs
from weft_ranks import said, start

MODULE = "sharded_programs"


@pytest.mark.parametrize("name", programs(MODULE))
@pytest.mark.parametrize("size", [2, 3])
def test_same_on_every_rank(size, name):
    assert_same_on_every_rank(size, MODULE, name)


def test_divided_into_uneven_pieces(tmp_path):
    program = """
import itertools, warnings
warnings.simplefilter("ignore", FutureWarning)
from weft.distributed._shard import _shard_tensor
from weft.distributed._shard.sharding_spec import ChunkShardingSpec
places = [f"rank:{each}/cpu" for each in range(size)]
specs = [ChunkShardingSpec(dim, order) for dim in (0, 1) for order in (places, places[::-1], places[1:] + places[:1])]
for before, after in itertools.product(specs, specs):
    for sizes in ((5, 4), (2, 3), (4, 7)):
        whole = torch.arange(float(sizes[0] * sizes[1])).reshape(sizes)
        x = _shard_tensor(whole, before).requires_grad_()
        own = x.local_tensor()
        x.reshard(after)
        assert torch.equal(x.local_tensor(), _shard_tensor(whole, after).local_tensor()), (before, after, sizes)
        x.local_tensor().square().sum().backward()
        assert torch.equal(own.grad, 2 * own), "gradient"
print("done")
"""
    assert said(start(program, 3, tmp_path)) == ["done\n"] * 3
