from weft_ranks import said, start


def test_split_groups_and_groups_that_others_do_not_know(tmp_path):
    program = """
dist.group.WORLD.bound_device_id = torch.device("cpu")
part = dist.split_group(split_ranks=[[0, 2], [1]])
x = torch.ones(1) * rank
dist.all_reduce(x, group=part)
local = dist.new_group([0, 1], use_local_synchronization=True) if rank < 2 else None
for _ in range(2):  # the same ranks again
    again = dist.new_group([2, 1, 0])
    dist.all_reduce(x, group=again)
    dist.destroy_process_group(again)
if rank < 2:
    dist.all_reduce(x, group=local)
dist.barrier()
print(x.item(), part.size(), dist.get_process_group_ranks(part))
"""
    first, second, third = said(start(program, 3, tmp_path))
    # 2 + 1 + 2 = 5, then 15; ranks 0 and 1 add theirs.
    assert (first, second, third) == ("30.0 2 [0, 2]\n", "30.0 1 [1]\n", "15.0 2 [0, 2]\n")


def test_processes_may_meet_again_at_an_address(tmp_path):
    program = """
import socket
dist.destroy_process_group()
dist.init_process_group("gloo", init_method=f"file://{store}2", rank=rank, world_size=size)
port = torch.zeros(1, dtype=torch.int64)
if rank == 0:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port[0] = free.getsockname()[1]
dist.broadcast(port, 0)
dist.destroy_process_group()
for _ in range(3):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port.item()}", rank=rank, world_size=size)
    x = torch.ones(1)
    dist.all_reduce(x)
    dist.destroy_process_group()
print(x.item())
"""
    assert said(start(program, 2, tmp_path)) == ["2.0\n"] * 2
